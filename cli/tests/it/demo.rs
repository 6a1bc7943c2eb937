use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Place, Ran, feed, program};

/// Runs it with temporary files of its own, which must be gone afterwards.
fn demo(place: &Place, flags: &[&str]) -> Ran {
    std::fs::create_dir_all(&place.journal).unwrap();
    feed(program("demo").args(flags).env("TMPDIR", &place.journal), b"")
}

#[test]
fn it_tells_its_story_and_leaves_nothing_behind() {
    let place = Place::new();
    let ran = demo(&place, &[]);
    let text = ran.succeeds().text();
    for told in [
        "context: killed with SIGKILL",
        "publisher: stopped in the middle of a write",
        "and cuts off half an event (torn: segment",
        "none lacks, none comes twice, each byte as it was published",
        "is told that it does not get",
        "both journals are sound, every check held",
    ] {
        assert_eq!(text.matches(told).count(), 1, "{told:?} in {text}");
    }
    assert_eq!(std::fs::read_dir(&place.journal).unwrap().count(), 0);
    for process in text.split("(process ").skip(1) {
        let id = process.split(')').next().unwrap();
        let command_line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let command_line = String::from_utf8_lossy(&command_line);
        assert!(!command_line.contains("demo-"), "{id} is there: {command_line}");
    }
}

#[test]
fn what_is_kept_is_a_bus_like_any_other() {
    let place = Place::new();
    let bus = place.journal.join("kept");
    let ran = demo(&place, &["--keep", bus.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.contains("the bus is in")), (0, true), "{ran:?}");
    let listed = feed(program("subscriptions").arg(&bus).arg("--json"), b"").succeeds().json().remove(0);
    let lag = |n: usize| listed["subscriptions"][n]["lag_events"].clone();
    assert_eq!(listed["subscriptions"].as_array().unwrap().len(), 2);
    assert!([lag(0), lag(1)].contains(&Value::from(0)), "audit has everything: {listed}");
    feed(program("demo").args(["--keep", bus.to_str().unwrap()]), b"").fails(2, &["exists already"]);
}

/// Whatever goes wrong, it is one line and exit code 1 or 2, and no process stays.
#[test]
fn a_demo_that_cannot_go_on_says_so() {
    let place = Place::new();
    std::fs::create_dir_all(&place.journal).unwrap();
    // The publisher cannot make its directory here: the demo misses it at once.
    let file = place.path("file");
    std::fs::write(&file, "").unwrap();
    let ran = demo(&place, &["--keep", file.join("below").to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("ended before the bus was open"), "{ran:?}");
    assert_eq!(place.files().into_keys().collect::<Vec<_>>(), ["file"]);
}

#[test]
fn a_demo_that_nobody_reads_or_that_is_interrupted_leaves_nothing_behind() {
    let place = Place::new();
    std::fs::create_dir_all(&place.journal).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" demo | head -1"]).arg(env!("CARGO_BIN_EXE_strandline"));
    let ran = feed(shell.env("TMPDIR", &place.journal), b"");
    assert_eq!((ran.code, ran.lines().len(), &*ran.err), (0, 1, ""), "{ran:?}");
    assert_eq!(std::fs::read_dir(&place.journal).unwrap().count(), 0);

    let mut demo = program("demo");
    let mut demo =
        demo.env("TMPDIR", &place.journal).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(demo.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    assert!(Command::new("kill").arg(demo.id().to_string()).status().unwrap().success());
    out.read_to_string(&mut String::new()).unwrap();
    // Where it is nearly over, it may as well come to its end.
    assert!(matches!(demo.wait().unwrap().code(), Some(0 | 1)));
    assert_eq!(std::fs::read_dir(&place.journal).unwrap().count(), 0);
}
