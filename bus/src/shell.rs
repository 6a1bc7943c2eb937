//! What the server needs of a bus, whatever drives it: threads over a real disk, or a simulation.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use strandline::bus::{
    AckRequest, EventBus, EventBusError, Received, Subscribe, Subscription, SubscriptionStatus,
};
use strandline::{AppendError, CommitCounts, Disk, EventDraft, Pcpj, ReadStep, ReadUpTo, Ticket};
use strandline_core::{Event, ReadError, Seq};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

/// An open bus. Nothing in here blocks the thread that calls it.
pub trait Shell: Clone + Send + Sync + 'static {
    /// An event that was accepted and is not durable yet.
    type Accepted: Accepted;
    /// One subscriber's end.
    type Subscriber: Subscriber;

    /// Publishes an event without waiting; with `behind`, only where that number is still taken by an event that was accepted before.
    ///
    /// # Errors
    /// [`AppendError`]; [`NoSpace`](AppendError::NoSpace) where what was accepted before is lost.
    fn publish(&self, event: EventDraft<'_>, behind: Option<Seq>) -> Result<Self::Accepted, AppendError>;

    /// Subscribes.
    fn subscribe(
        &self,
        request: Subscribe,
    ) -> impl Future<Output = Result<Self::Subscriber, EventBusError>> + Send;

    /// Acknowledges for the durable subscription of this name; durable when it is done.
    fn acknowledge(
        &self,
        name: &str,
        sequence: Seq,
    ) -> impl Future<Output = Result<(), EventBusError>> + Send;

    /// Deletes the durable subscription of this name.
    fn remove(&self, name: &str) -> impl Future<Output = Result<(), EventBusError>> + Send;

    /// Whether there is a durable subscription of this name.
    fn knows(&self, name: &str) -> bool;

    /// How every subscription stands.
    fn subscriptions(&self) -> Vec<SubscriptionStatus>;

    /// The first event that is kept.
    fn first(&self) -> Seq;

    /// The last event that is durable; 0 if there never was one.
    fn last(&self) -> Seq;

    /// How the journal of events stands.
    fn journal(&self) -> JournalStatus;

    /// Why the journal of events stopped, if it did. Asked more often than how it stands, and to be had for less.
    fn stopped(&self) -> Option<String> {
        self.journal().stopped
    }

    /// The commits of events since the bus was opened.
    fn commits(&self) -> CommitCounts {
        CommitCounts::default()
    }

    /// Goes through all events that are kept, in order.
    fn read_back<R: Send + 'static>(
        &self,
        state: R,
        each: fn(&mut R, &Event<'_>),
    ) -> impl Future<Output = Result<R, ReadError>> + Send;
}

/// The receipt of an event that was accepted.
pub trait Accepted: Future<Output = Result<Seq, AppendError>> + Send + Unpin + 'static {
    /// The number that it gets, if it comes to be.
    fn seq(&self) -> Seq;
}

/// One subscriber's end of the bus.
pub trait Subscriber: Send + 'static {
    /// What comes next. Nothing is lost if the future is dropped.
    fn recv(&mut self) -> impl Future<Output = Result<Received, ReadError>> + Send;

    /// Acknowledges without waiting.
    ///
    /// # Errors
    /// [`EventBusError`].
    fn acknowledge_soon(&self, sequence: Seq) -> Result<(), EventBusError>;
}

/// How the journal of events stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct JournalStatus {
    /// The first event that is kept.
    pub first: u64,
    /// The number that the next event gets. Those before it are durable.
    pub next: u64,
    /// Bytes of all segments.
    pub bytes: u64,
    /// The segments, oldest first.
    pub segments: Vec<SegmentStatus>,
    /// Why it stopped, if it did.
    pub stopped: Option<String>,
}

/// One segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SegmentStatus {
    /// Its first event.
    pub first: u64,
    /// One past its last event.
    pub end: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl<D: Disk> Shell for EventBus<D> {
    type Accepted = Ticket<Pcpj, D>;
    type Subscriber = ThreadedSubscriber<D>;

    fn publish(&self, event: EventDraft<'_>, behind: Option<Seq>) -> Result<Self::Accepted, AppendError> {
        let Some(behind) = behind else { return self.publish_nowait(event) };
        let mut next = behind.next();
        loop {
            match self.events().append_nowait_at(next, event) {
                // Others published in between.
                Err(AppendError::NotNext { next: found, .. }) if found > behind => next = found,
                // The number is given out again.
                Err(AppendError::NotNext { .. }) => return Err(AppendError::NoSpace),
                published => return published,
            }
        }
    }

    async fn subscribe(&self, request: Subscribe) -> Result<Self::Subscriber, EventBusError> {
        let bus = self.clone();
        let subscription = blocking(move || Self::subscribe(&bus, request)).await?;
        Ok(ThreadedSubscriber { place: Some(Place::Here(Box::new(subscription))) })
    }

    async fn acknowledge(&self, name: &str, sequence: Seq) -> Result<(), EventBusError> {
        let Some(subscription_id) = self.find(name) else {
            return Err(EventBusError::UnknownName { name: name.into() });
        };
        let bus = self.clone();
        blocking(move || Self::acknowledge(&bus, AckRequest { subscription_id, sequence })).await
    }

    async fn remove(&self, name: &str) -> Result<(), EventBusError> {
        let (bus, name) = (self.clone(), name.to_string());
        blocking(move || Self::remove(&bus, &name)).await
    }

    fn knows(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        Self::subscriptions(self)
    }

    fn first(&self) -> Seq {
        self.events().first()
    }

    fn last(&self) -> Seq {
        self.events().durable_end().previous()
    }

    fn journal(&self) -> JournalStatus {
        let view = self.events().view();
        let segments = view.segments().map(|segment| SegmentStatus {
            first: segment.first().get(),
            end: segment.end().get(),
            bytes: segment.bytes(),
        });
        JournalStatus {
            first: view.first().get(),
            next: view.durable_end().get(),
            bytes: view.bytes(),
            segments: segments.collect(),
            stopped: Shell::stopped(self),
        }
    }

    fn stopped(&self) -> Option<String> {
        self.events().poisoned().map(|poisoned| poisoned.to_string())
    }

    fn commits(&self) -> CommitCounts {
        self.events().commit_counts()
    }

    async fn read_back<R: Send + 'static>(
        &self,
        mut state: R,
        each: fn(&mut R, &Event<'_>),
    ) -> Result<R, ReadError> {
        let mut reader = self.events().reader(self.events().first(), ReadUpTo::Durable);
        blocking(move || {
            loop {
                match reader.next_batch(Some(Duration::ZERO))? {
                    ReadStep::Records(batch) => batch.records().for_each(|event| each(&mut state, &event)),
                    ReadStep::Trimmed { .. } => {}
                    _ => return Ok(state),
                }
            }
        })
        .await
    }
}

impl<D: Disk> Accepted for Ticket<Pcpj, D> {
    fn seq(&self) -> Seq {
        Self::seq(self)
    }
}

/// Does on a thread that may block what may block. A panic there goes on here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    joined(spawn_blocking(work).await)
}

fn joined<T>(joined: Result<T, JoinError>) -> T {
    match joined {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only while the runtime goes down, with everything that could wait for this.
            Err(_) => panic!("the runtime is shut down"),
        },
    }
}

/// A subscriber that reads files on threads which may block, and what is new from memory.
pub struct ThreadedSubscriber<D: Disk> {
    /// None only within a call.
    place: Option<Place<D>>,
}

type Read<D> = (Box<Subscription<D>>, Result<Received, ReadError>);

enum Place<D: Disk> {
    Here(Box<Subscription<D>>),
    /// On a thread that may block.
    Reading(JoinHandle<Read<D>>),
}

impl<D: Disk> ThreadedSubscriber<D> {
    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<Received, ReadError>> {
        loop {
            match self.place.take() {
                Some(Place::Here(mut subscription)) => match subscription.poll_recv_in_memory(context) {
                    Poll::Ready(Ok(None)) => {
                        self.place = Some(Place::Reading(spawn_blocking(move || {
                            let received = subscription.recv(Some(Duration::ZERO));
                            (subscription, received)
                        })));
                    }
                    polled => {
                        self.place = Some(Place::Here(subscription));
                        return polled.map(|received| Ok(received?.unwrap_or(Received::TimedOut)));
                    }
                },
                Some(Place::Reading(mut reading)) => {
                    let Poll::Ready(read) = Pin::new(&mut reading).poll(context) else {
                        self.place = Some(Place::Reading(reading));
                        return Poll::Pending;
                    };
                    let (subscription, received) = joined(read);
                    self.place = Some(Place::Here(subscription));
                    match received {
                        Ok(Received::TimedOut) => {}
                        received => return Poll::Ready(received),
                    }
                }
                None => return Poll::Ready(Ok(Received::Ended)),
            }
        }
    }
}

impl<D: Disk> Subscriber for ThreadedSubscriber<D> {
    async fn recv(&mut self) -> Result<Received, ReadError> {
        std::future::poll_fn(|context| {
            let received = ready!(self.poll_recv(context));
            Poll::Ready(received)
        })
        .await
    }

    fn acknowledge_soon(&self, sequence: Seq) -> Result<(), EventBusError> {
        match &self.place {
            Some(Place::Here(subscription)) => subscription.acknowledge_soon(sequence),
            // Whoever acknowledges has received, and is not reading.
            Some(Place::Reading(_)) | None => Ok(()),
        }
    }
}
