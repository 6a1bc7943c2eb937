//! Following a journal that another process writes.
//!
//! Nothing announces what a writer does, so its files are looked at again and again. A look is cheap: frames are
//! only ever added directly behind the last one, so as long as there are zeros, nothing came. Only a segment in
//! which something came is read again, alone, and so is one that got a successor.

use std::time::Duration;

use strandline::{Access, Disk, OfflineReader};
use strandline_core::{Framing, Listing, ReadUpTo, SegmentFile, SegmentId, Seq, Verdict};

use crate::outcome::Failure;
use crate::progress::WatchedDisk;
use crate::target::Source;

/// Between two looks at what a writer did.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_TORN: Duration = Duration::from_secs(1);
/// No frame begins with this many zeros: those of a record without payload and with number 0 are fewer.
const PEEK_BYTES: usize = 16;

/// What a look found.
pub(super) enum Step<F: Framing> {
    /// New records.
    Records(Box<OfflineReader<F, WatchedDisk>>),
    /// Records from `from` on were removed; it goes on at `first`.
    Trimmed {
        /// The first record that was not read.
        from: Seq,
        /// The first that is kept.
        first: Seq,
    },
    /// The tail is torn, and no writer is at it. Told once.
    Torn(String),
    /// Nothing new.
    Nothing,
    /// A segment is damaged.
    Damaged,
    /// The journal ends behind the reader's place.
    Replaced {
        /// Where it ends; nothing if it is gone.
        end: Option<Seq>,
    },
}

/// A place in a journal that somebody else writes.
pub(super) struct Follower<'a> {
    source: &'a Source,
    next: Seq,
    /// The last segment as it was seen, and where its frames ended.
    seen: Option<(SegmentId, u64)>,
    told_torn: bool,
}

impl<'a> Follower<'a> {
    /// The next record to print is `next`.
    pub(super) const fn new(source: &'a Source, next: Seq) -> Self {
        Self { source, next, seen: None, told_torn: false }
    }

    /// Records before this were printed; not all of those that were handed out, if a file was removed meanwhile.
    pub(super) fn printed_up_to(&mut self, end: Seq, all: bool) {
        self.next = self.next.max(end);
        if !all {
            self.seen = None;
        }
    }

    /// How long to wait before the next look. A torn tail stays until its writer is started again, and to judge it
    /// takes more than a look.
    pub(super) const fn pause(&self) -> Duration {
        if self.told_torn { PAUSE_TORN } else { PAUSE }
    }

    /// Looks once.
    pub(super) fn step<F: Framing>(&mut self) -> Result<Step<F>, Failure> {
        let segments = match self.source.files()?.listing {
            Listing::Segments(segments) => segments,
            Listing::Bare { len } => vec![SegmentFile { id: Listing::BARE, len }],
        };
        let Some(first) = segments.first() else { return Ok(Step::Replaced { end: None }) };
        if self.next < first.id.0 {
            return Ok(self.trimmed(first.id.0));
        }
        let successor_of = |at: usize| segments.get(at + 1).map(|segment| segment.id.0);
        for (at, segment) in segments.iter().enumerate() {
            match successor_of(at) {
                Some(successor) if successor <= self.next => {}
                // A segment that is not there any more was removed meanwhile: the next listing tells.
                Some(successor) => return Ok(self.sealed(segment.id, successor)?.unwrap_or(Step::Nothing)),
                None => return Ok(self.last(segment)?.unwrap_or(Step::Nothing)),
            }
        }
        Ok(Step::Nothing)
    }

    /// A segment with a successor: all of it is durable.
    fn sealed<F: Framing>(&mut self, segment: SegmentId, successor: Seq) -> Result<Option<Step<F>>, Failure> {
        let Some(found) = self.source.inspect_segment::<F>(segment)? else { return Ok(None) };
        if found.report.end != successor {
            return Ok(Some(Step::Damaged));
        }
        Ok(Some(Step::Records(Box::new(found.reader(self.next, ReadUpTo::Written)))))
    }

    /// The last segment: what a mark proves. Only if something came since the last look.
    fn last<F: Framing>(&mut self, file: &SegmentFile) -> Result<Option<Step<F>>, Failure> {
        let segment = file.id;
        if self.is_unchanged(file) {
            return Ok(None);
        }
        let Some(found) = self.source.inspect_segment::<F>(segment)? else { return Ok(None) };
        let report = &found.report;
        if report.first > self.next && segment != Listing::BARE {
            return Ok(Some(self.trimmed(report.first)));
        }
        if report.end < self.next {
            return Ok(Some(Step::Replaced { end: Some(report.end) }));
        }
        // From here on, all that was seen is told.
        self.seen = report.segments.last().map(|report| (segment, report.bytes));
        let until = super::follow_up_to(report);
        let end = if until == ReadUpTo::Durable { report.proven_end } else { report.end };
        if end > self.next {
            return Ok(Some(Step::Records(Box::new(found.reader(self.next, until)))));
        }
        Ok(match &report.verdict {
            Verdict::Sound => {
                self.told_torn = false;
                None
            }
            Verdict::Cut(cut) if !found.in_flight && !self.told_torn => {
                self.told_torn = true;
                Some(Step::Torn(cut.to_string()))
            }
            Verdict::Refused(_) if !found.in_flight => Some(Step::Damaged),
            _ => None,
        })
    }

    fn trimmed<F: Framing>(&mut self, first: Seq) -> Step<F> {
        let from = std::mem::replace(&mut self.next, first);
        Step::Trimmed { from, first }
    }

    /// Whether nothing stands behind the frames that were there at the last look, and all of them still are.
    fn is_unchanged(&self, file: &SegmentFile) -> bool {
        let Some((segment, end)) = self.seen.filter(|(seen, _)| *seen == file.id) else { return false };
        if file.len < end {
            return false;
        }
        let disk = self.source.disk();
        let mut peek = [0; PEEK_BYTES];
        let read = disk
            .open(&self.source.file_name(segment), Access::Read)
            .and_then(|file| disk.read_at(&file, end, &mut peek));
        // What cannot be read is looked at in earnest, which says why.
        read.is_ok() && peek.iter().all(|byte| *byte == 0)
    }
}
