//! Writing the unproven end of a segment again, in place, verified as it is re-read.

use bytes::Bytes;

use crate::framing::{Frame, Front, front};
use crate::{Effect, Framing, Layout, ReadRequest, SegmentId, Seq};

/// How far the rewrite has come.
#[derive(Debug)]
pub(super) struct Rewrite {
    segment: SegmentId,
    layout: Layout,
    /// Bytes before this were written again.
    position: u64,
    end: u64,
    /// The next record, once one was seen.
    expected: Option<Seq>,
    /// The frame at `position` needs at least this many bytes.
    need: usize,
    pub(super) step: RewriteStep,
}

/// What was asked for last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RewriteStep {
    Reading,
    /// This many bytes.
    Writing(usize),
    Syncing,
}

/// The bytes are not what they were when they were scanned.
pub(super) struct Changed {
    pub(super) offset: u64,
}

impl Rewrite {
    pub(super) const fn new(segment: SegmentId, layout: Layout, from: u64, end: u64) -> Self {
        Self { segment, layout, position: from, end, expected: None, need: 0, step: RewriteStep::Reading }
    }

    /// The next effect: read what comes next, or sync when all of it was written.
    pub(super) fn next(&mut self) -> Effect {
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        if left == 0 {
            self.step = RewriteStep::Syncing;
            return Effect::Sync { segment: self.segment };
        }
        self.step = RewriteStep::Reading;
        let len = self.need.max(ReadRequest::LEN_MAX).min(left);
        Effect::Read(ReadRequest { segment: self.segment, offset: self.position, len })
    }

    /// Verifies the whole frames of what was read, and gives the write that puts them back.
    pub(super) fn put_back<F: Framing>(&mut self, bytes: &[u8]) -> Result<Effect, Changed> {
        let mut at = if self.position == 0 { F::HEADER_LEN } else { 0 };
        let left = self.end - self.position;
        loop {
            let changed = Changed { offset: self.position + at as u64 };
            if at as u64 == left {
                break;
            }
            match front::<F>(self.layout, bytes.get(at..).unwrap_or_default()) {
                Front::Whole { len, frame: Frame::Record(record, _) } => {
                    let seq = F::seq(record);
                    if self.expected.is_some_and(|expected| expected != seq) {
                        return Err(changed);
                    }
                    self.expected = Some(seq.next());
                    at += len;
                }
                Front::Whole { len, frame: Frame::Mark(_) } => at += len,
                Front::Whole { .. } | Front::Unreadable => return Err(changed),
                Front::Incomplete { need } => {
                    self.need = at + need;
                    if self.need as u64 > left {
                        return Err(changed);
                    }
                    break;
                }
            }
        }
        let whole = bytes.get(..at).unwrap_or_default();
        if whole.is_empty() {
            return Ok(self.next());
        }
        self.need = 0;
        self.step = RewriteStep::Writing(at);
        let data = Bytes::copy_from_slice(whole);
        Ok(Effect::Write { segment: self.segment, offset: self.position, data })
    }

    /// The last write is done.
    pub(super) fn wrote(&mut self, len: usize) {
        self.position += len as u64;
    }
}
