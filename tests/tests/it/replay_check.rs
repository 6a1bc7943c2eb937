//! A session's history against a fresh engine: the same events, or the first that differs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use strandline::session::{EventDigest, FIRST_EVENT, Setup};
use strandline::{Config, Directory, Pryj, ReadStep, ReadUpTo, Seq, config};
use tempfile::TempDir;

const POSTINGS: &str = "deposit ann 100\ntransfer ann bob 30\ntransfer bob ann 99\ntransfer bob ann 9\n";
const EVENTS: [&str; 4] = ["ann has 100", "bob has 30", "refused: not enough", "ann has 79"];

/// Runs the example `ledger`.
fn ledger(command: &str, directory: &Path, flags: &[&str], input: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_strandline-ledger"));
    program.arg(command).arg(directory).args(flags);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A session of these postings.
fn posted(lines: &str) -> Place {
    let root = TempDir::new().unwrap();
    let place = Place { session: root.path().join("session"), root };
    place.post(lines);
    place
}

struct Place {
    root: TempDir,
    session: PathBuf,
}

impl Place {
    fn post(&self, lines: &str) -> String {
        text(&ledger("post", &self.session, &[], lines), 0)
    }
}

/// What a run printed, which ended with this code.
fn text(ran: &Output, code: i32) -> String {
    assert_eq!(ran.status.code(), Some(code), "{ran:?}");
    String::from_utf8_lossy(if code == 2 { &ran.stderr } else { &ran.stdout }).into_owned()
}

fn check(directory: &Path, code: i32) -> String {
    text(&ledger("check", directory, &[], ""), code)
}

fn document(directory: &Path, code: i32) -> Value {
    serde_json::from_str(&text(&ledger("check", directory, &["--json"], ""), code)).unwrap()
}

fn files_of(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| (name(&entry), fs::read(entry.path()).unwrap())).collect()
}

/// A copy of the session whose records of one journal are these. Frames and checksums are right again.
fn with_records(place: &Place, journal: &str, records: &[Vec<u8>]) -> PathBuf {
    let copy = place.root.path().join("changed");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir(&copy).unwrap();
    for (name, bytes) in files_of(&place.session) {
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
    let directory = Directory::open(&place.session).unwrap();
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
    let (first, rest) = POSTINGS.split_at(POSTINGS.find("transfer bob ann 99").unwrap());
    let place = posted("");
    assert_eq!(place.post(first), "1: ann has 100\n2: bob has 30\n");
    assert_eq!(place.post(rest), "3: refused: not enough\n4: ann has 79\n");
    let mut digest = EventDigest::default();
    for (seq, event) in (1..).zip(EVENTS) {
        digest.update(Seq::new(seq), event.as_bytes());
    }
    let sha256: String = digest.finish().iter().map(|byte| format!("{byte:02x}")).collect();
    let before = files_of(&place.session);
    let wanted = format!("commands  4\nevents    4, all as recorded\nsha256    {sha256}\n");
    assert_eq!(check(&place.session, 0), wanted);
    let wanted = serde_json::json!({"verdict": "same", "commands": 4, "events": 4, "sha256": sha256});
    assert_eq!(document(&place.session, 0), wanted);
    assert_eq!(files_of(&place.session), before, "a check changes nothing");
}

#[test]
fn each_difference_is_named_by_event_and_command() {
    let place = posted(POSTINGS);
    let differs = |change: fn(&mut Vec<Vec<u8>>)| {
        let mut events = EVENTS.map(|event| event.as_bytes().to_vec()).to_vec();
        change(&mut events);
        let document = document(&with_records(&place, "events", &events), 1);
        assert_eq!(document["verdict"], "differs");
        (document["event"].as_u64().unwrap(), document["command"].as_u64().unwrap())
    };
    assert_eq!(differs(|events| events[3][0] ^= 1), (4, 4), "a flipped bit");
    assert_eq!(differs(|events| _ = events.remove(1)), (2, 2), "a dropped event");
    assert_eq!(differs(|events| _ = events.pop()), (4, 4), "a dropped last event");
    assert_eq!(differs(|events| events.push(b"more".to_vec())), (5, 4), "an extra event");
    assert_eq!(differs(|events| events.swap(1, 2)), (2, 2), "a swapped pair");

    let mut input = records(&place, "input");
    input[0] = Setup { engine: "ledger/1", setup: b"90" }.encode().to_vec();
    let another_setup = document(&with_records(&place, "input", &input), 1);
    let wanted = serde_json::json!({
        "verdict": "differs", "event": 1, "command": 1, "command_bytes": "ZGVwb3NpdCBhbm4gMTAw",
        "recorded": "YW5uIGhhcyAxMDA=", "replayed": "cmVmdXNlZDogdG9vIG11Y2g=",
    });
    assert_eq!(another_setup, wanted);
}

#[test]
fn what_is_no_session_of_the_engine_cannot_be_checked() {
    let place = posted(POSTINGS);
    let says = |directory: &Path, part: &str| {
        let told = check(directory, 2);
        assert!(told.contains(part), "{told}");
    };
    says(&place.root.path().join("nowhere"), "cannot be read");
    let mut input = records(&place, "input");
    says(&with_records(&place, "input", &[]), "no session was ever begun");
    let changed = with_records(&place, "input", &input);
    let segment = changed.join("input-00000000000000000000.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[70] ^= 1;
    fs::write(&segment, bytes).unwrap();
    says(&changed, "journal `input` is damaged");
    input[0] = Setup { engine: "ledger/2", setup: b"90" }.encode().to_vec();
    says(&with_records(&place, "input", &input), "engine `ledger/2`, this is `ledger/1`");
}

/// Posts lines and kills the process once it has printed so many answers. Gives the answers that were printed.
fn post_and_kill(session: &Path, lines: &str, after: usize) -> Vec<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_strandline-ledger"));
    program.arg("post").arg(session).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = program.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = lines.to_string();
    let writer = std::thread::spawn(move || {
        // It is killed while it reads.
        let _ = stdin.write_all(lines.as_bytes());
    });
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers: Vec<String> = stdout.by_ref().take(after).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    answers.extend(stdout.map_while(Result::ok));
    writer.join().unwrap();
    answers
}

#[test]
fn a_session_that_is_killed_again_and_again_is_the_one_that_was_not() {
    let lines: Vec<String> =
        (0..400).map(|n| format!("deposit {} {}\n", ["ann", "bob"][n % 2], n % 7)).collect();
    let whole = posted(&lines.concat());
    let wanted = document(&whole.session, 0);
    let place = posted("");
    let mut done = 0;
    for after in [0, 1, 7, 30, 77] {
        let answers = post_and_kill(&place.session, &lines[done..].concat(), after);
        let recorded = records(&place, "input").len().saturating_sub(1);
        assert!(
            recorded >= done + answers.len(),
            "{} answered behind {done}, {recorded} recorded",
            answers.len()
        );
        done = recorded;
    }
    place.post(&lines[done..].concat());
    assert_eq!(document(&place.session, 0), wanted);
}
