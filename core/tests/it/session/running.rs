//! Commands are answered once their events are durable, in order.

use strandline_core::Seq;
use strandline_core::session::{Answered, PlaybackError, SessionStep};

use super::studio::{Disks, Studio};
use crate::world::{answer, drain, take_one};

fn answered(command: u64, first: u64, end: u64) -> Answered {
    Answered { command: Seq::new(command), first: Seq::new(first), end: Seq::new(end) }
}

#[test]
fn every_command_is_answered_with_its_events() {
    let mut studio = Studio::begin("100");
    for command in ["2a", "0", "1xyz"] {
        studio.submit(command.as_bytes());
    }
    let answers = studio.run().unwrap();
    assert_eq!(answers, [answered(1, 1, 3), answered(2, 3, 3), answered(3, 3, 4)]);
    assert_eq!(studio.events(), ["102 after 1", "104 after 1", "108 after 3"]);
    assert_eq!(studio.session.engine().map(|adder| adder.0), Some(108));
    assert_eq!(studio.run().unwrap(), [], "nothing is answered twice");
}

#[test]
fn nothing_is_answered_before_its_events_are_durable() {
    let mut studio = Studio::begin("0");
    studio.submit(b"1");
    studio.submit(b"0");
    loop {
        match studio.session.poll(studio.input.view(), studio.log.view()).unwrap() {
            SessionStep::Apply => {
                studio.session.apply();
                continue;
            }
            SessionStep::Append => {}
            _ => break,
        }
        let (_, event) = studio.session.event().unwrap();
        studio.log.append(crate::world::at(1), event).unwrap();
        studio.session.handle_appended();
    }
    assert_eq!(studio.answered(), [], "its event is not durable, and who has none waits for those before");
    drain(&mut studio.log, &mut studio.disks.log);
    assert_eq!(studio.answered(), [answered(1, 1, 2), answered(2, 2, 2)]);
}

#[test]
fn a_command_that_is_not_durable_is_not_applied() {
    let mut studio = Studio::begin("0");
    studio.input.append(crate::world::at(1), b"1").unwrap();
    let write = take_one(&mut studio.input);
    answer(&mut studio.input, &mut studio.disks.input, write);
    assert_eq!(studio.input.view().written_end(), Seq::new(2), "it is written, and not synced");
    assert_eq!(studio.run().unwrap(), []);
    assert_eq!(studio.session.engine().map(|adder| adder.0), Some(0));
    drain(&mut studio.input, &mut studio.disks.input);
    assert_eq!(studio.run().unwrap(), [answered(1, 1, 2)]);
}

#[test]
fn many_commands_in_many_segments_are_all_applied_once() {
    let mut studio = Studio::begin("0");
    for n in 0..500 {
        studio.submit(format!("{} command {n}", n % 4).as_bytes());
        if n % 7 == 0 {
            studio.run().unwrap();
        }
    }
    studio.run().unwrap();
    let events = studio.events();
    assert_eq!(events.len(), 750);
    assert_eq!(events.last().unwrap(), &format!("{} after 500", studio.session.engine().unwrap().0));
    assert!(studio.disks.log.files.len() > 10, "{} segments", studio.disks.log.files.len());
}

#[test]
fn what_is_no_session_of_this_engine_is_refused() {
    let run = |setup: &[u8]| Studio::open(Disks::of(&[setup, b"1"], &[])).run().unwrap_err();
    assert!(matches!(run(b"1 command"), PlaybackError::Setup(_)));
    let foreign = strandline_core::session::Setup { engine: "adder/2", setup: b"0" }.encode();
    assert_eq!(
        run(&foreign).to_string(),
        "the session is of engine `adder/2`, this is `adder/1`: use the program that recorded it"
    );
    let unknown = strandline_core::session::Setup { engine: "adder/1", setup: b"many" }.encode();
    assert!(matches!(run(&unknown), PlaybackError::Start(_)));
}

#[test]
fn a_session_whose_beginning_was_removed_is_refused() {
    let mut studio = Studio::begin("0");
    for _ in 0..100 {
        studio.submit(b"1 command");
    }
    studio.run().unwrap();
    let mut studio = studio.restart();
    studio.log.trim_to(Seq::new(50));
    drain(&mut studio.log, &mut studio.disks.log);
    let refused = studio.run().unwrap_err();
    assert!(refused.to_string().starts_with("journal `events` begins with record 50"), "{refused}");
}
