//! Records that were accepted and wait for their commit.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::BytesMut;

use crate::{CommitId, Framing, Layout, Seq, Timestamp};

/// Bytes between two index points that a commit notes.
const POINT_STRIDE: usize = 64 * 1024;

/// One commit's records, encoded once. Room for a mark is left at the head, because what the mark
/// states is only known when the commit is written.
#[derive(Debug)]
pub(super) struct Gathering {
    pub(super) id: CommitId,
    pub(super) first: Seq,
    pub(super) end: Seq,
    pub(super) frames: BytesMut,
    /// Some record starts, relative to the head of `frames`.
    pub(super) points: Vec<(Seq, usize)>,
}

impl Gathering {
    /// Bytes of records, the room for the mark not counted.
    pub(super) fn record_bytes<F: Framing>(&self, layout: Layout) -> usize {
        self.frames.len().saturating_sub(mark_room::<F>(layout))
    }
}

/// The commits that wait, oldest first; the last one is open for more records.
#[derive(Debug)]
pub(super) struct Queue {
    commits: VecDeque<Gathering>,
    /// Bytes of records that wait, those of the commit in flight included.
    pending: usize,
    /// The last commit's size, which is a good guess at the next one's.
    size_hint: usize,
    last_id: CommitId,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { commits: VecDeque::new(), pending: 0, size_hint: 0, last_id: CommitId::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    pub(super) const fn pending(&self) -> usize {
        self.pending
    }

    /// The newest commit that a record was accepted for.
    pub(super) const fn last_id(&self) -> CommitId {
        self.last_id
    }

    pub(super) fn front(&self) -> Option<&Gathering> {
        self.commits.front()
    }

    /// Encodes a record of `len` bytes into the open commit, or into a new one where it would grow
    /// beyond `bytes_max`.
    pub(super) fn push<F: Framing>(
        &mut self,
        layout: Layout,
        (seq, now): (Seq, Timestamp),
        draft: F::Draft<'_>,
        len: usize,
        bytes_max: usize,
    ) -> CommitId {
        let fits = |open: &Gathering| open.record_bytes::<F>(layout) + len <= bytes_max;
        if !self.commits.back().is_some_and(fits) {
            let room = mark_room::<F>(layout);
            let mut frames = BytesMut::with_capacity(len.max(self.size_hint) + 2 * room);
            frames.resize(room, 0);
            self.last_id = self.last_id.next();
            let points = Vec::new();
            self.commits.push_back(Gathering { id: self.last_id, first: seq, end: seq, frames, points });
        }
        if let Some(open) = self.commits.back_mut() {
            let at = open.frames.len();
            if open.points.last().is_none_or(|(_, last)| at - last >= POINT_STRIDE) {
                open.points.push((seq, at));
            }
            F::encode(layout, seq, now, draft, &mut open.frames);
            open.end = seq.next();
            self.pending += open.frames.len() - at;
        }
        self.last_id
    }

    /// Takes the oldest commit; its bytes stay pending until [`settle`](Self::settle).
    pub(super) fn take(&mut self) -> Option<Gathering> {
        let taken = self.commits.pop_front()?;
        self.size_hint = taken.frames.len();
        Some(taken)
    }

    /// The bytes of a commit that was taken are pending no more.
    pub(super) fn settle(&mut self, record_bytes: usize) {
        self.pending = self.pending.saturating_sub(record_bytes);
    }

    /// Forgets everything that waits.
    pub(super) fn clear(&mut self) {
        self.commits.clear();
        self.pending = 0;
    }
}

/// Room at the head of a commit for its mark.
pub(super) const fn mark_room<F: Framing>(layout: Layout) -> usize {
    if layout.has_marks() { F::MARK_LEN } else { 0 }
}
