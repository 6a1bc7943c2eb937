//! What a server counts, in the text format of Prometheus.

use std::sync::Mutex;
use std::sync::PoisonError;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use strandline::bus::{BusReport, SubscriptionStatus};
use strandline_core::Verdict;
use strandline_core::bus::lifecycle::SubscriptionState;

use crate::commit_metrics::CommitMetrics;
use crate::server::ServerSettings;
use crate::shell::{JournalStatus, Shell};

type Labels = [(&'static str, String); 1];

/// A state in which nobody is, is told as 0.
const STATES: [SubscriptionState; 4] = [
    SubscriptionState::Live,
    SubscriptionState::Suspended,
    SubscriptionState::Replaying,
    SubscriptionState::Expired,
];

/// What is counted while a server runs.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) published: Counter,
    /// Events that were published before.
    pub(crate) repeated: Counter,
    /// Requests that were refused, by status.
    pub(crate) refused: Family<Labels, Counter>,
    pub(crate) delivered: Counter,
    pub(crate) gaps: Counter,
    pub(crate) streams: Gauge,
    pub(crate) connections: Gauge,
    commits: CommitMetrics,
    stands: Mutex<Stands>,
}

/// What is looked up when somebody asks.
#[derive(Debug, Default)]
struct Stands {
    first: Gauge,
    durable: Gauge,
    next: Gauge,
    bytes: Gauge,
    segments: Gauge,
    subscribers: Family<Labels, Gauge>,
    lag: Family<Labels, Gauge>,
}

impl Metrics {
    pub(crate) fn new(settings: &ServerSettings) -> Self {
        let mut registry = Registry::with_prefix("strandline");
        let stands = Stands::default();
        let (published, repeated, delivered, gaps) =
            (Counter::default(), Counter::default(), Counter::default(), Counter::default());
        let (streams, connections) = (Gauge::default(), Gauge::default());
        let refused = Family::default();
        registry.register(
            "events_published",
            "Events that were published and are durable",
            published.clone(),
        );
        registry.register("events_repeated", "Publishes of events that were there", repeated.clone());
        registry.register("requests_refused", "Requests that were refused, by status", refused.clone());
        registry.register("events_delivered", "Events handed to streams", delivered.clone());
        registry.register("gaps", "Gaps told to streams", gaps.clone());
        registry.register("streams", "Streams that are open", streams.clone());
        registry.register("connections", "Connections that are open", connections.clone());
        stands.register(&mut registry);
        let commits = CommitMetrics::default();
        registry.register_collector(Box::new(commits.clone()));
        if let Some(opened) = &settings.opened {
            register_cuts(&mut registry, opened);
        }
        if let Some(disk) = &settings.disk {
            disk.register(&mut registry);
        }
        let stands = Mutex::new(stands);
        Self {
            registry,
            published,
            repeated,
            refused,
            delivered,
            gaps,
            streams,
            connections,
            commits,
            stands,
        }
    }

    /// Everything as text.
    pub(crate) fn to_text(&self, shell: &impl Shell) -> String {
        // One after the other: what is looked up belongs together.
        let stands = self.stands.lock().unwrap_or_else(PoisonError::into_inner);
        stands.look(&shell.journal(), &shell.subscriptions());
        self.commits.set(shell.commits());
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            tracing::error!("the metrics could not be written");
        }
        text
    }
}

/// What opening the journals has cut off, by journal.
fn register_cuts(registry: &mut Registry, opened: &BusReport) {
    let (cuts, bytes) = (Family::<Labels, Gauge>::default(), Family::<Labels, Gauge>::default());
    for (journal, report) in [("event-journal", &opened.events), ("subscriptions", &opened.subscriptions)] {
        let cut = match report.verdict {
            Verdict::Cut(cut) => Some(cut.bytes),
            Verdict::Sound | Verdict::Refused(_) => None,
        };
        let label = [("journal", journal.to_string())];
        cuts.get_or_create(&label).set(i64::from(cut.is_some()));
        bytes.get_or_create(&label).set(i64::try_from(cut.unwrap_or(0)).unwrap_or(i64::MAX));
    }
    registry.register("recovery_cuts", "Torn tails that opening has cut off, by journal", cuts);
    registry.register("recovery_cut_bytes", "Bytes that opening has cut off, by journal", bytes);
}

/// A label's value as the text format has it, which the registry does not see to.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

impl Stands {
    fn register(&self, registry: &mut Registry) {
        registry.register("journal_first_sequence", "The first event that is kept", self.first.clone());
        registry.register("journal_durable_sequence", "The last event that is durable", self.durable.clone());
        registry.register("journal_next_sequence", "The number of the next event", self.next.clone());
        registry.register("journal_bytes", "Bytes of all segments", self.bytes.clone());
        registry.register("journal_segments", "Segments", self.segments.clone());
        registry.register("subscriptions", "Subscriptions, by state", self.subscribers.clone());
        registry.register("subscription_lag_events", "Events not yet acknowledged", self.lag.clone());
    }

    fn look(&self, journal: &JournalStatus, subscriptions: &[SubscriptionStatus]) {
        let set = |gauge: &Gauge, value: u64| _ = gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        set(&self.first, journal.first);
        set(&self.next, journal.next);
        set(&self.durable, journal.next.saturating_sub(1));
        set(&self.bytes, journal.bytes);
        set(&self.segments, journal.segments.len() as u64);
        self.subscribers.clear();
        self.lag.clear();
        for state in STATES {
            self.subscribers.get_or_create(&[("state", state.label().to_string())]).set(0);
        }
        for status in subscriptions {
            self.subscribers.get_or_create(&[("state", status.state.label().to_string())]).inc();
            if let Some(name) = &status.name {
                set(&self.lag.get_or_create(&[("subscription", escaped(name))]), status.lag_events);
            }
        }
    }
}
