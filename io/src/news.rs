//! Waiting for news of a journal: more that is durable, or anything that others say is news.

use std::time::Duration;

use strandline_core::{Framing, Monotonic, Seq, View};

use crate::disk::Disk;
use crate::journal::Journal;
use crate::shared::{Shared, State};
use crate::sync::{Instant, MutexGuard};

/// What somebody has seen, so that nothing new is missed between looking and waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    durable_end: Seq,
    nudges: u64,
}

impl<F: Framing> State<F> {
    pub(crate) fn seen(&self) -> Seen {
        Seen { durable_end: self.view().durable_end(), nudges: self.nudges }
    }
}

impl<F: Framing, D: Disk> Journal<F, D> {
    /// Looks at the journal under its lock.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&View<F>) -> R) -> R {
        look(self.shared().lock().view())
    }

    /// Waits until there is news since `seen`, or the deadline has passed. Gives whether there is.
    pub(crate) fn wait_for_news(&self, seen: Seen, deadline: Option<Instant>) -> bool {
        let shared = self.shared();
        let mut state = shared.lock();
        while state.seen() == seen && !state.is_over() {
            match shared.wait_for_progress(state, deadline) {
                Some(again) => state = again,
                None => return false,
            }
        }
        true
    }

    /// Has `waker` woken at the next news. Gives whether there is some already.
    pub(crate) fn register_for_news(&self, seen: Seen, waker: &std::task::Waker) -> bool {
        let mut state = self.shared().lock();
        let news = state.seen() != seen || state.is_over();
        if !news {
            state.register_reader(waker);
        }
        news
    }

    /// Something beside the journal is news for those who follow it.
    pub(crate) fn nudge(&self) {
        self.shared().nudge();
    }

    /// Sleeps until the journal has a new segment, waits for room, comes to its end, or somebody calls
    /// [`call_keeper`](Self::call_keeper); at most until `deadline`. With what it `saw` to be durable, also until there
    /// is more.
    pub(crate) fn await_keeping(&self, deadline: Option<Monotonic>, saw: Option<Seq>) {
        let shared = self.shared();
        let mut state = shared.lock();
        let end = state.view().durable_end();
        state.keeper_saw = saw;
        while !state.keeping_wanted && saw.is_none_or(|saw| saw == end) {
            let left = deadline.map(|deadline| shared.clock.until(deadline));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            state = shared.park_keeper(state, left);
        }
        (state.keeping_wanted, state.keeper_saw) = (false, None);
    }

    /// Wakes who sleeps in [`await_keeping`](Self::await_keeping).
    pub(crate) fn call_keeper(&self) {
        let shared = self.shared();
        shared.lock().keeping_wanted = true;
        shared.keeper.notify_all();
    }

    /// The journal's start, if records wait for room that only a trim can make.
    pub(crate) fn waits_for_room(&self) -> Option<Seq> {
        let mut state = self.shared().lock();
        let first = state.view().first();
        state.core().is_ok_and(|core| core.waits_for_room()).then_some(first)
    }

    /// How many bytes what waits for room needs.
    pub(crate) fn room_wanted(&self) -> u64 {
        self.shared().lock().core().map_or(0, |core| core.room_wanted())
    }

    /// What waits for room fails, unless the journal's start has moved on from `first`: those who waited then have got
    /// room, and whoever waits now has not been looked after yet.
    pub(crate) fn refuse_waiting(&self, first: Seq) {
        let shared = self.shared();
        let mut state = shared.lock();
        if state.view().first() != first {
            return;
        }
        if let Ok(core) = state.core() {
            core.refuse_waiting();
            state.dirty = true;
            if !state.leading {
                shared.wake_housekeeping(&mut state);
            }
        }
    }

    /// Whether nothing new will ever be there to read.
    pub(crate) fn is_over(&self) -> bool {
        self.shared().lock().is_over()
    }

    /// Whether it is over, or being closed: what it has is not trimmed any more.
    pub(crate) fn is_ending(&self) -> bool {
        let state = self.shared().lock();
        state.closing || state.is_over()
    }

    /// The running process's own time, as the journal has it.
    pub(crate) fn monotonic(&self) -> Monotonic {
        self.shared().clock.monotonic()
    }
}

impl<F: Framing, D: Disk> Shared<F, D> {
    fn nudge(&self) {
        let mut wakes = crate::shared::Wakes::default();
        let mut state = self.lock();
        state.nudges += 1;
        state.wake_readers(&mut wakes);
        drop(state);
        self.wake(&mut wakes);
    }

    fn park_keeper<'a>(
        &'a self,
        state: MutexGuard<'a, State<F>>,
        left: Option<Duration>,
    ) -> MutexGuard<'a, State<F>> {
        match left {
            Some(left) => {
                self.keeper.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner).0
            }
            None => self.keeper.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner),
        }
    }
}
