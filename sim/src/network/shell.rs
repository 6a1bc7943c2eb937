//! The bus as the server sees it, over the simulated disk and in simulated time: the same decisions and the same journals as in a
//! real one, driven by a task in place of threads.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline::bus::{AckRequest, EventBusError, Subscribe, SubscriptionStatus};
use strandline::{AppendError, EventDraft, Poisoned};
use strandline_bus::{Accepted, JournalStatus, Shell};
use strandline_core::bus::{SubscriptionId, Urgency};
use strandline_core::{CommitId, Event, Output, ReadError, Seq, Shortage};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::ledger::{Kept, SharedLedger};
use super::subscriber::SimSubscriber;
use crate::bus::machine::{Machine, Turned};
use crate::disk::SimDisk;
use crate::driven::Stopped;

/// A handle on the bus of the running server.
#[derive(Clone)]
pub(super) struct SimShell {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    state: Mutex<State>,
    pub(super) disk: SimDisk,
    ledger: SharedLedger,
    /// Something changed that somebody may wait for. They are woken in the order in which they began to wait.
    pub(super) news: Notify,
    /// There is something to do for who drives the journals.
    work: Notify,
}

pub(super) struct State {
    pub(super) machine: Machine,
    /// Commits that ended, oldest first: up to this one, and what there was too little of, if it is not durable. What is not decided by
    /// one is by the next.
    ended: Vec<(CommitId, Option<Shortage>)>,
    /// A journal stopped, or the bus was closed.
    pub(super) is_over: bool,
    /// How long things take.
    choice: ChaCha8Rng,
}

impl SimShell {
    pub(super) fn new(machine: Machine, disk: SimDisk, ledger: SharedLedger, seed: u64) -> Self {
        let state = Mutex::new(State {
            machine,
            ended: Vec::new(),
            is_over: false,
            choice: ChaCha8Rng::seed_from_u64(seed),
        });
        let (news, work) = (Notify::new(), Notify::new());
        Self { inner: Arc::new(Inner { state, disk, ledger, news, work }) }
    }

    /// Drives both journals, as long as the process runs. Each step takes some time.
    pub(super) async fn drive(self) {
        loop {
            let turned = self.inner.turn();
            // A machine without power does nothing more, and tells nobody.
            if self.inner.disk.is_crashed() {
                return pending().await;
            }
            match turned {
                Ok(Some(Turned::Idle)) => {}
                Ok(Some(Turned::Did | Turned::Told(_))) => {
                    self.inner.news.notify_waiters();
                    self.inner.takes_time().await;
                }
                Ok(None) => self.rest().await,
                Err(Stopped(_)) => {
                    self.inner.lock().is_over = true;
                    self.inner.news.notify_waiters();
                    return;
                }
            }
        }
    }

    /// Waits until there may be something to do.
    async fn rest(&self) {
        let until = {
            let mut state = self.inner.lock();
            let machine = &mut state.machine;
            if machine.events.journal.waits_for_room() {
                machine.events.journal.refuse_waiting();
                return machine.wake();
            }
            machine.sleeps_ms()
        };
        self.inner.news.notify_waiters();
        let work = self.inner.work.notified();
        match until {
            // One that is over already waits for something else as well.
            Some(ms) => _ = timeout(Duration::from_millis(ms.max(1)), work).await,
            None => work.await,
        }
        self.inner.lock().machine.wake();
    }

    /// Ends what was begun, records where everybody stands, and closes both journals.
    pub(super) fn close(&self) {
        let mut state = self.inner.lock();
        if !std::mem::replace(&mut state.is_over, true) {
            // What fails is told by nobody: the next start finds it out.
            let _ = state.machine.close();
            self.inner.note(&state.machine);
        }
        drop(state);
        self.inner.news.notify_waiters();
    }
}

/// How long a step takes: mostly little, now and then long.
fn latency(choice: &mut ChaCha8Rng) -> Duration {
    let slow = choice.random_bool(0.02);
    Duration::from_micros(if slow {
        choice.random_range(5_000..60_000)
    } else {
        choice.random_range(50..2_000)
    })
}

/// Simulated time since the beginning, in milliseconds.
pub(super) fn now_ms() -> u64 {
    turmoil::sim_elapsed().map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

impl Inner {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, at this moment of simulated time.
    pub(super) fn now(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.machine.now = now_ms();
        state
    }

    fn turn(&self) -> Result<Option<Turned>, Stopped> {
        let mut state = self.now();
        let turned = state.machine.turn()?;
        match turned {
            Some(Turned::Told(Output::Durable { commit, .. })) => state.ended.push((commit, None)),
            Some(Turned::Told(Output::Void { commit, shortage, .. })) => {
                state.ended.push((commit, Some(shortage)));
            }
            _ => {}
        }
        self.note(&state.machine);
        Ok(turned)
    }

    /// Notes what is durable from now on.
    fn note(&self, machine: &Machine) {
        let mut ledger = self.ledger.lock();
        ledger.begins(machine.first());
        if machine.end() > ledger.end() {
            let from = ledger.end();
            ledger.durable(&Kept::read(machine, from));
        }
    }

    /// Something is to be done.
    pub(super) fn wake(&self, mut state: MutexGuard<'_, State>) {
        state.machine.wake();
        drop(state);
        self.work.notify_one();
        self.news.notify_waiters();
    }

    /// What is done takes some time, in which others go on.
    async fn takes_time(&self) {
        let latency = latency(&mut self.lock().choice);
        sleep(latency).await;
    }

    /// Waits for what is to be found under the lock.
    async fn find<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let news = self.news.notified();
            let found = look(&mut self.lock());
            match found {
                // Nobody answers for a machine without power.
                Some(_) if self.disk.is_crashed() => return pending().await,
                Some(found) => return found,
                None => news.await,
            }
        }
    }

    /// Waits until what was asked for is recorded.
    async fn recorded(
        &self,
        refusals: u64,
        is_recorded: impl Fn(&Machine) -> bool,
    ) -> Result<(), EventBusError> {
        self.find(|state| {
            if is_recorded(&state.machine) {
                Some(Ok(()))
            } else if state.is_over {
                Some(Err(Poisoned::Abandoned.into()))
            } else {
                (state.machine.refusals != refusals).then_some(Err(EventBusError::NoSpace))
            }
        })
        .await
    }

    async fn outcome(&self, seq: Seq, commit: CommitId) -> Result<Seq, AppendError> {
        self.find(|state| {
            let ended = state.ended.iter().find(|(up_to, _)| *up_to >= commit);
            match ended {
                Some((_, None)) => Some(Ok(seq)),
                Some((_, Some(Shortage::Space))) => Some(Err(AppendError::NoSpace)),
                Some((_, Some(Shortage::Files))) => Some(Err(AppendError::TooManyFiles)),
                None => state.is_over.then_some(Err(Poisoned::Abandoned.into())),
            }
        })
        .await
    }
}

/// A publish that was accepted.
pub(super) struct SimAccepted {
    seq: Seq,
    outcome: Pin<Box<dyn Future<Output = Result<Seq, AppendError>> + Send>>,
}

impl Future for SimAccepted {
    type Output = Result<Seq, AppendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.outcome.as_mut().poll(context)
    }
}

impl Accepted for SimAccepted {
    fn seq(&self) -> Seq {
        self.seq
    }
}

impl Shell for SimShell {
    type Accepted = SimAccepted;
    type Subscriber = SimSubscriber;

    fn publish(&self, event: EventDraft<'_>, behind: Option<Seq>) -> Result<SimAccepted, AppendError> {
        let mut state = self.inner.now();
        if state.is_over {
            return Err(AppendError::Closed);
        }
        if behind.is_some_and(|behind| state.machine.events.journal.next_seq() <= behind) {
            return Err(AppendError::NoSpace);
        }
        let wall = state.machine.wall();
        let accepted = state.machine.events.journal.append(wall, event)?;
        self.inner.wake(state);
        let inner = Arc::clone(&self.inner);
        let outcome = Box::pin(async move { inner.outcome(accepted.seq, accepted.commit).await });
        Ok(SimAccepted { seq: accepted.seq, outcome })
    }

    async fn subscribe(&self, request: Subscribe) -> Result<SimSubscriber, EventBusError> {
        self.inner.takes_time().await;
        let (subscriber, refusals) = {
            let mut state = self.inner.now();
            if state.is_over {
                return Err(EventBusError::Closed);
            }
            let (wall, refusals) = (state.machine.wall(), state.machine.refusals);
            let Machine { bus, events, .. } = &mut state.machine;
            let connection = bus.subscribe(wall, request, events.journal.view())?;
            self.inner.wake(state);
            (SimSubscriber::new(Arc::clone(&self.inner), connection), refusals)
        };
        let id = subscriber.connection.subscription;
        self.inner.recorded(refusals, |machine| machine.bus.is_recorded(id)).await?;
        self.inner.takes_time().await;
        Ok(subscriber)
    }

    async fn acknowledge(&self, name: &str, sequence: Seq) -> Result<(), EventBusError> {
        self.inner.takes_time().await;
        let (id, refusals) = {
            let mut state = self.inner.now();
            let unknown = || EventBusError::UnknownName { name: name.into() };
            let id = state.machine.bus.find(name).ok_or_else(unknown)?;
            acknowledge(&mut state, id, sequence, Urgency::Now)?;
            let refusals = state.machine.refusals;
            self.inner.wake(state);
            (id, refusals)
        };
        self.inner.recorded(refusals, |machine| machine.bus.is_recorded(id)).await
    }

    async fn remove(&self, name: &str) -> Result<(), EventBusError> {
        let refusals = {
            let mut state = self.inner.now();
            if !state.machine.bus.remove(name) {
                return Err(EventBusError::UnknownName { name: name.into() });
            }
            let refusals = state.machine.refusals;
            self.inner.wake(state);
            refusals
        };
        self.inner.recorded(refusals, Machine::is_quiet).await
    }

    fn knows(&self, name: &str) -> bool {
        self.inner.lock().machine.bus.find(name).is_some()
    }

    fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        let state = self.inner.lock();
        state.machine.bus.statuses(state.machine.events.journal.view()).collect()
    }

    fn first(&self) -> Seq {
        self.inner.lock().machine.events.journal.view().first()
    }

    fn last(&self) -> Seq {
        self.inner.lock().machine.events.journal.view().durable_end().previous()
    }

    fn journal(&self) -> JournalStatus {
        let state = self.inner.lock();
        let view = state.machine.events.journal.view();
        JournalStatus {
            first: view.first().get(),
            next: view.durable_end().get(),
            bytes: view.bytes(),
            ..JournalStatus::default()
        }
    }

    async fn read_back<R: Send + 'static>(
        &self,
        mut state: R,
        each: fn(&mut R, &Event<'_>),
    ) -> Result<R, ReadError> {
        let read = {
            let machine = &self.inner.lock().machine;
            let first = machine.events.journal.view().first();
            machine.events.each(first, |event| {
                each(&mut state, &event);
                Ok(())
            })
        };
        if self.inner.disk.is_crashed() {
            return pending().await;
        }
        read.expect("what was just opened can be read");
        Ok(state)
    }
}

pub(super) fn acknowledge(
    state: &mut State,
    subscription_id: SubscriptionId,
    sequence: Seq,
    urgency: Urgency,
) -> Result<(), EventBusError> {
    if state.is_over {
        return Err(EventBusError::Closed);
    }
    let (now, wall) = (state.machine.monotonic(), state.machine.wall());
    let ack = AckRequest { subscription_id, sequence };
    state.machine.bus.acknowledge(now, wall, ack, urgency)?;
    Ok(())
}
