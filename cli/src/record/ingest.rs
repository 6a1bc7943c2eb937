//! Standard input, line by line, into the journal.

use std::io::{self, BufReader, Stdin};
use std::sync::mpsc::SyncSender;

use serde_json::value::RawValue;
use strandline::{AppendError, Journal, Ticket};
use strandline_core::{DraftError, EventDraft, PAYLOAD_BYTES_MAX, Pcpj, Seq};

use super::LineSettings;
use crate::cloud_event::{CloudEvent, Incomplete, Members};
use crate::lines::{Line, Lines};
use crate::outcome::say;

const INPUT_BUFFER_BYTES: usize = 64 * 1024;

/// A line that was accepted, and is committed soon.
pub(super) struct Receipt {
    /// Its number, from 1 on.
    pub(super) line: u64,
    /// Says how it ends.
    pub(super) ticket: Ticket<Pcpj>,
}

/// What became of the input.
#[derive(Debug, Default)]
pub(super) struct Ingested {
    /// Bad lines.
    pub(super) skipped: u64,
    /// Why it stopped before the input's end.
    pub(super) stop: Option<Stop>,
}

/// Why reading stopped early.
#[derive(Debug)]
pub(super) enum Stop {
    /// A bad line; it was told.
    BadLine,
    /// Standard input failed.
    Input(io::Error),
    /// The journal refused.
    Append {
        /// The line.
        line: u64,
        /// Why.
        error: AppendError,
    },
    /// An earlier line was lost, and nobody takes the receipts of later ones any more.
    NotWanted,
}

/// Why a line is no event.
#[derive(Debug, thiserror::Error)]
enum BadLine {
    #[error("longer than {PAYLOAD_BYTES_MAX} bytes (16 MiB)")]
    TooLong,
    #[error("a NUL byte at column {0}, as a crash leaves them in a file that was appended to")]
    Nul(usize),
    #[error("not UTF-8 at column {0}")]
    Encoding(usize),
    #[error("it begins with a byte order mark: remove it")]
    ByteOrderMark,
    #[error("not one JSON value: {0}")]
    Json(String),
    #[error(transparent)]
    CloudEvent(#[from] Incomplete),
    #[error(transparent)]
    Draft(#[from] DraftError),
}

/// Reads, checks and appends.
pub(super) struct Ingest {
    journal: Journal<Pcpj>,
    settings: LineSettings,
    receipts: SyncSender<Receipt>,
    /// The number after that of the last line: what asks for it is not recorded behind a hole.
    next: Option<Seq>,
    skipped: u64,
}

impl Ingest {
    pub(super) fn new(journal: Journal<Pcpj>, settings: LineSettings, receipts: SyncSender<Receipt>) -> Self {
        Self { journal, settings, receipts, next: None, skipped: 0 }
    }

    /// Takes in all of standard input.
    pub(super) fn run(mut self) -> Ingested {
        let input = BufReader::with_capacity(INPUT_BUFFER_BYTES, io::stdin());
        let mut lines = Lines::new(input, PAYLOAD_BYTES_MAX);
        let stop = self.take_all(&mut lines).err();
        Ingested { skipped: self.skipped, stop }
    }

    fn take_all(&mut self, lines: &mut Lines<BufReader<Stdin>>) -> Result<(), Stop> {
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(()),
                Err(error) => return Err(Stop::Input(error)),
            };
            let appended = self.take(line);
            let line = lines.number();
            match appended {
                Ok(None) => {}
                Ok(Some(ticket)) => {
                    self.next = Some(ticket.seq().next());
                    self.receipts.send(Receipt { line, ticket }).map_err(|_| Stop::NotWanted)?;
                }
                Err(Refused::Line(bad)) => {
                    say(format_args!("line {line} was not recorded: {bad}"));
                    self.skipped += 1;
                    if !self.settings.skip_bad {
                        return Err(Stop::BadLine);
                    }
                }
                // Lines before it were lost. The other thread, which waits for them, says which and why.
                Err(Refused::Journal(AppendError::NotNext { .. })) => return Err(Stop::NotWanted),
                Err(Refused::Journal(error)) => return Err(Stop::Append { line, error }),
            }
        }
    }

    /// Appends a line; nothing for a blank one.
    fn take(&self, line: Line<'_>) -> Result<Option<Ticket<Pcpj>>, Refused> {
        let Line::Whole(payload) = line else { return Err(BadLine::TooLong.into()) };
        let text = check_text(payload)?;
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let settings = &self.settings;
        let event = check_json(text)?;
        let (event_type, source): (&str, &str) = match &event {
            Some(event) => (&event.event_type, &event.source),
            None => (&settings.event_type, &settings.source),
        };
        let draft = EventDraft { domain: settings.domain, event_type, source, payload };
        match self.append(draft) {
            Ok(ticket) => Ok(Some(ticket)),
            Err(AppendError::Draft(error)) => Err(BadLine::from(error).into()),
            Err(error) => Err(Refused::Journal(error)),
        }
    }

    fn append(&self, draft: EventDraft<'_>) -> Result<Ticket<Pcpj>, AppendError> {
        loop {
            let appended = match self.next {
                Some(next) => self.journal.append_nowait_at(next, draft),
                None => self.journal.append_nowait(draft),
            };
            match appended {
                // Too much waits already. However the flush ends, the next try says what is to be said.
                Err(AppendError::Full { .. }) => drop(self.journal.flush()),
                appended => return appended,
            }
        }
    }
}

enum Refused {
    Line(BadLine),
    Journal(AppendError),
}

impl<E: Into<BadLine>> From<E> for Refused {
    fn from(bad: E) -> Self {
        Self::Line(bad.into())
    }
}

fn check_text(line: &[u8]) -> Result<&str, BadLine> {
    if let Some(at) = line.iter().position(|byte| *byte == 0) {
        return Err(BadLine::Nul(at + 1));
    }
    let text = std::str::from_utf8(line).map_err(|error| BadLine::Encoding(error.valid_up_to() + 1))?;
    if text.starts_with('\u{feff}') {
        return Err(BadLine::ByteOrderMark);
    }
    Ok(text)
}

/// Checks that the text is one JSON value; gives the event that it is, if it is one.
fn check_json(text: &str) -> Result<Option<CloudEvent<'_>>, BadLine> {
    let no_json = |error: serde_json::Error| {
        // The position is said in the words of this command: the line has its number already.
        let (message, column) = (error.to_string(), error.column());
        let reason = message.split(" at line ").next().map(str::to_string).unwrap_or_default();
        BadLine::Json(format!("{reason} at column {column}"))
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
