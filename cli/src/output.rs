//! How a record is printed.

use std::borrow::Cow;
use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::value::RawValue;
use strandline_core::{Event, Framing, Pcpj, Pryj, PryjRecord, Timestamp};

use strandline_bus::cloud_event::{Attributes, CloudEvent};

/// Standard output is written in pieces of this many bytes.
pub(crate) const OUTPUT_BUFFER_BYTES: usize = 64 * 1024;

/// What is printed of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line
    Jsonl,
    /// The payload's bytes as they were recorded, and a line feed
    Payload,
    /// The sequence number, and the payload in hexadecimal
    Hex,
}

/// Which records are printed. Only events have a source and a type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) source: Option<String>,
    pub(crate) event_type: Option<String>,
}

impl Filter {
    /// Whether it lets every record pass.
    pub(crate) const fn is_empty(&self) -> bool {
        self.source.is_none() && self.event_type.is_none()
    }
}

/// A framing whose records can be printed.
pub(crate) trait Printable: Framing {
    /// One JSON object, without a line feed.
    fn print_json(record: Self::Record<'_>, out: &mut impl Write) -> io::Result<()>;

    /// The record's payload. (The bound makes the lifetime early bound, here and in the implementations.)
    fn payload<'a: 'a>(record: Self::Record<'a>) -> &'a [u8];

    /// When it was recorded, where that is known.
    fn timestamp(record: Self::Record<'_>) -> Option<Timestamp>;

    /// Whether the filter lets it pass.
    fn is_wanted(record: Self::Record<'_>, filter: &Filter) -> bool;
}

/// Prints one record, with its line feed.
pub(crate) fn print<F: Printable>(
    record: F::Record<'_>,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        Format::Jsonl => F::print_json(record, out)?,
        Format::Payload => out.write_all(F::payload(record))?,
        Format::Hex => {
            write!(out, "{} ", F::seq(record))?;
            for byte in F::payload(record) {
                write!(out, "{byte:02x}")?;
            }
        }
    }
    out.write_all(b"\n")
}

/// RFC 3339 in UTC with milliseconds; nothing for a time beyond the year 9999.
pub(crate) fn rfc3339(timestamp: Timestamp) -> Option<String> {
    let timestamp = jiff::Timestamp::from_millisecond(timestamp.as_millis()).ok()?;
    Some(format!("{timestamp:.3}"))
}

/// An event as one JSON object.
#[derive(Serialize)]
struct EventLine<'a> {
    sequence: u64,
    time: Option<String>,
    /// Only where `time` cannot say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ms: Option<i64>,
    domain: u8,
    #[serde(rename = "type")]
    event_type: &'a str,
    source: &'a str,
    #[serde(flatten)]
    body: &'a Body<'a>,
}

/// The payload, as far as it can be understood.
#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    CloudEvent {
        data: Option<&'a RawValue>,
        attributes: Attributes<'a>,
    },
    Json {
        data: &'a RawValue,
    },
    /// Some other writer's bytes.
    Opaque {
        data_base64: String,
    },
}

impl Printable for Pcpj {
    fn print_json(event: Event<'_>, out: &mut impl Write) -> io::Result<()> {
        let text = std::str::from_utf8(event.payload).ok().map(on_one_line);
        let cloud_event = text.as_deref().and_then(CloudEvent::read);
        let body = match (&cloud_event, &text) {
            (Some(cloud_event), _) => {
                Body::CloudEvent { data: cloud_event.data(), attributes: cloud_event.attributes() }
            }
            (None, Some(text)) => match serde_json::from_str(text) {
                Ok(data) => Body::Json { data },
                Err(_) => Body::opaque(event.payload),
            },
            (None, None) => Body::opaque(event.payload),
        };
        print_event(&event, &body, out)
    }

    fn payload<'a: 'a>(event: Event<'a>) -> &'a [u8] {
        event.payload
    }

    fn timestamp(event: Event<'_>) -> Option<Timestamp> {
        Some(event.timestamp)
    }

    fn is_wanted(event: Event<'_>, filter: &Filter) -> bool {
        filter.source.as_ref().is_none_or(|source| event.source == source)
            && filter.event_type.as_ref().is_none_or(|event_type| event.event_type == event_type)
    }
}

impl Body<'_> {
    fn opaque(payload: &[u8]) -> Self {
        Self::Opaque { data_base64: BASE64_STANDARD.encode(payload) }
    }
}

fn print_event(event: &Event<'_>, body: &Body<'_>, out: &mut impl Write) -> io::Result<()> {
    let time = rfc3339(event.timestamp);
    let line = EventLine {
        sequence: event.seq.get(),
        time_ms: time.is_none().then(|| event.timestamp.as_millis()),
        time,
        domain: event.domain,
        event_type: event.event_type,
        source: event.source,
        body,
    };
    Ok(serde_json::to_writer(out, &line)?)
}

/// JSON that was written over several lines, on one: within a value, line ends are nothing but white space.
fn on_one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ").into() } else { text.into() }
}

/// An opaque record as one JSON object.
#[derive(Serialize)]
struct RecordLine<'a> {
    seq: u64,
    payload: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_utf8: Option<&'a str>,
}

impl Printable for Pryj {
    fn print_json(record: PryjRecord<'_>, out: &mut impl Write) -> io::Result<()> {
        let line = RecordLine {
            seq: record.seq.get(),
            payload: BASE64_STANDARD.encode(record.payload),
            payload_utf8: std::str::from_utf8(record.payload).ok(),
        };
        Ok(serde_json::to_writer(out, &line)?)
    }

    fn payload<'a: 'a>(record: PryjRecord<'a>) -> &'a [u8] {
        record.payload
    }

    fn timestamp(_: PryjRecord<'_>) -> Option<Timestamp> {
        None
    }

    fn is_wanted(_: PryjRecord<'_>, _: &Filter) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use strandline_core::Seq;

    use super::*;

    fn line(payload: &[u8], ms: i64) -> String {
        let mut out = Vec::new();
        let event = Event {
            seq: Seq::new(7),
            timestamp: Timestamp::from_millis(ms),
            domain: 3,
            event_type: "t\"",
            source: "/ä",
            payload,
        };
        print::<Pcpj>(event, Format::Jsonl, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const HEAD: &str =
        r#"{"sequence":7,"time":"2023-11-14T22:13:20.005Z","domain":3,"type":"t\"","source":"/ä","#;

    #[test]
    fn an_event_is_one_object_and_its_digits_are_kept() {
        let ms = 1_700_000_000_005;
        assert_eq!(line(b" 1.50e2 ", ms), format!("{HEAD}\"data\":1.50e2}}\n"));
        assert_eq!(line(b"{\"a\":\r\n [1,\n2]}", ms), format!("{HEAD}\"data\":{{\"a\":   [1, 2]}}}}\n"));
        assert_eq!(line(b"\xff", ms), format!("{HEAD}\"data_base64\":\"/w==\"}}\n"));
        assert_eq!(line(b"no json", ms), format!("{HEAD}\"data_base64\":\"bm8ganNvbg==\"}}\n"));
        let event = br#"{"specversion":"1.0","id":"1","type":"t","source":"s","data":{"n":1.0}}"#;
        let attributes = r#"{"specversion":"1.0","id":"1","type":"t","source":"s"}"#;
        assert_eq!(line(event, ms), format!("{HEAD}\"data\":{{\"n\":1.0}},\"attributes\":{attributes}}}\n"));
    }

    #[test]
    fn a_time_that_has_no_name_is_given_as_a_number() {
        assert!(line(b"1", i64::MAX).contains(r#""time":null,"time_ms":9223372036854775807,"#));
        assert!(line(b"1", -1).contains(r#""time":"1969-12-31T23:59:59.999Z","#));
    }

    #[test]
    fn an_opaque_record_is_base64_and_text_where_it_is_text() {
        let print = |payload: &[u8], format| {
            let mut out = Vec::new();
            print::<Pryj>(PryjRecord { seq: Seq::new(0), payload }, format, &mut out).unwrap();
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(print(b"hi", Format::Jsonl), "{\"seq\":0,\"payload\":\"aGk=\",\"payload_utf8\":\"hi\"}\n");
        assert_eq!(print(b"\xfe", Format::Jsonl), "{\"seq\":0,\"payload\":\"/g==\"}\n");
        assert_eq!(print(b"h\x00i", Format::Payload), "h\0i\n");
        assert_eq!(print(b"h\x0fi", Format::Hex), "0 680f69\n");
    }
}
