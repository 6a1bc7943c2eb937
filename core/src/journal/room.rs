//! Keeping the segment files within `segments_bytes_max`: a disk of its own that can be full.

use super::Journal;
use crate::{Framing, Layout, Shortage};

/// Whether something fits beside the segments that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    /// Not before the removal that is under way has ended.
    AfterRemoval,
    None,
}

impl<F: Framing> Journal<F> {
    /// How long a file may become beside `others` bytes of other segments.
    pub(super) const fn room(&self, others: u64) -> u64 {
        self.config.segments_bytes_max.saturating_sub(others)
    }

    /// Bytes of all segments but the last.
    pub(super) fn sealed_bytes(&self) -> u64 {
        self.view.bytes().saturating_sub(self.active.end)
    }

    /// Whether one more mark fits into the last segment. Where it does not, it is left out as on a full disk.
    pub(super) fn has_room_for_mark(&self) -> bool {
        self.active.end.saturating_add(F::MARK_LEN as u64) <= self.room(self.sealed_bytes())
    }

    /// Whether a commit of this many record bytes fits, in a new segment if it rolls, and leaves room for the mark
    /// that proves it once nothing follows.
    pub(super) fn room_for(&self, record_bytes: u64, rolls: bool) -> Room {
        let bytes = self.commit_len(record_bytes);
        let (others, file) = if rolls {
            (self.view.bytes(), bytes.saturating_add(head_len::<F>()))
        } else {
            (self.sealed_bytes(), self.active.end.saturating_add(bytes))
        };
        // Zeros are made within the bound, so that none of them reach further.
        if file <= self.room(others) {
            return Room::Enough;
        }
        if self.removals_remain() { Room::AfterRemoval } else { Room::None }
    }

    /// Whether what waits has no room, and no removal is under way that could make some: only a trim can.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        let Some(next) = self.queue.front().filter(|_| self.phase.is_idle() && self.poison.is_none()) else {
            return false;
        };
        let bytes = next.record_bytes::<F>(self.layout) as u64;
        self.room_for(bytes, self.needs_new_segment(bytes)) == Room::None && !self.rolls_to_shrink()
    }

    /// How many bytes what [waits for room](Self::waits_for_room) needs in a segment of its own; 0 where nothing does.
    #[must_use]
    pub fn room_wanted(&self) -> u64 {
        let next = self.queue.front().filter(|_| self.waits_for_room());
        let bytes = next.map(|next| next.record_bytes::<F>(self.layout) as u64);
        bytes.map_or(0, |bytes| self.commit_len(bytes).saturating_add(head_len::<F>()))
    }

    /// A commit with the marks around it, and the one that proves it.
    const fn commit_len(&self, record_bytes: u64) -> u64 {
        let proof = if self.layout.has_marks() { F::MARK_LEN as u64 } else { 0 };
        record_bytes.saturating_add(marks_len::<F>(self.layout) + proof)
    }

    /// No room will be made: what waits for it fails as on a full disk.
    pub fn refuse_waiting(&mut self) {
        if self.waits_for_room() {
            self.void_waiting(Shortage::Space);
        }
    }

    /// Whether the last segment was given up and is too large by itself, having been made under another bound: it can
    /// only go behind a new one, which holds no more than its head.
    pub(super) fn rolls_to_shrink(&self) -> bool {
        self.trim_wants_a_new_segment() && self.view.bytes() > self.config.segments_bytes_max
    }

    /// A segment that was given up whole is rolled, where the next one has room.
    pub(super) fn advance_trim(&mut self) {
        match self.room_for(0, true) {
            Room::Enough => self.start_seal(),
            Room::AfterRemoval => {}
            Room::None if self.rolls_to_shrink() => self.start_seal(),
            Room::None => self.roll_refused = true,
        }
    }
}

/// Bytes of the marks that a commit can have around its records.
pub(super) const fn marks_len<F: Framing>(layout: Layout) -> u64 {
    if layout.has_marks() { 2 * F::MARK_LEN as u64 } else { 0 }
}

/// Bytes before a segment's first record.
const fn head_len<F: Framing>() -> u64 {
    (F::HEADER_LEN + F::MARK_LEN) as u64
}
