//! `compact`: drops old events now, and says who loses some by it.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use strandline::Directory;
use strandline::bus::{BusSettings, EventBus, Retention, SubscriptionStatus};
use strandline_core::{Monotonic, Pcpj, Seq, View};

use crate::offline_bus::{OfflineBus, StartedBus};
use crate::outcome::{Ended, Failure};
use crate::{duration, size, table};

/// Drop old events of a bus, and say who loses some by it.
///
/// The oldest go first. By --max-size, whole segment files go until all files of the bus, with room for one more
/// segment, fit; the newest stays, unless it is too large by itself. (In the terms of a bus's retention it is both
/// bounds, compact_above and bytes_max.) By --max-age, every event goes that is older. They go even if a durable
/// subscription still needs them: it then gets a gap in their place, which is recorded first. A bus that is open in
/// another process is left alone.
#[derive(Args)]
#[command(group = clap::ArgGroup::new("bound").args(["max_size", "max_age"]).required(true).multiple(true))]
pub(crate) struct Flags {
    /// The directory of an event bus
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The size of all files that is allowed, such as 50MiB; at least 1MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_size: Option<u64>,
    /// The age of an event that is allowed, such as 1h
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_ms)]
    max_age: Option<u64>,
    /// Only say what would go: no lock is taken and nothing is changed
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What `compact` does, checked.
pub(crate) struct Settings {
    directory: PathBuf,
    bus: BusSettings,
    dry_run: bool,
    json: bool,
}

impl Settings {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        let bytes_max = flags.max_size.unwrap_or(u64::MAX);
        let retention = Retention { age_ms_max: flags.max_age, compact_above: bytes_max, bytes_max };
        let mut bus = BusSettings { may_drop_at_open: true, ..BusSettings::with_retention(retention) };
        // Nothing is published.
        bus.events.reserve_bytes = 0;
        bus.occupied_beside(0)?;
        Ok(Self { directory: flags.directory, bus, dry_run: flags.dry_run, json: flags.json })
    }
}

/// What went, or would go.
#[derive(Serialize)]
struct Document {
    dry_run: bool,
    /// The first event that is kept.
    first: u64,
    dropped: u64,
    events: Change,
    /// Of all files of the bus. What a dry run leaves is not known before.
    bytes: Change,
    losses: Vec<LossDescription>,
}

#[derive(Clone, Copy, Serialize)]
struct Change {
    before: u64,
    after: Option<u64>,
}

/// What one subscription loses.
#[derive(Serialize)]
struct LossDescription {
    name: String,
    /// Events that it wants and has not acknowledged.
    events: u64,
}

/// Compacts, or says what that would mean.
pub(crate) fn run(settings: &Settings) -> Result<Ended, Failure> {
    let (ended, document) = if settings.dry_run { plan(settings) } else { compact(settings) }?;
    let mut out = io::stdout().lock();
    if settings.json {
        serde_json::to_writer(&mut out, &document)?;
        writeln!(out)?;
    } else {
        document.print(&mut out)?;
    }
    out.flush()?;
    Ok(ended)
}

fn plan(settings: &Settings) -> Result<(Ended, Document), Failure> {
    let offline = OfflineBus::read(&settings.directory)?;
    let (ended, bytes) = (offline.ended, Change { before: offline.bytes, after: None });
    let occupied = settings.bus.occupied_beside(offline.other_bytes)?;
    let started = offline.start(settings.bus.bus);
    let plan = started.bus.plan_retention(Monotonic::from_millis(0), &started.events, occupied);
    let first = plan.map_or(started.events.first(), |plan| plan.to);
    let document = Document::new(true, &started, first, bytes);
    Ok((ended, document))
}

fn compact(settings: &Settings) -> Result<(Ended, Document), Failure> {
    // The lock would create a directory that is not there.
    OfflineBus::check_there(&settings.directory)?;
    let directory = Directory::open(&settings.directory)?;
    let before = OfflineBus::read(&settings.directory)?;
    let (ended, bytes_before) = (before.ended, before.bytes);
    let before = before.start(settings.bus.bus);
    let (bus, _) = EventBus::open(&directory, settings.bus.clone())?;
    let compacted = bus.compact();
    let first = bus.events().first();
    bus.close().map_err(Failure::problem)?;
    compacted.map_err(Failure::problem)?;
    let after = OfflineBus::read(&settings.directory)?.bytes;
    let bytes = Change { before: bytes_before, after: Some(after) };
    Ok((ended, Document::new(false, &before, first, bytes)))
}

impl Document {
    /// What it means that events before `first` go.
    fn new(dry_run: bool, before: &StartedBus, first: Seq, bytes: Change) -> Self {
        let events = &before.events;
        let (dropped, kept) = (events.first().until(first), first.until(events.written_end()));
        let losses = before.statuses().iter().filter_map(|status| loss(status, events, first)).collect();
        let events = Change { before: dropped + kept, after: Some(kept) };
        Self { dry_run, first: first.get(), dropped, events, bytes, losses }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let goes = if self.dry_run { "would go" } else { "went" };
        let loses = if self.dry_run { "would lose" } else { "lost" };
        let mut rows = vec![
            [
                "dropped".to_string(),
                format!("{} events {goes}; the first that is kept is {}", self.dropped, self.first),
            ],
            ["events".to_string(), self.events.to_text()],
            ["bytes".to_string(), self.bytes.to_text()],
        ];
        for loss in &self.losses {
            rows.push([loss.name.clone(), format!("{loses} {} events that it wants", loss.events)]);
        }
        if self.losses.is_empty() {
            rows.push(["losses".to_string(), "none".to_string()]);
        }
        table::print(&rows, out)
    }
}

impl Change {
    fn to_text(self) -> String {
        let Self { before, after } = self;
        after.map_or_else(|| format!("{before} before"), |after| format!("{before} before, {after} after"))
    }
}

fn loss(status: &SubscriptionStatus, events: &View<Pcpj>, first: Seq) -> Option<LossDescription> {
    let lost = events.count_matches(&status.filter, status.pins?, first);
    let name = status.name.as_deref()?.to_string();
    (lost > 0).then_some(LossDescription { name, events: lost })
}
