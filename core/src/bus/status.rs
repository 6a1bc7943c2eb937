//! How subscriptions stand, for people and metrics.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::EventBus;
use super::gap::SubscriptionGap;
use super::lifecycle::SubscriptionState;
use super::subscription::{Subscription, SubscriptionId};
use crate::{Filter, Pcpj, Seq, Timestamp, View};

/// How one subscription stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionStatus {
    /// Its identity.
    pub id: SubscriptionId,
    /// Its name, if it is durable.
    pub name: Option<Box<str>>,
    /// What it wants.
    pub filter: Arc<Filter>,
    /// Where it stands.
    pub state: SubscriptionState,
    /// Since when.
    pub since: Timestamp,
    /// The last event that was acknowledged.
    pub pointer: Seq,
    /// The last event that was delivered.
    pub delivered: Seq,
    /// Events that it wants and has not acknowledged.
    pub lag_events: u64,
    /// Bytes of the journal from the first of them on.
    pub lag_bytes: u64,
    /// The first event that is kept for it.
    pub pins: Option<Seq>,
    /// What it missed and has not acknowledged as such.
    pub gap: Option<SubscriptionGap>,
}

impl EventBus {
    /// How every subscription stands, in the order of their identities.
    pub fn statuses<'a>(&'a self, events: &'a View<Pcpj>) -> impl Iterator<Item = SubscriptionStatus> + 'a {
        self.subscriptions.values().map(|found| found.status(events))
    }

    /// How one subscription stands.
    #[must_use]
    pub fn status(&self, id: SubscriptionId, events: &View<Pcpj>) -> Option<SubscriptionStatus> {
        self.subscriptions.get(&id).map(|found| found.status(events))
    }
}

impl Subscription {
    fn status(&self, events: &View<Pcpj>) -> SubscriptionStatus {
        let end = events.durable_end();
        let from = self.passed.max(events.first());
        let first = events.first_match(&self.filter, from, end);
        let told =
            |gap: super::gap::RecordedGap| gap.told(end, events.count_matches(&self.filter, gap.end, end));
        SubscriptionStatus {
            id: self.id,
            name: self.name.clone(),
            filter: Arc::clone(&self.filter),
            state: self.state,
            since: self.since,
            pointer: self.pointer,
            delivered: self.delivered,
            lag_events: events.count_matches(&self.filter, from, end),
            lag_bytes: first.map_or(0, |place| events.bytes_from(&place)),
            pins: self.pins(events),
            gap: self.gap.map(told),
        }
    }
}
