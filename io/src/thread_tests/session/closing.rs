//! The close of a session while everybody is at work.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use strandline_core::Seq;

use super::{
    MemoryDisk, TestSession, Told, begin_with, either, explore, payload, resume_when_free, settings, spawn,
    wait,
};
use crate::session::{Session, SessionSettings, SessionStopped, Side, SubmitError};
use crate::thread_tests::tasks::block_on;
use crate::{Directory, ReadStep};

/// Submits until the session is closed, and holds the tickets until then. What was accepted is answered.
fn submit_until_closed(thread: u32, session: &TestSession, disk: &MemoryDisk, told: &Told) {
    let mut tickets = Vec::new();
    for n in 0..3 {
        match session.submit(&payload(thread, n)) {
            Ok(ticket) => tickets.push((payload(thread, n), ticket)),
            Err(SubmitError::Stopped(SessionStopped::Closed)) => break,
            Err(other) => panic!("{other}"),
        }
    }
    for (command, ticket) in tickets {
        let answer = wait(ticket);
        assert!(answer.is_ok(), "accepted, and then {answer:?}");
        told.note(disk, &command, &answer);
    }
}

/// Two close at once, commands are unanswered, and others wait for room. Each close returns when all is over.
#[test]
fn a_close_answers_all_that_was_accepted() {
    explore("closing a session", 1_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let directory = Directory::on(disk.clone());
        let few = SessionSettings { unanswered_max: 2, ..settings() };
        let session: TestSession = Session::create_new(&directory, b"setup", few).unwrap();
        let producers = [1, 2].map(|thread| {
            let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
            spawn(move || submit_until_closed(thread, &mine, &held, &noted))
        });
        let closers = [(); 2].map(|()| {
            let (mine, again) = (session.clone(), directory.clone());
            spawn(move || {
                mine.close().unwrap();
                assert_eq!(mine.unanswered(), 0);
                // Both names are free, and nothing of it goes on.
                match Session::<super::Herald, _>::open(&again, settings()) {
                    Ok((session, _)) => drop(session),
                    // The other one was here first.
                    Err(error) => assert!(error.to_string().contains("open"), "{error}"),
                }
            })
        });
        for producer in producers {
            assert_eq!(producer.join().unwrap(), Some(()));
        }
        for closer in closers {
            assert_eq!(closer.join().unwrap(), Some(()));
        }
        assert!(matches!(session.stopped(), Some(SessionStopped::Closed)));
        let late = session.submit(b"<late>").map(drop);
        assert!(matches!(late, Err(SubmitError::Stopped(SessionStopped::Closed))), "{late:?}");
        assert!(disk.names().iter().all(|name| name.ends_with(".seg")), "{:?}", disk.names());
        assert_eq!(told.is_kept_by(&disk), told.len() as u64);
    });
}

/// The last handle goes while threads and tasks wait: what was submitted is answered, and the names are free then.
#[test]
fn the_last_handle_goes_while_others_wait() {
    explore("the last handle on a session", 1_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let session = begin_with(&disk, settings());
        let mut reader = session.reader(Side::Events, Seq::new(1));
        let waiting = [1, 2].map(|thread| {
            let (held, noted) = (disk.clone(), told.clone());
            let ticket = session.submit(&payload(thread, 0)).unwrap();
            spawn(move || noted.note(&held, &payload(thread, 0), &wait(ticket)))
        });
        let follows = spawn(move || {
            let mut events = 0;
            loop {
                match reader.next_batch(None).unwrap() {
                    ReadStep::Records(batch) => events += batch.records().count(),
                    ReadStep::Closed => return events,
                    other => panic!("{other:?}"),
                }
            }
        });
        drop(session);
        for one in waiting {
            assert_eq!(one.join().unwrap(), Some(()));
        }
        assert_eq!(follows.join().unwrap(), Some(3));
        assert_eq!((told.len(), told.is_kept_by(&disk)), (2, 2));
    });
}

/// A task that owns a handle: when it is woken it closes the session, or gives the handle up.
struct Closes {
    session: shuttle::sync::Mutex<Option<TestSession>>,
    lets_go: bool,
}

impl Closes {
    fn waker(session: TestSession) -> Waker {
        Waker::from(Arc::new(Self { session: shuttle::sync::Mutex::new(Some(session)), lets_go: either() }))
    }
}

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session.filter(|_| !self.lets_go) {
            session.close().unwrap();
        }
    }
}

/// Whoever wakes a task may be the one that a close waits for: the engine's thread, who leads a commit of either journal, or
/// a housekeeping thread. And another close may be waiting for that one already.
#[test]
fn whoever_wakes_a_task_can_close_the_session() {
    explore("a close by a waker", 2_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let directory = Directory::on(disk.clone());
        let session: TestSession = Session::create_new(&directory, b"setup", settings()).unwrap();
        let mut polled = pin!(session.submit(&payload(1, 0)).unwrap());
        let side = if either() { Side::Input } else { Side::Events };
        let mut reader = session.reader(side, session.durable_end(side));
        let (as_ticket, as_reader) = (Closes::waker(session.clone()), Closes::waker(session.clone()));
        let answer = polled.as_mut().poll(&mut Context::from_waker(&as_ticket));
        let read = reader.poll_batch(&mut Context::from_waker(&as_reader));
        assert!(read.is_pending() || matches!(read, Poll::Ready(Ok(ReadStep::Records(_)))), "{read:?}");
        drop((as_ticket, as_reader));
        // May come too late to be accepted.
        let other = session.submit(&payload(1, 1));
        let closes = either().then(|| {
            let mine = session.clone();
            spawn(move || mine.close().unwrap())
        });
        drop(session);
        match other {
            Ok(ticket) => told.note(&disk, &payload(1, 1), &wait(ticket)),
            Err(other) => assert!(matches!(other, SubmitError::Stopped(SessionStopped::Closed)), "{other}"),
        }
        let answer = match answer {
            Poll::Ready(answer) => answer,
            Poll::Pending => block_on(|context| polled.as_mut().poll(context)),
        };
        told.note(&disk, &payload(1, 0), &answer);
        if let Some(closes) = closes {
            assert_eq!(closes.join().unwrap(), Some(()));
        }
        resume_when_free(&directory).0.close().unwrap();
        assert_eq!(told.is_kept_by(&disk), told.len() as u64, "what was accepted was answered");
    });
}
