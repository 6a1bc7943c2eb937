//! The event bus: subscriptions over a journal of events, as a state machine.
//!
//! The bus owns neither journal. It is lent the [`View`] of the events, says what is to be recorded in the journal
//! `subscriptions` and up to where either is to be trimmed ([`BusRequest`]), and is told what became of it. So
//! publishing does not pass through it, and a subscription is a cursor: nothing is queued for it.
//!
//! Three orders keep what was promised through every crash:
//!
//! - a pointer is durable before retention uses it, and a gap is durable before its events go;
//! - a gap is durable before it is told, and it is told until it is acknowledged;
//! - a snapshot of all subscriptions is durable before older records go.
//!
//! The states of a subscription are in [`lifecycle`].

mod compaction;
mod deliver;
mod error;
mod gap;
pub mod lifecycle;
mod record;
mod restore;
mod retain;
mod status;
mod subscribe;
mod subscription;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;

use compaction::Compaction;
pub use deliver::{Delivery, EventBatch, Events};
pub use error::{AcknowledgeError, RestoreError, SubscribeError};
pub use gap::{GapReason, SubscriptionGap};
use record::Record;
pub use restore::Restore;
use retain::PendingTrim;
pub use retain::{Loss, RetentionPlan};
pub use status::SubscriptionStatus;
pub use subscribe::Subscribe;
pub use subscription::{ConnectionId, SubscriptionId};
use subscription::{Subscription, Unrecorded};

use crate::retention::{Ages, Occupied};
use crate::{Monotonic, Pcpj, Retention, Seq, Timestamp, View};

/// The settings of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// A replay delivers at most this many events; more are a gap. Default 1,000.
    pub replay_events_max: u64,
    /// What is kept.
    pub retention: Retention,
    /// Bytes that all durable subscriptions may take when each is recorded once. Default 128 KiB.
    pub subscriptions_bytes_max: usize,
    /// An acknowledgement that nobody waits for is recorded within this many milliseconds. Default 100.
    pub acknowledge_ms: u64,
}

impl Default for BusConfig {
    fn default() -> Self {
        Self {
            replay_events_max: 1_000,
            retention: Retention::default(),
            subscriptions_bytes_max: 128 * 1024,
            acknowledge_ms: 100,
        }
    }
}

/// An acknowledgement: everything up to `sequence` was processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRequest {
    /// Whose.
    pub subscription_id: SubscriptionId,
    /// The last event that was processed, or the `resume_after` of a gap.
    pub sequence: Seq,
}

/// The identity of a record that the bus asked for. Later ones are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(u64);

/// What the bus wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusRequest {
    /// Append this to the journal `subscriptions`, in the order of the requests. Answer with
    /// [`EventBus::handle_accepted`] at once, then with [`EventBus::handle_recorded`] or
    /// [`EventBus::handle_refused`].
    Record {
        /// The record's identity.
        id: RecordId,
        /// Its payload.
        payload: Bytes,
    },
    /// Give up the events before `to`.
    TrimEvents {
        /// The first event to keep.
        to: Seq,
    },
    /// Give up the records of the journal `subscriptions` before `to`.
    TrimRecords {
        /// The first record to keep.
        to: Seq,
    },
}

/// What an acknowledgement does for who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// It is noted, and what is delivered next is the same as before.
    Noted,
    /// It ends what delivery waited for: the subscriber is given what follows.
    GoesOn,
}

/// When an acknowledgement has to be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody waits for it.
    Now,
    /// With the next record, or a little later: after a crash the events since then are delivered again.
    Soon,
}

/// The subscriptions of one journal of events.
///
/// ```
/// use strandline_core::bus::{BusConfig, BusRequest, Delivery, Restore, Subscribe};
/// use strandline_core::{Filter, Listing, Monotonic, Pcpj, Scan, ScanOptions, ScanStep, Timestamp};
///
/// let listing = Listing::Segments(vec![]);
/// let ScanStep::Done(events, _) = Scan::<Pcpj>::start(listing, ScanOptions::default()) else { unreachable!() };
/// let (now, wall) = (Monotonic::from_millis(0), Timestamp::from_millis(0));
/// let mut bus = Restore::new().start(BusConfig::default(), now, wall, &events);
///
/// let context = Subscribe::durable("context");
/// let connection = bus.subscribe(wall, context, &events).unwrap();
/// // The subscription has to be on the disk before the subscriber can rely on it.
/// assert!(matches!(bus.poll_request(now), Some(BusRequest::Record { .. })));
/// assert!(matches!(bus.poll_delivery(connection, &events), Delivery::CaughtUp));
/// ```
#[derive(Debug)]
pub struct EventBus {
    config: BusConfig,
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
    /// The durable ones.
    names: BTreeMap<Box<str>, SubscriptionId>,
    next_id: u64,
    next_connection: u64,
    ages: Ages,
    /// Records of no subscription in particular, oldest first.
    records: VecDeque<Record>,
    /// Somebody waits for what is unrecorded.
    urgent: bool,
    /// What nobody waits for is recorded by then.
    record_by: Option<Monotonic>,
    /// The newest record that was asked for, and the newest that is durable.
    asked: RecordId,
    recorded: RecordId,
    /// Up to this one, what is not recorded was refused.
    refused: RecordId,
    /// Subscriptions whose deletion is not known to be durable, with the record that states it.
    removed: Vec<(RecordId, SubscriptionId)>,
    trim: Option<PendingTrim>,
    compaction: Compaction,
}

impl EventBus {
    /// Takes an acknowledgement. It is cumulative and idempotent, and never moves back.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; nothing was changed then.
    pub fn acknowledge(
        &mut self,
        now: Monotonic,
        wall: Timestamp,
        ack: AckRequest,
        urgency: Urgency,
    ) -> Result<Acknowledged, AcknowledgeError> {
        let AckRequest { subscription_id: subscription, sequence } = ack;
        let Some(found) = self.subscriptions.get_mut(&subscription) else {
            return Err(AcknowledgeError::Unknown { subscription });
        };
        if !found.may_acknowledge(sequence) {
            let delivered = found.delivered;
            return Err(match found.is_gap_untold() {
                true => AcknowledgeError::GapNotTold { subscription, sequence, delivered },
                false => AcknowledgeError::NeverDelivered { subscription, sequence, delivered },
            });
        }
        let acknowledged = found.acknowledge(sequence, wall);
        self.record_soon(now, urgency);
        Ok(acknowledged)
    }

    /// Acknowledges on behalf of a subscriber that is away, delivered or not: an operator's decision to skip.
    ///
    /// # Errors
    /// [`AcknowledgeError`] if there is no such subscription, or no such event yet.
    pub fn force_acknowledge(
        &mut self,
        wall: Timestamp,
        ack: AckRequest,
        events: &View<Pcpj>,
    ) -> Result<(), AcknowledgeError> {
        let AckRequest { subscription_id: subscription, sequence } = ack;
        let Some(found) = self.subscriptions.get_mut(&subscription) else {
            return Err(AcknowledgeError::Unknown { subscription });
        };
        let end = events.durable_end();
        if sequence >= end {
            return Err(AcknowledgeError::BeyondEnd { subscription, sequence, end });
        }
        found.acknowledge(sequence, wall);
        self.urgent = true;
        Ok(())
    }

    /// The subscriber of this connection is gone. One that is durable keeps its place.
    pub fn disconnect(&mut self, now: Monotonic, wall: Timestamp, connection: ConnectionId) {
        let Some(found) = self.connected(connection) else { return };
        found.connection = None;
        if found.is_durable() {
            found.change(lifecycle::Trigger::Leave, wall);
            self.record_soon(now, Urgency::Soon);
        } else {
            self.subscriptions.remove(&connection.subscription);
        }
    }

    /// Deletes a subscription; what it pinned is free. Gives whether there was one of this name.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(id) = self.names.remove(name) else { return false };
        self.subscriptions.remove(&id);
        self.records.push_back(Record::Removed(id));
        self.urgent = true;
        true
    }

    /// The durable subscription of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<SubscriptionId> {
        self.names.get(name).copied()
    }

    /// Lets time pass and looks at what is kept. Call it when the journal of events has a new segment, and
    /// when [`next_deadline`](Self::next_deadline) has passed.
    pub fn tick(&mut self, now: Monotonic, wall: Timestamp, events: &View<Pcpj>, occupied: Occupied) {
        self.ages.observe(now, events.durable_end());
        self.ages.trim(events.first());
        self.retain(now, wall, events, occupied);
    }

    /// When [`tick`](Self::tick) or [`poll_request`](Self::poll_request) has something to do. Ask again when an event
    /// becomes durable while it [`awaits_events`](Self::awaits_events).
    #[must_use]
    pub fn next_deadline(&self, now: Monotonic, events: &View<Pcpj>) -> Option<Monotonic> {
        let observe = self.observe_at(now, events);
        let age = self.config.retention.age_ms_max;
        let expiry =
            age.filter(|_| self.trim.is_none()).and_then(|age| self.ages.next_expiry(events.first(), age));
        [observe, expiry, self.record_by].into_iter().flatten().min()
    }

    /// Whether the next event that becomes durable changes [`next_deadline`](Self::next_deadline): its age counts from
    /// when it is seen.
    #[must_use]
    pub fn awaits_events(&self, events: &View<Pcpj>) -> bool {
        let ages = self.config.retention.age_ms_max.is_some();
        ages && self.observe_at(Monotonic::default(), events).is_none()
    }

    /// What the bus wants done; nothing while it waits.
    pub fn poll_request(&mut self, now: Monotonic) -> Option<BusRequest> {
        if self.urgent || self.record_by.is_some_and(|by| by <= now) {
            if let Some(record) = self.next_record() {
                self.asked = RecordId(self.asked.0 + 1);
                self.note_asked(&record);
                return Some(BusRequest::Record { id: self.asked, payload: record.encode() });
            }
            (self.urgent, self.record_by) = (false, None);
            self.everything_is_asked();
        }
        self.next_trim()
    }

    /// The record has this number in the journal `subscriptions`.
    pub fn handle_accepted(&mut self, id: RecordId, seq: Seq) {
        self.compaction.accepted(id, seq);
    }

    /// This record is durable, and every earlier one that was not refused.
    pub fn handle_recorded(&mut self, id: RecordId) {
        // Of what was refused nothing is known any more; it was asked for again.
        if id > self.refused && id > self.recorded {
            self.recorded = id.min(self.asked);
            self.removed.retain(|(record, _)| *record > id);
        }
    }

    /// A record did not come to be: there was no space. It, and whatever else is not known to be durable, is
    /// asked for again within a second, or with the next record that is urgent.
    pub fn handle_refused(&mut self, now: Monotonic) {
        let recorded = self.recorded;
        for subscription in self.subscriptions.values_mut().filter(|found| found.record > recorded) {
            subscription.touch(Unrecorded::Everything);
        }
        self.records.push_back(Record::NextId(self.next_id));
        self.records.extend(self.removed.drain(..).map(|(_, id)| Record::Removed(id)));
        self.refused = self.asked;
        self.compaction = Compaction::default();
        if let Some(trim) = &mut self.trim {
            trim.after = None;
        }
        self.urgent = false;
        self.record_by = Some(now.after(RETRY_MS));
    }

    /// Whether a trim was decided on and is not asked for yet.
    #[must_use]
    pub const fn is_trimming(&self) -> bool {
        self.trim.is_some()
    }

    /// Has everything recorded with the next requests: before a close.
    pub const fn record_now(&mut self) {
        self.urgent = true;
    }

    /// By when what nobody waits for is to be recorded.
    #[must_use]
    pub const fn record_deadline(&self) -> Option<Monotonic> {
        self.record_by
    }

    /// Whether everything about this subscription is durable.
    #[must_use]
    pub fn is_recorded(&self, subscription: SubscriptionId) -> bool {
        self.subscriptions.get(&subscription).is_none_or(|found| found.is_recorded(self.recorded))
    }

    /// When the age of what is there has to be noted. Where nothing is kept there is nothing to age.
    fn observe_at(&self, now: Monotonic, events: &View<Pcpj>) -> Option<Monotonic> {
        let (first, end) = (events.first(), events.durable_end());
        if first < end { self.ages.observe_at(now, end) } else { None }
    }

    /// Whether this subscription is given nothing until the gap that it is to be told is recorded.
    #[must_use]
    pub fn awaits_record(&self, subscription: SubscriptionId) -> bool {
        self.subscriptions.get(&subscription).is_some_and(|found| {
            let phase = found.connection.as_ref().map(|connection| connection.phase);
            phase == Some(subscription::Phase::GapDue)
                && found.is_durable()
                && !found.is_recorded(self.recorded)
        })
    }

    fn record_soon(&mut self, now: Monotonic, urgency: Urgency) {
        match urgency {
            Urgency::Now => self.urgent = true,
            Urgency::Soon if self.record_by.is_none() => {
                self.record_by = Some(now.after(self.config.acknowledge_ms));
            }
            Urgency::Soon => {}
        }
    }

    fn next_record(&mut self) -> Option<Record> {
        if let Some(record) = self.records.pop_front() {
            return Some(record);
        }
        self.subscriptions.values().find_map(Subscription::to_record)
    }

    fn note_asked(&mut self, record: &Record) {
        let id = match record {
            Record::Subscription(recorded) => recorded.id,
            Record::Pointer { id, .. } => *id,
            Record::Removed(id) => return self.removed.push((self.asked, *id)),
            Record::NextId(_) => return,
        };
        if let Some(found) = self.subscriptions.get_mut(&id) {
            (found.unrecorded, found.record) = (Unrecorded::Nothing, self.asked);
        }
    }

    /// The subscription of a connection that was not taken over.
    fn connected(&mut self, connection: ConnectionId) -> Option<&mut Subscription> {
        let found = self.subscriptions.get_mut(&connection.subscription)?;
        let is_current = found.connection.as_ref().is_some_and(|current| current.number == connection.number);
        is_current.then_some(found)
    }
}

/// Milliseconds until a record that found no space is tried again.
const RETRY_MS: u64 = 1_000;
