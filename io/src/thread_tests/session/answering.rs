//! Who submits is told of its own command, once, and not before all of it is durable.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use strandline_core::Seq;

use super::{MemoryDisk, TestSession, Told, begin, either, explore, payload, resume_when_free, spawn, wait};
use crate::Directory;
use crate::session::{Session, Side};
use crate::sync::thread::Injected;
use crate::thread_tests::tasks::block_on;

/// One waits for each answer, one holds tickets and asks in the other order, one drops what it is given.
#[test]
fn each_producer_is_told_of_its_own_commands() {
    explore("producers", 1_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let session = begin(&disk);
        let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
        let one = spawn(move || {
            for n in 0..2 {
                let answer = noted.run(&held, &mine, &payload(1, n)).unwrap();
                assert!(mine.durable_end(Side::Input) > answer.command);
                assert!(mine.durable_end(Side::Events) >= answer.first_event);
            }
        });
        let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
        let two = spawn(move || {
            let [first, second] = [0, 1].map(|n| mine.submit(&payload(2, n)).unwrap());
            assert!(first.command() < second.command());
            noted.note(&held, &payload(2, 1), &wait(second));
            let answer = pin!(first).poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(answer) = answer else { panic!("the second was answered before the first") };
            noted.note(&held, &payload(2, 0), &answer);
        });
        drop(session.submit(&payload(3, 0)).unwrap());
        told.run(&disk, &session, &payload(3, 1)).unwrap();
        one.join().unwrap();
        two.join().unwrap();
        session.close().unwrap();
        drop(session);
        assert_eq!((told.len(), told.is_kept_by(&disk)), (5, 6));
    });
}

/// What a task's waker does when it is woken, and when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Nothing,
    Panic,
    Close,
    /// Gives up its handle, which may be the last.
    LetGo,
}

struct Foreign {
    session: shuttle::sync::Mutex<Option<TestSession>>,
    woken: Does,
    dropped: Does,
}

impl Foreign {
    fn act(&self, does: Does) {
        let held = || self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = held().take();
        match does {
            Does::Nothing => *held() = session,
            Does::Panic => resume_unwind(Box::new(Injected)),
            Does::Close => session.map_or(Ok(()), |session| session.close()).unwrap(),
            Does::LetGo => drop(session),
        }
    }
}

impl Wake for Foreign {
    fn wake(self: Arc<Self>) {
        self.act(self.woken);
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if self.dropped != Does::Panic {
            self.act(self.dropped);
        }
    }
}

/// A task is polled with one waker and then with another. The first one is foreign code too when it is dropped; the second
/// one is woken.
#[test]
fn the_waker_that_was_given_last_is_woken_whatever_the_one_before_does() {
    explore("another waker", 2_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let directory = Directory::on(disk.clone());
        let session = Session::create_new(&directory, b"setup", super::settings()).unwrap();
        let does = || match (either(), either()) {
            (false, false) => Does::Nothing,
            (false, true) => Does::Panic,
            (true, false) => Does::Close,
            (true, true) => Does::LetGo,
        };
        let mut ticket = pin!(session.submit(&payload(1, 0)).unwrap());
        let held = shuttle::sync::Mutex::new(Some(session));
        let first = Waker::from(Arc::new(Foreign { session: held, woken: does(), dropped: does() }));
        let mut polled = ticket.as_mut().poll(&mut Context::from_waker(&first));
        if either() && polled.is_pending() {
            shuttle::thread::yield_now();
            polled = ticket.as_mut().poll(&mut Context::from_waker(&first));
        }
        drop(first);
        let answer = match polled {
            Poll::Ready(answer) => answer,
            Poll::Pending => block_on(|context| ticket.as_mut().poll(context)),
        };
        told.note(&disk, &payload(1, 0), &answer);
        assert_eq!(answer.unwrap().command, Seq::new(1), "what was submitted is answered");
        // Whoever closes it in the end gives the names back.
        resume_when_free(&directory).0.close().unwrap();
        assert_eq!(told.is_kept_by(&disk), 1);
    });
}

/// Wakers that panic, wherever their tasks wait: whoever wakes them goes on, and so do all others.
#[test]
fn a_waker_that_panics_stops_nobody() {
    explore("a panicking waker of a session", 1_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let session = begin(&disk);
        let panics = || {
            let session = shuttle::sync::Mutex::new(None);
            Waker::from(Arc::new(Foreign { session, woken: Does::Panic, dropped: Does::Nothing }))
        };
        let mut polled = pin!(session.submit(&payload(1, 0)).unwrap());
        let mut answer = polled.as_mut().poll(&mut Context::from_waker(&panics()));
        let producers = [2, 3].map(|thread| {
            let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
            spawn(move || noted.run(&held, &mine, &payload(thread, 0)).unwrap())
        });
        if answer.is_pending() {
            answer = polled.as_mut().poll(&mut Context::from_waker(&panics()));
        }
        told.run(&disk, &session, &payload(1, 1)).unwrap();
        for producer in producers {
            assert!(producer.join().unwrap().is_some(), "who leads is not the one who panics");
        }
        let answer = match answer {
            Poll::Ready(answer) => answer,
            Poll::Pending => block_on(|context| polled.as_mut().poll(context)),
        };
        told.note(&disk, &payload(1, 0), &answer);
        session.close().unwrap();
        drop(session);
        assert_eq!((told.len(), told.is_kept_by(&disk)), (4, 4));
    });
}
