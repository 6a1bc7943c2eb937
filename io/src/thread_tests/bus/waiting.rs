//! Who waits for something is woken by it, however closely it comes.

use strandline_core::Seq;

use super::{Follower, MemoryDisk, draft, explore, open, payload, spawn};
use crate::bus::{AcknowledgeError, EventBusError, Received, Subscribe};

#[test]
fn a_subscriber_that_goes_to_sleep_is_woken_by_what_is_published() {
    explore("publishing", 1_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        let followers = [Subscribe::durable("a"), Subscribe::default()].map(|request| {
            let mut follower = Follower::new(bus.subscribe(request).unwrap(), 1, Some(&disk));
            spawn(move || {
                assert!(follower.follow(5).is_none());
                follower.delivered
            })
        });
        let mine = bus.clone();
        let publisher = spawn(move || {
            mine.publish(draft(&payload(1, 0))).unwrap();
            drop(mine.publish_nowait(draft(&payload(1, 1))).unwrap());
        });
        for n in 0..2 {
            bus.publish(draft(&payload(2, n))).unwrap();
        }
        for follower in followers {
            assert_eq!(follower.join().unwrap(), Some(vec![1, 2, 3, 4]));
        }
        publisher.join().unwrap();
        bus.close().unwrap();
    });
}

/// What comes while somebody is given what it missed is not news to it any more when it begins to wait.
#[test]
fn what_comes_during_a_replay_follows_it() {
    explore("the hand-over", 1_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        bus.publish(draft(&payload(1, 0))).unwrap();
        let followers = [Subscribe::durable("a").after(0), Subscribe::default().after(0)].map(|request| {
            let mut follower = Follower::new(bus.subscribe(request).unwrap(), 1, Some(&disk));
            spawn(move || {
                assert!(follower.follow(3).is_none());
                follower.delivered
            })
        });
        bus.publish(draft(&payload(1, 1))).unwrap();
        for follower in followers {
            assert_eq!(follower.join().unwrap(), Some(vec![1, 2]));
        }
        bus.close().unwrap();
    });
}

/// It acknowledges nothing itself: the end of the replay comes from another thread, which waits for the disk or not.
#[test]
fn an_acknowledgement_from_elsewhere_lets_the_waiting_go_on() {
    explore("acknowledging", 1_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        for n in 0..2 {
            bus.publish(draft(&payload(1, n))).unwrap();
        }
        let mut subscription = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        let (id, as_task) = (subscription.id(), super::either());
        let waits = spawn(move || {
            let (mut seen, mut awaited) = (Vec::new(), 0);
            while seen.len() < 3 {
                match super::receive(&mut subscription, as_task) {
                    Received::Events(batch) => seen.extend(batch.events().map(|event| event.seq.get())),
                    Received::Awaiting { sequence } => {
                        assert_eq!((sequence, seen.len()), (Seq::new(2), 2));
                        awaited += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert!(awaited <= 1, "told once");
            seen
        });
        let mine = bus.clone();
        let acknowledges = spawn(move || {
            let ack = crate::bus::AckRequest { subscription_id: id, sequence: Seq::new(2) };
            let now = super::either();
            loop {
                match if now { mine.acknowledge(ack) } else { mine.acknowledge_soon(ack) } {
                    Ok(()) => return,
                    Err(EventBusError::Acknowledge(AcknowledgeError::NeverDelivered { .. })) => {
                        shuttle::thread::yield_now();
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        });
        bus.publish(draft(&payload(1, 2))).unwrap();
        assert_eq!(waits.join().unwrap(), Some(vec![1, 2, 3]));
        acknowledges.join().unwrap();
        bus.close().unwrap();
        assert_eq!(super::after_power_loss(&disk).pointer, Seq::new(2));
    });
}

/// Nobody publishes and nobody waits: the keeper alone records it in time.
#[test]
fn an_acknowledgement_that_nobody_waits_for_is_recorded_in_time() {
    explore("keeping the time", 1_000, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        let subscription = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        for n in 0..2 {
            bus.publish(draft(&payload(1, n))).unwrap();
        }
        let mut follower = Follower::new(subscription, 1, Some(&disk));
        assert!(follower.follow(3).is_none());
        follower.subscription.acknowledge_soon(Seq::new(1)).unwrap();
        shuttle::thread::yield_now();
        follower.subscription.acknowledge_soon(Seq::new(2)).unwrap();
        while super::after_power_loss(&disk).pointer < Seq::new(2) {
            shuttle::thread::yield_now();
        }
        bus.close().unwrap();
    });
}
