//! Lines of JSON as events: what `record` takes from its input, and why it does not take a line.

use std::io::{self, BufRead};

use serde_json::value::RawValue;
use strandline_core::{DraftError, EventDraft, Framing, PAYLOAD_BYTES_MAX, Pcpj};

use crate::lines::{Line, Lines};
use strandline_bus::cloud_event::{CloudEvent, Members};

pub use strandline_bus::cloud_event::Incomplete;

/// What an event gets that its line does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The domain of every event.
    pub domain: u8,
    /// The type of events that are no CloudEvents.
    pub event_type: String,
    /// The source of events that are no CloudEvents.
    pub source: String,
}

/// Reads an input of JSON Lines as events, one line after the other.
///
/// Every line is an event, blank, or a [`BadLine`] that says which one it is and why: none is passed over.
#[derive(Debug)]
pub struct EventLines<R> {
    lines: Lines<R>,
    defaults: Defaults,
}

/// What a good line holds.
#[derive(Debug)]
pub enum Content<'a> {
    /// Nothing but white space.
    Blank,
    /// An event.
    Event(EventLine<'a>),
}

/// A line that is an event which can be stored.
#[derive(Debug)]
pub struct EventLine<'a> {
    line: u64,
    payload: &'a [u8],
    cloud_event: Option<CloudEvent<'a>>,
    defaults: &'a Defaults,
}

/// A line that is no event.
#[derive(Debug, thiserror::Error)]
#[error("line {line} was not recorded: {reason}")]
pub struct BadLine {
    /// Its number, from 1 on.
    pub line: u64,
    /// What is wrong with it.
    #[source]
    pub reason: Reason,
}

/// Why a line is no event.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// It is longer than a payload may be.
    #[error("longer than {PAYLOAD_BYTES_MAX} bytes (16 MiB)")]
    TooLong,
    /// It holds a NUL byte, at this column from 1 on.
    #[error("a NUL byte at column {0}, as a crash leaves them in a file that was appended to")]
    Nul(usize),
    /// It is not UTF-8 from this column on, counted from 1.
    #[error("not UTF-8 at column {0}")]
    Encoding(usize),
    /// It begins with a byte order mark.
    #[error("it begins with a byte order mark: remove it")]
    ByteOrderMark,
    /// It is not one JSON value; what is wrong, and at which column.
    #[error("not one JSON value: {0}")]
    Json(String),
    /// It claims to be a CloudEvents 1.0 object and is not whole.
    #[error(transparent)]
    CloudEvent(#[from] Incomplete),
    /// The journal stores no such event.
    #[error(transparent)]
    Draft(#[from] DraftError),
}

impl<R: BufRead> EventLines<R> {
    /// Events from these lines.
    #[must_use]
    pub const fn new(lines: Lines<R>, defaults: Defaults) -> Self {
        Self { lines, defaults }
    }

    /// What the next line holds; nothing at the end of the input.
    ///
    /// # Errors
    /// The input cannot be read. A bad line is no error of the input: the next call goes on behind it.
    pub fn next_line(&mut self) -> io::Result<Option<Result<Content<'_>, BadLine>>> {
        let number = self.lines.number() + 1;
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let content = read(line, number, &self.defaults);
        Ok(Some(content.map_err(|reason| BadLine { line: number, reason })))
    }
}

impl<'a> EventLine<'a> {
    /// The line's number, from 1 on.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Whether the line is a CloudEvent itself.
    #[must_use]
    pub const fn is_cloud_event(&self) -> bool {
        self.cloud_event.is_some()
    }

    /// The event to append. Its payload is the line, byte for byte.
    #[must_use]
    pub fn draft(&self) -> EventDraft<'_> {
        let (event_type, source): (&str, &str) = match &self.cloud_event {
            Some(event) => (&event.event_type, &event.source),
            None => (&self.defaults.event_type, &self.defaults.source),
        };
        EventDraft { domain: self.defaults.domain, event_type, source, payload: self.payload }
    }
}

fn read<'a>(line: Line<'a>, number: u64, defaults: &'a Defaults) -> Result<Content<'a>, Reason> {
    let Line::Whole(payload) = line else { return Err(Reason::TooLong) };
    let text = check_text(payload)?;
    if text.trim_ascii().is_empty() {
        return Ok(Content::Blank);
    }
    let event = EventLine { line: number, payload, cloud_event: check_json(text)?, defaults };
    Pcpj::measure(event.draft(), PAYLOAD_BYTES_MAX)?;
    Ok(Content::Event(event))
}

fn check_text(line: &[u8]) -> Result<&str, Reason> {
    if let Some(at) = line.iter().position(|byte| *byte == 0) {
        return Err(Reason::Nul(at + 1));
    }
    let text = std::str::from_utf8(line).map_err(|error| Reason::Encoding(error.valid_up_to() + 1))?;
    if text.starts_with('\u{feff}') {
        return Err(Reason::ByteOrderMark);
    }
    Ok(text)
}

/// Checks that the text is one JSON value; gives the event that it is, if it is one.
fn check_json(text: &str) -> Result<Option<CloudEvent<'_>>, Reason> {
    let no_json = |error: serde_json::Error| {
        // The position is said in the words of this command: the line has its number already.
        let (message, column) = (error.to_string(), error.column());
        let reason = message.split(" at line ").next().map(str::to_string).unwrap_or_default();
        Reason::Json(format!("{reason} at column {column}"))
    };
    if text.trim_ascii_start().starts_with('{') {
        let members = Members::parse(text).map_err(no_json)?;
        return Ok(CloudEvent::from_members(members)?);
    }
    serde_json::from_str::<&RawValue>(text).map_err(no_json)?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::borrow::Cow;

    fn verdict(line: &[u8]) -> String {
        match check_text(line).and_then(check_json) {
            Ok(event) => format!("{}", event.is_some()),
            Err(bad) => bad.to_string(),
        }
    }

    #[test]
    fn any_json_value_is_good() {
        for good in [
            "null",
            " 1.50e400 ",
            "\"\\ud800\"",
            "{\"\\udc00\":1}",
            "[]",
            "{\"a\":1,\"a\":2}",
            &"[".repeat(9),
            "{}",
        ] {
            let closed =
                format!("{good}{}", if good.starts_with("[[") { "]".repeat(9) } else { String::new() });
            assert_eq!(verdict(closed.as_bytes()), "false", "{closed}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(verdict(deep.as_bytes()), "false", "depth is no danger");
        assert_eq!(verdict(br#"{"specversion":"1.0","id":"1","type":"t","source":"s"}"#), "true");
    }

    #[test]
    fn a_bad_line_says_what_is_wrong_and_where() {
        for (line, message) in [
            (&b"{\"a\":\0}"[..], "a NUL byte at column 6"),
            (b"\"\xff\"", "not UTF-8 at column 2"),
            (b"\xef\xbb\xbf{}", "byte order mark"),
            (b"{} {}", "not one JSON value: trailing characters at column 4"),
            (b"{\"a\":1", "not one JSON value: EOF while parsing an object at column 6"),
            (b"nope", "not one JSON value: expected ident"),
            (b"{\"specversion\":\"1.0\"}", "a CloudEvents 1.0 object needs \"id\""),
        ] {
            let found = verdict(line);
            assert!(found.contains(message), "{found}");
        }
    }

    #[test]
    fn a_cloud_event_lifts_its_type_and_source() {
        let line = r#"{"specversion":"1.0","id":"1","type":"t","source":"\u00e4"}"#;
        let event = check_json(line).unwrap().unwrap();
        assert_eq!((event.event_type, event.source), (Cow::from("t"), Cow::from("ä")));
    }
}
