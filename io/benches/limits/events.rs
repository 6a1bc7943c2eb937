//! A journal of events in the bus's shape: opening it with its index, and finding events by it.

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use strandline::core::bus::{BusConfig, Delivery, Restore, Subscribe};
use strandline::core::{Filter, Monotonic};
use strandline::{
    Config, Directory, EventDraft, Inspection, Journal, JournalName, Pcpj, ScanOptions, Seq, Timestamp, View,
    config, inspect,
};

use crate::workloads::{NAME, Sizes, done, megabytes, per_second};
use crate::{Figures, raw};

/// One in eight events.
pub(crate) const FREQUENT: &str = "compositor-3";
/// One in 25,000.
pub(crate) const RARE: &str = "battery-low0";
pub(crate) const ABSENT: &str = "battery-low9";

pub(crate) const EVENTS: usize = 250_000;
/// Bytes of an entry: 34 of header, 13 of type, 12 of source, the payload.
const EVENT_BYTES: usize = 200;
const PAYLOAD: [u8; EVENT_BYTES - 34 - 13 - 12] = [0x5a; EVENT_BYTES - 34 - 13 - 12];
const SOURCES: [&str; 8] = [
    "compositor-0",
    "compositor-1",
    "compositor-2",
    FREQUENT,
    "compositor-4",
    "compositor-5",
    "compositor-6",
    "compositor-7",
];
const TYPES: [&str; 4] = ["window.opened", "window.closed", "window.raised", "window.hidden"];
const COMMIT: usize = 100;
const OPENS: usize = 5;

pub(crate) fn open_after_close(root: &Path, _: &Sizes) -> Figures {
    let (closed, _) = prepared(root);
    opens(&closed, |path| path.to_path_buf())
}

/// Of a copy that was made while the writer was running: no closing mark, and zeros behind the end.
pub(crate) fn open_after_crash(root: &Path, _: &Sizes) -> Figures {
    let (_, crashed) = prepared(root);
    let again = root.join("events-again");
    let figures = opens(&crashed, |path| {
        done(copy(path, &again));
        again.clone()
    });
    done(fs::remove_dir_all(again));
    figures
}

fn opens(path: &Path, mut ready: impl FnMut(&Path) -> PathBuf) -> Figures {
    let (mut raw, mut ours, mut read) = (Duration::ZERO, Duration::ZERO, 0);
    for _ in 0..OPENS {
        let path = ready(path);
        let (bytes, elapsed) = done(raw::read_files(&path));
        (raw, read) = (raw + elapsed, read + bytes);
        let start = Instant::now();
        let journal = done(open(&path, event_config()));
        ours += start.elapsed();
        assert_eq!(journal.next_seq(), Seq::new(EVENTS as u64 + 1), "every event is there");
        done(journal.close());
    }
    let megabytes = megabytes(read);
    Figures { ours: per_second(megabytes, ours), raw: per_second(megabytes, raw) }
}

pub(crate) fn seeks(root: &Path, sizes: &Sizes, source: &str) -> Figures {
    let (view, raw) = indexed(root, sizes);
    let filter = Filter::all().source(source);
    let start = Instant::now();
    for n in 0..sizes.seeks {
        black_box(view.first_match(black_box(&filter), place(n), view.durable_end()));
    }
    Figures { ours: per_second(sizes.seeks, start.elapsed()), raw }
}

/// What the bus does for a subscriber that comes back: it counts what was missed, finds the last one and the next
/// one of it, and asks for a read there.
pub(crate) fn replays(root: &Path, sizes: &Sizes, source: &str) -> Figures {
    let (view, raw) = indexed(root, sizes);
    let (now, wall) = (Monotonic::from_millis(0), Timestamp::from_millis(0));
    let config = BusConfig { replay_events_max: u64::MAX, ..BusConfig::default() };
    let mut bus = Restore::new().start(config, now, wall, &view);
    let filter = Filter::all().source(source);
    let start = Instant::now();
    for n in 0..sizes.seeks {
        let request = Subscribe { last_sequence: Some(place(n)), filter: filter.clone(), name: None };
        let connection = done(bus.subscribe(wall, request, &view));
        let delivery = bus.poll_delivery(connection, &view);
        assert!(matches!(delivery, Delivery::Read(_) | Delivery::CaughtUp), "no gap, and nothing in memory");
        bus.disconnect(now, wall, connection);
    }
    Figures { ours: per_second(sizes.seeks, start.elapsed()), raw }
}

/// Where seek number `n` begins: all over the journal, in no order.
fn place(n: usize) -> Seq {
    Seq::new((n * 7_919 % EVENTS) as u64 + 1)
}

/// The view of the prepared journal, and how many events a second are read one by one.
fn indexed(root: &Path, sizes: &Sizes) -> (View<Pcpj>, f64) {
    let (closed, _) = prepared(root);
    let name = done(JournalName::parse(NAME));
    let options = ScanOptions { index_events: true, ..ScanOptions::default() };
    let Inspection { view, .. } = done(inspect::<Pcpj>(&closed, &name, options));
    let segment = done(segments(&closed)).swap_remove(0);
    let raw = done(raw::small_reads(&segment, sizes.seeks, EVENT_BYTES));
    (view, per_second(sizes.seeks, raw))
}

/// Event number `n`.
pub(crate) fn event(n: usize) -> EventDraft<'static> {
    let source = if n % 25_000 == 12_500 { RARE } else { SOURCES[n % SOURCES.len()] };
    let event_type = TYPES[n / SOURCES.len() % TYPES.len()];
    EventDraft { domain: 1, event_type, source, payload: &PAYLOAD }
}

/// The settings of the bus's own journal of events.
pub(crate) fn event_config() -> Config {
    Config { segment_bytes: 1 << 20, reserve_bytes: 1 << 20, index_events: true, ..config() }
}

pub(crate) fn open(path: &Path, config: Config) -> Result<Journal<Pcpj>, Box<dyn Error>> {
    Ok(Journal::open(&Directory::open(path)?, NAME, config)?.0)
}

/// A journal of events that was closed, and what a crash would have left of it; made once.
fn prepared(root: &Path) -> (PathBuf, PathBuf) {
    let (closed, crashed) = (root.join("events"), root.join("events-crashed"));
    if !closed.exists() {
        done(load(&closed, &crashed));
    }
    (closed, crashed)
}

fn load(path: &Path, crashed: &Path) -> Result<(), Box<dyn Error>> {
    const HOUR_MS: u64 = 60 * 60 * 1_000;
    // No idle mark comes between the last commit and the copy.
    let journal = open(path, Config { idle_mark_ms: HOUR_MS, ..event_config() })?;
    for commit in 0..EVENTS / COMMIT {
        journal.append_all((0..COMMIT).map(|n| event(commit * COMMIT + n)))?;
    }
    copy(path, crashed)?;
    journal.close()?;
    Ok(())
}

/// Copies the segments, and syncs them so that no opening has to.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir(to)?;
    for segment in segments(from)? {
        let Some(name) = segment.file_name() else { continue };
        fs::copy(&segment, to.join(name))?;
        File::open(to.join(name))?.sync_all()?;
    }
    Ok(())
}

/// The journal's segments, oldest first.
fn segments(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut names =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    names.retain(|name| name.extension().is_some_and(|extension| extension == "seg"));
    names.sort();
    Ok(names)
}
