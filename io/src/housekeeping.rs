//! The thread that does what no caller waits for: commits of tickets that nobody waits on, idle marks, syncs at
//! intervals, reserved space, removals, spare files.
//!
//! It sleeps until it is woken or the core's next deadline comes; there is no polling.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use strandline_core::{Framing, Monotonic};

use crate::disk::Disk;
use crate::lead::LeadUntil;
use crate::shared::{Parked, Shared, State};
use crate::sync::MutexGuard;

/// How long it lets records gather that nobody waits on, so that many of them form one commit.
const LINGER: Duration = Duration::from_millis(1);

/// Runs until the journal is closed or poisoned.
pub(crate) fn run<F: Framing, D: Disk>(shared: &Arc<Shared<F, D>>) {
    let mut state = shared.lock();
    let mut lingered_for = None;
    let mut led_at = None;
    loop {
        state.parked = Parked::No;
        if let Some(effect) = state.background.pop_front() {
            state = shared.perform_in_background(state, effect);
            // Somebody may wait for just this.
            lingered_for = state.commits.newest_id();
        } else if state.leading {
            // Who leads wakes us if something is left.
            state = shared.park(state, Parked::Forever);
        } else if state.has_work() {
            // Others may have led meanwhile: what gathers now may be another commit, which has its own time.
            if lingered_for == state.commits.newest_id() || !state.may_linger() {
                lingered_for = None;
                state.leading = true;
                shared.lead(state, LeadUntil::OneCommit);
                state = shared.lock();
            } else {
                lingered_for = state.commits.newest_id();
                state = shared.park(state, Parked::Linger);
            }
        } else if state.closed || state.poisoned().is_some() {
            // Only now that there is no work: a failure of what we did in the background poisons, and who waited
            // for it has to be told.
            break;
        } else if let Some(len) = state.wanted_spare() {
            drop(state);
            // A failure costs nothing but the advantage.
            let _ = shared.performer.prepare_spare(len);
            state = shared.lock();
        } else {
            state = shared.wait_for_deadline(state, &mut led_at);
        }
    }
    let closing = state.closing;
    drop(state);
    shared.performer.discard_spare();
    shared.performer.close_files();
    if closing {
        // The last handle may be gone, and nobody waiting for this thread.
        shared.end_lease();
    }
}

impl<F: Framing, D: Disk> Shared<F, D> {
    /// Sleeps until the core's next deadline, then has the core look at the time.
    fn wait_for_deadline<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<F>>,
        led_at: &mut Option<Monotonic>,
    ) -> MutexGuard<'a, State<F>> {
        let now = self.clock.monotonic();
        match state.next_deadline() {
            None => self.park(state, Parked::Forever),
            Some(deadline) if deadline > now => self.park(state, Parked::Until(deadline)),
            // What is due cannot be started yet: do not turn in circles until it can.
            Some(_) if *led_at == Some(now) => self.park(state, Parked::Until(now.after(1))),
            Some(_) => {
                *led_at = Some(now);
                state.dirty = true;
                state
            }
        }
    }

    /// Sleeps until woken, or for as long as the way of parking says.
    fn park<'a>(&'a self, mut state: MutexGuard<'a, State<F>>, parked: Parked) -> MutexGuard<'a, State<F>> {
        state.parked = parked;
        let timeout = match parked {
            Parked::No => return state,
            Parked::Linger => LINGER,
            Parked::Until(deadline) => self.clock.until(deadline),
            Parked::Forever => {
                return self
                    .work
                    .wait_while(state, |state| state.parked != Parked::No)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        };
        let waited = self.work.wait_timeout_while(state, timeout, |state| state.parked != Parked::No);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
