//! `subscriptions`: who follows a bus durably, and how far each one is.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use strandline::bus::BusConfig;
use strandline_bus::{FilterDescription, Gap, SubscriptionDescription, SubscriptionDocument};

use crate::offline_bus::OfflineBus;
use crate::outcome::{Ended, Failure, say};
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

/// Prints how everybody stands.
pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let bus = OfflineBus::read(&flags.directory)?;
    let ended = bus.ended;
    let statuses = bus.start(BusConfig::default()).statuses();
    let document = SubscriptionDocument::new(statuses);
    let subscriptions = &document.subscriptions;
    if subscriptions.is_empty() {
        say(format_args!("{}: there is no durable subscription", flags.directory.display()));
    }
    let mut out = io::stdout().lock();
    if flags.json {
        serde_json::to_writer(&mut out, &document)?;
        writeln!(out)?;
    } else if !subscriptions.is_empty() {
        let head = ["name", "state", "since", "pointer", "delivered", "lag", "pins", "filter", "gap"];
        let mut rows = vec![head.map(str::to_string)];
        rows.extend(subscriptions.iter().map(row));
        table::print(&rows, &mut out)?;
    }
    out.flush()?;
    Ok(ended)
}

const NOTHING: &str = "-";

fn row(subscription: &SubscriptionDescription) -> [String; 9] {
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_string());
    [
        or_nothing(subscription.name.clone()),
        subscription.state.to_string(),
        or_nothing(subscription.since.clone()),
        subscription.pointer.to_string(),
        subscription.delivered.to_string(),
        format!("{} events, {} bytes", subscription.lag_events, subscription.lag_bytes),
        or_nothing(subscription.pins.map(|pinned| pinned.to_string())),
        wants(&subscription.filter),
        or_nothing(subscription.gap.as_ref().map(Gap::to_text)),
    ]
}

fn wants(filter: &FilterDescription) -> String {
    let domains: Vec<_> = filter.domains.iter().map(u8::to_string).collect();
    let parts = [("domain", &domains), ("source", &filter.sources), ("type", &filter.types)];
    let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
    let parts: Vec<_> = parts.map(|(name, values)| format!("{name} {}", values.join("|"))).collect();
    if parts.is_empty() { "all".to_string() } else { parts.join(", ") }
}
