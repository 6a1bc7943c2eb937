//! A writer that is killed at random moments loses nothing that it was told was durable.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use strandline::Verdict;

use super::payload::payload;
use super::writer::{PROGRAM, Records, acknowledgement, exists, look, numbers, reopen};

const THREADS: u64 = 3;
/// What a thread may have submitted and not been told of.
const IN_FLIGHT: u64 = 4;
/// The journal is begun anew after so many kills.
const ROUNDS_OF_ONE: u64 = 8;

#[derive(Default)]
struct Tally {
    acknowledged: u64,
    recovered: u64,
    unproven: u64,
    cuts: u64,
}

/// Runs the writer for `millis` and kills it; gives the lines that it managed to say.
fn run_and_kill(directory: &Path, process: u64, millis: u64) -> Vec<(u64, String)> {
    let mut child = Command::new(PROGRAM)
        .arg(directory)
        .args([&process.to_string(), "run", &THREADS.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let listens = thread::spawn(move || {
        let mut said = String::new();
        stdout.read_to_string(&mut said).unwrap();
        said
    });
    thread::sleep(Duration::from_millis(millis));
    child.kill().unwrap();
    child.wait().unwrap();
    let said = listens.join().unwrap();
    said.lines().map(|line| acknowledgement(line).expect(line)).collect()
}

/// What this process added is what it submitted, thread by thread in order, and nothing else.
fn check_added(added: &Records, process: u64, acknowledged: &[(u64, String)]) {
    let mut next = BTreeMap::<u64, u64>::new();
    for (seq, found) in added {
        let (of, thread, n) = numbers(found).unwrap_or_else(|| panic!("record {seq} was never submitted"));
        assert_eq!(of, process, "record {seq}");
        let expected = next.entry(thread).or_default();
        assert_eq!(n, *expected, "record {seq} of thread {thread}");
        *expected += 1;
        assert_eq!(*found, payload(process, thread, n), "record {seq}, byte for byte");
    }
    let mut told = BTreeMap::<u64, u64>::new();
    for (seq, marker) in acknowledged {
        let (_, thread, n) = numbers(marker.as_bytes()).unwrap();
        let found = added.get(seq).unwrap_or_else(|| panic!("record {seq} was acknowledged and is lost"));
        assert_eq!(*found, payload(process, thread, n), "record {seq} was acknowledged");
        let told = told.entry(thread).or_default();
        *told = (*told).max(n + 1);
    }
    for (thread, recovered) in next {
        let told = told.get(&thread).copied().unwrap_or(0);
        assert!(
            recovered <= told + IN_FLIGHT,
            "thread {thread}: {recovered} of {told} and what was in flight"
        );
    }
}

fn round(directory: &Path, process: u64, millis: u64, before: &mut Records, tally: &mut Tally) {
    let acknowledged = run_and_kill(directory, process, millis);
    if !exists(directory) {
        // Killed before it had created anything.
        assert_eq!((acknowledged.len(), before.len()), (0, 0));
        return;
    }
    let (seen, records) = look(directory);
    let (journal, report) = reopen(directory);
    assert!(!matches!(report.verdict, Verdict::Refused(_)), "{:?}", report.verdict);
    assert_eq!((report.end, &report.verdict), (seen.end, &seen.verdict), "verify and open agree");
    journal.close().unwrap();
    let (clean, again) = look(directory);
    assert_eq!(again, records, "recovery changes no record");
    assert_eq!((&clean.verdict, clean.unproven()), (&Verdict::Sound, 0), "the second open is clean");
    assert!(records.keys().copied().eq(0..records.len() as u64), "without a hole");
    let added = records.iter().skip(before.len()).map(|(seq, found)| (*seq, found.clone())).collect();
    assert!(before.iter().eq(records.iter().take(before.len())), "what was there stays");
    check_added(&added, process, &acknowledged);
    tally.acknowledged += acknowledged.len() as u64;
    tally.recovered += added.len() as u64;
    tally.unproven += u64::from(report.unproven() > 0);
    tally.cuts += u64::from(matches!(report.verdict, Verdict::Cut(_)));
    *before = records;
}

/// The number after this one in a sequence that looks random.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn a_killed_writer_loses_nothing_acknowledged() {
    let setting =
        |name: &str, default: u64| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let (rounds, seed) = (setting("STRANDLINE_KILLS", 6), setting("STRANDLINE_KILLS_SEED", 1));
    let (mut tally, mut random) = (Tally::default(), seed);
    let mut root = tempfile::tempdir().unwrap();
    let mut before = Records::new();
    for process in 0..rounds {
        if process % ROUNDS_OF_ONE == 0 {
            root = tempfile::tempdir().unwrap();
            before.clear();
        }
        let millis = next_random(&mut random) % 80;
        round(root.path(), process, millis, &mut before, &mut tally);
    }
    let Tally { acknowledged, recovered, unproven, cuts } = tally;
    println!(
        "{rounds} kills, seed {seed}: {acknowledged} acknowledgements, {recovered} records recovered, \
         {unproven} unproven tails, {cuts} cuts"
    );
    assert!(recovered >= acknowledged);
}
