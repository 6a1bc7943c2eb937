//! Rotation: the old segment is synced and cut to its exact length before the next one is created,
//! under every sync policy.

use super::Journal;
use super::active::{NewSegment, Reserve};
use super::phase::{Exact, Phase};
use super::room::marks_len;
use crate::view::SegmentView;
use crate::{Effect, EffectId, Framing, IoFailure, Layout, Seq, Shortage};

impl<F: Framing> Journal<F> {
    /// Whether a commit of this many record bytes goes to a new segment. Never before the old one
    /// has a record.
    pub(super) fn needs_new_segment(&self, record_bytes: u64) -> bool {
        let Some(last) = self.view.last() else { return false };
        let marks = marks_len::<F>(self.active.layout);
        let end = self.active.end.saturating_add(record_bytes).saturating_add(marks);
        let full = end > self.config.segment_bytes;
        !last.is_empty() && (full || self.active.layout.version != self.layout.version)
    }

    /// Everything in the last segment was given up: it is rolled so that it can be removed, as long as there is
    /// a number left to name the next one by.
    pub(super) fn trim_wants_a_new_segment(&self) -> bool {
        let given_up = |last: &SegmentView| !last.is_empty() && self.view.first() >= last.end();
        self.view.last().is_some_and(given_up) && self.view.written_end() <= Seq::LAST && !self.roll_refused
    }

    /// Begins to seal. Waits for an outstanding reserve, which would make the file longer again.
    pub(super) fn start_seal(&mut self) {
        if self.reserve_is_outstanding() {
            return;
        }
        let id = self.emit(Effect::Sync { segment: self.active.id });
        self.phase = Phase::Sealing(id, Exact::Sync);
    }

    pub(super) fn handle_seal(&mut self, step: Exact, result: Result<(), IoFailure>) {
        // No file for the first step: it is not open, so nothing that was written waits to be synced.
        if let (Exact::Sync, Err(failure)) = (step, result)
            && failure.is_no_file()
            && !self.active.unsynced
        {
            return self.roll_failed(Shortage::Files);
        }
        match self.handle_exact(step, result) {
            None => {}
            Some(Some((id, step))) => self.phase = Phase::Sealing(id, step),
            Some(None) => self.start_create(),
        }
    }

    /// What follows a step towards the exact length: nothing (poisoned), another step, or the end.
    pub(super) fn handle_exact(
        &mut self,
        step: Exact,
        result: Result<(), IoFailure>,
    ) -> Option<Option<(EffectId, Exact)>> {
        let segment = self.active.id;
        if let Err(failure) = result {
            self.stop(segment, failure);
            return None;
        }
        Some(match step {
            Exact::Sync => {
                self.synced(self.view.written_end());
                (self.active.extent > self.active.end).then(|| {
                    let len = self.active.end;
                    (self.emit(Effect::Truncate { segment, len }), Exact::Truncate)
                })
            }
            Exact::Truncate => {
                self.active.extent = self.active.end;
                Some((self.emit(Effect::Sync { segment }), Exact::SyncAgain))
            }
            Exact::SyncAgain => None,
        })
    }

    pub(super) fn handle_create(&mut self, segment: NewSegment, result: Result<(), IoFailure>) {
        match result {
            Ok(()) => {
                let (first, bytes) = (self.view.written_end(), segment.head.len() as u64);
                let view = SegmentView::new(segment.id, segment.layout, first, bytes);
                self.view.push(view.with_events(self.config.index_events));
                let reserve = if self.config.reserve_bytes == 0 { Reserve::Off } else { Reserve::Ready };
                self.active = segment.into_active(reserve);
            }
            Err(failure) => match failure.shortage() {
                Some(shortage) => self.roll_failed(shortage),
                None => self.stop(segment.id, failure),
            },
        }
    }

    fn start_create(&mut self) {
        let salt = self.new_salt();
        let (first, logical_first) = (self.view.written_end(), self.view.first());
        let reserve =
            self.config.reserve_bytes.min(self.config.segment_bytes).min(self.room(self.view.bytes()));
        let layout = self.next_layout();
        let segment = NewSegment::new::<F>(layout, salt, first, logical_first, self.now, reserve);
        let effect =
            Effect::Create { segment: segment.id, head: segment.head.clone(), reserve: segment.reserve };
        let id = self.emit(effect);
        self.phase = Phase::Creating(id, segment);
    }

    /// The layout of the next segment. A checksum that the old one fixed is kept, since records
    /// that wait are encoded with it already.
    fn next_layout(&self) -> Layout {
        if self.active.layout.version == self.layout.version { self.active.layout } else { self.layout }
    }

    /// Nothing was written, so there is nothing to cut back: what waits is void.
    fn roll_failed(&mut self, shortage: Shortage) {
        if !self.void_waiting(shortage) {
            self.roll_refused = true;
        }
    }
}
