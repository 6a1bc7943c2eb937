use std::fs;
use std::path::Path;
use std::thread;

use serde_json::Value;

use crate::program::{Place, Ran, feed, program};

/// Bytes of a mark in a file of events.
const MARK: usize = 58;

fn three_events() -> (Place, Vec<u8>) {
    let place = Place::new();
    place.record("{\"n\":1}\n");
    place.record("{\"n\":2}\n");
    place.record("{\"n\":3}\n");
    let bytes = fs::read(place.segment()).unwrap();
    (place, bytes)
}

/// Runs a command on a damaged copy of a segment. Whatever it does, it changes nothing.
fn on_copy(directory: &Path, bytes: &[u8], command: &str, flags: &[&str]) -> Ran {
    fs::create_dir_all(directory).unwrap();
    let file = directory.join("event-journal-00000000000000000001.seg");
    fs::write(&file, bytes).unwrap();
    let ran = feed(program(command).arg(directory).args(flags), b"");
    assert_eq!(fs::read(&file).unwrap(), bytes, "{command} changed the file");
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1, "{command} made a file");
    ran
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let (place, bytes) = three_events();
    let whole = place.run("cat", &["-o", "payload"]);
    let (whole, bytes) = (whole.lines(), &bytes);
    // Each look waits a moment to see whether a writer is at work, so several are made at once.
    thread::scope(|scope| {
        for worker in 0..8 {
            let (directory, whole) = (place.path(&format!("copy-{worker}")), &whole);
            scope.spawn(move || {
                for at in (worker..bytes.len()).step_by(8) {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << (at * 5 % 8);
                    let verify = on_copy(&directory, &flipped, "verify", &["--json"]);
                    assert_eq!((verify.code, &*verify.err), (1, ""), "byte {at}");
                    let verdict = &verify.json()[0]["verdict"];
                    assert!(
                        matches!(verdict["state"].as_str(), Some("torn" | "refused")),
                        "byte {at}: {verdict}"
                    );

                    let cat = on_copy(&directory, &flipped, "cat", &["-o", "payload"]);
                    assert_eq!(cat.code, 1, "byte {at}");
                    let lines = cat.lines();
                    assert_eq!(lines, whole[..lines.len()], "byte {at}: a prefix, unchanged");
                    let tail = on_copy(&directory, &flipped, "tail", &["-o", "payload"]);
                    assert_eq!((tail.code, tail.lines()), (1, lines), "byte {at}");
                    // The same verdict in the same words.
                    for ran in [cat, tail] {
                        assert!(ran.err.contains(verdict["message"].as_str().unwrap()), "byte {at}: {ran:?}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_cut_anywhere_leaves_a_prefix() {
    let (place, bytes) = three_events();
    let directory = place.path("copy");
    let mut counts = Vec::new();
    for len in (0..bytes.len()).rev().step_by(7) {
        let cat = on_copy(&directory, &bytes[..len], "cat", &["-o", "payload"]);
        assert!(cat.code <= 1, "{len}: {cat:?}");
        assert_eq!(cat.code == 1, cat.err.contains("torn tail"), "{len}: {cat:?}");
        counts.push(cat.lines().len());
    }
    assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    assert_eq!(counts.last(), Some(&0));
}

#[test]
fn a_torn_tail_is_told_and_recording_cuts_it() {
    let (place, bytes) = three_events();
    fs::write(place.segment(), &bytes[..bytes.len() - MARK - 1]).unwrap();
    let before = place.files();
    let cat = place.run("cat", &["-o", "payload"]);
    cat.fails(1, &["event-journal: stopped before record 3", "torn tail (row F"]);
    assert_eq!(cat.lines(), ["{\"n\":1}", "{\"n\":2}"]);
    assert_eq!(place.run("tail", &["-n", "1", "-o", "payload"]).lines(), ["{\"n\":2}"]);
    assert_eq!(place.run("verify", &[]).code, 1);
    assert_eq!(place.run("stat", &[]).code, 1);
    assert_eq!(place.verdict()["verdict"]["row"], "F");
    assert_eq!(place.files(), before);

    let recorded = place.feed("record", &[], b"{\"n\":4}\n");
    recorded.fails(0, &["recovered", "torn tail", "kept in event-journal-00000000000000000001.seg.torn-"]);
    assert_eq!(
        place.run("cat", &["-o", "payload"]).succeeds().lines(),
        ["{\"n\":1}", "{\"n\":2}", "{\"n\":4}"]
    );
    let stat = &place.run("stat", &["--json"]).succeeds().json()[0]["journals"][0];
    assert!(stat["other_bytes"].as_u64() > Some(0), "the copy is counted: {stat}");
}

#[test]
fn records_that_no_mark_proves_are_shown_and_said() {
    let (place, bytes) = three_events();
    fs::write(place.segment(), &bytes[..bytes.len() - MARK]).unwrap();
    let cat = place.run("cat", &["-o", "payload"]);
    cat.fails(0, &["event-journal: 1 record is not proven durable yet"]);
    assert_eq!(cat.lines().len(), 3);
    assert_eq!(place.verdict()["unproven"], 1);
}

/// Row G: bad, complete, unproven. Only the strict policy refuses it.
#[test]
fn strict_refuses_what_standard_takes_for_torn() {
    let (place, mut bytes) = three_events();
    let at = bytes.len() - MARK - 2;
    bytes.truncate(bytes.len() - MARK);
    bytes[at] ^= 1;
    fs::write(place.segment(), &bytes).unwrap();
    let state = |flags: &[&str]| {
        let ran = place.run("verify", flags);
        assert_eq!(ran.code, 1);
        let document: Value = serde_json::from_slice(&ran.out).unwrap();
        (document["verdict"]["state"].clone(), document["verdict"]["row"].clone())
    };
    assert_eq!(state(&["--json"]), ("torn".into(), "G".into()));
    assert_eq!(state(&["--json", "--strict"]), ("refused".into(), "G".into()));
}

#[test]
fn what_cannot_be_judged_is_refused_and_unharmed() {
    let (sound, bytes) = three_events();
    let mut newer = bytes.clone();
    newer[4] = 3;
    let mut proven = bytes.clone();
    proven[MARK + 40] ^= 1; // in the first event, which later marks prove
    drop(sound);
    let foreign = b"These are my notes, and nobody shall touch them.".repeat(5);
    let cases: [(&[u8], &str); 4] = [
        (&newer, "format version 3 is not supported"),
        (&foreign, "does not begin with PCPJ"),
        (&proven, "a later mark proves"),
        (b"no", "does not begin with PCPJ"),
    ];
    for (bytes, words) in cases {
        let place = Place::new();
        fs::create_dir(&place.journal).unwrap();
        fs::write(place.segment(), bytes).unwrap();
        let before = place.files();
        place.feed("record", &[], b"1\n").fails(1, &[words]);
        place.run("cat", &[]).fails(1, &[words]);
        place.run("tail", &[]).fails(1, &[words]);
        place.run("tail", &["-f"]).fails(1, &[words]);
        for command in ["verify", "stat"] {
            let ran = place.run(command, &[]);
            assert_eq!((ran.code, &*ran.err), (1, ""));
            assert!(ran.text().contains(words), "{ran:?}");
        }
        assert_eq!(place.files(), before);
    }
}

#[test]
fn a_file_that_could_be_a_segment_is_not_passed_over() {
    let (place, _) = three_events();
    fs::write(place.path("event-journal-7.seg"), "?").unwrap();
    let before = place.files();
    for command in ["cat", "verify", "stat", "tail"] {
        place.run(command, &[]).fails(1, &["\"event-journal-7.seg\" looks like a segment"]);
    }
    place.feed("record", &[], b"1\n").fails(1, &["\"event-journal-7.seg\" looks like a segment"]);
    assert_eq!(place.files(), before);
}

#[test]
fn a_missing_segment_is_named() {
    let place = Place::new();
    let lines: String = (0..200).map(|n| format!("\"{n:0100}\"\n")).collect();
    place.feed("record", &["--segment-size", "8KiB"], lines.as_bytes()).succeeds();
    let names: Vec<_> = place.files().into_keys().collect();
    fs::remove_file(place.path(&names[1])).unwrap();
    let cat = place.run("cat", &["-o", "payload"]);
    let verdict = place.verdict();
    assert_eq!(verdict["segments"].as_array().unwrap().len(), 1, "{verdict}");
    assert_eq!(verdict["not_verified"], names.len() - 2, "{verdict}");
    cat.fails(1, &["are missing", "restore the missing segment"]);
    assert!(lines.starts_with(cat.text()) && !cat.out.is_empty());
    place.feed("record", &[], b"1\n").fails(1, &["are missing"]);
}
