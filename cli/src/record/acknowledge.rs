//! Waiting for what was appended, in order, and telling what is durable.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use serde::Serialize;
use strandline::{AppendError, Journal};
use strandline_core::{Pcpj, Seq};

use super::ingest::Receipt;
use crate::progress::Counter;

/// How often it looks whether a weaker sync policy has made more durable, in the absence of new lines.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why recording stopped.
#[derive(Debug, thiserror::Error)]
#[error("line {line}{} not recorded: {error}", and_more(*count))]
pub(super) struct Lost {
    /// The first line that was lost.
    line: u64,
    /// Lines that were lost with it, itself included.
    count: u64,
    /// Why.
    #[source]
    error: AppendError,
}

fn and_more(count: u64) -> String {
    match count {
        1 => " was".to_string(),
        _ => format!(" and {} more were", count - 1),
    }
}

/// The last line on standard output.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Summary {
    first: Option<u64>,
    last: Option<u64>,
    count: u64,
}

/// Waits for receipts, prints acknowledgements, and keeps count.
///
/// `first <= printed_end <= acknowledged_end`; sequence numbers have no gaps, so these say it all.
pub(super) struct Acknowledger {
    journal: Journal<Pcpj>,
    /// Where numbers are printed; nothing without `--ack`, or once nobody reads them.
    acks: Option<BufWriter<StdoutLock<'static>>>,
    /// Why they could not be written, unless it is that nobody reads them.
    unwritten: Option<io::Error>,
    /// The first number of this run.
    first: Option<Seq>,
    printed_end: Seq,
    /// Under a weaker sync policy this can be ahead of what is durable.
    acknowledged_end: Seq,
    counter: Counter,
}

impl Acknowledger {
    pub(super) fn new(journal: Journal<Pcpj>, ack: bool) -> Self {
        let acks = ack.then(|| BufWriter::new(io::stdout().lock()));
        // Between printed numbers, or what is typed, a moving line would only disturb.
        let counter = Counter::new("events", !ack && !io::stdin().is_terminal());
        Self {
            journal,
            acks,
            unwritten: None,
            first: None,
            printed_end: Seq::ZERO,
            acknowledged_end: Seq::ZERO,
            counter,
        }
    }

    /// Waits for every receipt until there are no more; gives the first failure, behind which
    /// nothing is waited for except what is at hand.
    pub(super) fn run(&mut self, receipts: Receiver<Receipt>) -> Option<Lost> {
        let mut lost: Option<Lost> = None;
        while let Some(receipt) = self.next(&receipts, lost.is_some()) {
            let Receipt { line, ticket } = receipt;
            match ticket.wait() {
                Ok(seq) => self.take(seq),
                Err(error) => lost.get_or_insert(Lost { line, count: 0, error }).count += 1,
            }
        }
        lost
    }

    /// Prints the numbers that became durable and were not printed yet, and makes sure that they arrive.
    pub(super) fn print_durable(&mut self) {
        self.print();
        if let Some(Err(error)) = self.acks.as_mut().map(Write::flush) {
            self.give_up(error);
        }
    }

    /// Numbers are not printed any more. The input is recorded all the same.
    fn give_up(&mut self, error: io::Error) {
        if let Some(acks) = self.acks.take() {
            // What it holds is not to be tried again.
            drop(acks.into_parts());
        }
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.unwritten.get_or_insert(error);
        }
    }

    /// Says what was recorded.
    ///
    /// # Errors
    /// Something could not be written to standard output, other than because nobody reads it.
    pub(super) fn print_summary(&mut self) -> io::Result<()> {
        self.counter.finish();
        let durable_end = self.journal.durable_end().min(self.acknowledged_end);
        let recorded =
            self.first.map(|first| (first, first.until(durable_end))).filter(|(_, count)| *count > 0);
        let summary = Summary {
            first: recorded.map(|(first, _)| first.get()),
            last: recorded.map(|_| durable_end.get() - 1),
            count: recorded.map_or(0, |(_, count)| count),
        };
        // Given up first: it holds the lock of standard output.
        self.acks = None;
        let mut out = io::stdout().lock();
        let printed = serde_json::to_writer(&mut out, &summary).map_err(io::Error::from);
        let printed = printed.and_then(|()| writeln!(out)).and_then(|()| out.flush());
        match (self.unwritten.take(), printed) {
            (Some(error), _) => Err(error),
            (None, Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            (None, printed) => printed,
        }
    }

    /// The next receipt. Before it blocks for one, everything that is durable is printed.
    fn next(&mut self, receipts: &Receiver<Receipt>, only_at_hand: bool) -> Option<Receipt> {
        loop {
            match receipts.try_recv() {
                Ok(receipt) => return Some(receipt),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => self.print_durable(),
            }
            if only_at_hand {
                return None;
            }
            if self.acks.is_none() || self.printed_end == self.acknowledged_end {
                return receipts.recv().ok();
            }
            match receipts.recv_timeout(LOOK_AGAIN) {
                Ok(receipt) => return Some(receipt),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn take(&mut self, seq: Seq) {
        if self.first.is_none() {
            self.first = Some(seq);
            self.printed_end = seq;
        }
        self.acknowledged_end = seq.next();
        self.counter.add(1);
        self.print();
    }

    fn print(&mut self) {
        let Some(acks) = &mut self.acks else { return };
        if self.printed_end == self.acknowledged_end {
            return;
        }
        let end = self.journal.durable_end().min(self.acknowledged_end);
        while self.printed_end < end {
            if let Err(error) = writeln!(acks, "{}", self.printed_end) {
                return self.give_up(error);
            }
            self.printed_end = self.printed_end.next();
        }
    }
}
