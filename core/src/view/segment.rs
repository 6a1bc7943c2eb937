//! What readers need to know of one segment.

use super::index::SparseIndex;
use crate::{Layout, SegmentId, Seq};

/// One segment, as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentView {
    id: SegmentId,
    layout: Layout,
    first: Seq,
    end: Seq,
    bytes: u64,
    durable_bytes: u64,
    index: SparseIndex,
}

impl SegmentView {
    /// An empty segment whose records begin at `first`, behind `bytes` of header and first mark.
    pub(crate) fn new(id: SegmentId, layout: Layout, first: Seq, bytes: u64) -> Self {
        Self { id, layout, first, end: first, bytes, durable_bytes: bytes, index: SparseIndex::default() }
    }

    /// Which segment it is.
    #[must_use]
    pub const fn id(&self) -> SegmentId {
        self.id
    }

    /// How its frames are laid out.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The sequence number of its first record, whether there is one yet or not.
    #[must_use]
    pub const fn first(&self) -> Seq {
        self.first
    }

    /// One past its last record.
    #[must_use]
    pub const fn end(&self) -> Seq {
        self.end
    }

    /// Bytes of whole frames, header included.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes up to the end of the last frame that is durable.
    #[must_use]
    pub const fn durable_bytes(&self) -> u64 {
        self.durable_bytes
    }

    /// Whether it holds no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// The last known record start at or before `seq`.
    pub(crate) fn seek(&self, seq: Seq) -> Option<(Seq, u64)> {
        self.index.seek(seq)
    }

    pub(crate) fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Notes that record `seq` begins at `offset`.
    pub(crate) fn note_record(&mut self, seq: Seq, offset: u64) {
        self.index.note(seq, offset);
    }

    /// Frames now reach to `bytes`, records to `end`.
    pub(crate) fn extend(&mut self, end: Seq, bytes: u64) {
        debug_assert!(end >= self.end && bytes >= self.bytes, "a segment only grows");
        self.end = end;
        self.bytes = bytes;
    }

    /// Everything written so far is durable.
    pub(crate) fn mark_durable(&mut self) {
        self.durable_bytes = self.bytes;
    }

    /// Only the bytes before `bytes` are known to be durable.
    pub(crate) fn set_durable_bytes(&mut self, bytes: u64) {
        self.durable_bytes = bytes;
    }
}
