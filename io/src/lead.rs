//! Group commit, led by a caller.
//!
//! Whoever waits for a commit while nobody leads takes the lead: it takes the effects out of the core under
//! the lock and performs them without it. What is appended meanwhile gathers for the next commit. A leader
//! stops as soon as its own commit has ended, and hands the lead to one of those who wait for the next. So a
//! lone caller does everything on its own thread, and nobody works for the others longer than one commit.

use std::sync::Arc;

use strandline_core::{Completion, Effect, EffectId, Framing};

use crate::commit::{CommitState, Outcome, Woken};
use crate::disk::Disk;
use crate::shared::{Parked, Shared, State, Wakes};
use crate::sync::{MutexGuard, thread};

/// When a leader has done its part.
#[derive(Clone, Copy)]
pub(crate) enum LeadUntil<'a> {
    /// This has ended.
    Settled(&'a CommitState),
    /// Any commit has ended, or nothing is left to do.
    OneCommit,
}

/// What a leader does next.
enum Next {
    Perform(EffectId, Effect),
    /// Its part is done, or nothing on the commit path can be done now.
    Stop,
}

impl<F: Framing, D: Disk> Shared<F, D> {
    /// Waits until `commit` has ended, leading where nobody else does. Takes the lock that the caller holds,
    /// so that an append and its wait are one critical section.
    pub(crate) fn wait<'a>(&'a self, state: MutexGuard<'a, State<F>>, commit: &CommitState) -> Outcome {
        let mut state = state;
        loop {
            if let Some(outcome) = commit.outcome() {
                return outcome;
            }
            if !state.leading && state.has_work() {
                state.leading = true;
                self.lead(state, LeadUntil::Settled(commit));
            } else {
                commit.add_waiter();
                drop(state);
                match commit.park() {
                    Woken::Settled(outcome) => return outcome,
                    Woken::Lead => {
                        let state = self.lock();
                        commit.remove_waiter();
                        self.lead(state, LeadUntil::Settled(commit));
                    }
                }
            }
            state = self.lock();
        }
    }

    /// Performs the effects of the commit path. The caller has set [`State::leading`] or was handed the lead.
    pub(crate) fn lead(&self, state: MutexGuard<'_, State<F>>, until: LeadUntil<'_>) {
        let mut guard = AbandonOnUnwind { shared: self, leads: true, wakes: Wakes::default() };
        // Declared after the guard, so that the lock is free when the guard needs it.
        let mut state = state;
        state.leader = Some(thread::current().id());
        while let Next::Perform(id, effect) = self.next(&mut state, until, &mut guard.wakes) {
            if !state.background.is_empty() {
                self.wake_housekeeping(&mut state);
            }
            drop(state);
            self.wake(&mut guard.wakes);
            let result = self.performer.perform(&effect);
            drop(effect);
            state = self.lock_first();
            complete(&mut state, Completion { id, result });
        }
        state.leader = None;
        self.resign(&mut state);
        drop(state);
        let mut wakes = guard.disarm();
        self.wake(&mut wakes);
    }

    /// Performs one effect beside the commit path, without leading.
    pub(crate) fn perform_in_background<'a>(
        &'a self,
        state: MutexGuard<'a, State<F>>,
        (id, effect): (EffectId, Effect),
    ) -> MutexGuard<'a, State<F>> {
        drop(state);
        let guard = AbandonOnUnwind { shared: self, leads: false, wakes: Wakes::default() };
        let result = self.performer.perform(&effect);
        let mut state = self.lock();
        complete(&mut state, Completion { id, result });
        guard.disarm();
        state
    }

    fn next(&self, state: &mut State<F>, until: LeadUntil<'_>, wakes: &mut Wakes) -> Next {
        if let Some((id, effect)) = state.in_hand.take() {
            return Next::Perform(id, effect);
        }
        let now = self.clock.monotonic();
        let Ok(core) = state.core() else { return Next::Stop };
        core.tick(now);
        let oldest = state.commits.oldest().map(Arc::as_ptr);
        loop {
            let done = match until {
                LeadUntil::Settled(commit) => commit.outcome().is_some(),
                LeadUntil::OneCommit => state.commits.oldest().map(Arc::as_ptr) != oldest,
            };
            // The core begins the next commit when it is asked for more. It is asked by who will perform it,
            // so that until then the commit gathers what arrives.
            if done && !state.commits.is_empty() {
                return Next::Stop;
            }
            let Ok(core) = state.core() else { return Next::Stop };
            let Some(output) = core.poll_output() else { break };
            if let Some(effect) = state.take_in(output, wakes) {
                if !done {
                    return Next::Perform(effect.0, effect.1);
                }
                state.in_hand = Some(effect);
                return Next::Stop;
            }
        }
        state.dirty = false;
        if state.core().is_ok_and(|core| core.waits_for_room()) {
            state.want_keeping(wakes);
        }
        Next::Stop
    }

    /// Gives up the lead: to somebody who waits for what is left to do, else to the housekeeping thread.
    fn resign(&self, state: &mut State<F>) {
        let has_work = state.has_work();
        if has_work && let Some(next) = state.next_leader() {
            next.offer_lead();
            if !state.background.is_empty() {
                self.wake_housekeeping(state);
            }
            return;
        }
        state.leading = false;
        let too_late = match (state.parked, state.next_deadline()) {
            (Parked::Forever, deadline) => has_work || deadline.is_some(),
            (Parked::Until(at), deadline) => has_work || deadline.is_some_and(|deadline| deadline < at),
            (Parked::Linger, _) => has_work && !state.may_linger(),
            (Parked::No, _) => false,
        };
        // Over, it has nothing to sleep for: a close waits for its end.
        if too_late || state.is_over() || !state.background.is_empty() {
            self.wake_housekeeping(state);
        }
    }
}

fn complete<F: Framing>(state: &mut State<F>, completion: Completion) {
    state.dirty = true;
    if let Ok(core) = state.core() {
        core.handle_completion(completion);
    }
}

/// Poisons the journal if a thread unwinds in the middle of its effect: what the disk holds is then unknown.
struct AbandonOnUnwind<'a, F: Framing, D: Disk> {
    shared: &'a Shared<F, D>,
    leads: bool,
    /// Whose commits have ended and who has not been told yet.
    wakes: Wakes,
}

impl<F: Framing, D: Disk> AbandonOnUnwind<'_, F, D> {
    fn disarm(mut self) -> Wakes {
        let wakes = std::mem::take(&mut self.wakes);
        std::mem::forget(self);
        wakes
    }
}

impl<F: Framing, D: Disk> Drop for AbandonOnUnwind<'_, F, D> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.abandon(&mut self.wakes);
        if self.leads {
            state.leading = false;
            state.leader = None;
        }
        self.shared.wake_housekeeping(&mut state);
        drop(state);
        self.shared.wake(&mut self.wakes);
    }
}
