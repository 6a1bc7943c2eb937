//! What readers need of a journal, without the writer.

mod events;
mod index;
mod matching;
mod segment;
mod tail;

use alloc::collections::VecDeque;
use core::marker::PhantomData;

pub use matching::EventPlace;
pub use segment::SegmentView;
pub(crate) use tail::{Tail, TailCommit};

use crate::{Framing, Seq};

/// A journal's segments and watermarks. The writer keeps one current; a scan makes one of what it
/// found. Cloning it is cheap enough for a reader to keep its own.
///
/// Invariant I1: `first <= durable_end <= written_end`, and all three only grow, except that a reopened
/// journal may have a lower `written_end` after a power loss.
#[derive(Clone, Debug)]
pub struct View<F: Framing> {
    segments: VecDeque<SegmentView>,
    first: Seq,
    durable_end: Seq,
    written_end: Seq,
    tail: Tail,
    framing: PhantomData<fn() -> F>,
}

impl<F: Framing> View<F> {
    /// A journal without segments whose next record is `first`.
    pub(crate) fn empty(first: Seq) -> Self {
        Self {
            segments: VecDeque::new(),
            first,
            durable_end: first,
            written_end: first,
            tail: Tail::default(),
            framing: PhantomData,
        }
    }

    /// The logical start: the lowest sequence number that is kept.
    #[must_use]
    pub const fn first(&self) -> Seq {
        self.first
    }

    /// Every record before this is durable (in a scan: proven durable).
    #[must_use]
    pub const fn durable_end(&self) -> Seq {
        self.durable_end
    }

    /// Every record before this is with the operating system.
    #[must_use]
    pub const fn written_end(&self) -> Seq {
        self.written_end
    }

    /// The view that opening for writing would give: recovery proves whatever is valid. For whoever asks offline what
    /// a program would see that opens the journal now.
    #[must_use]
    pub const fn as_recovered(mut self) -> Self {
        self.durable_end = self.written_end;
        self
    }

    /// The segments, oldest first.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &SegmentView> + ExactSizeIterator {
        self.segments.iter()
    }

    /// Bytes of all segments' frames and headers; reserved space not counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(SegmentView::bytes).sum()
    }

    /// The segment that holds record `seq`.
    pub(crate) fn segment_of(&self, seq: Seq) -> Option<&SegmentView> {
        let behind = self.segments.partition_point(|segment| segment.first() <= seq);
        self.segments.get(behind.checked_sub(1)?).filter(|segment| seq < segment.end())
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    pub(crate) fn last(&self) -> Option<&SegmentView> {
        self.segments.back()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut SegmentView> {
        self.segments.back_mut()
    }

    /// The oldest segment, if another one follows it.
    pub(crate) fn oldest_sealed(&self) -> Option<&SegmentView> {
        self.segments.front().filter(|_| self.segments.len() > 1)
    }

    pub(crate) fn push(&mut self, segment: SegmentView) {
        self.segments.push_back(segment);
    }

    pub(crate) fn pop_oldest(&mut self) {
        self.segments.pop_front();
    }

    pub(crate) fn pop_newest(&mut self) {
        self.segments.pop_back();
    }

    pub(crate) fn set_tail_bytes_max(&mut self, bytes_max: usize) {
        self.tail = Tail::new(bytes_max);
    }

    pub(crate) fn keep_in_tail(&mut self, commit: TailCommit) {
        self.tail.push(commit);
    }

    pub(crate) fn set_first(&mut self, first: Seq) {
        debug_assert!(first >= self.first, "the logical start never moves back");
        self.first = first;
    }

    pub(crate) fn set_written_end(&mut self, end: Seq) {
        debug_assert!(end >= self.written_end, "the written end never moves back");
        self.written_end = end;
    }

    pub(crate) fn set_durable_end(&mut self, end: Seq) {
        debug_assert!(end >= self.durable_end && end <= self.written_end, "durable means written before");
        self.durable_end = end;
    }
}
