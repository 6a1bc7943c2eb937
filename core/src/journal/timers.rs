//! What depends on the passing of time. Time is an argument: the core sees it in `tick` alone.

use crate::Monotonic;

/// The journal's deadlines.
#[derive(Debug, Default)]
pub(super) struct Timers {
    now: Monotonic,
    idle_since: Monotonic,
    /// Something happened since the last tick.
    active: bool,
    /// The idle mark of this idle period was written or failed.
    mark_done: bool,
    synced_at: Monotonic,
    /// A failed removal is tried again from here on.
    removal_retry: Option<Monotonic>,
}

impl Timers {
    pub(super) fn tick(&mut self, now: Monotonic) {
        self.now = self.now.max(now);
        if self.active {
            self.active = false;
            self.idle_since = self.now;
        }
        if self.removal_retry.is_some_and(|at| self.now >= at) {
            self.removal_retry = None;
        }
    }

    /// Something happened: the idle period ends, and a new one begins with the next tick.
    pub(super) fn activity(&mut self) {
        self.active = true;
        self.mark_done = false;
    }

    /// When the idle mark is due, unless this idle period has had it.
    pub(super) fn mark_due(&self, idle_mark_ms: u64) -> Option<Monotonic> {
        let since = if self.active { self.now } else { self.idle_since };
        (!self.mark_done).then_some(since.after(idle_mark_ms))
    }

    pub(super) fn is_due(&self, at: Option<Monotonic>) -> bool {
        !self.active && at.is_some_and(|at| self.now >= at)
    }

    pub(super) fn mark_done(&mut self) {
        self.mark_done = true;
    }

    pub(super) fn sync_due(&self, interval_ms: u64) -> Monotonic {
        self.synced_at.after(interval_ms)
    }

    pub(super) fn has_reached(&self, at: Monotonic) -> bool {
        self.now >= at
    }

    pub(super) fn synced(&mut self) {
        self.synced_at = self.now;
    }

    pub(super) fn removal_failed(&mut self, retry_ms: u64) {
        self.removal_retry = Some(self.now.after(retry_ms));
    }

    pub(super) const fn removal_retry(&self) -> Option<Monotonic> {
        self.removal_retry
    }
}
