//! What the waiters of one commit share: how it ended, and whether one of them is to lead.
//!
//! There is one of these for each commit, however many records it holds. Waiters remember it and not a
//! sequence number, because a number can be given out again after a void.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::Waker;

use strandline_core::{CommitId, Shortage};

use crate::error::Poisoned;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// How a commit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Written or durable, whichever the sync policy asks for.
    Acknowledged,
    /// There was too little of something; nothing of it is in the journal.
    Void(Shortage),
    /// It is not known what the disk holds of it.
    Poisoned(Poisoned),
}

/// What a parked waiter is woken for.
pub(crate) enum Woken {
    Settled(Outcome),
    /// The lead was handed to this waiter, which has to take it.
    Lead,
}

/// The state of one commit.
pub(crate) struct CommitState {
    /// Threads that wait in [`park`](Self::park). Changed only under the journal's lock, so that whoever
    /// hands over the lead sees who is there to take it.
    waiters: AtomicUsize,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    outcome: Option<Outcome>,
    lead_offered: bool,
    wakers: Vec<Waker>,
}

impl CommitState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { waiters: AtomicUsize::new(0), inner: Mutex::default(), changed: Condvar::new() })
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.inner().outcome.clone()
    }

    /// Counts the caller as a waiter. Call it under the journal's lock, then [`park`](Self::park).
    pub(crate) fn add_waiter(&self) {
        self.waiters.fetch_add(1, Ordering::Relaxed);
    }

    /// The counterpart, under the journal's lock, for a waiter that took the lead.
    pub(crate) fn remove_waiter(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Blocks until the commit has ended or the lead is handed to this waiter.
    pub(crate) fn park(&self) -> Woken {
        let mut inner = self.inner();
        loop {
            // First, because a lead that was handed over has to be taken, even if there is nothing left to do.
            if std::mem::take(&mut inner.lead_offered) {
                return Woken::Lead;
            }
            if let Some(outcome) = &inner.outcome {
                return Woken::Settled(outcome.clone());
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes exactly one waiter, which takes the lead. There must be one.
    pub(crate) fn offer_lead(&self) {
        self.inner().lead_offered = true;
        self.changed.notify_one();
    }

    /// Has `waker` woken when the commit ends; says how it ended if it has.
    pub(crate) fn register(&self, waker: &Waker) -> Option<Outcome> {
        let mut inner = self.inner();
        if inner.outcome.is_none() && !inner.wakers.iter().any(|known| known.will_wake(waker)) {
            inner.wakers.push(waker.clone());
        }
        inner.outcome.clone()
    }

    /// Whether a task waits for it.
    pub(crate) fn is_polled(&self) -> bool {
        !self.inner().wakers.is_empty()
    }

    /// Sets the outcome. It is seen at once; whoever sleeps is woken after [`announce`](Self::announce).
    pub(crate) fn settle(&self, outcome: Outcome) {
        self.inner().outcome.get_or_insert(outcome);
    }

    /// Wakes every thread that waits, and gives the wakers of the tasks. Call it without the journal's lock:
    /// they will want it next.
    pub(crate) fn announce(&self) -> Vec<Waker> {
        let wakers = std::mem::take(&mut self.inner().wakers);
        self.changed.notify_all();
        wakers
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits that have not ended, oldest first: at most one is on its way, the others gather.
#[derive(Default)]
pub(crate) struct Commits {
    open: VecDeque<(CommitId, Arc<CommitState>)>,
}

impl Commits {
    /// The state of a commit that has just accepted a record.
    pub(crate) fn of(&mut self, id: CommitId) -> &Arc<CommitState> {
        let known = self.open.back().is_some_and(|(newest, _)| *newest == id);
        if !known {
            self.open.push_back((id, CommitState::new()));
        }
        let newest = self.open.len() - 1;
        &self.open[newest].1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether one has gathered all it can, so that to wait for more makes it no larger.
    pub(crate) fn has_full_one(&self) -> bool {
        self.open.len() > 1
    }

    pub(crate) fn oldest(&self) -> Option<&Arc<CommitState>> {
        self.open.front().map(|(_, state)| state)
    }

    pub(crate) fn newest_id(&self) -> Option<CommitId> {
        self.open.back().map(|(id, _)| *id)
    }

    pub(crate) fn newest(&self) -> Option<&Arc<CommitState>> {
        self.open.back().map(|(_, state)| state)
    }

    /// Takes out the oldest commit if it is `id` or older.
    pub(crate) fn pop_up_to(&mut self, id: CommitId) -> Option<Arc<CommitState>> {
        let (oldest, _) = self.open.front()?;
        if *oldest <= id { self.open.pop_front().map(|(_, state)| state) } else { None }
    }

    pub(crate) fn pop(&mut self) -> Option<Arc<CommitState>> {
        self.open.pop_front().map(|(_, state)| state)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<CommitState>> {
        self.open.iter().map(|(_, state)| state)
    }
}
