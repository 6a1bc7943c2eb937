//! The walk over the frames of one segment.

use super::evidence::{BadFrame, Wanted};
use super::report::{LastSegment, Proof, Refusal, SegmentReport};
use super::verdict::Row;
use crate::framing::{Frame, Front, front};
use crate::view::SegmentView;
use crate::{Framing, Layout, Mark, SegmentFile, Seq};

/// Where the walk over the lent bytes ended.
pub(super) enum Walked {
    /// The frame at `offset` needs `need` bytes, and the file has them.
    Needs {
        offset: u64,
        need: usize,
    },
    /// Every frame to the end of the file is valid.
    End,
    /// The first bad byte.
    Bad(BadFrame),
    Refused(Refusal),
}

/// What is known of a segment while its frames are walked.
#[derive(Debug)]
pub(super) struct SegmentWalk {
    file: SegmentFile,
    view: SegmentView,
    salt: Option<u64>,
    /// Position of the next frame.
    position: u64,
    /// Sequence number of the next record.
    expected: Seq,
    marks: u64,
    /// The last frame, if it is a mark.
    last_mark: Option<Mark>,
    /// The mark that states the most.
    newest_mark: Option<Mark>,
    /// End of the last record.
    records_end: u64,
    /// End of the last record that a mark covers, or 0.
    proven_bytes: u64,
}

impl SegmentWalk {
    pub(super) fn new(
        file: SegmentFile,
        layout: Layout,
        first: Seq,
        mark: Option<Mark>,
        records_at: u64,
        index_events: bool,
    ) -> Self {
        Self {
            file,
            view: SegmentView::new(file.id, layout, first, records_at).with_events(index_events),
            salt: mark.map(|mark| mark.salt),
            position: records_at,
            expected: first,
            marks: u64::from(mark.is_some()),
            last_mark: mark,
            newest_mark: mark,
            records_end: records_at,
            proven_bytes: 0,
        }
    }

    /// Walks the frames in `bytes`, which begin at `base` in the file.
    pub(super) fn walk<F: Framing>(&mut self, bytes: &[u8], base: u64) -> Walked {
        loop {
            if self.position >= self.file.len {
                return Walked::End;
            }
            let skip = usize::try_from(self.position - base).unwrap_or(usize::MAX);
            let rest = bytes.get(skip..).unwrap_or_default();
            match front::<F>(self.view.layout(), rest) {
                Front::Incomplete { need } => return self.incomplete(need),
                Front::Unreadable => return self.bad(None, false),
                Front::Whole { len, frame } => {
                    if let Some(stop) = self.take::<F>(len, &frame) {
                        return stop;
                    }
                }
            }
        }
    }

    /// Where the next frame begins.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// The sequence number expected next.
    pub(super) const fn expected(&self) -> Seq {
        self.expected
    }

    /// The logical start that the newest mark states.
    pub(super) fn stated_first(&self) -> Option<Seq> {
        self.newest_mark.map(|mark| mark.first)
    }

    pub(super) fn wanted(&self) -> Wanted {
        Wanted { segment: self.file.id, layout: self.view.layout(), salt: self.salt, expected: self.expected }
    }

    /// Every record before this is proven by a mark of this segment, or lies before it.
    pub(super) fn proven_end(&self) -> Seq {
        self.newest_mark.map_or(self.view.first(), |mark| mark.durable_end)
    }

    pub(super) fn last_segment(&self) -> LastSegment {
        LastSegment {
            salt: self.salt,
            last_mark: self.last_mark,
            proven_bytes: self.proven_bytes,
            file_bytes: self.file.len,
        }
    }

    pub(super) fn report(&self, has_successor: bool, row: Option<Row>) -> SegmentReport {
        let proof = match self.newest_mark {
            _ if has_successor => Proof::Successor,
            Some(mark) => Proof::Mark { offset: mark.offset, durable_end: mark.durable_end },
            None => Proof::Nothing,
        };
        SegmentReport {
            id: self.file.id,
            version: self.view.layout().version,
            first: self.view.first(),
            end: self.expected,
            marks: self.marks,
            bytes: self.position,
            file_bytes: self.file.len,
            proof,
            row,
        }
    }

    pub(super) fn into_view(self, has_successor: bool) -> SegmentView {
        let mut view = self.view;
        view.extend(self.expected, self.position);
        if has_successor {
            view.mark_durable();
        } else {
            view.set_durable_bytes(self.proven_bytes);
        }
        view
    }

    fn take<F: Framing>(&mut self, len: usize, frame: &Frame<'_, F>) -> Option<Walked> {
        match frame {
            Frame::Record(record, layout) => {
                if F::seq(*record) != self.expected || self.expected > Seq::LAST {
                    return Some(self.bad(Some(len), true));
                }
                self.view.set_layout(*layout);
                self.view.note_record(self.expected, self.position);
                self.view.note_event::<F>(*record, self.position);
                self.position += len as u64;
                self.records_end = self.position;
                self.expected = self.expected.next();
                self.last_mark = None;
                None
            }
            Frame::Mark(mark) if !self.view.layout().has_marks() => {
                Some(Walked::Refused(Refusal::MarkInVersion1 {
                    segment: self.file.id,
                    offset: self.position,
                }))
            }
            Frame::Mark(mark) => self.take_mark(len, mark),
            Frame::Foreign => Some(self.bad(Some(len), true)),
            Frame::Damaged => Some(self.bad(Some(len), false)),
        }
    }

    fn take_mark(&mut self, len: usize, mark: &Mark) -> Option<Walked> {
        let fits = self.salt == Some(mark.salt)
            && mark.offset == self.position
            && mark.first <= mark.durable_end
            && mark.durable_end <= self.expected;
        if !fits {
            return Some(self.bad(Some(len), true));
        }
        if self.newest_mark.is_none_or(|newest| mark.durable_end > newest.durable_end) {
            self.proven_bytes = self.end_of_records_before(mark.durable_end);
        }
        if self.newest_mark.is_none_or(|newest| mark.durable_end >= newest.durable_end) {
            self.newest_mark = Some(*mark);
        }
        self.last_mark = Some(*mark);
        self.marks += 1;
        self.position += len as u64;
        None
    }

    /// Where the records before `end` end; or a little before that, where the sparse index has no
    /// exact point (treating proven bytes as unproven costs a rewrite and nothing else).
    fn end_of_records_before(&self, end: Seq) -> u64 {
        if end == self.expected {
            return self.records_end;
        }
        self.view.seek(end).map_or(0, |(_, offset)| offset)
    }

    fn incomplete(&self, need: usize) -> Walked {
        let left = self.file.len - self.position;
        if need as u64 <= left {
            return Walked::Needs { offset: self.position, need };
        }
        // Shorter than what states the bounds, or than the bounds state: the file ends inside.
        Walked::Bad(BadFrame { offset: self.position, len: None, cut_short: true, checksum_right: false })
    }

    fn bad(&self, len: Option<usize>, checksum_right: bool) -> Walked {
        Walked::Bad(BadFrame {
            offset: self.position,
            len: len.map(|len| len as u64),
            cut_short: false,
            checksum_right,
        })
    }
}
