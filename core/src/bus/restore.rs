//! What the records say, at opening.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use super::compaction::Compaction;
use super::gap::{GapReason, RecordedGap};
use super::record::{Record, Recorded};
use super::subscription::{Subscription, SubscriptionId, Unrecorded};
use super::{BusConfig, EventBus, RecordId, RestoreError};
use crate::retention::Ages;
use crate::{Monotonic, Pcpj, Seq, Timestamp, View};

/// The subscriptions as the records of the journal `subscriptions` leave them. Give it each record in order, then
/// [`start`](Self::start).
#[derive(Debug, Default)]
pub struct Restore {
    subscriptions: BTreeMap<SubscriptionId, Recorded>,
    next_id: u64,
}

impl Restore {
    /// No subscriptions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the record numbered `seq`.
    ///
    /// # Errors
    /// [`RestoreError`] if it is no record of the schema that this program knows.
    pub fn take(&mut self, seq: Seq, payload: &[u8]) -> Result<(), RestoreError> {
        match Record::decode(payload).map_err(|cause| RestoreError { seq, cause })? {
            Record::NextId(next) => self.next_id = self.next_id.max(next),
            Record::Subscription(recorded) => {
                self.next_id = self.next_id.max(recorded.id.get() + 1);
                self.subscriptions.insert(recorded.id, recorded);
            }
            Record::Pointer { id, pointer, passed } => {
                if let Some(recorded) = self.subscriptions.get_mut(&id) {
                    recorded.pointer = recorded.pointer.max(pointer);
                    recorded.passed = recorded.passed.max(passed);
                }
            }
            Record::Removed(id) => {
                self.subscriptions.remove(&id);
            }
        }
        Ok(())
    }

    /// The bus over these events. Whoever stands before their start, or beyond their end, has a gap from now on.
    #[must_use]
    pub fn start(self, config: BusConfig, now: Monotonic, wall: Timestamp, events: &View<Pcpj>) -> EventBus {
        let mut names: BTreeMap<Box<str>, SubscriptionId> = BTreeMap::new();
        let mut subscriptions = BTreeMap::new();
        for (id, recorded) in self.subscriptions {
            names.insert(recorded.name.clone(), id);
            let mut subscription = Subscription::restored(recorded, RecordId::default());
            subscription.fit(wall, events);
            subscriptions.insert(id, subscription);
        }
        EventBus {
            config,
            subscriptions,
            names,
            next_id: self.next_id.max(1),
            next_connection: 0,
            ages: Ages::new(events, now, wall, config.retention.age_ms_max),
            records: VecDeque::new(),
            urgent: true,
            record_by: None,
            asked: RecordId::default(),
            recorded: RecordId::default(),
            refused: RecordId::default(),
            removed: alloc::vec::Vec::new(),
            trim: None,
            compaction: Compaction::default(),
        }
    }
}

impl Subscription {
    /// Compares what is recorded with the events that are there.
    fn fit(&mut self, wall: Timestamp, events: &View<Pcpj>) {
        let (first, end) = (events.first(), events.durable_end());
        if self.state == super::lifecycle::SubscriptionState::Suspended && self.since > wall {
            // A clock that was ahead.
            self.since = wall;
        }
        if self.passed > end {
            // A number that was shown, lost and given out again must not be missed.
            let from = self.gap.map_or(first, |gap| gap.from.min(first));
            self.gap = Some(RecordedGap { from, end, count: None, reason: GapReason::Beyond });
            self.passed = end;
            self.pointer = end.previous();
            self.delivered = self.pointer;
            self.touch(Unrecorded::Everything);
        } else if self.gap.is_none() && self.passed < first {
            let from = self.passed;
            self.gap = Some(RecordedGap { from, end: first, count: None, reason: GapReason::Expired });
            self.state = super::lifecycle::SubscriptionState::Expired;
            self.touch(Unrecorded::Everything);
        }
    }
}
