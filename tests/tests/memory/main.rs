//! What is allocated: nothing per record on append, scan and replay, and no more the longer a bus runs.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use dhat::{HeapStats, Profiler};
use strandline::bus::{BusSettings, EventBus, Received, Retention, Subscribe};
use strandline::core::JournalName;
use strandline::session::{EVENTS, FIRST_EVENT, INPUT, Setup, replay_check};
use strandline::{
    Config, Directory, Engine, EventDraft, Events, Pryj, ReadStep, ReadUpTo, Seq, config, inspect,
};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// One test counts at a time.
static COUNTING: Mutex<()> = Mutex::new(());

/// Allocations are counted as long as it lives.
struct Counting {
    _profiler: Profiler,
    _alone: MutexGuard<'static, ()>,
}

impl Counting {
    fn start() -> Self {
        let alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _profiler: Profiler::builder().testing().trim_backtraces(Some(1)).build(), _alone: alone }
    }

    /// Allocations while something is done.
    fn allocations<T>(&self, doing: impl FnOnce() -> T) -> (u64, T) {
        let before = HeapStats::get().total_blocks;
        let done = doing();
        (HeapStats::get().total_blocks - before, done)
    }
}

const RECORDS: u64 = 20_000;
/// Far fewer than records, and enough for what a commit or a batch takes.
const FEW: u64 = RECORDS / 50;

/// The housekeeping thread has nothing to do meanwhile.
fn quiet() -> Config {
    Config { idle_mark_ms: u64::MAX, ..config() }
}

fn recorded(root: &TempDir) {
    let directory = Directory::open(root.path()).unwrap();
    let (journal, _) = directory.journal::<Pryj>("records", quiet()).unwrap();
    journal.append_all((0..RECORDS).map(|_| &[7; 200][..])).unwrap();
    journal.close().unwrap();
}

#[test]
fn appending_allocates_per_commit_and_not_per_record() {
    let counting = Counting::start();
    let root = TempDir::new().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    let (journal, _) = directory.journal::<Pryj>("records", quiet()).unwrap();
    let (allocations, ()) = counting.allocations(|| {
        for _ in 0..RECORDS {
            drop(journal.append_nowait(&[7; 200]).unwrap());
        }
        journal.flush().unwrap();
    });
    assert!(allocations < FEW, "{allocations} for {RECORDS} records");
    let (allocations, end) =
        counting.allocations(|| journal.append_all((0..RECORDS).map(|_| &[7; 200][..])).unwrap());
    assert!(allocations < FEW, "{allocations} for {RECORDS} records: {end:?}");
    assert_eq!(journal.durable_end(), Seq::new(2 * RECORDS));
}

#[test]
fn opening_and_reading_allocate_per_piece_and_not_per_record() {
    let counting = Counting::start();
    let root = TempDir::new().unwrap();
    recorded(&root);
    let directory = Directory::open(root.path()).unwrap();
    let (allocations, (journal, report)) =
        counting.allocations(|| directory.journal::<Pryj>("records", quiet()).unwrap());
    assert_eq!(report.end, Seq::new(RECORDS));
    assert!(allocations < FEW, "opening: {allocations} for {RECORDS} records");
    let (allocations, read) = counting.allocations(|| {
        let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
        let mut read = 0;
        while read < RECORDS {
            let ReadStep::Records(batch) = reader.next_batch(None).unwrap() else {
                panic!("{read} were read")
            };
            read += batch.records().filter(|record| record.payload == [7; 200]).count() as u64;
        }
        read
    });
    assert_eq!(read, RECORDS);
    assert!(allocations < FEW, "reading: {allocations} for {RECORDS} records");
}

#[test]
fn verifying_allocates_per_piece_and_not_per_record() {
    let counting = Counting::start();
    let root = TempDir::new().unwrap();
    recorded(&root);
    let name = JournalName::parse("records").unwrap();
    let (allocations, inspection) =
        counting.allocations(|| inspect::<Pryj>(root.path(), &name, Default::default()).unwrap());
    assert!(inspection.is_sound());
    assert!(allocations < FEW, "{allocations} for {RECORDS} records");
}

/// A bus of this many bytes, with subscribers of whom half are away and half connected and never receiving.
fn bus(directory: &Directory, subscribers: usize) -> (EventBus, Vec<strandline::bus::Subscription>) {
    let bytes_max = 2 << 20;
    let retention = Retention { bytes_max, compact_above: bytes_max / 2, ..Retention::default() };
    let (bus, _) = EventBus::open(directory, BusSettings::with_retention(retention)).unwrap();
    let mut stalled = Vec::new();
    for n in 0..subscribers {
        let subscription = bus.subscribe(Subscribe::durable(&format!("subscriber {n}"))).unwrap();
        if n % 2 == 0 {
            stalled.push(subscription);
        } else {
            subscription.disconnect();
        }
    }
    (bus, stalled)
}

fn publish(bus: &EventBus, events: u64) {
    let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload: &[7; 166] };
    for _ in 0..events / 100 {
        bus.publish_all(std::iter::repeat_n(draft, 100)).unwrap();
    }
}

#[test]
fn a_bus_takes_no_more_memory_however_much_its_subscribers_miss() {
    let _counting = Counting::start();
    let root = TempDir::new().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    let (bus, mut stalled) = bus(&directory, 40);
    let mut peaks = [0, 0];
    for peak in &mut peaks {
        for _ in 0..10 {
            publish(&bus, 3_000);
            *peak = HeapStats::get().curr_bytes.max(*peak);
        }
    }
    let [before, after] = peaks;
    assert!(after < before + before / 50, "{before} bytes after 30,000 events, {after} after 60,000");
    let Received::Gap(gap) = stalled[0].recv(None).unwrap() else { panic!("it missed more than are kept") };
    assert_eq!((gap.to, gap.count), (Seq::new(60_000), Some(60_000)));
    drop(stalled);
    bus.close().unwrap();
}

/// Says what it was told.
struct Echo;

impl Engine for Echo {
    const ID: &'static str = "echo/1";
    type Error = std::convert::Infallible;

    fn start(_: &[u8]) -> Result<Self, Self::Error> {
        Ok(Self)
    }

    fn apply(&mut self, _: Seq, command: &[u8], events: &mut Events) {
        events.push(command);
    }
}

/// A session of so many commands, each with an event.
fn session(events: u64) -> TempDir {
    let root = TempDir::new().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    let setup = Setup { engine: Echo::ID, setup: b"" }.encode();
    let commands = || (0..events).map(|_| &[7; 100][..]);
    let record = |name, first, records: &mut dyn Iterator<Item = &[u8]>| {
        let config = Config { first_seq: Some(first), ..quiet() };
        let (journal, _) = directory.journal::<Pryj>(name, config).unwrap();
        journal.append_all(records).unwrap();
        journal.close().unwrap();
    };
    record(INPUT, Seq::ZERO, &mut std::iter::once(&setup[..]).chain(commands()));
    record(EVENTS, FIRST_EVENT, &mut commands());
    root
}

#[test]
fn a_replay_check_takes_no_more_memory_however_long_the_session_is() {
    let [(short, _), (long, allocations)] = [RECORDS, 10 * RECORDS].map(|events| {
        let root = {
            let _alone = Counting::start();
            session(events)
        };
        let counting = Counting::start();
        let (allocations, checked) =
            counting.allocations(|| replay_check::<Echo>(root.path(), |_, _| {}).unwrap());
        assert_eq!(checked.events, events);
        (HeapStats::get().max_bytes, allocations)
    });
    // The sparse index of a scan: 16 bytes for each 64 KiB.
    assert!(long < short + short / 50, "{short} bytes for {RECORDS} events, {long} for ten times as many");
    assert!(allocations < 10 * FEW, "{allocations} for {} events", 10 * RECORDS);
}
