//! An event bus in a directory: events that any number of subscribers follow, each from its own place, and none
//! ever misses one without being told.
//!
//! ```
//! use strandline::bus::{BusSettings, EventBus, Received, Subscribe};
//! use strandline::{Directory, EventDraft};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! let directory = Directory::open(root.path())?;
//! let (bus, _) = EventBus::open(&directory, BusSettings::default())?;
//! let mut context = bus.subscribe(Subscribe::durable("context"))?;
//!
//! let draft = EventDraft { domain: 1, event_type: "window.opened", source: "compositor", payload: b"{}" };
//! let sequence = bus.publish(draft)?; // durable now
//!
//! if let Received::Events(batch) = context.recv(None)? {
//!     let seen: Vec<_> = batch.events().map(|event| event.seq).collect();
//!     assert_eq!(seen, [sequence]);
//!     context.acknowledge(sequence)?; // after a crash it goes on behind this
//! }
//! bus.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Two journals make a bus: `event-journal` holds the events, `subscriptions` what is known of durable subscribers.
//! Publishing goes straight to the first; [`core`](strandline_core::bus) decides the rest.

mod error;
mod keeper;
mod open;
mod recording;
mod settings;
mod subscription;

use std::fmt;
use std::sync::{Arc, PoisonError};

use strandline_core::bus::EventBus as Core;
pub use strandline_core::bus::{
    AckRequest, AcknowledgeError, BusConfig, ConnectionId, EventBatch, GapReason, Loss, RestoreError,
    RetentionPlan, Subscribe, SubscribeError, SubscriptionGap, SubscriptionId, SubscriptionStatus, lifecycle,
};
use strandline_core::bus::{Acknowledged, BusRequest, RecordId, Urgency};
use strandline_core::{EventDraft, Pcpj, Pryj, Seq};
pub use strandline_core::{Filter, Retention};

use crate::append_all::AppendAllError;
use crate::clock::timestamp;
use crate::disk::Disk;
use crate::error::AppendError;
use crate::journal::Journal;
use crate::std_disk::StdDisk;
use crate::sync::thread::{JoinHandle, ThreadId};
use crate::sync::{Mutex, MutexGuard};
use crate::ticket::Ticket;
pub use error::{BusOpenError, EventBusError};
pub use open::{BusReport, EVENT_JOURNAL, SUBSCRIPTIONS};
use recording::Records;
pub use settings::BusSettings;
use settings::Shares;
pub use subscription::{Received, Subscription};

/// The journal of a bus's events.
pub type EventJournal<D = StdDisk> = Journal<Pcpj, D>;

/// An open event bus. Cloning gives another handle on the same one; handles can be used from many threads.
///
/// Dropping the last handle closes the bus. A subscription is none: it is told.
pub struct EventBus<D: Disk = StdDisk> {
    inner: Arc<Inner<D>>,
    /// Closes the bus with the last handle.
    _closer: Arc<Closer<D>>,
}

/// What handles, subscriptions and the keeper share.
struct Inner<D: Disk> {
    events: Journal<Pcpj, D>,
    records: Journal<Pryj, D>,
    shares: Shares,
    state: Mutex<State>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

/// What the bus's lock protects. It is taken before either journal's.
struct State {
    core: Core,
    records: Records,
    keeper: Option<ThreadId>,
    closing: bool,
    /// What the close came to, once both journals are closed.
    ended: Option<Result<(), EventBusError>>,
}

struct Closer<D: Disk> {
    inner: Arc<Inner<D>>,
}

impl<D: Disk> EventBus<D> {
    /// Publishes an event and blocks until it is durable. Returns its sequence number.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn publish(&self, event: EventDraft<'_>) -> Result<Seq, AppendError> {
        self.inner.events.append(event)
    }

    /// Publishes an event without waiting; the ticket says when it is durable.
    ///
    /// # Errors
    /// [`AppendError`].
    pub fn publish_nowait(&self, event: EventDraft<'_>) -> Result<Ticket<Pcpj, D>, AppendError> {
        self.inner.events.append_nowait(event)
    }

    /// Publishes events in order and blocks until all of them are durable. Returns the last one's number.
    ///
    /// # Errors
    /// [`AppendAllError`] says how many of them were published before it.
    pub fn publish_all<'a>(
        &self,
        events: impl IntoIterator<Item = EventDraft<'a>>,
    ) -> Result<Option<Seq>, AppendAllError> {
        self.inner.events.append_all(events)
    }

    /// Subscribes. A durable subscription is on the disk when this returns; if it was connected, the older
    /// connection is told that it was taken over.
    ///
    /// # Errors
    /// [`EventBusError`].
    pub fn subscribe(&self, request: Subscribe) -> Result<Subscription<D>, EventBusError> {
        Subscription::begin(&self.inner, request)
    }

    /// Acknowledges, and blocks until that is durable: after any crash the subscription goes on behind it.
    ///
    /// # Errors
    /// [`EventBusError`]. After [`NoSpace`](EventBusError::NoSpace) it counts, and is recorded later.
    pub fn acknowledge(&self, ack: AckRequest) -> Result<(), EventBusError> {
        self.inner.acknowledge(ack, Urgency::Now)
    }

    /// Acknowledges without waiting: it is recorded within [`BusConfig::acknowledge_ms`], and many acknowledgements
    /// share one record. After a crash before that, the events are delivered again.
    ///
    /// # Errors
    /// [`EventBusError`].
    pub fn acknowledge_soon(&self, ack: AckRequest) -> Result<(), EventBusError> {
        self.inner.acknowledge(ack, Urgency::Soon)
    }

    /// Acknowledges on behalf of a durable subscriber that is away, delivered or not: a decision to skip.
    ///
    /// # Errors
    /// [`EventBusError`].
    pub fn force_acknowledge(&self, name: &str, sequence: Seq) -> Result<(), EventBusError> {
        let mut state = self.inner.lock();
        if state.closing {
            return Err(EventBusError::Closed);
        }
        let Some(subscription_id) = state.core.find(name) else {
            return Err(EventBusError::UnknownName { name: name.into() });
        };
        let ack = AckRequest { subscription_id, sequence };
        self.inner.events.look(|events| state.core.force_acknowledge(timestamp(), ack, events))?;
        self.inner.record(state, Some(subscription_id))
    }

    /// Deletes a durable subscription; what it pinned is free, and whoever is connected to it is told.
    ///
    /// # Errors
    /// [`EventBusError::UnknownName`] if there is none of this name, [`EventBusError::Closed`] after a close.
    pub fn remove(&self, name: &str) -> Result<(), EventBusError> {
        let mut state = self.inner.lock();
        if state.closing {
            return Err(EventBusError::Closed);
        }
        if !state.core.remove(name) {
            return Err(EventBusError::UnknownName { name: name.into() });
        }
        self.inner.record(state, None)
    }

    /// The durable subscription of this name, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<SubscriptionId> {
        self.inner.lock().core.find(name)
    }

    /// How every subscription stands.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        let state = self.inner.lock();
        self.inner.events.look(|events| state.core.statuses(events).collect())
    }

    /// What retention would drop now, and who would lose by it. Nothing, most of the time: it has done so already.
    #[must_use]
    pub fn plan_retention(&self) -> Option<RetentionPlan> {
        self.inner.plan_retention()
    }

    /// Has retention looked after at once rather than in the background. When this returns, nobody is given what it
    /// drops any more; the files go soon, and before a close ends.
    ///
    /// # Errors
    /// [`EventBusError`].
    pub fn compact(&self) -> Result<(), EventBusError> {
        self.inner.keep()
    }

    /// The events' journal: to read it, or to ask for its state.
    #[must_use]
    pub fn events(&self) -> &EventJournal<D> {
        &self.inner.events
    }

    /// Tells every subscriber, records where each one stands, and closes both journals.
    ///
    /// # Errors
    /// [`EventBusError`]; the bus is closed all the same.
    pub fn close(&self) -> Result<(), EventBusError> {
        self.inner.close()
    }
}

impl<D: Disk> Inner<D> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acknowledge(&self, ack: AckRequest, urgency: Urgency) -> Result<(), EventBusError> {
        let mut state = self.lock();
        // Nobody would record it.
        if state.closing {
            return Err(EventBusError::Closed);
        }
        let deadline = state.core.record_deadline();
        let acknowledged = state.core.acknowledge(self.events.monotonic(), timestamp(), ack, urgency)?;
        match urgency {
            Urgency::Now => self.record(state, Some(ack.subscription_id)),
            Urgency::Soon => {
                let is_first = state.core.record_deadline() != deadline;
                drop(state);
                if acknowledged == Acknowledged::GoesOn {
                    self.events.nudge();
                }
                // Somebody has to keep the time, and needs to hear of it once: each look costs a listing.
                if is_first {
                    self.events.call_keeper();
                }
                Ok(())
            }
        }
    }
}

impl<D: Disk> Drop for Closer<D> {
    fn drop(&mut self) {
        // What was acknowledged is safe anyway.
        let _ = self.inner.close();
    }
}

impl<D: Disk> Clone for EventBus<D> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), _closer: Arc::clone(&self._closer) }
    }
}

impl<D: Disk> fmt::Debug for EventBus<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus").field("events", &self.inner.events).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(strandline_shuttle)))]
mod tests;
