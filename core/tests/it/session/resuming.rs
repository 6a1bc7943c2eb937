//! Opening a session again: what is recorded is compared, what is missing is appended, what differs is refused.

use strandline_core::Seq;
use strandline_core::session::{Difference, PlaybackError, Setup};

use super::studio::{Disks, Studio};
use crate::world::payloads;

const COMMANDS: [&str; 6] = ["2", "0", "3 abc", "1", "0", "2 z"];

/// A session of all commands, and its events.
fn whole() -> Studio {
    let mut studio = Studio::begin("7");
    for command in COMMANDS {
        studio.submit(command.as_bytes());
    }
    studio.run().unwrap();
    studio
}

#[test]
fn a_session_that_was_left_is_resumed_without_writing_anything() {
    let studio = whole();
    let events = studio.events();
    let mut studio = studio.restart();
    let before = studio.disks.log.files.clone();
    let answers = studio.run().unwrap();
    assert_eq!(answers.len(), COMMANDS.len(), "every command is known to be answered");
    assert_eq!((studio.events(), studio.disks.log.files.clone()), (events, before));
    studio.submit(b"1");
    assert_eq!(studio.run().unwrap()[0].command, Seq::new(7));
}

#[test]
fn wherever_it_was_left_the_missing_events_follow() {
    let expected = whole().events();
    for events_left in 0..=expected.len() {
        let mut studio = Studio::begin("7");
        for command in COMMANDS {
            studio.submit(command.as_bytes());
        }
        studio.events_left = events_left as u64;
        studio.run().unwrap();
        assert_eq!(studio.events(), expected[..events_left], "{events_left}");
        let mut studio = studio.restart();
        studio.run().unwrap();
        assert_eq!(studio.events(), expected, "{events_left}");
        assert!(studio.disks.check().is_ok());
    }
}

/// Resumes a session of all commands over this log.
fn resume(log: &[String]) -> (PlaybackError<std::num::ParseIntError>, bool) {
    let setup = Setup { engine: "adder/1", setup: b"7" }.encode();
    let mut input: Vec<&[u8]> = vec![&setup];
    input.extend(COMMANDS.iter().map(|command| command.as_bytes()));
    let log: Vec<&[u8]> = log.iter().map(String::as_bytes).collect();
    let mut studio = Studio::open(Disks::of(&input, &log));
    let before = payloads(&studio.disks.log);
    let refused = studio.run().unwrap_err();
    (refused, payloads(&studio.disks.log) == before)
}

fn difference(log: &[String]) -> Difference {
    match resume(log) {
        (PlaybackError::Differs(difference), true) => *difference,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_that_differs_is_refused_and_not_added_to() {
    let mut log = whole().events();
    log[3] = "another".into();
    let found = difference(&log);
    assert_eq!((found.event, found.command), (Seq::new(4), Some(Seq::new(3))));
    assert_eq!(found.recorded.as_deref(), Some(&b"another"[..]));
    assert_eq!(found.replayed.as_deref(), Some(&b"19 after 3"[..]));
    assert_eq!(&found.command_bytes[..], b"3 abc");
    log.truncate(4);
    assert_eq!(difference(&log), found, "nothing is appended behind what differs");
}

#[test]
fn a_log_with_an_event_that_no_command_causes_is_refused() {
    let mut log = whole().events();
    log.push("one more".into());
    let found = difference(&log);
    assert_eq!((found.event, found.command), (Seq::new(9), Some(Seq::new(6))));
    assert_eq!((found.recorded.as_deref(), found.replayed), (Some(&b"one more"[..]), None));
}
