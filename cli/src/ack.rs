//! `ack`: acknowledges for a subscriber that is away.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use strandline::Directory;
use strandline::bus::{BusConfig, BusSettings, EventBus, Retention, SubscriptionStatus};
use strandline_core::{Filter, Seq};

use crate::offline_bus::{OfflineBus, StartedBus};
use crate::outcome::{Ended, Failure};

/// Acknowledge for a durable subscriber that is away, so that it skips events.
///
/// It will never be given the events up to SEQ, and they pin nothing any more. Without --force, what would be skipped is
/// said and nothing is changed. With it, one line says what was done: {"name","pointer","skipped"}. No event is
/// dropped by it. A bus that is open in another process is left alone.
#[derive(Args)]
pub(crate) struct Flags {
    /// The directory of an event bus
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The subscription's name
    #[arg(value_name = "NAME")]
    name: String,
    /// The last event to be skipped
    #[arg(value_name = "SEQ")]
    sequence: u64,
    /// Do it
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    name: &'a str,
    /// The last event that is acknowledged.
    pointer: u64,
    /// Events that it wanted and will not be given.
    skipped: u64,
}

/// Acknowledges, or says what that would mean.
pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let Flags { directory, name, sequence, force } = flags;
    let sequence = Seq::new(*sequence);
    let bus = OfflineBus::read(directory)?.start(BusConfig::default());
    let (status, skipped) = look(&bus, directory, name, sequence)?;
    if !force {
        return Err(Failure::cannot_run(anyhow::anyhow!(explain(&status, name, sequence, skipped))));
    }
    let locked = Directory::open(directory)?;
    let (bus, _) = EventBus::open(&locked, keep_everything())?;
    let acknowledged = bus.force_acknowledge(name, sequence);
    let pointer = bus.subscriptions().into_iter().find(|status| status.name.as_deref() == Some(name));
    bus.close().map_err(Failure::problem)?;
    acknowledged.map_err(Failure::problem)?;
    let mut out = io::stdout().lock();
    let pointer = pointer.map_or(status.pointer, |status| status.pointer).get();
    serde_json::to_writer(&mut out, &Done { name, pointer, skipped })?;
    writeln!(out)?;
    Ok(Ended::Sound)
}

/// No event goes by opening.
fn keep_everything() -> BusSettings {
    let retention = Retention { age_ms_max: None, compact_above: u64::MAX, bytes_max: u64::MAX };
    let mut settings = BusSettings::with_retention(retention);
    // Nothing is published: space that were reserved for it would count against the bound of the next opening.
    settings.events.reserve_bytes = 0;
    settings
}

/// The subscription, and how many events would be skipped.
fn look(
    bus: &StartedBus,
    directory: &Path,
    name: &str,
    sequence: Seq,
) -> Result<(SubscriptionStatus, u64), Failure> {
    let status = bus.statuses().into_iter().find(|status| status.name.as_deref() == Some(name));
    let Some(status) = status else {
        return Err(Failure::cannot_run(anyhow::anyhow!(
            "{} has no durable subscription {name:?}: `strandline subscriptions` lists them",
            directory.display()
        )));
    };
    let end = bus.events.written_end();
    if sequence >= end {
        return Err(Failure::cannot_run(anyhow::anyhow!(
            "event {sequence} cannot be acknowledged: the journal ends before {end}"
        )));
    }
    let skipped = bus.events.count_matches(&status.filter, status.pointer.next(), sequence.next());
    Ok((status, skipped))
}

fn explain(status: &SubscriptionStatus, name: &str, sequence: Seq, skipped: u64) -> String {
    let pointer = status.pointer;
    if sequence <= pointer {
        return format!("{name:?} has acknowledged up to {pointer} already: nothing would be skipped");
    }
    let of_filter = if *status.filter == Filter::all() { "" } else { " that pass its filter" };
    format!(
        "{name:?} has acknowledged up to {pointer}: of the events {} to {sequence}, {skipped} are kept{of_filter}, and it would never be given them. Add --force to do that",
        pointer.next()
    )
}
