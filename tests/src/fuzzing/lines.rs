//! The lines that `record` takes: each is an event with the line as its payload, blank, or told by its number.

use std::io::BufReader;

use bytes::BytesMut;
use serde_json::Value;
use strandline::core::{Framing, LABEL_BYTES_MAX, PAYLOAD_BYTES_MAX, Pcpj, Seq, Timestamp};
use strandline_cli::event_lines::{Content, Defaults, EventLines, Reason};
use strandline_cli::lines::{Line, Lines};

const TYPE: &str = "event";
const SOURCE: &str = "stdin";

pub(super) fn run(bytes: &[u8]) {
    let Some(([limit, buffer], input)) = bytes.split_first_chunk::<2>() else { return };
    // Mostly small, so that lines beyond the limit, and lines across several reads, are seen.
    let bytes_max = if *limit < 128 { usize::from(*limit) } else { PAYLOAD_BYTES_MAX };
    let buffer_bytes = 1 + usize::from(*buffer);
    let wanted = plain_lines(input);
    split(input, &wanted, bytes_max, buffer_bytes);
    events(input, &wanted, bytes_max, buffer_bytes);
}

/// The lines, by the rule in the plainest words.
fn plain_lines(input: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    // What follows the last line feed is a line only if there is something.
    lines.pop_if(|last| last.is_empty());
    lines.into_iter().map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
}

fn split(input: &[u8], wanted: &[&[u8]], bytes_max: usize, buffer_bytes: usize) {
    let mut lines = Lines::new(BufReader::with_capacity(buffer_bytes, input), bytes_max);
    for (index, wanted) in wanted.iter().enumerate() {
        match lines.next_line().expect("memory can be read") {
            Some(Line::Whole(line)) => {
                assert_eq!(line, *wanted);
                assert!(line.len() <= bytes_max, "no more than the limit is held");
            }
            Some(Line::TooLong) => assert!(wanted.len() > bytes_max, "{} bytes fit", wanted.len()),
            None => panic!("line {} is lost", index + 1),
        }
        assert_eq!(lines.number(), index as u64 + 1);
    }
    assert_eq!(lines.next_line().expect("memory can be read"), None);
}

fn events(input: &[u8], wanted: &[&[u8]], bytes_max: usize, buffer_bytes: usize) {
    let defaults = Defaults { domain: 7, event_type: TYPE.to_owned(), source: SOURCE.to_owned() };
    let lines = Lines::new(BufReader::with_capacity(buffer_bytes, input), bytes_max);
    let mut lines = EventLines::new(lines, defaults);
    for (index, line) in wanted.iter().enumerate() {
        let number = index as u64 + 1;
        let Some(content) = lines.next_line().expect("memory can be read") else {
            panic!("line {number} is lost");
        };
        match content {
            Ok(Content::Blank) => {
                assert!(line.iter().all(u8::is_ascii_whitespace), "only white space is ignored");
            }
            Ok(Content::Event(event)) => {
                assert_eq!(event.line(), number);
                accepted(line, event.draft());
            }
            Err(bad) => {
                assert_eq!(bad.line, number);
                assert!(bad.to_string().starts_with(&format!("line {number} was not recorded: ")), "{bad}");
                refused(line, &bad.reason, bytes_max);
            }
        }
    }
    assert!(lines.next_line().expect("memory can be read").is_none(), "there are no more lines");
}

/// The event is the line, and the journal gives it back.
fn accepted(line: &[u8], draft: <Pcpj as Framing>::Draft<'_>) {
    assert_eq!(draft.payload, line, "the payload is the line, byte for byte");
    assert_eq!(draft.domain, 7);
    let text = std::str::from_utf8(line).expect("what is no text is refused");
    assert!(!line.contains(&0));
    assert!(serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok(), "{text:?}");
    // Numbers beyond a double, deep nesting and half surrogates are JSON all the same, but no value here.
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let (event_type, source) = labels(&value).expect("what lacks an attribute is refused");
        assert_eq!((draft.event_type, draft.source), (&*event_type, &*source));
    }
    let len = Pcpj::measure(draft, PAYLOAD_BYTES_MAX).expect("an event line can be stored");
    let mut frame = BytesMut::new();
    Pcpj::encode(Pcpj::layout(2), Seq::new(1), Timestamp::from_millis(0), draft, &mut frame);
    assert_eq!(frame.len(), len);
    let event = Pcpj::decode(&frame).expect("what was encoded decodes");
    let read = (event.domain, event.event_type, event.source, event.payload);
    assert_eq!(read, (draft.domain, draft.event_type, draft.source, draft.payload));
}

/// The type and source that a JSON value gives its event; nothing where an attribute is missing.
fn labels(value: &Value) -> Option<(String, String)> {
    if value.get("specversion").and_then(Value::as_str) != Some("1.0") {
        return Some((TYPE.to_owned(), SOURCE.to_owned()));
    }
    let text = |name: &str| value.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    text("id")?;
    Some((text("type")?, text("source")?))
}

/// What is refused is wrong in the way that is told.
fn refused(line: &[u8], reason: &Reason, bytes_max: usize) {
    let text = std::str::from_utf8(line);
    let value = text.ok().map(serde_json::from_str::<Value>);
    match reason {
        Reason::TooLong => assert!(line.len() > bytes_max),
        Reason::Nul(column) => assert_eq!(line.iter().position(|byte| *byte == 0), Some(column - 1)),
        Reason::Encoding(column) => {
            assert_eq!(text.expect_err("it is no text").valid_up_to(), column - 1);
        }
        Reason::ByteOrderMark => assert!(line.starts_with("\u{feff}".as_bytes())),
        Reason::Json(told) => {
            assert!(matches!(value, Some(Err(_))), "{told}: {line:?} is JSON");
            assert!(told.contains(" at column "), "{told}");
        }
        Reason::CloudEvent(_) => {
            let value = value.and_then(Result::ok);
            assert!(value.is_none_or(|value| labels(&value).is_none()), "nothing is missing");
        }
        Reason::Draft(_) => {
            let labels = value.and_then(Result::ok).and_then(|value| labels(&value));
            let wrong = |label: &str| label.len() > LABEL_BYTES_MAX || label.chars().any(char::is_control);
            assert!(labels.is_none_or(|(event_type, source)| wrong(&event_type) || wrong(&source)));
        }
    }
}
