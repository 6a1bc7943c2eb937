//! A journal of a session fails, fills up or panics, or the engine does: who is told what.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::rand::{Rng, thread_rng};
use strandline_core::Seq;

use super::{
    MemoryDisk, PANIC, TestSession, Told, begin, begin_with, explore, payload, settings, spawn, wait,
};
use crate::session::{EVENTS, INPUT, SessionSettings, SessionStopped, SubmitError};
use crate::sync::thread::Injected;
use crate::test_disk::{EIO, ENOSPC};
use crate::thread_tests::memory_disk::Fault;
use crate::{AppendError, Poisoned};

/// Submits and waits, twice; gives whether it was told that the session stopped.
fn run_until_stopped(thread: u32, (disk, session, told): &(MemoryDisk, TestSession, Told)) -> bool {
    let mut has_stopped = false;
    for n in 0..2 {
        let was_stopped = session.stopped().is_some();
        let answer = told.run(disk, session, &payload(thread, n));
        has_stopped |= matches!(answer, Err(SubmitError::Stopped(_)));
        assert!(answer.is_err() || !was_stopped, "answered after the session had stopped");
        assert!(!matches!(answer, Err(SubmitError::Refused(_))), "{answer:?}");
    }
    has_stopped
}

/// Producers that submit and wait on a disk that meets `fault` at some call of a journal; then the session is closed.
/// Everybody is told, and the same once the session has stopped. Gives why it stopped.
fn meets(journal: &'static str, call: &'static str, fault: Fault) -> SessionStopped {
    let (disk, told) = (MemoryDisk::default(), Told::default());
    let few = SessionSettings { unanswered_max: thread_rng().gen_range(1..4), ..settings() };
    let session = begin_with(&disk, few);
    disk.inject_in(journal, call, thread_rng().gen_range(0..4), fault);
    let producers = [1, 2].map(|thread| {
        let all = (disk.clone(), session.clone(), told.clone());
        spawn(move || run_until_stopped(thread, &all))
    });
    let tickets = [0, 1].map(|n| (payload(3, n), session.submit(&payload(3, n))));
    for (command, ticket) in tickets {
        // A thread that waits may lead, and meet the panic.
        match catch_unwind(AssertUnwindSafe(|| ticket.and_then(wait))) {
            Ok(answer) => told.note(&disk, &command, &answer),
            Err(panic) => assert!(panic.is::<Injected>()),
        }
    }
    let told_of_it = producers.map(|producer| producer.join().unwrap() == Some(true)).contains(&true);
    match catch_unwind(AssertUnwindSafe(|| session.close())) {
        Ok(closed) => assert!(closed.is_err() || !told_of_it, "{:?}", told.stopped()),
        Err(panic) => {
            assert!(panic.is::<Injected>(), "the close led, and met the panic");
            assert!(session.close().is_err(), "it stopped before the end");
        }
    }
    let late = session.submit(b"<late>").map(drop);
    assert!(matches!(late, Err(SubmitError::Stopped(_))), "{late:?}");
    let stopped = session.stopped().unwrap();
    let is_close = matches!(stopped, SessionStopped::Closed);
    assert!(!is_close || told.stopped().is_none(), "closed, and {:?} was told before", told.stopped());
    drop(session);
    told.is_kept_by(&disk);
    stopped
}

/// Runs the same with a fault that stops a journal, if the session does not end before it.
fn stops(name: &str, times: usize, journal: &'static str, call: &'static str, fault: Fault) {
    explore(name, times, move || {
        let stopped = meets(journal, call, fault);
        assert!(matches!(stopped, SessionStopped::Poisoned(_) | SessionStopped::Closed), "{stopped}");
        let is_abandoned = matches!(stopped, SessionStopped::Poisoned(Poisoned::Abandoned));
        assert!(!is_abandoned || fault == Fault::Panic, "{stopped}");
    });
}

#[test]
fn an_input_that_stops_is_told_to_everybody_who_waits() {
    stops("a sync of the input that fails", 1_000, INPUT, "sync", Fault::Error(EIO));
    stops("a write of the input that fails", 500, INPUT, "write", Fault::Error(EIO));
    stops("a sync of the input that panics", 500, INPUT, "sync", Fault::Panic);
}

#[test]
fn events_that_cannot_be_recorded_stop_the_session_and_everybody_is_told() {
    stops("a sync of the events that fails", 1_000, EVENTS, "sync", Fault::Error(EIO));
    explore("no space for events", 1_000, || {
        let stopped = meets(EVENTS, "write", Fault::Error(ENOSPC));
        let no_space =
            matches!(stopped, SessionStopped::Events(AppendError::NoSpace) | SessionStopped::Closed);
        assert!(no_space, "{stopped}");
    });
}

/// The engine's thread dies in the middle of a commit of events, for which it led.
#[test]
fn a_disk_that_panics_under_the_engine_is_told_to_everybody() {
    stops("a sync of the events that panics", 1_000, EVENTS, "sync", Fault::Panic);
    stops("a write of the events that panics", 500, EVENTS, "write", Fault::Panic);
}

/// A void takes the numbers back of all that is in flight: who is told so is not recorded, and the others are answered, each
/// with what is its own.
#[test]
fn an_input_without_space_refuses_whom_it_takes_and_answers_the_rest() {
    explore("no space for commands", 2_000, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let session = begin(&disk);
        for _ in 0..2 {
            disk.inject_in(INPUT, "write", thread_rng().gen_range(0..4), Fault::Error(ENOSPC));
        }
        let producers = [1, 2, 3].map(|thread| {
            let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
            spawn(move || {
                let held_back = (thread == 3).then(|| (payload(4, 0), mine.submit(&payload(4, 0)).unwrap()));
                for n in 0..2 {
                    let answer = noted.run(&held, &mine, &payload(thread, n));
                    let of_space = matches!(answer, Ok(_) | Err(SubmitError::Refused(AppendError::NoSpace)));
                    assert!(of_space, "{answer:?}");
                }
                if let Some((command, ticket)) = held_back {
                    noted.note(&held, &command, &wait(ticket));
                }
            })
        });
        for producer in producers {
            assert_eq!(producer.join().unwrap(), Some(()));
        }
        assert!(session.stopped().is_none());
        while told.run(&disk, &session, b"<again>").is_err() {
            told.inner.lock().unwrap().refused.pop();
        }
        session.close().unwrap();
        drop(session);
        assert_eq!(told.len() + told.refused(), 8, "each ended in one way");
        assert_eq!(told.is_kept_by(&disk), told.len() as u64);
    });
}

/// The engine panics at a command while others are in flight: who comes before it is answered or told, who comes after it is
/// told, and nobody waits for ever.
#[test]
fn an_engine_that_panics_is_told_to_everybody() {
    explore("an engine that panics", 1_000, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let few = SessionSettings { unanswered_max: 2, ..settings() };
        let session = begin_with(&disk, few);
        let producers = [1, 2].map(|thread| {
            let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
            spawn(move || {
                for n in 0..2 {
                    // Who comes after the panic is told of it, which is looked at below.
                    let _ = noted.run(&held, &mine, &payload(thread, n));
                }
            })
        });
        let at = match session.submit(PANIC) {
            Ok(ticket) => ticket.command(),
            Err(other) => panic!("{other}"),
        };
        for producer in producers {
            assert_eq!(producer.join().unwrap(), Some(()));
        }
        let is_told = |stopped: &SessionStopped| match stopped {
            SessionStopped::Panicked { command } => assert_eq!(*command, at),
            other => panic!("{other}"),
        };
        is_told(&session.close().unwrap_err());
        is_told(&session.stopped().unwrap());
        told.stopped().iter().for_each(is_told);
        assert!(told.inner.lock().unwrap().answered.keys().all(|seq| Seq::new(*seq) < at));
        assert_eq!(told.refused(), 0);
    });
}
