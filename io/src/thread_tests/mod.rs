//! The threads of the journal, the event bus and sessions under a model checker: the same scenario in thousands of interleavings, each of
//! which has to keep the promises. A thread that waits for ever is reported as a deadlock.
//!
//! Run by `io/threads.sh`. `STRANDLINE_THREADS_SEED` takes other interleavings, `STRANDLINE_THREADS_TIMES` so many
//! times as many; a failure prints a schedule for `shuttle::replay`.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod bus;
mod commits;
mod failures;
mod followers;
mod memory_disk;
mod session;
mod tasks;
mod waiters;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread::JoinHandle;
use strandline_core::{Config, Pryj, Seq, Timestamp};

use crate::sync::thread::Injected;
use crate::{Directory, Journal, ReadStep, ReadUpTo, Reader};
use memory_disk::MemoryDisk;

type TestJournal = Journal<Pryj, MemoryDisk>;

/// How many changes of priority the second kind of schedules has: most bugs of threads need few.
const CHANGES: usize = 4;

/// Runs the scenario in `times` interleavings chosen at random and as many that are nearly sequential.
fn explore(name: &str, times: usize, scenario: impl Fn() + Copy + Send + Sync + 'static) {
    let setting = |variable: &str, default: u64| match std::env::var(variable) {
        Ok(value) => value.parse().unwrap(),
        Err(_) => default,
    };
    let seed = setting("STRANDLINE_THREADS_SEED", 0x5eed);
    let times = times * usize::try_from(setting("STRANDLINE_THREADS_TIMES", 1)).unwrap();
    run(RandomScheduler::new_from_seed(seed, times), scenario);
    run(PctScheduler::new_from_seed(seed, CHANGES, times), scenario);
    println!("{name}: {times} random and {times} prioritised interleavings, seed {seed}");
}

/// Returns how many interleavings there were.
fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) -> usize {
    let mut settings = shuttle::Config::new();
    settings.stack_size = 256 * 1024;
    // Every atomic is meant to be a hint or to be changed under a lock; the warning is about the former.
    settings.silence_warnings = true;
    shuttle::Runner::new(scheduler, settings).run(scenario)
}

/// Segments of a few records, and no idle mark unless a test asks for it.
fn small() -> Config {
    Config {
        segment_bytes: 1_024,
        reserve_bytes: 512,
        idle_mark_ms: 60_000,
        ..Config::new(7, Timestamp::from_millis(1))
    }
}

fn open(disk: &MemoryDisk, config: Config) -> TestJournal {
    let (journal, _) = Directory::on(disk.clone()).journal("a", config).unwrap();
    journal
}

/// A payload that no other record of the run has, and that is no part of another.
fn payload(thread: u32, n: u32) -> Vec<u8> {
    format!("<{thread}.{n}>").into_bytes()
}

/// Starts a thread that may be ended by an injected panic, in which case there is no result.
fn spawn<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> JoinHandle<Option<T>> {
    shuttle::thread::spawn(move || match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Injected>() => None,
        Err(panic) => resume_unwind(panic),
    })
}

/// What all threads were acknowledged, by number.
#[derive(Clone, Default)]
struct Ledger {
    acknowledged: Arc<std::sync::Mutex<BTreeMap<u64, Vec<u8>>>>,
}

impl Ledger {
    /// Notes an acknowledgement, which must have come after the record was safe.
    fn acknowledged(&self, disk: &MemoryDisk, seq: Seq, payload: &[u8]) {
        assert!(disk.is_durable(payload), "record {seq} was acknowledged before it was durable");
        let before = self.acknowledged.lock().unwrap().insert(seq.get(), payload.to_vec());
        assert_eq!(before, None, "two records were acknowledged as number {seq}");
    }

    fn len(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// What a power loss leaves: all that was acknowledged, under its number.
    fn is_kept_by(&self, disk: &MemoryDisk) -> BTreeMap<u64, Vec<u8>> {
        let found = read_all(&open(&disk.after_power_loss(), small()));
        for (seq, payload) in &*self.acknowledged.lock().unwrap() {
            assert_eq!(found.get(seq), Some(payload), "record {seq} was acknowledged and is not there");
        }
        found
    }
}

/// Every record that can be read, by its number.
fn read_all(journal: &TestJournal) -> BTreeMap<u64, Vec<u8>> {
    let mut reader = journal.reader(journal.first(), ReadUpTo::Durable);
    journal.close().unwrap();
    rest_of(&mut reader)
}

/// Every record that is left to read in a journal that was closed, by its number.
fn rest_of(reader: &mut Reader<Pryj, MemoryDisk>) -> BTreeMap<u64, Vec<u8>> {
    let mut found = BTreeMap::new();
    loop {
        match reader.next_batch(None).unwrap() {
            ReadStep::Records(batch) => {
                found.extend(batch.records().map(|record| (record.seq.get(), record.payload.to_vec())));
            }
            ReadStep::Closed => return found,
            other => panic!("{other:?}"),
        }
    }
}
