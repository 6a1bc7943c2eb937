//! Where a playback's records come from: a view that is lent to it, or a scan that hands on what it verifies.

use bytes::Bytes;

use super::error::{PlaybackError, Side};
use crate::{
    Batch, Cursor, IoFailure, Listing, Pryj, ReadError, ReadRequest, ReadUpTo, Replay, Report, Scan,
    ScanOptions, ScanStep, Seq, View,
};

/// What a source has next.
pub(super) enum Sourced {
    Record(Seq, Bytes),
    Read(ReadRequest),
    End,
}

/// A place in a journal, read over a view, and the records that were read and not given out.
#[derive(Debug)]
pub struct FromView {
    cursor: Cursor<Pryj>,
    batch: Option<Batch<Pryj>>,
}

/// The scan of a journal, and the records that it has verified last and that were not given out.
#[derive(Debug)]
pub struct FromScan {
    from: Seq,
    /// Always there between two calls.
    step: Option<ScanStep<Pryj>>,
    batch: Option<Batch<Pryj>>,
    progress: Progress,
}

/// How far a scan is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    records: u64,
    bytes: u64,
    bytes_in_all: u64,
}

impl FromView {
    pub(super) const fn new(from: Seq) -> Self {
        Self { cursor: Cursor::new(from, ReadUpTo::Durable), batch: None }
    }

    pub(super) fn handle_read(&mut self, answer: Result<Bytes, IoFailure>) -> Result<(), ReadError> {
        self.cursor.handle_read(answer)
    }

    pub(super) fn poll<X>(&mut self, view: &View<Pryj>, side: Side) -> Result<Sourced, PlaybackError<X>> {
        loop {
            if let Some((seq, payload)) = self.batch.as_mut().and_then(Batch::pop_first) {
                return Ok(Sourced::Record(seq, payload));
            }
            match self.cursor.poll(view) {
                Replay::Records(batch) => self.batch = Some(batch),
                Replay::Read(request) => return Ok(Sourced::Read(request)),
                Replay::CaughtUp => return Ok(Sourced::End),
                // An empty log stands before the first event.
                Replay::Beyond { .. } => return Ok(Sourced::End),
                Replay::Trimmed { first } => return Err(PlaybackError::Trimmed { side, first }),
            }
        }
    }
}

impl FromScan {
    /// The records of these files, from `from` on.
    pub(super) fn new(files: Listing, from: Seq) -> Self {
        let progress = Progress { records: 0, bytes: 0, bytes_in_all: files.bytes() };
        Self { from, step: Some(Scan::start(files, ScanOptions::default())), batch: None, progress }
    }

    /// What the scan wants to read; nothing at its end.
    pub(super) const fn wants(&self) -> Option<ReadRequest> {
        match &self.step {
            Some(ScanStep::Read(request, _)) => Some(*request),
            Some(ScanStep::Done(..)) | None => None,
        }
    }

    /// The next record that was verified. It ends where the scan does.
    pub(super) fn poll(&mut self) -> Sourced {
        match self.batch.as_mut().and_then(Batch::pop_first) {
            Some((seq, payload)) => Sourced::Record(seq, payload),
            None => {
                self.batch = None;
                self.wants().map_or(Sourced::End, Sourced::Read)
            }
        }
    }

    /// Takes what the scan wanted. What is left of the records before is forgotten.
    ///
    /// # Panics
    /// If nothing was wanted: a programmer error.
    pub(super) fn handle_read(&mut self, answer: Result<Bytes, IoFailure>) {
        let step = self.step.take();
        let is_asked = matches!(step, Some(ScanStep::Read(..)));
        assert!(is_asked, "a read is only handled after the scan asked for it");
        let Some(ScanStep::Read(_, scan)) = step else { return };
        self.progress.bytes += answer.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let (step, batch) = scan.resume_handing_on(answer);
        self.progress.records += batch.as_ref().map_or(0, Batch::len);
        self.batch = batch.map(|batch| batch.since(self.from));
        self.step = Some(step);
    }

    /// How many records there are: known at the end, and guessed from bytes before.
    pub(super) fn records(&self) -> u64 {
        match &self.step {
            Some(ScanStep::Done(_, report)) => report.records(),
            _ => self.progress.guess(),
        }
    }

    /// What the scan found, once it wants nothing any more.
    pub(super) fn finish(self) -> Option<(View<Pryj>, Report)> {
        match self.step {
            Some(ScanStep::Done(view, report)) => Some((*view, *report)),
            Some(ScanStep::Read(..)) | None => None,
        }
    }
}

impl Progress {
    /// As many as there would be if the rest were like what was read.
    fn guess(self) -> u64 {
        let guess = u128::from(self.records) * u128::from(self.bytes_in_all) / u128::from(self.bytes.max(1));
        u64::try_from(guess).map_or(u64::MAX, |guess| guess.max(self.records))
    }
}
