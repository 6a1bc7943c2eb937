use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use strandline_core::{Pryj, Seq};

use crate::program::{Place, feed, program};

#[test]
fn with_several_journals_one_must_be_named() {
    let place = Place::new();
    place.record("1\n");
    place.feed("record", &["--journal", "audit"], b"2\n").succeeds();
    for command in ["cat", "tail", "verify"] {
        place.run(command, &[]).fails(2, &["several journals: audit, event-journal", "--journal"]);
    }
    assert_eq!(place.run("cat", &["--journal", "audit", "-o", "payload"]).succeeds().text(), "2\n");
    place.run("verify", &["--journal", "audit"]).succeeds();
    place.run("cat", &["--journal", "nothing"]).fails(2, &["no journal nothing"]);
    place.run("stat", &["--journal", "Bad Name"]).fails(2, &["no journal name"]);
}

#[test]
fn what_is_not_there_is_said() {
    let place = Place::new();
    for command in ["cat", "tail", "stat", "verify"] {
        place.run(command, &[]).fails(2, &["journal", "no such file"]);
        assert!(!place.journal.exists(), "{command} makes nothing");
    }
    fs::create_dir(&place.journal).unwrap();
    fs::write(place.path("notes.txt"), "mine").unwrap();
    for command in ["cat", "tail", "stat", "verify"] {
        place.run(command, &[]).fails(2, &["there is no journal in"]);
    }
    let missing = feed(program("cat").arg(place.path("nothing.seg")), b"");
    missing.fails(2, &["nothing.seg", "no such file"]);
    feed(program("cat").arg("/dev/null"), b"").fails(2, &["no file that can be inspected"]);
}

#[test]
fn a_single_segment_can_be_read_on_its_own() {
    let place = Place::new();
    let lines: String = (0..200).map(|n| format!("\"{n:0100}\"\n")).collect();
    place.feed("record", &["--segment-size", "8KiB"], lines.as_bytes()).succeeds();
    let names: Vec<_> = place.files().into_keys().collect();
    assert!(names.len() >= 3, "{names:?}");
    let mut payloads = String::new();
    for name in &names {
        let file = place.path(name);
        feed(program("verify").arg(&file), b"").succeeds();
        let cat = feed(program("cat").arg(&file).args(["-o", "payload"]), b"");
        // Alone, a segment lacks the successor that would prove its last records.
        assert_eq!(cat.code, 0, "{cat:?}");
        payloads += cat.text();
    }
    assert_eq!(payloads, lines);
    let file = place.path(&names[1]);
    feed(program("cat").arg(&file).args(["--journal", "event-journal"]), b"").fails(2, &["is a file"]);
    let stat = feed(program("stat").arg(&file).arg("--json"), b"");
    assert_eq!(stat.succeeds().json()[0]["journals"][0]["name"], *names[1]);
    // A segment under another name is not what its name says.
    let renamed = place.path("event-journal-00000000000000000500.seg");
    fs::rename(&file, &renamed).unwrap();
    let ran = feed(program("verify").arg(&renamed), b"");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.text().contains("does not fit the file's name"), "{ran:?}");
}

#[test]
fn a_trimmed_journal_begins_where_it_begins() {
    let place = Place::new();
    let directory = strandline::Directory::open(&place.journal).unwrap();
    let (journal, _) = directory.journal::<Pryj>("input", strandline::config()).unwrap();
    for n in 0..10u8 {
        journal.append(&[b'0' + n]).unwrap();
    }
    journal.trim_to(Seq::new(4)).unwrap();
    journal.close().unwrap();
    drop((journal, directory));
    assert_eq!(place.run("cat", &["-o", "payload"]).succeeds().text(), "4\n5\n6\n7\n8\n9\n");
    assert_eq!(place.run("cat", &["-o", "payload", "--after", "3"]).succeeds().text(), "4\n5\n6\n7\n8\n9\n");
    assert_eq!(place.run("tail", &["-o", "payload"]).succeeds().text(), "4\n5\n6\n7\n8\n9\n");
    let gap = place.run("cat", &["-o", "payload", "--after", "0", "--limit", "1"]);
    assert_eq!((gap.code, gap.text()), (0, "4\n"));
    assert_eq!(gap.err, "strandline: input: records 1 to 3 are no longer kept\n");
    assert_eq!(place.run("stat", &["--json"]).succeeds().json()[0]["journals"][0]["first"], 4);
}

/// What is recorded is recorded, but who asked for the numbers has not got them.
#[test]
fn output_that_cannot_be_written_is_told() {
    let place = Place::new();
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    for (command, flags) in [("record", &[][..]), ("record", &["--ack"]), ("cat", &[]), ("verify", &[])] {
        let mut child = program(command)
            .arg(&place.journal)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(full())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if command == "record" {
            child.stdin.take().unwrap().write_all(b"1\n2\n").unwrap();
        }
        let ended = child.wait_with_output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{command} {flags:?}: {err}");
        assert!(err.contains("standard output cannot be written"), "{command} {flags:?}: {err}");
    }
    assert_eq!(place.run("cat", &[]).lines().len(), 4);
}

/// It ends like a full disk, and not by a signal.
#[test]
fn the_file_size_limit_is_told() {
    let place = Place::new();
    place.record("1\n");
    let limited = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 100; exec \"$0\" \"$@\""]).arg(env!("CARGO_BIN_EXE_strandline"));
        shell.arg(command).arg(&place.journal);
        shell
    };
    let lines = format!("\"{}\"\n", "x".repeat(1_000)).repeat(1_000);
    let ran = feed(&mut limited("record"), lines.as_bytes());
    ran.fails(1, &["not recorded", "no space"]);
    let recorded: u64 = ran.json().last().unwrap()["count"].as_u64().unwrap();
    assert_eq!(place.verdict()["count"], recorded + 1);
    assert_eq!(place.run("verify", &[]).code, 0);
    place.feed("record", &[], b"2\n").succeeds();
}

#[test]
fn the_simulator_is_a_command_too() {
    let ran = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_strandline")).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, trace) = ran(&["sim", "--seed", "2", "--smoke"]);
    assert_eq!(code, Some(0));
    let last = trace.lines().last().unwrap();
    assert!(last.starts_with("trace ") && last.len() == 6 + 64, "{last}");
    assert_eq!(ran(&["sim", "--seed", "2", "--smoke"]).1, trace, "the same seed, the same trace");
    assert_eq!(
        ran(&["sim", "--seed", "0", "--smoke", "--canary"]).0,
        Some(1),
        "a disk that never syncs is caught"
    );
}

#[test]
fn asking_for_what_lies_beyond_the_end_is_no_silence() {
    let place = Place::new();
    place.record("1\n2\n");
    place.run("cat", &["--after", "2"]).succeeds();
    for beyond in ["3", "1000000", "18446744073709551615"] {
        place.run("cat", &["--after", beyond]).fails(1, &["ends before 3"]);
    }
}
