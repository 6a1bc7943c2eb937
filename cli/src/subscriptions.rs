//! `subscriptions`: who follows a bus durably, and how far each one is.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use strandline::bus::{BusConfig, SubscriptionStatus};
use strandline_core::Filter;

use crate::gap::Gap;
use crate::offline_bus::OfflineBus;
use crate::outcome::{Ended, Failure, say};
use crate::output::rfc3339;
use crate::table;

/// List the durable subscriptions of a bus, and how far each one is.
///
/// They are shown as the files have them: a subscriber that is connected at this moment stands where it would go on
/// if its process ended now, and its latest acknowledgements may not be there yet. Nothing is changed, and a writer may
/// have the bus open.
#[derive(Args)]
pub(crate) struct Flags {
    /// The directory of an event bus
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// All that is found.
#[derive(Serialize)]
struct Document {
    subscriptions: Vec<Description>,
}

/// How one subscription stands.
#[derive(Serialize)]
struct Description {
    id: u64,
    name: String,
    state: &'static str,
    since: Option<String>,
    /// The last event that was acknowledged.
    pointer: u64,
    delivered: u64,
    lag_events: u64,
    lag_bytes: u64,
    /// The first event that is kept for it.
    pins: Option<u64>,
    /// What is left out does not restrict.
    filter: FilterDescription,
    gap: Option<Gap>,
}

#[derive(Serialize)]
struct FilterDescription {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    domains: Vec<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
}

/// Prints how everybody stands.
pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let bus = OfflineBus::read(&flags.directory)?;
    let ended = bus.ended;
    let statuses = bus.start(BusConfig::default()).statuses();
    let subscriptions: Vec<_> = statuses.into_iter().map(Description::from).collect();
    if subscriptions.is_empty() {
        say(format_args!("{}: there is no durable subscription", flags.directory.display()));
    }
    let mut out = io::stdout().lock();
    if flags.json {
        serde_json::to_writer(&mut out, &Document { subscriptions })?;
        writeln!(out)?;
    } else if !subscriptions.is_empty() {
        let head = ["name", "state", "since", "pointer", "delivered", "lag", "pins", "filter", "gap"];
        let mut rows = vec![head.map(str::to_string)];
        rows.extend(subscriptions.iter().map(Description::row));
        table::print(&rows, &mut out)?;
    }
    out.flush()?;
    Ok(ended)
}

impl From<SubscriptionStatus> for Description {
    fn from(status: SubscriptionStatus) -> Self {
        Self {
            id: status.id.get(),
            name: status.name.map(String::from).unwrap_or_default(),
            state: status.state.label(),
            since: rfc3339(status.since),
            pointer: status.pointer.get(),
            delivered: status.delivered.get(),
            lag_events: status.lag_events,
            lag_bytes: status.lag_bytes,
            pins: status.pins.map(|pinned| pinned.get()),
            filter: FilterDescription::from(&*status.filter),
            gap: status.gap.map(Gap::from),
        }
    }
}

impl From<&Filter> for FilterDescription {
    fn from(filter: &Filter) -> Self {
        Self {
            domains: filter.domains().collect(),
            sources: filter.sources().map(str::to_string).collect(),
            types: filter.event_types().map(str::to_string).collect(),
        }
    }
}

const NOTHING: &str = "-";

impl Description {
    fn row(&self) -> [String; 9] {
        let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_string());
        [
            self.name.clone(),
            self.state.to_string(),
            or_nothing(self.since.clone()),
            self.pointer.to_string(),
            self.delivered.to_string(),
            format!("{} events, {} bytes", self.lag_events, self.lag_bytes),
            or_nothing(self.pins.map(|pinned| pinned.to_string())),
            self.filter.to_text(),
            or_nothing(self.gap.as_ref().map(Gap::to_text)),
        ]
    }
}

impl FilterDescription {
    fn to_text(&self) -> String {
        let domains: Vec<_> = self.domains.iter().map(u8::to_string).collect();
        let parts = [("domain", &domains), ("source", &self.sources), ("type", &self.types)];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        let parts: Vec<_> = parts.map(|(name, values)| format!("{name} {}", values.join("|"))).collect();
        if parts.is_empty() { "all".to_string() } else { parts.join(", ") }
    }
}
