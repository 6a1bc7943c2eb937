#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::*;
use crate::Events;
use crate::directory::Directory;
use crate::session::{PlaybackError, ReplayCheckError, SessionOpenError};
use crate::test_disk::{EIO, ENOSPC, Fault, TestDisk};

/// Adds up what it is told, and panics at a word.
struct Adder(u64);

#[derive(Debug, thiserror::Error)]
#[error("no number")]
struct NoNumber;

impl Engine for Adder {
    const ID: &'static str = "adder/1";
    type Error = NoNumber;

    fn start(setup: &[u8]) -> Result<Self, NoNumber> {
        std::str::from_utf8(setup).ok().and_then(|text| text.parse().ok()).map(Self).ok_or(NoNumber)
    }

    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events) {
        assert!(command != b"panic", "the engine panics here");
        self.0 += command.len() as u64;
        for _ in 0..seq.get() % 3 {
            events.push(format!("{} after {}", self.0, String::from_utf8_lossy(command)).as_bytes());
        }
    }
}

type Adding = Session<Adder, TestDisk>;

fn settings() -> SessionSettings {
    let small = || strandline_core::Config { segment_bytes: 4_096, reserve_bytes: 0, ..crate::config() };
    SessionSettings { input: small(), events: small(), ..SessionSettings::default() }
}

fn begin(disk: &TestDisk) -> Adding {
    Adding::create_new(&Directory::on(disk.clone()), b"100", settings()).unwrap()
}

fn check(disk: &TestDisk) -> Result<Checked, ReplayCheckError<NoNumber>> {
    replay_check::<Adder>(disk.path(), |_, _| {})
}

fn refused(disk: &TestDisk, settings: SessionSettings) -> SessionOpenError<NoNumber> {
    Adding::open(&Directory::on(disk.clone()), settings).map(drop).unwrap_err()
}

fn is_pending(ticket: &mut SessionTicket<TestDisk>) -> bool {
    matches!(Pin::new(ticket).poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

#[test]
fn many_producers_are_answered_with_their_own_events() {
    let disk = TestDisk::new();
    let session = begin(&disk);
    let producers: Vec<_> = (0..4)
        .map(|producer| {
            let session = session.clone();
            thread::spawn(move || {
                for n in 0..100 {
                    let command = format!("{producer}.{n}");
                    let answer = session.submit(command.as_bytes()).unwrap().wait().unwrap();
                    assert_eq!(answer.events.len() as u64, answer.command.get() % 3);
                    for event in answer.events.iter() {
                        assert!(String::from_utf8_lossy(event).ends_with(&format!(" after {command}")));
                    }
                    assert!(session.durable_end(Side::Events) >= answer.first_event);
                }
            })
        })
        .collect();
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    session.close().unwrap();
    let checked = check(&disk).unwrap();
    assert_eq!((checked.commands, checked.events), (400, 400));
    let (session, resumed) = Adding::open(&Directory::on(disk.clone()), settings()).unwrap();
    assert_eq!((resumed.commands, resumed.events, resumed.appended), (400, 400, 0));
    assert_eq!(session.submit(b"one more").unwrap().wait().unwrap().first_event, Seq::new(401));
    session.close().unwrap();
    assert!(matches!(session.submit(b"late"), Err(SubmitError::Stopped(SessionStopped::Closed))));
}

#[test]
fn nothing_is_answered_before_command_and_events_are_synced_and_input_goes_first() {
    let disk = TestDisk::new();
    let session = begin(&disk);
    disk.take_log();
    disk.hold_syncs();
    let mut ticket = session.submit(b"a").unwrap();
    disk.wait_for_held_sync();
    assert!(is_pending(&mut ticket));
    assert!(!disk.take_log().iter().any(|call| call.contains("events")), "input is not durable yet");
    disk.release_syncs();
    ticket.wait().unwrap();
    let log = disk.take_log();
    let at =
        |call: &str| log.iter().position(|line| line.starts_with(call)).unwrap_or_else(|| panic!("{log:?}"));
    assert!(at("sync input") < at("write events") && at("write events") < at("sync events"));
}

#[test]
fn events_that_are_missing_at_the_end_are_appended_and_a_missing_log_only_when_asked() {
    let disk = TestDisk::new();
    let session = begin(&disk);
    let tickets: Vec<_> = (0..50).map(|n| session.submit(format!("{n}").as_bytes()).unwrap()).collect();
    tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    session.close().unwrap();
    drop(session);
    let whole = check(&disk).unwrap();
    let log = "events-00000000000000000001.seg";
    let bytes = disk.read(log);
    disk.put(log, &bytes[..bytes.len() / 2]);
    let cut = check(&disk).unwrap_err();
    assert!(cut.difference().is_some_and(|found| found.recorded.is_none()), "{cut}");
    let (session, resumed) = Adding::open(&Directory::on(disk.clone()), settings()).unwrap();
    assert!((10..40).contains(&resumed.appended), "{resumed:?}");
    session.close().unwrap();
    drop(session);
    assert_eq!(check(&disk).unwrap(), whole);

    std::fs::remove_file(disk.path().join(log)).unwrap();
    let missing = refused(&disk, settings());
    assert!(matches!(missing, SessionOpenError::EventsMissing { commands: 50 }), "{missing}");
    let is_segment = |name: &String| name.starts_with("events") && name.ends_with(".seg");
    assert!(!disk.names().iter().any(is_segment), "nothing was made");
    let rebuild = SessionSettings { rebuild_events: true, ..settings() };
    let (session, resumed) = Adding::open(&Directory::on(disk.clone()), rebuild).unwrap();
    assert_eq!(resumed.appended, whole.events);
    session.close().unwrap();
    assert_eq!(check(&disk).unwrap(), whole);
}

#[test]
fn a_log_that_differs_is_refused_and_not_changed() {
    let disk = TestDisk::new();
    let session = begin(&disk);
    session.submit(b"a").unwrap().wait().unwrap();
    session.submit(b"b").unwrap().wait().unwrap();
    session.close().unwrap();
    drop(session);
    let directory = Directory::on(disk.clone());
    let (events, _) = directory.journal::<Pryj>("events", crate::config()).unwrap();
    events.append(b"foreign").unwrap();
    events.close().unwrap();
    let log = disk.read("events-00000000000000000001.seg");
    let refused = refused(&disk, settings());
    let SessionOpenError::Playback(PlaybackError::Differs(found)) = refused else { panic!("{refused}") };
    assert_eq!((found.event, found.command), (Seq::new(4), Some(Seq::new(2))));
    assert_eq!(found.recorded.as_deref(), Some(&b"foreign"[..]));
    assert_eq!(check(&disk).unwrap_err().difference(), Some(&*found));
    assert_eq!(disk.read("events-00000000000000000001.seg"), log);
}

#[test]
fn what_is_there_is_not_begun_again_and_what_is_not_is_not_opened() {
    let disk = TestDisk::new();
    let directory = Directory::on(disk.clone());
    assert!(matches!(refused(&disk, settings()), SessionOpenError::NoSession));
    let start = Adding::create_new(&directory, b"many", settings()).unwrap_err();
    assert!(matches!(start, SessionOpenError::Start(NoNumber)), "{start}");
    assert!(disk.names().is_empty(), "{:?}", disk.names());
    let (session, resumed) = Adding::open_or_create(&directory, b"100", settings()).unwrap();
    assert!(resumed.is_none());
    session.close().unwrap();
    drop(session);
    let (session, resumed) = Adding::open_or_create(&directory, b"another setup", settings()).unwrap();
    assert_eq!(resumed.map(|resumed| resumed.commands), Some(0));
    assert_eq!(session.durable_end(Side::Input), Seq::new(1), "the setup of the first time counts");
    drop(session);
    let again = Adding::create_new(&directory, b"100", settings()).unwrap_err();
    assert!(matches!(again, SessionOpenError::AlreadyExists { input: 1, events: 0 }), "{again}");
    assert!(Adding::open(&directory, settings()).is_ok());
}

#[test]
fn a_panic_of_the_engine_stops_the_session_and_everybody_is_told() {
    let disk = TestDisk::new();
    let session = begin(&disk);
    disk.hold_syncs();
    let tickets = [&b"a"[..], b"panic", b"b"].map(|command| session.submit(command).unwrap());
    disk.release_syncs();
    let answers = tickets.map(SessionTicket::wait);
    for answer in &answers[1..] {
        let stopped = matches!(answer, Err(SubmitError::Stopped(SessionStopped::Panicked { command })) if command.get() == 2);
        assert!(stopped, "{answer:?}");
    }
    assert!(matches!(session.submit(b"c"), Err(SubmitError::Stopped(SessionStopped::Panicked { .. }))));
    assert!(matches!(session.close(), Err(SessionStopped::Panicked { .. })));
}

#[test]
fn a_full_disk_refuses_a_command_and_the_session_goes_on() {
    let disk = TestDisk::new();
    let session = begin(&disk);
    session.submit(b"a").unwrap().wait().unwrap();
    disk.inject("write input", Fault::Error(ENOSPC), 1);
    let refused = session.submit(b"b").unwrap().wait().unwrap_err();
    assert!(matches!(refused, SubmitError::Refused(AppendError::NoSpace)), "{refused}");
    let answer = session.submit(b"c").unwrap().wait().unwrap();
    assert_eq!((answer.command, answer.events.len()), (Seq::new(2), 2), "the number is given out again");
    session.close().unwrap();
    assert_eq!(check(&disk).unwrap().commands, 2);
}

/// What the disk holds of a command is unknown once a sync of the input failed: it is not said to be refused, and here it is
/// there after all.
#[test]
fn an_input_that_stops_refuses_nothing() {
    for as_task in [false, true] {
        let disk = TestDisk::new();
        let session = begin(&disk);
        disk.inject("sync input", Fault::Error(EIO), 1);
        let mut ticket = session.submit(b"a").unwrap();
        let answer = if as_task {
            loop {
                match Pin::new(&mut ticket).poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(answer) => break answer,
                    Poll::Pending => thread::yield_now(),
                }
            }
        } else {
            ticket.wait()
        };
        let stopped = matches!(answer, Err(SubmitError::Stopped(SessionStopped::Poisoned(_))));
        assert!(stopped, "{answer:?}");
        assert!(session.close().is_err());
        drop(session);
        let (_, resumed) = Adding::open(&Directory::on(disk.clone()), settings()).unwrap();
        assert_eq!(resumed.commands, 1);
    }
}

#[test]
fn a_log_that_cannot_be_written_stops_the_session_and_opening_appends_what_is_missing() {
    for (call, fault) in [("write events", ENOSPC), ("write events", EIO), ("sync events", EIO)] {
        let disk = TestDisk::new();
        let session = begin(&disk);
        session.submit(b"a").unwrap().wait().unwrap();
        disk.inject(call, Fault::Error(fault), 1);
        let stopped = session.submit(b"b").unwrap().wait().unwrap_err();
        assert!(matches!(stopped, SubmitError::Stopped(_)), "{stopped}");
        assert!(session.close().is_err());
        drop(session);
        let (session, resumed) = Adding::open(&Directory::on(disk.clone()), settings()).unwrap();
        assert_eq!((resumed.commands, resumed.events), (2, 3), "{call} {fault}");
        session.close().unwrap();
        assert_eq!(check(&disk).unwrap().events, 3);
    }
}

#[test]
fn who_submits_more_than_may_be_in_flight_waits() {
    let disk = TestDisk::new();
    let few = SessionSettings { unanswered_max: 2, ..settings() };
    let session = Adding::create_new(&Directory::on(disk.clone()), b"0", few).unwrap();
    disk.hold_syncs();
    let first = [b"a", b"b"].map(|command| session.submit(command).unwrap());
    let third = {
        let session = session.clone();
        thread::spawn(move || session.submit(b"c").unwrap().wait().unwrap().command)
    };
    disk.wait_for_held_sync();
    assert_eq!(session.unanswered(), 2);
    disk.release_syncs();
    first.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
    assert_eq!(third.join().unwrap(), Seq::new(3));
}

/// Does something once, when it is woken.
struct Once(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::task::Wake for Once {
    fn wake(self: Arc<Self>) {
        let wakes = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(wakes) = wakes {
            wakes();
        }
    }
}

fn when_woken(does: impl FnOnce() + Send + 'static) -> Waker {
    Waker::from(Arc::new(Once(Mutex::new(Some(Box::new(does))))))
}

/// A session, and the ticket of a command that was polled with this waker: while the command is being recorded, or
/// while its events are. Then it goes on.
fn polled(
    disk: &TestDisk,
    while_events: bool,
    waker: impl FnOnce(Adding) -> Waker,
) -> SessionTicket<TestDisk> {
    let session = begin(disk);
    let (reach, reached) = channel();
    let (go, goes) = channel::<()>();
    let call = if while_events { "write events" } else { "write input" };
    disk.before_next(call, move || {
        reach.send(()).unwrap();
        goes.recv().unwrap();
    });
    let mut ticket = session.submit(b"a").unwrap();
    reached.recv().unwrap();
    let waker = waker(session);
    assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
    go.send(()).unwrap();
    ticket
}

#[test]
fn a_waker_that_panics_stops_nobody() {
    for while_events in [false, true] {
        let disk = TestDisk::new();
        let mut session = None;
        let ticket = polled(&disk, while_events, |of| {
            session = Some(of);
            when_woken(|| panic!("a task's own fault"))
        });
        assert_eq!(ticket.wait().unwrap().command, Seq::new(1));
        let session = session.unwrap();
        assert_eq!(session.submit(b"c").unwrap().wait().unwrap().command, Seq::new(2));
        session.close().unwrap();
    }
}

#[test]
fn whoever_is_woken_can_drop_the_last_handle() {
    for while_events in [false, true] {
        let disk = TestDisk::new();
        let (dropped, is_dropped) = channel();
        let ticket = polled(&disk, while_events, |session| {
            when_woken(move || {
                drop(session);
                dropped.send(()).unwrap();
            })
        });
        is_dropped.recv().unwrap();
        assert_eq!(ticket.wait().unwrap().command, Seq::new(1), "what was submitted is answered");
        // The close goes on by itself.
        let directory = Directory::on(disk.clone());
        while Adding::open(&directory, settings()).is_err() {
            thread::yield_now();
        }
    }
}

#[test]
fn two_who_close_at_once_both_wait_for_every_answer() {
    for _ in 0..20 {
        let disk = TestDisk::new();
        let session = begin(&disk);
        let tickets: Vec<_> = (0..50).map(|n| session.submit(format!("{n}").as_bytes()).unwrap()).collect();
        let closers =
            [session.clone(), session.clone()].map(|session| thread::spawn(move || session.close()));
        closers.into_iter().for_each(|closer| closer.join().unwrap().unwrap());
        tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
        assert_eq!(check(&disk).unwrap().commands, 50);
    }
}

#[test]
fn a_journal_that_is_lost_is_asked_for_and_nothing_is_made_in_its_place() {
    let disk = TestDisk::new();
    let session = begin(&disk);
    session.submit(b"a").unwrap().wait().unwrap();
    session.close().unwrap();
    drop(session);
    let (input, log) = ("input-00000000000000000000.seg", "events-00000000000000000001.seg");
    let [input_bytes, log_bytes] = [input, log].map(|name| disk.read(name));
    disk.put(log, b"");
    assert!(matches!(refused(&disk, settings()), SessionOpenError::EventsMissing { commands: 1 }));
    disk.put(log, &log_bytes);
    for lost in [true, false] {
        if lost {
            std::fs::remove_file(disk.path().join(input)).unwrap();
        } else {
            disk.put(input, b"");
        }
        let names = disk.names();
        assert!(matches!(refused(&disk, settings()), SessionOpenError::InputMissing));
        let again = Adding::create_new(&Directory::on(disk.clone()), b"100", settings()).unwrap_err();
        assert!(matches!(again, SessionOpenError::InputMissing), "{again}");
        assert_eq!(disk.names(), names);
    }
    disk.put(input, &input_bytes);
    assert!(Adding::open(&Directory::on(disk.clone()), settings()).is_ok());
}

#[test]
fn beside_a_session_that_runs_what_is_recorded_is_checked() {
    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    let session = Session::<Adder>::create_new(&directory, b"0", settings()).unwrap();
    let writer = {
        let session = session.clone();
        thread::spawn(move || {
            for n in 0..300 {
                session.submit(format!("{n}").as_bytes()).unwrap().wait().unwrap();
            }
        })
    };
    let mut checks = 0;
    while checks == 0 || !writer.is_finished() {
        replay_check::<Adder>(root.path(), |_, _| {}).unwrap();
        checks += 1;
    }
    writer.join().unwrap();
    session.close().unwrap();
    assert_eq!(replay_check::<Adder>(root.path(), |_, _| {}).unwrap().commands, 300);
}

/// A closed session of so many commands in a directory.
fn recorded_in(path: &std::path::Path, commands: u64) {
    let directory = Directory::open(path).unwrap();
    let (session, _) = Session::<Adder>::open_or_create(&directory, b"0", settings()).unwrap();
    for n in 0..commands {
        session.submit(format!("{n}").as_bytes()).unwrap().wait().unwrap();
    }
    session.close().unwrap();
}

/// Makes the journal `events` again, with these events from this number on.
fn with_events_of(path: &std::path::Path, first: u64, keep: impl Fn(u64) -> bool) {
    let directory = Directory::open(path).unwrap();
    let mut kept = Vec::new();
    {
        let (events, _) = directory.journal::<Pryj>(EVENTS, crate::config()).unwrap();
        let mut reader = events.reader(FIRST_EVENT, ReadUpTo::Durable);
        while let crate::ReadStep::Records(batch) =
            reader.next_batch(Some(std::time::Duration::ZERO)).unwrap()
        {
            kept.extend(
                batch.records().filter(|event| keep(event.seq.get())).map(|event| event.payload.to_vec()),
            );
        }
        events.close().unwrap();
    }
    for entry in std::fs::read_dir(path).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with(EVENTS) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    if first == 0 {
        kept.insert(0, b"forged".to_vec());
    }
    let config = strandline_core::Config { first_seq: Some(Seq::new(first)), ..crate::config() };
    let (events, _) = directory.journal::<Pryj>(EVENTS, config).unwrap();
    events.append_all(kept.iter().map(Vec::as_slice)).unwrap();
    events.close().unwrap();
}

#[test]
fn a_log_that_is_short_is_a_difference_whoever_holds_the_lock() {
    let root = tempfile::tempdir().unwrap();
    recorded_in(root.path(), 6);
    let all = replay_check::<Adder>(root.path(), |_, _| {}).unwrap().events;
    with_events_of(root.path(), 1, |seq| seq < all);
    for holder in [None, Some(Directory::open(root.path()).unwrap())] {
        let error = replay_check::<Adder>(root.path(), |_, _| {}).unwrap_err();
        let found = error.difference().unwrap_or_else(|| panic!("{error}"));
        assert_eq!((found.event.get(), found.recorded.is_none()), (all, true), "{}", holder.is_some());
    }
}

#[test]
fn two_checks_are_not_in_the_way_of_each_other_nor_of_a_session() {
    let root = tempfile::tempdir().unwrap();
    recorded_in(root.path(), 6);
    let all = replay_check::<Adder>(root.path(), |_, _| {}).unwrap().events;
    with_events_of(root.path(), 1, |seq| seq < all);
    let checks: Vec<_> = (0..3)
        .map(|_| {
            let path = root.path().to_path_buf();
            thread::spawn(move || {
                for _ in 0..20 {
                    assert!(replay_check::<Adder>(&path, |_, _| {}).is_err());
                }
            })
        })
        .collect();
    for check in checks {
        check.join().unwrap();
    }
}

#[test]
fn a_session_that_comes_and_goes_during_a_check_makes_no_difference() {
    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    // Where there is room behind the end of a file, what comes into it is seen.
    let roomy =
        || strandline_core::Config { segment_bytes: 1 << 20, reserve_bytes: 1 << 20, ..crate::config() };
    let settings = SessionSettings { input: roomy(), events: roomy(), ..SessionSettings::default() };
    for when in 1..4 {
        let opened = Session::<Adder>::open_or_create(&directory, b"0", settings.clone());
        let mut running = Some(opened.unwrap().0);
        let mut calls = 0;
        let checked = replay_check::<Adder>(root.path(), |_, _| {
            calls += 1;
            if let Some(session) = running.take_if(|_| calls == when) {
                for n in 0..5 {
                    session.submit(format!("{n}").as_bytes()).unwrap().wait().unwrap();
                }
                session.close().unwrap();
            }
        });
        checked.unwrap_or_else(|error| panic!("after {when} reads: {error}"));
        assert!(calls >= 2, "a read of each journal");
    }
}

#[test]
fn a_log_with_an_event_before_the_first_is_refused() {
    let root = tempfile::tempdir().unwrap();
    recorded_in(root.path(), 6);
    with_events_of(root.path(), 0, |_| true);
    let error = replay_check::<Adder>(root.path(), |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("begins with record 0"), "{error}");
    let directory = Directory::open(root.path()).unwrap();
    let error = Session::<Adder>::open(&directory, settings()).unwrap_err();
    assert!(matches!(error, SessionOpenError::Playback(PlaybackError::BeginsEarly { .. })), "{error}");
}
