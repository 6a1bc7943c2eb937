//! How subscriptions stand, as JSON.

use serde::Serialize;
use strandline::bus::SubscriptionStatus;

/// Everybody, in the order of their identities.
#[derive(Debug, Serialize)]
pub(crate) struct SubscriptionDocument {
    subscriptions: Vec<Subscription>,
}

#[derive(Debug, Serialize)]
struct Subscription {
    id: u64,
    /// None of one that leaves nothing behind.
    name: Option<String>,
    state: &'static str,
    since: Option<String>,
    /// The last event that was acknowledged.
    pointer: u64,
    delivered: u64,
    lag_events: u64,
    lag_bytes: u64,
    /// The first event that is kept for it.
    pins: Option<u64>,
    filter: Filter,
}

#[derive(Debug, Serialize)]
struct Filter {
    domains: Vec<u8>,
    sources: Vec<String>,
    types: Vec<String>,
}

impl SubscriptionDocument {
    pub(crate) fn new(statuses: Vec<SubscriptionStatus>) -> Self {
        Self { subscriptions: statuses.into_iter().map(Subscription::from).collect() }
    }
}

impl From<SubscriptionStatus> for Subscription {
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
            filter: Filter {
                domains: status.filter.domains().collect(),
                sources: status.filter.sources().map(str::to_string).collect(),
                types: status.filter.event_types().map(str::to_string).collect(),
            },
        }
    }
}
