use std::io::Write;
use std::thread;

use crate::program::{Place, Running, program};

/// The payload says its own number.
fn line(seq: u64) -> String {
    format!("{{\"n\":{seq},\"pad\":\"{}\"}}\n", "x".repeat(usize::try_from(seq * 37 % 500).unwrap()))
}

/// Kills a recording once this many numbers have been printed; gives the highest that was.
fn record_and_kill(place: &Place, first: u64, printed: usize, flags: &[&str]) -> u64 {
    let mut writer = Running::start(program("record").arg(&place.journal).arg("--ack").args(flags));
    let mut stdin = writer.take_stdin();
    let feeder = thread::spawn(move || {
        // Until the pipe breaks.
        for seq in first.. {
            if stdin.write_all(line(seq).as_bytes()).is_err() {
                break;
            }
        }
    });
    let mut last = first - 1;
    for _ in 0..printed {
        last = writer.line().parse().unwrap();
    }
    let rest = writer.kill();
    feeder.join().unwrap();
    // A kill may have cut the last number short, but then it is no higher than the one meant.
    rest.iter().filter_map(|line| line.parse().ok()).fold(last, u64::max)
}

#[test]
fn a_kill_loses_no_number_that_was_printed() {
    for flags in [&["--segment-size", "64KiB"][..], &["--sync", "interval=1ms"], &["--segment-size", "16KiB"]]
    {
        let place = Place::new();
        let mut next = 1;
        for printed in [0, 1, 2, 50, 400] {
            let last = record_and_kill(&place, next, printed, flags);
            // What the kill left is read as it is, and again after recovery.
            for _ in 0..2 {
                let cat = place.run("cat", &["-o", "payload"]);
                let lines = cat.lines();
                assert!(lines.len() as u64 >= last, "{last} was printed, {} are left", lines.len());
                for (seq, found) in (1..).zip(&lines) {
                    assert_eq!(*found, line(seq).trim_end(), "record {seq}");
                }
                next = lines.len() as u64 + 1;
                let recorded = place.run("record", &[]);
                assert_eq!(recorded.code, 0, "{recorded:?}");
            }
            place.run("verify", &[]).succeeds();
        }
    }
}
