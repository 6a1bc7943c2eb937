//! The keeper beside publishers and subscribers.

use strandline_core::{Retention, Seq};

use super::{
    Follower, KEEPS_ALL, MemoryDisk, draft, either, explore, open, open_with, payload, settings, spawn,
};
use crate::bus::Subscribe;

/// A payload that fills a segment, so that what goes is a file.
fn large(n: u32) -> Vec<u8> {
    let mut payload = payload(7, n);
    payload.resize(60_000, b'x');
    payload
}

/// Whatever is dropped while it is replayed, published or delivered: each event comes once and in order, or is covered.
#[test]
fn each_event_is_delivered_or_covered_while_the_keeper_drops() {
    explore("age", 1_000, || {
        let disk = MemoryDisk::default();
        let ages = Retention { age_ms_max: Some(2), ..KEEPS_ALL };
        let bus = open_with(&disk, settings(ages));
        let followers = [Subscribe::durable("a").after(0), Subscribe::default().after(0)];
        let mine = bus.clone();
        let publisher = spawn(move || {
            for n in 0..4 {
                mine.publish(draft(&large(n))).unwrap();
            }
        });
        let followers = followers.map(|request| {
            let mut follower = Follower::new(bus.subscribe(request).unwrap(), 1, None);
            spawn(move || assert!(follower.follow(7).is_none()))
        });
        for n in 4..6 {
            bus.publish(draft(&large(n))).unwrap();
        }
        publisher.join().unwrap();
        if either() {
            bus.compact().unwrap();
        }
        for follower in followers {
            follower.join().unwrap();
        }
        bus.close().unwrap();
        let first = bus.events().first();
        let again = open(&disk.after_power_loss());
        assert_eq!((again.events().first(), again.events().next_seq()), (first, Seq::new(7)));
        again.close().unwrap();
    });
}

/// More than fits: the keeper makes room for who waits, within the bound, and nobody is refused.
#[test]
fn the_keeper_makes_room_for_whoever_publishes() {
    explore("room", 300, || {
        let disk = MemoryDisk::default();
        let small = Retention { compact_above: 600 << 10, ..KEEPS_ALL };
        let bus = open_with(&disk, settings(small));
        let subscription = bus.subscribe(Subscribe::durable("a")).unwrap();
        let publishers = [1, 2].map(|_| {
            let (mine, held) = (bus.clone(), disk.clone());
            spawn(move || {
                for n in 0..9 {
                    mine.publish(draft(&large(n))).unwrap();
                    assert!(held.bytes() <= 1 << 20, "{} bytes", held.bytes());
                }
            })
        });
        let mut follower = Follower::new(subscription, 1, None);
        assert!(follower.follow(19).is_none());
        for publisher in publishers {
            publisher.join().unwrap();
        }
        assert!(bus.events().first() > Seq::new(1), "more than fits");
        bus.close().unwrap();
    });
}

/// Somebody who is away pins what it has not seen; it is pinned until the acknowledgement is durable, and goes then.
#[test]
fn what_is_pinned_goes_once_it_is_acknowledged_and_not_before() {
    explore("a pin", 500, || {
        let disk = MemoryDisk::default();
        let small = Retention { compact_above: 300 << 10, ..KEEPS_ALL };
        let bus = open_with(&disk, settings(small));
        let subscription = bus.subscribe(Subscribe::durable("a")).unwrap();
        let mut follower = Follower::new(subscription, 1, None);
        let follows = spawn(move || {
            assert!(follower.follow(8).is_none());
            assert_eq!(follower.delivered, [1, 2, 3, 4, 5, 6, 7], "nothing that it pins is dropped");
            follower.subscription.acknowledge_soon(Seq::new(7)).unwrap();
            follower.subscription.disconnect();
        });
        for n in 0..7 {
            bus.publish(draft(&large(n))).unwrap();
        }
        follows.join().unwrap();
        for n in 7..9 {
            bus.publish(draft(&large(n))).unwrap();
        }
        bus.compact().unwrap();
        assert!(bus.events().first() > Seq::new(1));
        assert!(super::after_power_loss(&disk).pointer >= Seq::new(7), "it went, so that is durable");
        bus.close().unwrap();
    });
}

/// With nothing to do it sleeps, and an event that comes then is seen at once: its age counts from when it is seen.
#[test]
fn a_keeper_rests_until_something_comes() {
    explore("a keeper that rests", 400, || {
        let disk = MemoryDisk::default();
        let hours = Retention { age_ms_max: Some(7_200_000), ..KEEPS_ALL };
        let bus = open_with(&disk, settings(hours));
        for n in 0..2 {
            // Each look lists both journals' files.
            let before = disk.lists();
            for _ in 0..100 {
                shuttle::thread::yield_now();
            }
            let looked = disk.lists() - before;
            assert!(looked <= 12, "{looked} looks at the directory, and there is nothing to see");
            let before = disk.lists();
            bus.publish(draft(&payload(1, n))).unwrap();
            while n == 0 && disk.lists() == before {
                shuttle::thread::yield_now();
            }
        }
        bus.close().unwrap();
    });
}
