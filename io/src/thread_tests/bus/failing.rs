//! The journal of subscriptions fails or finds no space, while events go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::rand::{Rng, thread_rng};
use strandline_core::{Retention, Seq};

use super::{Follower, KEEPS_ALL, MemoryDisk, draft, explore, open, open_with, payload, settings, spawn};
use crate::bus::{EventBusError, Received, SUBSCRIPTIONS, Subscribe};
use crate::test_disk::{EIO, ENOSPC};
use crate::thread_tests::memory_disk::Fault;

/// Who needs a record is told, always the same; who publishes and who receives notices nothing.
#[test]
fn a_stopped_journal_of_subscriptions_stops_nobody_who_publishes() {
    explore("records that fail", 1_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        let subscription = bus.subscribe(Subscribe::durable("a")).unwrap();
        let call = if super::either() { "sync" } else { "write" };
        disk.inject_in(SUBSCRIPTIONS, call, thread_rng().gen_range(0..3), Fault::Error(EIO));
        let mut follower = Follower::new(subscription, 1, Some(&disk));
        let follows = spawn(move || {
            let (mut accepted, mut poisoned) = (0, false);
            for end in 2..=5 {
                assert!(follower.follow(end).is_none());
                let sequence = follower.next - 1;
                match follower.subscription.acknowledge(Seq::new(sequence)) {
                    Ok(()) => {
                        assert!(!poisoned, "it was told before that nothing can be recorded");
                        accepted = sequence;
                    }
                    Err(EventBusError::Poisoned(_)) => poisoned = true,
                    Err(other) => panic!("{other}"),
                }
            }
            (accepted, poisoned)
        });
        let mine = bus.clone();
        let publisher = spawn(move || {
            for n in 0..2 {
                mine.publish(draft(&payload(1, n))).unwrap();
            }
        });
        for n in 0..2 {
            bus.publish(draft(&payload(2, n))).unwrap();
        }
        let (accepted, poisoned) = follows.join().unwrap().unwrap();
        publisher.join().unwrap();
        let closed = bus.close();
        assert!(!poisoned || matches!(closed, Err(EventBusError::Poisoned(_))), "{closed:?}");
        let recorded = super::after_power_loss(&disk).pointer;
        assert!(recorded >= Seq::new(accepted), "{accepted} was told to be durable, {recorded} is");
    });
}

/// Where a loss cannot be recorded nothing is dropped: who publishes more than fits is refused, and does not hang.
#[test]
fn without_records_nothing_is_dropped_and_a_publisher_is_refused() {
    explore("no room and no records", 300, || {
        let disk = MemoryDisk::default();
        let bus = open_with(&disk, settings(Retention { compact_above: 600 << 10, ..KEEPS_ALL }));
        let subscription = bus.subscribe(Subscribe::durable("a")).unwrap();
        disk.inject_in(SUBSCRIPTIONS, "sync", 0, Fault::Error(EIO));
        let publishers = [1, 2].map(|_| {
            let mine = bus.clone();
            spawn(move || (0..9).filter(|_| mine.publish(draft(&[b'x'; 60_000])).is_err()).count())
        });
        let refused: usize = publishers.into_iter().map(|one| one.join().unwrap().unwrap()).sum();
        assert!(refused > 0, "{refused} of 18 were refused");
        assert_eq!(bus.events().first(), Seq::new(1));
        let mut follower = Follower::new(subscription, 1, None);
        let held = bus.events().durable_end().get();
        // Its gap was decided on, and can be neither recorded nor told.
        let told = follower.follow(held);
        assert!(matches!(told, None | Some(Received::Closed)), "{told:?}");
        assert!(matches!(bus.close(), Err(EventBusError::Poisoned(_))));
    });
}

/// An acknowledgement that somebody was told is durable is; one that found no space counts, and is recorded once
/// there is some.
#[test]
fn without_space_nobody_is_told_that_an_acknowledgement_is_durable() {
    explore("no space for records", 2_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        for n in 0..4 {
            bus.publish(draft(&payload(1, n))).unwrap();
        }
        let subscription = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        let id = subscription.id();
        let mut follower = Follower::new(subscription, 1, Some(&disk));
        assert!(follower.follow(5).is_none());
        for passing in [0, thread_rng().gen_range(0..3)] {
            disk.inject_in(SUBSCRIPTIONS, "write", passing, Fault::Error(ENOSPC));
        }
        let accepted = Arc::new(AtomicU64::new(0));
        let acknowledge = |sequences: [u64; 2]| {
            let (mine, held, accepted) = (bus.clone(), disk.clone(), Arc::clone(&accepted));
            spawn(move || {
                for sequence in sequences {
                    let ack = crate::bus::AckRequest { subscription_id: id, sequence: Seq::new(sequence) };
                    match mine.acknowledge(ack) {
                        Ok(()) => {
                            accepted.fetch_max(sequence, Ordering::SeqCst);
                        }
                        Err(EventBusError::NoSpace) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                drop(held);
            })
        };
        let threads = [acknowledge([1, 3]), acknowledge([2, 3]), acknowledge([3, 4])];
        for thread in threads {
            thread.join().unwrap();
        }
        let recorded = super::after_power_loss(&disk).pointer;
        let accepted = accepted.load(Ordering::SeqCst);
        assert!(recorded >= Seq::new(accepted), "{accepted} was told to be durable, {recorded} is");
        disk.mend();
        bus.close().unwrap();
        assert_eq!(super::after_power_loss(&disk).pointer, Seq::new(4), "it counts, and is recorded later");
        assert!(matches!(super::receive(&mut follower.subscription, false), Received::Closed));
    });
}

/// Losses cannot be recorded for a while: the keeper tries again when it said it would, and does not turn in circles.
#[test]
fn the_keeper_rests_while_there_is_no_space() {
    explore("a keeper without space", 300, || {
        let disk = MemoryDisk::default();
        let bus = open_with(&disk, settings(Retention { age_ms_max: Some(1), ..KEEPS_ALL }));
        let subscription = bus.subscribe(Subscribe::durable("a")).unwrap();
        for _ in 0..2 {
            disk.inject_in(SUBSCRIPTIONS, "write", 0, Fault::Error(ENOSPC));
        }
        bus.publish(draft(&payload(1, 0))).unwrap();
        let before = disk.lists();
        for _ in 0..200 {
            shuttle::thread::yield_now();
        }
        assert!(disk.lists() - before < 40, "{} looks at the directory", disk.lists() - before);
        drop(subscription);
        disk.mend();
        bus.close().unwrap();
    });
}
