//! What readers need to know of one segment.

use alloc::sync::Arc;

use super::events::EventIndex;
use super::index::SparseIndex;
use crate::{Bounds, Framing, Layout, SegmentId, Seq};

/// One segment, as readers see it.
#[derive(Clone, Debug)]
pub struct SegmentView {
    id: SegmentId,
    layout: Layout,
    first: Seq,
    end: Seq,
    bytes: u64,
    durable_bytes: u64,
    index: SparseIndex,
    /// Shared with the copies of a view, so that a copy stays cheap.
    events: Option<Arc<EventIndex>>,
}

impl SegmentView {
    /// An empty segment whose records begin at `first`, behind `bytes` of header and first mark.
    pub(crate) fn new(id: SegmentId, layout: Layout, first: Seq, bytes: u64) -> Self {
        Self {
            id,
            layout,
            first,
            end: first,
            bytes,
            durable_bytes: bytes,
            index: SparseIndex::default(),
            events: None,
        }
    }

    /// Has its events indexed, if that is wanted.
    pub(crate) fn with_events(mut self, indexed: bool) -> Self {
        self.events = indexed.then(Arc::default);
        self
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

    /// Its events by source and type, if they are indexed.
    pub(crate) fn events(&self) -> Option<&EventIndex> {
        self.events.as_deref()
    }

    /// Notes a record that begins at `offset` in the index of events, if there is one.
    pub(crate) fn note_event<F: Framing>(&mut self, record: F::Record<'_>, offset: u64) {
        if let Some(events) = &mut self.events
            && let Some(event) = F::as_event(record)
        {
            Arc::make_mut(events).note(&event, offset);
        }
    }

    /// Notes every record of verified frames that begin at `offset`.
    pub(crate) fn note_events<F: Framing>(&mut self, frames: &[u8], offset: u64) {
        if self.events.is_none() {
            return;
        }
        let (mut rest, mut at) = (frames, offset);
        while let Bounds::Len(len) = F::bounds(rest) {
            let Some((frame, behind)) = rest.split_at_checked(len) else { return };
            if let Some(record) = F::decode(frame) {
                self.note_event::<F>(record, at);
            }
            (rest, at) = (behind, at + len as u64);
        }
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
