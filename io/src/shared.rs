//! What the handles of one journal, its waiters, readers and housekeeping thread share.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::Waker;

use strandline_core::{
    CommitId, Config, Effect, EffectId, Framing, Journal as Core, Monotonic, Output, SegmentId, Seq,
    Timestamp, View,
};

use crate::clock::{Clock, timestamp};
use crate::commit::{CommitState, Commits, Outcome};
use crate::commit_counts::CountsCommits;
use crate::directory::Lease;
use crate::disk::Disk;
use crate::error::{AppendError, Poisoned};
use crate::perform::Performer;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::{self, ThreadId};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Shared by everything that has to do with one open journal.
pub(crate) struct Shared<F: Framing, D: Disk> {
    pub(crate) performer: Performer<D>,
    /// Ends with the close, whoever completes it.
    lease: Mutex<Option<Lease<D>>>,
    pub(crate) clock: Clock,
    state: Mutex<State<F>>,
    /// The leader waits for the lock.
    lock_wanted: AtomicBool,
    /// The housekeeping thread waits here.
    pub(crate) work: Condvar,
    /// Readers that have caught up wait here.
    pub(crate) progress: Condvar,
    /// Who keeps a bus within its bounds waits here.
    pub(crate) keeper: Condvar,
}

/// What the lock protects.
pub(crate) struct State<F: Framing> {
    core: Core<F>,
    pub(crate) commits: Commits,
    /// Who waits for something else than the acknowledgement of a commit.
    pub(crate) watches: Vec<(Watch, Arc<CommitState>)>,
    /// Somebody performs the effects of the commit path. True also while the lead is being handed over.
    pub(crate) leading: bool,
    /// Who leads, once it has taken the lead: it wakes tasks, and what they do on its thread cannot wait for it.
    pub(crate) leader: Option<ThreadId>,
    /// The core may have something to say.
    pub(crate) dirty: bool,
    /// An effect of the commit path that was taken out of the core and waits to be performed.
    pub(crate) in_hand: Option<(EffectId, Effect)>,
    /// Effects for the housekeeping thread.
    pub(crate) background: VecDeque<(EffectId, Effect)>,
    pub(crate) parked: Parked,
    /// The newest commit that is with the operating system, and the newest that is durable.
    pub(crate) written: CommitId,
    pub(crate) durable: CommitId,
    pub(crate) counted: CountsCommits,
    /// A thread panicked while it led: the core may be half changed and is not touched again.
    abandoned: bool,
    pub(crate) closing: bool,
    pub(crate) closed: bool,
    pub(crate) waiting_readers: usize,
    pub(crate) reader_wakers: Vec<Waker>,
    pub(crate) spare: SparePlan,
    /// Counts what is news to readers beside the journal's own progress.
    pub(crate) nudges: u64,
    /// Counts the voids that were told.
    pub(crate) voids: u64,
    /// A new segment is being created, or has just been.
    created: bool,
    /// There is a new segment, or something waits for room.
    pub(crate) keeping_wanted: bool,
    /// Whoever keeps a bus within its bounds shall look once there is something durable that it has not seen.
    pub(crate) keeper_saw: Option<Seq>,
}

/// When a spare segment file is worth preparing.
pub(crate) struct SparePlan {
    /// The length of the spare that the next create can use, in bytes; 0 for none.
    len: u64,
    /// Once the active segment has grown beyond this, in bytes.
    from_bytes: u64,
    /// The active segment for which it was done, or tried.
    done_for: Option<SegmentId>,
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// That this commit is durable.
    Durable(CommitId),
    /// That the journal is closed.
    Closed,
}

/// What the housekeeping thread is doing, so that it is woken only when it would sleep too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// It runs, and will look at the state again before it parks.
    No,
    /// It waits a little for records that nobody waits on to gather.
    Linger,
    /// It waits for the core's next deadline.
    Until(Monotonic),
    /// It waits for somebody to wake it.
    Forever,
}

/// Whom to wake once the lock is given up.
#[derive(Default)]
pub(crate) struct Wakes {
    commits: Vec<Arc<CommitState>>,
    readers: bool,
    keeper: bool,
    wakers: Vec<Waker>,
}

impl<F: Framing, D: Disk> Shared<F, D> {
    pub(crate) fn new(core: Core<F>, performer: Performer<D>, lease: Lease<D>, config: &Config) -> Self {
        let counted = CountsCommits::from(core.view().written_end());
        let state = State {
            core,
            counted,
            commits: Commits::default(),
            watches: Vec::new(),
            leading: false,
            leader: None,
            // Recovery may have left something to be done.
            dirty: true,
            in_hand: None,
            background: VecDeque::new(),
            parked: Parked::No,
            written: CommitId::default(),
            durable: CommitId::default(),
            abandoned: false,
            closing: false,
            closed: false,
            waiting_readers: 0,
            reader_wakers: Vec::new(),
            spare: SparePlan::new(config),
            nudges: 0,
            voids: 0,
            created: false,
            keeping_wanted: false,
            keeper_saw: None,
        };
        Self {
            performer,
            lease: Mutex::new(Some(lease)),
            clock: Clock::new(),
            state: Mutex::new(state),
            lock_wanted: AtomicBool::new(false),
            work: Condvar::new(),
            progress: Condvar::new(),
            keeper: Condvar::new(),
        }
    }

    /// Takes the lock. A panic under it has been noted by [`State::abandon`], which is what later callers look at.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, ahead of a thread that appends many records at a time.
    pub(crate) fn lock_first(&self) -> MutexGuard<'_, State<F>> {
        self.lock_wanted.store(true, Ordering::Relaxed);
        let state = self.lock();
        self.lock_wanted.store(false, Ordering::Relaxed);
        state
    }

    /// Lets the leader have the lock if it waits for it. A mutex is not fair: who gives it up and takes it
    /// again at once mostly gets it, and the disk would rest until a whole queue is full.
    pub(crate) fn give_way<'a>(&'a self, state: MutexGuard<'a, State<F>>) -> MutexGuard<'a, State<F>> {
        drop(state);
        while self.leader_waits() {
            thread::yield_now();
        }
        self.lock()
    }

    /// Whether the leader waits for the lock.
    pub(crate) fn leader_waits(&self) -> bool {
        self.lock_wanted.load(Ordering::Relaxed)
    }

    /// Gives the journal's name back: nothing of it is written any more.
    pub(crate) fn end_lease(&self) {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Wakes the housekeeping thread if it sleeps.
    pub(crate) fn wake_housekeeping(&self, state: &mut State<F>) {
        if state.parked != Parked::No {
            state.parked = Parked::No;
            self.work.notify_one();
        }
    }

    /// Wakes whom it concerns. Call it without the lock, which is what they will want next.
    ///
    /// A waker is foreign code and may panic. The panic hook tells of that, and it goes no further: neither the
    /// others who wait nor the thread that happens to lead have anything to do with it.
    pub(crate) fn wake(&self, wakes: &mut Wakes) {
        let mut wakers = std::mem::take(&mut wakes.wakers);
        for commit in wakes.commits.drain(..) {
            wakers.append(&mut commit.announce());
        }
        if std::mem::take(&mut wakes.readers) {
            self.progress.notify_all();
        }
        if std::mem::take(&mut wakes.keeper) {
            self.keeper.notify_all();
        }
        for waker in wakers {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl<F: Framing> State<F> {
    /// The core, unless a panic may have left it half changed.
    pub(crate) fn core(&mut self) -> Result<&mut Core<F>, Poisoned> {
        if self.abandoned { Err(Poisoned::Abandoned) } else { Ok(&mut self.core) }
    }

    /// Hands a record to the core.
    pub(crate) fn append_expecting(
        &mut self,
        expected: Option<Seq>,
        draft: F::Draft<'_>,
    ) -> Result<(Seq, Arc<CommitState>), AppendError> {
        let next = self.next_seq();
        if let Some(expected) = expected.filter(|expected| *expected != next) {
            // Why it stopped, or was closed, says more than a number.
            return match self.poisoned() {
                Some(poisoned) => Err(poisoned.into()),
                None if self.closing => Err(AppendError::Closed),
                None => Err(AppendError::NotNext { expected, next }),
            };
        }
        // Read under the lock, so that timestamps rise with the sequence numbers.
        let (seq, commit) = self.append_at(timestamp(), draft)?;
        Ok((seq, Arc::clone(commit)))
    }

    /// Hands a record to the core that was made at `now`.
    pub(crate) fn append_at(
        &mut self,
        now: Timestamp,
        draft: F::Draft<'_>,
    ) -> Result<(Seq, &Arc<CommitState>), AppendError> {
        let accepted = self.core()?.append(now, draft)?;
        self.dirty = true;
        Ok((accepted.seq, self.commits.of(accepted.commit)))
    }

    /// Something to wait for, beside the commits. It is reached while somebody leads.
    pub(crate) fn watch(&mut self, watch: Watch) -> Arc<CommitState> {
        let state = CommitState::new();
        self.watches.push((watch, Arc::clone(&state)));
        self.dirty = true;
        state
    }

    /// The number that the next record will get.
    pub(crate) fn next_seq(&self) -> Seq {
        self.core.next_seq()
    }

    /// What readers need. Readable even after a panic: a half changed view ends before what is not durable.
    pub(crate) fn view(&self) -> &View<F> {
        self.core.view()
    }

    /// Why the journal stopped, if it did.
    pub(crate) fn poisoned(&self) -> Option<Poisoned> {
        match self.abandoned {
            true => Some(Poisoned::Abandoned),
            false => self.core.poison().map(|poison| Poisoned::Disk(*poison)),
        }
    }

    /// Whether there may be something to do on the commit path.
    pub(crate) fn has_work(&self) -> bool {
        !self.abandoned && (self.dirty || self.in_hand.is_some())
    }

    /// When the core wants to be told the time.
    pub(crate) fn next_deadline(&self) -> Option<Monotonic> {
        if self.abandoned { None } else { self.core.next_deadline() }
    }

    /// Whether a task, rather than a thread, waits for a commit. It cannot lead.
    pub(crate) fn is_polled(&self) -> bool {
        self.commits.iter().any(|commit| commit.is_polled())
    }

    /// Whether the commit that gathers is better left to gather a little longer.
    pub(crate) fn may_linger(&self) -> bool {
        let gathers = !self.commits.is_empty() && !self.commits.has_full_one();
        gathers && !self.closing && self.poisoned().is_none() && !self.is_polled()
    }

    /// The length of the spare that should be prepared now, told once for each segment.
    pub(crate) fn wanted_spare(&mut self) -> Option<u64> {
        let active = self.core.view().segments().next_back()?;
        let (id, is_large) = (active.id(), active.bytes() > self.spare.from_bytes);
        let wanted = is_large && self.spare.len > 0 && self.spare.done_for != Some(id);
        if !wanted || self.closing || self.poisoned().is_some() {
            return None;
        }
        self.spare.done_for = Some(id);
        Some(self.spare.len)
    }

    /// The oldest of what threads wait for: one of them can lead.
    pub(crate) fn next_leader(&self) -> Option<Arc<CommitState>> {
        let watched = self.watches.iter().map(|(_, state)| state);
        self.commits.iter().chain(watched).find(|state| state.has_waiters()).cloned()
    }

    /// Whether nothing new will ever be there to read.
    pub(crate) fn is_over(&self) -> bool {
        self.closed || self.poisoned().is_some()
    }

    /// Has a reader's task woken at the next progress.
    pub(crate) fn register_reader(&mut self, waker: &Waker) {
        if !self.reader_wakers.iter().any(|known| known.will_wake(waker)) {
            self.reader_wakers.push(waker.clone());
        }
    }

    /// Takes in one thing that the core says; gives an effect of the commit path back.
    pub(crate) fn take_in(&mut self, output: Output, wakes: &mut Wakes) -> Option<(EffectId, Effect)> {
        match output {
            Output::Effect { id, effect } if effect.is_background() => {
                self.background.push_back((id, effect));
            }
            Output::Effect { id, effect } => {
                if let Effect::Create { reserve, head, .. } = &effect {
                    // What ends with its head has no zeros to be prepared.
                    self.spare.len = if *reserve > head.len() as u64 { *reserve } else { 0 };
                    self.created = true;
                }
                return Some((id, effect));
            }
            Output::Written { end, commit } => {
                self.written = commit;
                self.counted.note(end);
                self.settle_up_to(commit, &Outcome::Acknowledged, wakes);
                self.note_progress(wakes);
            }
            Output::Durable { end, commit } => {
                if commit > self.written {
                    self.written = commit;
                    self.counted.note(end);
                }
                self.durable = commit;
                self.settle_up_to(commit, &Outcome::Acknowledged, wakes);
                self.settle_watches(|watch| matches!(watch, Watch::Durable(of) if *of <= commit), wakes);
                self.note_progress(wakes);
            }
            Output::Void { commit, shortage, .. } => {
                self.settle_up_to(commit, &Outcome::Void(shortage), wakes);
                // No progress, but room for whoever submits to a session.
                self.voids += 1;
                self.wake_readers(wakes);
            }
            Output::Trimmed { .. } => self.note_progress(wakes),
            Output::Poisoned(poison) => self.fail_everybody(Poisoned::Disk(poison), wakes),
            Output::Closed => {
                self.closed = true;
                self.settle_watches(|_| true, wakes);
                self.note_progress(wakes);
            }
        }
        None
    }

    /// Marks the journal as poisoned by a panic. The core is not asked again.
    pub(crate) fn abandon(&mut self, wakes: &mut Wakes) {
        self.abandoned = true;
        self.in_hand = None;
        self.background.clear();
        self.fail_everybody(Poisoned::Abandoned, wakes);
    }

    fn settle_up_to(&mut self, commit: CommitId, outcome: &Outcome, wakes: &mut Wakes) {
        while let Some(state) = self.commits.pop_up_to(commit) {
            state.settle(outcome.clone());
            wakes.commits.push(state);
        }
    }

    fn settle_watches(&mut self, is_reached: impl Fn(&Watch) -> bool, wakes: &mut Wakes) {
        for (_, state) in self.watches.extract_if(.., |(watch, _)| is_reached(watch)) {
            state.settle(Outcome::Acknowledged);
            wakes.commits.push(state);
        }
    }

    fn fail_everybody(&mut self, poisoned: Poisoned, wakes: &mut Wakes) {
        let watching = self.watches.drain(..).map(|(_, state)| state);
        let committing = std::iter::from_fn(|| self.commits.pop());
        for state in watching.chain(committing) {
            state.settle(Outcome::Poisoned(poisoned));
            wakes.commits.push(state);
        }
        self.note_progress(wakes);
    }

    /// Whoever keeps a bus within its bounds shall look.
    pub(crate) fn want_keeping(&mut self, wakes: &mut Wakes) {
        self.keeping_wanted = true;
        wakes.keeper = true;
    }

    /// Readers that have caught up shall look again.
    pub(crate) fn note_progress(&mut self, wakes: &mut Wakes) {
        let end = self.view().durable_end();
        let is_news = self.keeper_saw.take_if(|saw| *saw < end).is_some();
        if std::mem::take(&mut self.created) || is_news || self.is_over() {
            self.want_keeping(wakes);
        }
        self.wake_readers(wakes);
    }

    pub(crate) fn wake_readers(&mut self, wakes: &mut Wakes) {
        wakes.readers |= self.waiting_readers > 0;
        wakes.wakers.append(&mut self.reader_wakers);
    }
}

impl SparePlan {
    /// Half a segment is time enough. Where segments are created without reserved space there is nothing to
    /// prepare.
    fn new(config: &Config) -> Self {
        let len = config.reserve_bytes.min(config.segment_bytes);
        Self { len, from_bytes: config.segment_bytes / 2, done_for: None }
    }
}
