//! Removing segments that lie wholly before the logical start: oldest first, one at a time.

use super::Journal;
use crate::{Effect, EffectId, Framing, IoFailure, IoOperation, SegmentId};

/// The removal that is outstanding, if any.
#[derive(Debug, Default)]
pub(super) struct Removal {
    outstanding: Option<(EffectId, SegmentId)>,
}

impl Removal {
    pub(super) fn is_outstanding(&self, id: EffectId) -> bool {
        self.outstanding.is_some_and(|(outstanding, _)| outstanding == id)
    }

    pub(super) const fn is_busy(&self) -> bool {
        self.outstanding.is_some()
    }
}

impl<F: Framing> Journal<F> {
    /// Whether a removal is outstanding or could be started now.
    pub(super) fn removals_remain(&self) -> bool {
        self.removal.is_busy() || (self.removable().is_some() && self.timers.removal_retry().is_none())
    }

    pub(super) fn advance_removal(&mut self) {
        if self.removal.is_busy() || self.timers.removal_retry().is_some() {
            return;
        }
        if let Some(segment) = self.removable() {
            let id = self.emit(Effect::Remove { segment });
            self.removal.outstanding = Some((id, segment));
        }
    }

    pub(super) fn handle_removal(&mut self, result: Result<(), IoFailure>) {
        let Some((_, segment)) = self.removal.outstanding.take() else { return };
        match result {
            Ok(()) => {
                self.view.pop_oldest();
                self.roll_refused = false;
            }
            // The entry is gone or not: unknown, as with every failed sync.
            Err(failure) if failure.operation == IoOperation::SyncDirectory => self.stop(segment, failure),
            // Retried before any later one, so that the remaining set has no hole.
            Err(_) => self.timers.removal_failed(self.config.removal_retry_ms),
        }
    }

    fn removable(&self) -> Option<SegmentId> {
        let oldest = self.view.oldest_sealed()?;
        (oldest.end() <= self.view.first()).then(|| oldest.id())
    }
}
