//! No space: the file is cut back and the cut made durable; only then is the void told and are the
//! numbers given out again. Where no file could be opened nothing was written, and there is nothing to cut.

use super::active::Reserve;
use super::phase::{Phase, Voided};
use super::{Journal, Output};
use crate::{Effect, Framing, IoFailure, Shortage};

impl<F: Framing> Journal<F> {
    /// Cuts the file back to the last good frame. A reserve must not be outstanding: it would write behind the
    /// cut.
    pub(super) fn cut_back(&mut self, voided: Voided) {
        let id = self.emit(Effect::Truncate { segment: self.active.id, len: self.active.end });
        self.phase = Phase::Voiding { id, synced: false, voided };
    }

    /// A step of the void has ended; a failure of either leaves the file's end unknown.
    pub(super) fn handle_void(&mut self, synced: bool, voided: Voided, result: Result<(), IoFailure>) {
        match (result, synced) {
            (Err(failure), _) => self.stop(self.active.id, failure),
            (Ok(()), false) => {
                self.active.extent = self.active.end;
                let id = self.emit(Effect::Sync { segment: self.active.id });
                self.phase = Phase::Voiding { id, synced: true, voided };
            }
            (Ok(()), true) => {
                self.synced(self.view.written_end());
                self.void(voided);
            }
        }
    }

    /// Voids what waits, of which nothing was written. Gives whether there was something.
    pub(super) fn void_waiting(&mut self, shortage: Shortage) -> bool {
        let Some(next) = self.queue.front() else { return false };
        let voided = Voided { first: next.first, commit: next.id, shortage };
        self.void(voided);
        true
    }

    /// Tells the void. Everything that waits goes with it, since its numbers follow the voided
    /// ones.
    pub(super) fn void(&mut self, voided: Voided) {
        let commit = self.queue.last_id().max(voided.commit);
        self.queue.clear();
        self.next = voided.first;
        if self.active.reserve == Reserve::Ready {
            self.active.reserve = Reserve::Off;
        }
        // A sync that was asked for has nothing left to wait for but what is written.
        self.sync_after = self.sync_after.map(|after| after.min(self.written_commit));
        self.timers.activity();
        self.outputs.push_back(Output::Void { from: voided.first, commit, shortage: voided.shortage });
    }
}
