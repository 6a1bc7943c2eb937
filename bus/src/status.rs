//! How subscriptions stand, as JSON.

use serde::Serialize;
use strandline::bus::SubscriptionStatus;

use crate::gap::Gap;

/// Everybody, in the order of their identities.
#[derive(Debug, Serialize)]
pub struct SubscriptionDocument {
    /// How each one stands.
    pub subscriptions: Vec<SubscriptionDescription>,
}

/// How one subscription stands.
#[derive(Debug, Serialize)]
pub struct SubscriptionDescription {
    /// Its identity.
    pub id: u64,
    /// None of one that leaves nothing behind.
    pub name: Option<String>,
    /// Where it stands: a state of its lifecycle.
    pub state: &'static str,
    /// Since when, as RFC 3339 has it.
    pub since: Option<String>,
    /// The last event that was acknowledged.
    pub pointer: u64,
    /// The last event that was delivered.
    pub delivered: u64,
    /// Events that it wants and has not acknowledged.
    pub lag_events: u64,
    /// Bytes of the journal from the first of them on.
    pub lag_bytes: u64,
    /// The first event that is kept for it.
    pub pins: Option<u64>,
    /// What it wants. What is left out does not restrict.
    pub filter: FilterDescription,
    /// What it missed and has not acknowledged as such.
    pub gap: Option<Gap>,
}

/// Which events somebody wants.
#[derive(Debug, Serialize)]
pub struct FilterDescription {
    /// Of these domains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<u8>,
    /// From these sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Of these types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}

impl SubscriptionDocument {
    /// The description of these.
    #[must_use]
    pub fn new(statuses: Vec<SubscriptionStatus>) -> Self {
        Self { subscriptions: statuses.into_iter().map(SubscriptionDescription::from).collect() }
    }
}

impl From<SubscriptionStatus> for SubscriptionDescription {
    fn from(status: SubscriptionStatus) -> Self {
        let since = jiff::Timestamp::from_millisecond(status.since.as_millis()).ok();
        Self {
            id: status.id.get(),
            name: status.name.map(String::from),
            state: status.state.label(),
            since: since.map(|since| since.to_string()),
            pointer: status.pointer.get(),
            delivered: status.delivered.get(),
            lag_events: status.lag_events,
            lag_bytes: status.lag_bytes,
            pins: status.pins.map(|seq| seq.get()),
            filter: FilterDescription {
                domains: status.filter.domains().collect(),
                sources: status.filter.sources().map(str::to_string).collect(),
                types: status.filter.event_types().map(str::to_string).collect(),
            },
            gap: status.gap.map(Gap::from),
        }
    }
}
