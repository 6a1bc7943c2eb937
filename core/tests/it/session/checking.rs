//! The replay check: the same events and their digest, or the first that differs.

use sha2::{Digest as _, Sha256};
use strandline_core::session::{CheckError, Checked, Difference, PlaybackError, Setup};
use strandline_core::{Engine, Seq};

use super::studio::{Adder, Disks};

const COMMANDS: [&[u8]; 4] = [b"2", b"0", b"3 abc", b"1"];
const EVENTS: [&[u8]; 6] =
    [b"8 after 1", b"9 after 1", b"14 after 3", b"19 after 3", b"24 after 3", b"25 after 4"];

fn check(setup: &[u8], log: &[&[u8]]) -> Result<Checked, CheckError<<Adder as Engine>::Error>> {
    let setup = Setup { engine: Adder::ID, setup }.encode();
    let input: Vec<&[u8]> = std::iter::once(&setup[..]).chain(COMMANDS).collect();
    Disks::of(&input, log).check()
}

fn difference(setup: &[u8], log: &[&[u8]]) -> Difference {
    match check(setup, log) {
        Err(CheckError::Playback(PlaybackError::Differs(difference))) => *difference,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_digest_is_of_lengths_numbers_and_payloads() {
    let mut sha256 = Sha256::new();
    for (seq, event) in (1u64..).zip(EVENTS) {
        sha256.update(u32::try_from(event.len()).unwrap().to_le_bytes());
        sha256.update(seq.to_le_bytes());
        sha256.update(event);
    }
    let checked = Checked { commands: 4, events: 6, sha256: sha256.finalize().into() };
    assert_eq!(check(b"7", &EVENTS).unwrap(), checked);
}

/// Each difference is named by the first event that differs, and by the command that causes it.
#[test]
fn every_kind_of_difference_is_named() {
    let with = |change: fn(&mut Vec<&'static [u8]>)| {
        let mut log = EVENTS.to_vec();
        change(&mut log);
        let found = difference(b"7", &log);
        (found.event.get(), found.command.unwrap().get(), found.recorded.is_some(), found.replayed.is_some())
    };
    assert_eq!(with(|log| log[4] = b"24 after 2"), (5, 3, true, true), "a flipped bit");
    assert_eq!(with(|log| _ = log.remove(2)), (3, 3, true, true), "a dropped event");
    assert_eq!(with(|log| _ = log.pop()), (6, 4, false, true), "a dropped last event");
    assert_eq!(with(|log| log.insert(1, b"9 after 1")), (3, 3, true, true), "an event twice");
    assert_eq!(with(|log| log.push(b"more")), (7, 4, true, false), "an extra event at the end");
    assert_eq!(with(|log| log.swap(0, 1)), (1, 1, true, true), "a swapped pair");
    assert_eq!(with(Vec::clear), (1, 1, false, true), "no log");
    let config = difference(b"8", &EVENTS);
    assert_eq!(config.event, Seq::new(1), "another configuration");
    assert_eq!(
        config.to_string(),
        "event 1 differs at byte 0: recorded is 382061667465722031, replayed 392061667465722031; it is caused by command 1, 32"
    );
}

#[test]
fn a_session_without_commands_is_the_same_and_an_empty_directory_is_none() {
    let setup = Setup { engine: Adder::ID, setup: b"7" }.encode();
    let checked = Disks::of(&[&setup], &[]).check().unwrap();
    assert_eq!((checked.commands, checked.events), (0, 0));
    assert_eq!(checked.sha256[..4], [0xe3, 0xb0, 0xc4, 0x42], "of nothing");
    assert!(matches!(Disks::of(&[], &[]).check(), Err(CheckError::NoSession)));
    assert!(matches!(Disks::of(&[], &EVENTS).check(), Err(CheckError::NoSession)), "events of nothing");
    assert!(matches!(Disks::default().check(), Err(CheckError::NoSession)));
}
