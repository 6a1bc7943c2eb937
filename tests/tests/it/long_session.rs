//! The replay check of a long session: how fast it is, and that it takes no more memory than that of a short one. It
//! needs minutes and 2.5 GB of disk: `tests/deep/run.sh replay`.

use std::convert::Infallible;
use std::fs;
use std::time::Instant;

use strandline::session::{EVENTS, FIRST_EVENT, INPUT, Setup, replay_check};
use strandline::{Config, Directory, Engine, Events, Pryj, Seq, config};
use tempfile::TempDir;

/// Numbers what it is told.
struct Numbering;

impl Engine for Numbering {
    const ID: &'static str = "numbering/1";
    type Error = Infallible;

    fn start(_: &[u8]) -> Result<Self, Infallible> {
        Ok(Self)
    }

    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events) {
        events.push_with(|bytes| {
            bytes.extend_from_slice(&seq.get().to_le_bytes());
            bytes.extend_from_slice(command);
        });
    }
}

const COMMAND: [u8; 92] = [7; 92];
/// Between the peaks of two checks: what the allocator keeps, and 16 bytes of index for each 64 KiB.
const KB_MORE_MAX: u64 = 2_048;

/// A session of so many commands, each with an event of 100 bytes.
fn recorded(count: u64) -> TempDir {
    let root = TempDir::new().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    let journal = |name, first| {
        let config = Config { first_seq: Some(first), reserve_bytes: 0, ..config() };
        directory.journal::<Pryj>(name, config).unwrap().0
    };
    let (input, log) = (journal(INPUT, Seq::ZERO), journal(EVENTS, FIRST_EVENT));
    input.append(&Setup { engine: Numbering::ID, setup: b"" }.encode()).unwrap();
    let (mut engine, mut events) = (Numbering, Events::default());
    for first in (1..=count).step_by(1_000) {
        let seqs = first..(first + 1_000).min(count + 1);
        events.clear();
        seqs.clone().for_each(|seq| engine.apply(Seq::new(seq), &COMMAND, &mut events));
        input.append_all(seqs.map(|_| &COMMAND[..])).unwrap();
        log.append_all(events.iter()).unwrap();
    }
    input.close().unwrap();
    log.close().unwrap();
    root
}

fn bytes_of(directory: &TempDir) -> u64 {
    let entries = fs::read_dir(directory.path()).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// The most memory that this process has had since the last time this was called.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[ignore = "it needs minutes and 2.5 GB of disk: tests/deep/run.sh replay"]
fn a_check_of_ten_million_events_takes_no_more_memory_than_one_of_a_million() {
    let count: u64 = std::env::var("STRANDLINE_REPLAY_EVENTS").map_or(10_000_000, |n| n.parse().unwrap());
    let peaks = [count / 10, count].map(|count| {
        let session = recorded(count);
        peak_kb();
        let started = Instant::now();
        let checked = replay_check::<Numbering>(session.path(), |_, _| {}).unwrap();
        let (seconds, peak) = (started.elapsed().as_secs_f64(), peak_kb());
        assert_eq!((checked.commands, checked.events), (count, count));
        let bytes = bytes_of(&session);
        let gb_per_second = bytes as f64 / seconds / 1e9;
        println!("{count} events, {bytes} bytes: {seconds:.2} s, {gb_per_second:.2} GB/s, peak {peak} kB");
        peak
    });
    assert!(peaks[1] < peaks[0] + KB_MORE_MAX, "{peaks:?} kB");
}
