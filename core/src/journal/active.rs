//! The segment that is written to.

use bytes::{Bytes, BytesMut};

use crate::{EffectId, Framing, Layout, Mark, SegmentId, Seq, Timestamp};

/// Marks protect data from sharing a lost page with their own proof; this is that page.
const PAGE_BYTES: u64 = 4096;

/// The write state of the last segment.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) id: SegmentId,
    pub(crate) layout: Layout,
    pub(crate) salt: u64,
    /// End of the last whole frame: the next one goes here.
    pub(crate) end: u64,
    /// The file may reach as far as this; between `end` and here are zeros, or what a failed mark
    /// left.
    pub(crate) extent: u64,
    /// The last frame, if it is a mark.
    pub(crate) last_mark: Option<Mark>,
    /// Something was written since the last sync.
    pub(crate) unsynced: bool,
    pub(crate) reserve: Reserve,
}

/// The zeros kept ready behind the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// None are made, for this segment.
    Off,
    /// None are being made.
    Ready,
    /// Zeros from here on are being written.
    Outstanding { id: EffectId, from: u64, to: u64 },
}

/// The head of a new segment.
#[derive(Debug)]
pub(crate) struct NewSegment {
    pub(crate) id: SegmentId,
    pub(crate) head: Bytes,
    pub(crate) mark: Option<Mark>,
    pub(crate) layout: Layout,
    pub(crate) salt: u64,
    /// Length of the file, reserved zeros included.
    pub(crate) reserve: u64,
}

impl NewSegment {
    /// The head of a segment whose first record will be `first`.
    pub(crate) fn new<F: Framing>(
        layout: Layout,
        salt: u64,
        first: Seq,
        logical_first: Seq,
        now: Timestamp,
        reserve: u64,
    ) -> Self {
        let mut head = BytesMut::with_capacity(F::HEADER_LEN + F::MARK_LEN);
        F::encode_header(layout.version, first, &mut head);
        let offset = head.len() as u64;
        let mark =
            layout.has_marks().then_some(Mark { durable_end: first, salt, offset, first: logical_first });
        if let Some(mark) = &mark {
            push_mark::<F>(mark, now, &mut head);
        }
        // A file must not begin with reserved zeros: they would stand where its first bytes belong.
        let reserve = if head.is_empty() { 0 } else { reserve.max(head.len() as u64) };
        Self { id: SegmentId(first), head: head.freeze(), mark, layout, salt, reserve }
    }

    pub(crate) fn into_active(self, reserve: Reserve) -> Active {
        Active {
            id: self.id,
            layout: self.layout,
            salt: self.salt,
            end: self.head.len() as u64,
            extent: self.reserve,
            last_mark: self.mark,
            unsynced: false,
            reserve,
        }
    }
}

impl Active {
    /// The mark that would state this at the segment's end.
    pub(crate) const fn mark(&self, durable_end: Seq, first: Seq) -> Mark {
        Mark { durable_end, salt: self.salt, offset: self.end, first }
    }

    /// Whether the last frame is a mark that states this already.
    pub(crate) fn states(&self, durable_end: Seq, first: Seq) -> bool {
        self.last_mark.is_some_and(|last| last.states_same(&self.mark(durable_end, first)))
    }

    /// Puts the marks around a commit's frames, which begin with room for one: at the head unless
    /// the last frame says the same already, and again at the end where the commit crosses a page
    /// (one lost page must not take data and proof together). Gives the mark that the commit ends with, if any, and how far
    /// the frames moved towards the head.
    pub(crate) fn enclose<F: Framing>(
        &self,
        durable_end: Seq,
        first: Seq,
        now: Timestamp,
        frames: &mut BytesMut,
    ) -> (Option<Mark>, usize) {
        if !self.layout.has_marks() {
            return (None, 0);
        }
        let mark = self.mark(durable_end, first);
        let dropped = if self.states(durable_end, first) {
            let _room = frames.split_to(F::MARK_LEN);
            F::MARK_LEN
        } else {
            if let Some(room) = frames.get_mut(..F::MARK_LEN) {
                F::encode_mark(&mark, now, room);
            }
            0
        };
        let end = self.end + frames.len() as u64;
        if self.end / PAGE_BYTES == end.saturating_sub(1) / PAGE_BYTES {
            return (None, dropped);
        }
        let again = Mark { offset: end, ..mark };
        push_mark::<F>(&again, now, frames);
        (Some(again), dropped)
    }
}

/// Appends a mark.
pub(crate) fn push_mark<F: Framing>(mark: &Mark, now: Timestamp, out: &mut BytesMut) {
    let at = out.len();
    out.resize(at + F::MARK_LEN, 0);
    if let Some(room) = out.get_mut(at..) {
        F::encode_mark(mark, now, room);
    }
}
