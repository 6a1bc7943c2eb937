//! Standard input, line by line, into the journal.

use std::io::{self, BufReader, Stdin};
use std::sync::mpsc::SyncSender;

use strandline::{AppendError, Journal, Ticket};
use strandline_core::{EventDraft, PAYLOAD_BYTES_MAX, Pcpj, Seq};

use crate::event_lines::{BadLine, Content, Defaults, EventLines};
use crate::lines::Lines;
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

/// Reads, checks and appends.
pub(super) struct Ingest {
    journal: Journal<Pcpj>,
    /// Go on behind a bad line.
    skip_bad: bool,
    receipts: SyncSender<Receipt>,
    /// The number after that of the last line: what asks for it is not recorded behind a hole.
    next: Option<Seq>,
    skipped: u64,
}

impl Ingest {
    pub(super) fn new(journal: Journal<Pcpj>, skip_bad: bool, receipts: SyncSender<Receipt>) -> Self {
        Self { journal, skip_bad, receipts, next: None, skipped: 0 }
    }

    /// Takes in all of standard input.
    pub(super) fn run(mut self, defaults: Defaults) -> Ingested {
        let input = BufReader::with_capacity(INPUT_BUFFER_BYTES, io::stdin());
        let mut lines = EventLines::new(Lines::new(input, PAYLOAD_BYTES_MAX), defaults);
        let stop = self.take_all(&mut lines).err();
        Ingested { skipped: self.skipped, stop }
    }

    fn take_all(&mut self, lines: &mut EventLines<BufReader<Stdin>>) -> Result<(), Stop> {
        loop {
            let event = match lines.next_line() {
                Ok(Some(Ok(Content::Event(event)))) => event,
                Ok(Some(Ok(Content::Blank))) => continue,
                Ok(Some(Err(bad))) => {
                    self.skip(&bad)?;
                    continue;
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(Stop::Input(error)),
            };
            let line = event.line();
            match self.append(event.draft()) {
                Ok(ticket) => {
                    self.next = Some(ticket.seq().next());
                    self.receipts.send(Receipt { line, ticket }).map_err(|_| Stop::NotWanted)?;
                }
                // Lines before it were lost. The other thread, which waits for them, says which and why.
                Err(AppendError::NotNext { .. }) => return Err(Stop::NotWanted),
                Err(error) => return Err(Stop::Append { line, error }),
            }
        }
    }

    /// Tells a line that is not recorded.
    fn skip(&mut self, bad: &BadLine) -> Result<(), Stop> {
        say(format_args!("{bad}"));
        self.skipped += 1;
        if self.skip_bad { Ok(()) } else { Err(Stop::BadLine) }
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
