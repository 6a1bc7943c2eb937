//! Commits as metrics. They are counted by the journal, and told as they stand when somebody asks.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::exemplar::Exemplar;
use strandline::CommitCounts;

/// The commits of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommitMetrics(Arc<Mutex<CommitCounts>>);

impl CommitMetrics {
    pub(crate) fn set(&self, counts: CommitCounts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

impl Collector for CommitMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, help, value) in [
            ("journal_appends", "Events appended since the bus was opened, by whomever", counts.records),
            ("journal_commits", "Commits of events: one write and one sync each", counts.commits),
        ] {
            let described = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(described)?;
        }
        let help = "How many events each commit had";
        let mut described = encoder.encode_descriptor("commit_events", help, None, MetricType::Histogram)?;
        let exemplars: Option<&HashMap<usize, Exemplar<NoLabelSet, f64>>> = None;
        described.encode_histogram(to_float(counts.records), counts.commits, &buckets(&counts), exemplars)
    }
}

/// The upper bounds, and how many commits are between each and the one before.
fn buckets(counts: &CommitCounts) -> Vec<(f64, u64)> {
    let last = CommitCounts::PLACES - 1;
    let bound = |place| if place == last { f64::MAX } else { to_float(1_u64 << place) };
    counts.by_records.iter().enumerate().map(|(place, count)| (bound(place), *count)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a float is what the format has; above 2^53 it is rounded")]
fn to_float(value: u64) -> f64 {
    value as f64
}
