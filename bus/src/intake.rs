//! Events as they are published: CloudEvents 1.0 in the structured, the batched and the binary mode of its HTTP binding, or
//! plain JSON with type and source in the query.

use std::borrow::Cow;
use std::fmt;

use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserializer as _;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use strandline_core::EventDraft;

use crate::cloud_event::{CloudEvent, Members, check_attribute};
use crate::headers;
use crate::parameters::Parameters;
use crate::problem::Problem;

/// An event that may be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    event_type: String,
    source: String,
    domain: u8,
    /// A CloudEvent's; with the source it says whether it was published before.
    pub(crate) id: Option<String>,
    payload: Vec<u8>,
}

/// The parameters of a publish.
const KNOWN: &[&str] = &["type", "source", "domain"];
const USE: &str = "use application/cloudevents+json, application/cloudevents-batch+json, headers `ce-...`, or application/json with ?type= and ?source=";

/// Notices of a stream have types that begin with this.
const RESERVED: &str = "strandline.";

/// What a request publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Intake {
    One(Incoming),
    Batch(Vec<Incoming>),
}

impl Incoming {
    /// What streams say themselves cannot be said by others.
    fn checked(self) -> Result<Self, Problem> {
        if self.event_type.starts_with(RESERVED) {
            let detail = format!(
                "types that begin with `{RESERVED}` are what streams say of themselves: use another one"
            );
            return Err(Problem::bad(detail));
        }
        Ok(self)
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn draft(&self) -> EventDraft<'_> {
        let Self { event_type, source, domain, payload, .. } = self;
        EventDraft { domain: *domain, event_type, source, payload }
    }

    /// A CloudEvent in JSON, kept byte for byte.
    fn structured(text: &str, domain: u8) -> Result<Self, Problem> {
        let members = Members::parse(text).map_err(|error| no_json(&error))?;
        let event = CloudEvent::from_members(members).map_err(|error| Problem::bad(error.to_string()))?;
        let event = event.ok_or_else(|| {
            Problem::bad("it is no CloudEvent: give it `specversion` \"1.0\", `id`, `source` and `type`")
        })?;
        event.check().map_err(|error| Problem::bad(error.to_string()))?;
        let incoming = Self {
            event_type: event.event_type.to_string(),
            source: event.source.to_string(),
            domain,
            id: Some(event.id().to_string()),
            payload: text.as_bytes().to_vec(),
        };
        incoming.checked()
    }
}

/// Reads what is published.
pub(crate) fn read(headers: &HeaderMap, query: Option<&str>, body: &[u8]) -> Result<Intake, Problem> {
    let parameters = Parameters::parse(query, KNOWN)?;
    let domain = parameters.domain()?;
    let content_type = headers::one(headers, "Content-Type")?;
    check_encoding(headers)?;
    let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let is_binary = headers.contains_key("ce-specversion");
    match media_type.trim().to_ascii_lowercase().as_str() {
        "application/cloudevents+json" => Ok(Intake::One(Incoming::structured(text(body)?, domain)?)),
        "application/cloudevents-batch+json" => batch(text(body)?, domain).map(Intake::Batch),
        _ if is_binary => binary(headers, content_type, body, domain).map(Intake::One),
        "application/json" | "text/json" => plain(&parameters, text(body)?, domain).map(Intake::One),
        "" => {
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("there is no content type: {USE}")))
        }
        other => {
            let detail = format!("events are not taken as `{other}`: {USE}");
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// A body is taken as it is: what is compressed would be refused as no JSON, or kept as data that nobody can read.
fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter().map(|value| value.as_bytes());
    match encodings.find(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        None => Ok(()),
        Some(encoding) => {
            let encoding = String::from_utf8_lossy(encoding);
            let detail = format!("bodies are not taken with `Content-Encoding: {encoding}`: send it without");
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

fn text(body: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(body)
        .map_err(|error| Problem::bad(format!("the body is no UTF-8 at byte {}", error.valid_up_to())))
}

fn no_json(error: &serde_json::Error) -> Problem {
    Problem::bad(format!("the body is not what JSON allows here: {error}"))
}

fn batch(text: &str, domain: u8) -> Result<Vec<Incoming>, Problem> {
    let mut batch = Batch { domain, refused: None };
    let mut json = serde_json::Deserializer::from_str(text);
    let read = json.deserialize_seq(&mut batch);
    match batch.refused {
        Some(problem) => Err(problem),
        None => read.and_then(|events| json.end().map(|()| events)).map_err(|error| no_json(&error)),
    }
}

/// Reads a batch event by event, and nothing behind the first that is none: what is small in a body may be large here.
struct Batch {
    domain: u8,
    refused: Option<Problem>,
}

impl<'a> Visitor<'a> for &mut Batch {
    type Value = Vec<Incoming>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut events: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some(event) = events.next_element::<&RawValue>()? {
            match Incoming::structured(event.get(), self.domain) {
                Ok(event) => read.push(event),
                Err(problem) => {
                    let (at, why) = (read.len(), problem.detail);
                    let detail =
                        format!("event {at} of the batch, counted from 0: {why}; none was published");
                    self.refused = Some(Problem { detail, ..problem });
                    return Err(A::Error::custom("an event is none"));
                }
            }
        }
        Ok(read)
    }
}

fn plain(parameters: &Parameters, text: &str, domain: u8) -> Result<Incoming, Problem> {
    let why = "plain JSON does not say it; or send a CloudEvent";
    serde_json::from_str::<&RawValue>(text).map_err(|error| no_json(&error))?;
    // Whoever reads it back would take it for one, of another type and source than it was published with.
    let members = Members::parse(text).ok();
    if members.is_some_and(|members| !matches!(CloudEvent::from_members(members), Ok(None))) {
        return Err(Problem::bad("it is a CloudEvent: send it as application/cloudevents+json"));
    }
    let incoming = Incoming {
        event_type: parameters.required("type", why)?.to_string(),
        source: parameters.required("source", why)?.to_string(),
        domain,
        id: None,
        payload: text.as_bytes().to_vec(),
    };
    incoming.checked()
}

/// The attributes are in headers, and the body is the data.
fn binary(
    headers: &HeaderMap,
    content_type: Option<&str>,
    body: &[u8],
    domain: u8,
) -> Result<Incoming, Problem> {
    let mut event = Map::new();
    for (name, value) in headers {
        let Some(name) = name.as_str().strip_prefix("ce-") else { continue };
        check_attribute(name).map_err(|error| Problem::bad(error.to_string()))?;
        if matches!(name, "data" | "data_base64") {
            return Err(Problem::bad(format!("`{name}` is no attribute: send the data as the body")));
        }
        let value = unquoted(value.as_bytes())
            .and_then(|value| unescaped(&value))
            .ok_or_else(|| Problem::bad(format!("the header `ce-{name}` is no percent-encoded UTF-8")))?;
        if name == "datacontenttype" && content_type != Some(&*value) {
            let detail =
                "`ce-datacontenttype` is not what the header `Content-Type` says, which counts: leave it out";
            return Err(Problem::bad(detail));
        }
        if event.insert(name.to_string(), Value::String(value)).is_some() {
            return Err(Problem::bad(format!("the header `ce-{name}` is given twice: give it once")));
        }
    }
    if let Some(content_type) = content_type {
        event.insert("datacontenttype".into(), content_type.into());
    }
    let mut text = serde_json::to_string(&event).map_err(|error| no_json(&error))?;
    if !body.is_empty() {
        // The body's own bytes stay as they are.
        text.pop();
        text.push_str(&data_member(content_type, body)?);
        text.push('}');
    }
    Incoming::structured(&text, domain)
}

/// The member `,"data":...` or `,"data_base64":...`.
fn data_member(content_type: Option<&str>, body: &[u8]) -> Result<String, Problem> {
    let content_type = content_type.unwrap_or("application/json").to_ascii_lowercase();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let is_json =
        media_type == "application/json" || media_type.ends_with("+json") || media_type == "text/json";
    if is_json {
        let json: &RawValue = serde_json::from_str(text(body)?).map_err(|error| no_json(&error))?;
        return Ok(format!(",\"data\":{}", json.get()));
    }
    let as_text = media_type.starts_with("text/").then(|| std::str::from_utf8(body).ok()).flatten();
    Ok(match as_text {
        Some(text) => format!(",\"data\":{}", Value::from(text)),
        None => format!(",\"data_base64\":\"{}\"", BASE64_STANDARD.encode(body)),
    })
}

/// A header's value without the double quotes that older senders put around it (RFC 7230, 3.2.6); nothing if they do not match.
fn unquoted(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(quoted) = value.strip_prefix(b"\"") else { return Some(value.into()) };
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    loop {
        match rest {
            [b'"'] => return Some(bytes.into()),
            [b'"', ..] | [] => return None,
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
}

/// A header's value without percent-encoding, if it is UTF-8 then.
fn unescaped(value: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            // A sign would be read as part of the number.
            let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).ok()
}
