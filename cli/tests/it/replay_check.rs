//! A session's history against a fresh engine: the same events, or the first that differs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use strandline::session::{EventDigest, FIRST_EVENT, Setup};
use strandline::{Config, Directory, Pryj, ReadStep, ReadUpTo, Seq, config};

use crate::program::{Place, Ran, feed, files_of};

const POSTINGS: &str = "deposit ann 100\ntransfer ann bob 30\ntransfer bob ann 99\ntransfer bob ann 9\n";
const EVENTS: [&str; 4] = ["ann has 100", "bob has 30", "refused: not enough", "ann has 79"];

/// The example program, which is built with the tests.
fn ledger(arguments: &[&str]) -> Command {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(Path::parent).unwrap().join("examples").join("ledger");
    assert!(built.exists(), "{} is built by `cargo test` without `--test`", built.display());
    let mut command = Command::new(built);
    command.args(arguments);
    command
}

fn post(place: &Place, lines: &str) -> Ran {
    feed(ledger(&["post"]).arg(&place.journal), lines.as_bytes())
}

fn check(directory: &Path, flags: &[&str]) -> Ran {
    feed(ledger(&["check"]).arg(directory).args(flags), b"")
}

/// A copy of the session whose records of one journal are these. Frames and checksums are right again.
fn with_records(place: &Place, journal: &str, records: &[Vec<u8>]) -> PathBuf {
    let copy = place.journal.with_file_name("changed");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir(&copy).unwrap();
    for (name, bytes) in files_of(&place.journal) {
        if !name.starts_with(journal) {
            fs::write(copy.join(name), bytes).unwrap();
        }
    }
    let first = if journal == "events" { FIRST_EVENT } else { Seq::ZERO };
    let directory = Directory::open(&copy).unwrap();
    let settings = Config { first_seq: Some(first), ..config() };
    let (changed, _) = directory.journal::<Pryj>(journal, settings).unwrap();
    changed.append_all(records.iter().map(Vec::as_slice)).unwrap();
    changed.close().unwrap();
    copy
}

fn records(place: &Place, journal: &str) -> Vec<Vec<u8>> {
    let directory = Directory::open(&place.journal).unwrap();
    let (journal, _) = directory.journal::<Pryj>(journal, config()).unwrap();
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    let mut records = Vec::new();
    while let ReadStep::Records(batch) = reader.next_batch(Some(std::time::Duration::ZERO)).unwrap() {
        records.extend(batch.records().map(|record| record.payload.to_vec()));
    }
    records
}

#[test]
fn a_session_over_several_runs_is_checked_and_its_digest_is_told() {
    let place = Place::new();
    let (first, rest) = POSTINGS.split_at(POSTINGS.find("transfer bob ann 99").unwrap());
    assert_eq!(post(&place, first).succeeds().text(), "1: ann has 100\n2: bob has 30\n");
    assert_eq!(post(&place, rest).succeeds().text(), "3: refused: not enough\n4: ann has 79\n");
    let mut digest = EventDigest::default();
    for (seq, event) in (1..).zip(EVENTS) {
        digest.update(Seq::new(seq), event.as_bytes());
    }
    let sha256: String = digest.finish().iter().map(|byte| format!("{byte:02x}")).collect();
    let before = files_of(&place.journal);
    let checked = check(&place.journal, &[]);
    let text = checked.succeeds().text();
    assert_eq!(text, format!("commands  4\nevents    4, all as recorded\nsha256    {sha256}\n"));
    let document = check(&place.journal, &["--json"]).succeeds().json().remove(0);
    let wanted = serde_json::json!({"verdict": "same", "commands": 4, "events": 4, "sha256": sha256});
    assert_eq!(document, wanted);
    assert_eq!(files_of(&place.journal), before, "a check changes nothing");
}

#[test]
fn each_difference_is_named_by_event_and_command() {
    let place = Place::new();
    post(&place, POSTINGS).succeeds();
    let differs = |change: fn(&mut Vec<Vec<u8>>)| {
        let mut events = EVENTS.map(|event| event.as_bytes().to_vec()).to_vec();
        change(&mut events);
        let changed = with_records(&place, "events", &events);
        let document = feed(ledger(&["check", "--json"]).arg(&changed), b"");
        assert_eq!(document.code, 1, "{document:?}");
        let document = document.json().remove(0);
        (document["event"].as_u64().unwrap(), document["command"].as_u64().unwrap())
    };
    assert_eq!(differs(|events| events[3][0] ^= 1), (4, 4), "a flipped bit");
    assert_eq!(differs(|events| _ = events.remove(1)), (2, 2), "a dropped event");
    assert_eq!(differs(|events| _ = events.pop()), (4, 4), "a dropped last event");
    assert_eq!(differs(|events| events.push(b"more".to_vec())), (5, 4), "an extra event");
    assert_eq!(differs(|events| events.swap(1, 2)), (2, 2), "a swapped pair");

    let mut input = records(&place, "input");
    input[0] = Setup { engine: "ledger/1", setup: b"90" }.encode().to_vec();
    let changed = with_records(&place, "input", &input);
    check(&changed, &[]).fails(
        1,
        &["event 1 differs: recorded is 616e6e2068617320313030, replayed 726566757365643a20746f6f206d756368"],
    );
}

#[test]
fn what_is_no_session_of_the_engine_cannot_be_checked() {
    let place = Place::new();
    check(&place.journal, &[]).fails(2, &["cannot be read"]);
    post(&place, POSTINGS).succeeds();
    let mut input = records(&place, "input");
    input[0] = Setup { engine: "ledger/2", setup: b"90" }.encode().to_vec();
    check(&with_records(&place, "input", &input), &[]).fails(2, &["engine `ledger/2`, this is `ledger/1`"]);
    check(&with_records(&place, "input", &[]), &[]).fails(2, &["no session was ever begun"]);
    let changed = with_records(&place, "input", &records(&place, "input"));
    let segment = changed.join("input-00000000000000000000.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[70] ^= 1;
    fs::write(&segment, bytes).unwrap();
    check(&changed, &[]).fails(2, &["journal `input` is damaged"]);
}
