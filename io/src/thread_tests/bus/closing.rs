//! The close of a bus while everybody is at work.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use strandline_core::{Retention, Seq};

use super::{
    Follower, KEEPS_ALL, MemoryDisk, TestBus, draft, either, explore, open, open_with, payload, settings,
    spawn,
};
use crate::AppendError;
use crate::Directory;
use crate::bus::{EventBus, EventBusError, Received, Subscribe};

#[test]
fn everybody_who_waits_is_told_of_the_close() {
    explore("closing a bus", 1_500, || {
        let disk = MemoryDisk::default();
        let directory = Directory::on(disk.clone());
        let (bus, _) = EventBus::open(&directory, settings(KEEPS_ALL)).unwrap();
        let waits = [Subscribe::durable("a"), Subscribe::default()].map(|request| {
            let mut follower = Follower::new(bus.subscribe(request).unwrap(), 1, Some(&disk));
            spawn(move || {
                let told = follower.follow(u64::MAX);
                assert!(matches!(told, Some(Received::Closed)), "{told:?}");
                let again = super::receive(&mut follower.subscription, either());
                assert!(matches!(again, Received::Closed | Received::Events(_)), "{again:?}");
            })
        });
        let mine = bus.clone();
        let publishes = spawn(move || {
            for n in 0..3u64 {
                match mine.publish(draft(&payload(1, 0))) {
                    Ok(seq) => assert_eq!(seq, Seq::new(n + 1)),
                    Err(AppendError::Closed) => return n,
                    Err(other) => panic!("{other}"),
                }
            }
            3
        });
        let mine = bus.clone();
        let closes = spawn(move || mine.close().unwrap());
        shuttle::thread::yield_now();
        bus.close().unwrap();
        for one in waits {
            one.join().unwrap();
        }
        closes.join().unwrap();
        let published = publishes.join().unwrap().unwrap();
        // Both names are free, and nothing of it goes on.
        let (again, report) = EventBus::open(&directory, settings(KEEPS_ALL)).unwrap();
        assert_eq!(report.events.end, Seq::new(published + 1));
        again.close().unwrap();
    });
}

/// What was accepted is on the disk once the close has returned, also where it came in the middle of it.
#[test]
fn an_acknowledgement_that_nobody_waits_for_is_not_forgotten_by_a_close() {
    explore("a lazy acknowledgement and a close", 2_000, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        for n in 0..3 {
            bus.publish(draft(&payload(1, n))).unwrap();
        }
        let subscription = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        let mut follower = Follower::new(subscription, 1, Some(&disk));
        while follower.next < 4 {
            follower.follow(4);
        }
        let acknowledges = spawn(move || {
            let mut accepted = 0;
            for sequence in 1..=3 {
                match follower.subscription.acknowledge_soon(Seq::new(sequence)) {
                    Ok(()) => accepted = sequence,
                    Err(EventBusError::Closed) => break,
                    Err(other) => panic!("{other}"),
                }
            }
            accepted
        });
        shuttle::thread::yield_now();
        bus.close().unwrap();
        let accepted = acknowledges.join().unwrap().unwrap();
        assert_eq!(super::after_power_loss(&disk).pointer, Seq::new(accepted));
    });
}

/// Events are too old at once, and those of a subscriber too: whatever the keeper is doing, the close ends it.
#[test]
fn a_close_ends_what_the_keeper_does() {
    explore("a close and the keeper", 1_000, || {
        let disk = MemoryDisk::default();
        let directory = Directory::on(disk.clone());
        let ages = Retention { age_ms_max: Some(1), ..KEEPS_ALL };
        let (bus, _) = EventBus::open(&directory, settings(ages)).unwrap();
        let subscription = bus.subscribe(Subscribe::durable("a")).unwrap();
        let mut follower = Follower::new(subscription, 1, None);
        let follows = spawn(move || {
            assert!(matches!(follower.follow(u64::MAX), Some(Received::Closed)));
        });
        for n in 0..3 {
            bus.publish(draft(&payload(1, n))).unwrap();
        }
        bus.close().unwrap();
        follows.join().unwrap();
        let (first, names) = (bus.events().first(), disk.names());
        assert!(names.iter().all(|name| name.ends_with(".seg")), "{names:?}");
        let bus = open_with(&disk.after_power_loss(), settings(KEEPS_ALL));
        assert_eq!((bus.events().first(), bus.events().next_seq()), (first, Seq::new(4)));
        // Everything is still there, or is a gap that was recorded.
        let again = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        assert!(Follower::new(again, 1, None).follow(4).is_none());
        bus.close().unwrap();
    });
}

/// Publishers wait for room that nobody will make any more.
#[test]
fn a_close_does_not_wait_for_room() {
    explore("a close and no room", 500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        let publishers = [1, 2].map(|_| {
            let mine = bus.clone();
            spawn(move || {
                for _ in 0..12 {
                    match mine.publish(draft(&[b'x'; 60_000])) {
                        Ok(_) => {}
                        Err(AppendError::Closed | AppendError::NoSpace) => return,
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        });
        while bus.events().durable_end() < Seq::new(12) {
            shuttle::thread::yield_now();
        }
        bus.close().unwrap();
        for publisher in publishers {
            publisher.join().unwrap();
        }
    });
}

/// A task that owns a handle on the bus, and gives it up when it is woken.
struct LastHandle(shuttle::sync::Mutex<Option<TestBus>>);

impl Wake for LastHandle {
    fn wake(self: Arc<Self>) {
        let handle = self.0.lock().unwrap().take();
        drop(handle);
    }
}

/// Whoever wakes a task may be the one that the close waits for: the keeper, or who leads a commit.
#[test]
fn whoever_wakes_a_task_can_drop_the_last_handle() {
    explore("the last handle on a bus", 1_500, || {
        let disk = MemoryDisk::default();
        let directory = Directory::on(disk.clone());
        let (bus, _) = EventBus::open(&directory, settings(KEEPS_ALL)).unwrap();
        let events = bus.events().clone();
        let durable = bus.subscribe(Subscribe::durable("a")).unwrap();
        let mut subscription = bus.subscribe(Subscribe::default()).unwrap();
        let mut follower = Follower::new(durable, 1, Some(&disk));
        bus.publish(draft(&payload(1, 0))).unwrap();
        assert!(follower.follow(2).is_none());
        assert!(matches!(super::receive(&mut subscription, either()), Received::Events(_)));
        if either() {
            // The keeper records it, which is news.
            follower.subscription.acknowledge_soon(Seq::new(1)).unwrap();
        }
        let waker = Waker::from(Arc::new(LastHandle(shuttle::sync::Mutex::new(Some(bus)))));
        assert!(subscription.poll_recv(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        let appends = spawn(move || {
            let appended = events.append_nowait(draft(&payload(1, 1))).and_then(crate::Ticket::wait);
            assert!(matches!(appended, Ok(_) | Err(AppendError::Closed)), "{appended:?}");
        });
        while !matches!(super::receive(&mut subscription, either()), Received::Closed) {}
        appends.join().unwrap();
        drop(follower);
        drop(subscription);
        // Whoever closes it in the end gives the names back.
        loop {
            match EventBus::open(&directory, settings(KEEPS_ALL)) {
                Ok((again, _)) => return again.close().unwrap(),
                Err(_) => shuttle::thread::yield_now(),
            }
        }
    });
}
