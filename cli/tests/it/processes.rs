use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::thread;

use serde_json::Value;
use strandline_core::{Pryj, Seq};

use crate::program::{Place, Running, program};

fn sequence(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["sequence"].as_u64().unwrap()
}

#[test]
fn readers_look_at_what_a_writer_holds_open() {
    let place = Place::new();
    let mut writer =
        Running::start(program("record").arg(&place.journal).args(["--ack", "--segment-size", "64KiB"]));
    writer.write("1\n");
    assert_eq!(writer.line(), "1", "the answer comes while the input stays open");

    place.feed("record", &[], b"2\n").fails(2, &["open for writing already"]);
    let mut tail = Running::start(program("tail").arg(&place.journal).args(["-f", "-n", "5"]));
    assert_eq!(sequence(&tail.line()), 1);
    // More than a segment, so that the follower goes on to the next one.
    for seq in 2..=300u64 {
        writer.write(&format!("\"{}\"\n", "x".repeat(400)));
        assert_eq!(writer.line(), seq.to_string());
        if seq % 100 == 0 {
            let cat = place.run("cat", &[]);
            assert_eq!((cat.code, cat.lines().len() as u64), (0, seq), "{}", cat.err);
            assert_eq!(place.run("verify", &[]).code, 0);
            assert_eq!(place.run("stat", &[]).code, 0);
        }
    }
    for seq in 2..=300 {
        assert_eq!(sequence(&tail.line()), seq);
    }
    writer.write("{\"last\":true}\n");
    assert_eq!(writer.line(), "301");
    assert_eq!(sequence(&tail.line()), 301, "an idle writer leaves a mark");
    let (code, lines, err) = writer.finish();
    assert_eq!((code, lines, &*err), (0, vec!["{\"first\":1,\"last\":301,\"count\":301}".to_string()], ""));

    // The next writer goes on in the same files.
    place.record("302\n");
    assert_eq!(sequence(&tail.line()), 302);
    drop(tail.take_stdin());
}

#[test]
fn a_follower_prints_only_what_is_wanted() {
    let place = Place::new();
    place.feed("record", &["--source", "/a"], b"1\n2\n").succeeds();
    let tail = Running::start(program("tail").arg(&place.journal).args(["-f", "-n", "1", "--source", "/a"]));
    assert_eq!(sequence(&tail.line()), 2);
    place.feed("record", &["--source", "/b"], b"3\n").succeeds();
    place.feed("record", &["--source", "/a"], b"4\n").succeeds();
    assert_eq!(sequence(&tail.line()), 4);
}

#[test]
fn a_follower_is_told_of_what_was_removed_before_it_came() {
    let place = Place::new();
    let directory = strandline::Directory::open(&place.journal).unwrap();
    let mut config = strandline::config();
    config.segment_bytes = 4_096;
    let (journal, _) = directory.journal::<Pryj>("input", config).unwrap();
    journal.append(b"first").unwrap();
    journal.flush().unwrap();
    let tail = Running::start(program("tail").arg(&place.journal).args(["-f", "-o", "hex"]));
    assert_eq!(tail.line(), "0 6669727374");
    // The follower reads what it can get: whatever it misses, it says so, and goes on in order.
    for _ in 0..200 {
        journal.append(&[b'x'; 1_000]).unwrap();
        journal.trim_to(journal.durable_end()).unwrap();
    }
    assert_eq!(journal.append(b"last").unwrap(), Seq::new(201));
    let mut previous = 0;
    loop {
        let line = tail.line();
        let (seq, payload) = line.split_once(' ').unwrap();
        let seq: u64 = seq.parse().unwrap();
        assert!(seq > previous, "{seq} after {previous}");
        previous = seq;
        if payload == "6c617374" {
            break;
        }
    }
    assert_eq!(previous, 201);
    journal.close().unwrap();
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let lines: String = (0..20_000).map(|n| format!("\"{n:0100}\"\n")).collect();
    place.record(&lines);
    for flags in [&["cat"][..], &["tail", "-n", "20000"], &["tail", "-f", "-n", "20000"]] {
        let mut command = program(flags[0]);
        command.arg(&place.journal).args(&flags[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(sequence(&line), 1);
        drop(out);
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), &*err), (Some(0), ""), "{flags:?}");
    }
}

#[test]
fn recording_goes_on_when_nobody_reads_its_answers() {
    let place = Place::new();
    let mut command = program("record");
    command
        .arg(&place.journal)
        .arg("--ack")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        use std::io::Write;
        for n in 0..5_000 {
            writeln!(stdin, "{n}").unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    assert_eq!(place.run("cat", &[]).succeeds().lines().len(), 5_000);
}
