//! What is no CloudEvent itself, as the data of one.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

/// A CloudEvent around something else.
#[derive(Clone, Debug, Serialize)]
pub struct Envelope<'a> {
    specversion: &'static str,
    id: String,
    source: &'a str,
    #[serde(rename = "type")]
    event_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datacontenttype: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_base64: Option<String>,
}

impl<'a> Envelope<'a> {
    /// One around a payload: JSON as it was written, anything else in Base64.
    #[must_use]
    pub fn new(id: String, event_type: &'a str, source: &'a str, payload: &'a [u8]) -> Self {
        let json = std::str::from_utf8(payload).ok().and_then(|text| serde_json::from_str(text).ok());
        Self {
            specversion: "1.0",
            id,
            source,
            event_type,
            time: None,
            datacontenttype: json.map(|_: &RawValue| "application/json"),
            data: json,
            data_base64: json.is_none().then(|| BASE64_STANDARD.encode(payload)),
        }
    }

    /// The same, of this time, as RFC 3339 has it.
    #[must_use]
    pub fn at(self, time: Option<String>) -> Self {
        Self { time, ..self }
    }

    /// The CloudEvent in JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
