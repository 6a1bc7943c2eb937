//! Several connections of one subscription: the last one has it, and the others are told.

use strandline_core::Seq;

use super::{Follower, MemoryDisk, draft, explore, open, payload, spawn};
use crate::bus::lifecycle::SubscriptionState;
use crate::bus::{EventBusError, Received, Subscribe};

/// Two come under the name of one that waits, and events come meanwhile. Whoever is not the last is told; the last one is
/// given all that was not acknowledged, and what follows.
#[test]
fn who_waits_is_told_of_the_takeover() {
    explore("a takeover", 1_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        let first = Follower::new(bus.subscribe(Subscribe::durable("a").after(0)).unwrap(), 1, Some(&disk));
        let waits = |mut follower: Follower| {
            spawn(move || {
                let told = follower.follow(u64::MAX);
                assert!(matches!(told, Some(Received::Ended | Received::Closed)), "{told:?}");
                (matches!(told, Some(Received::Closed)), follower.delivered)
            })
        };
        let first = waits(first);
        let (mine, held) = (bus.clone(), disk.clone());
        let comes = spawn(move || {
            let subscription = mine.subscribe(Subscribe::durable("a").after(0)).unwrap();
            Follower::new(subscription, 1, Some(&held))
        });
        bus.publish(draft(&payload(1, 0))).unwrap();
        let subscription = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        let second = waits(Follower::new(subscription, 1, Some(&disk)));
        let third = waits(comes.join().unwrap().unwrap());
        bus.publish(draft(&payload(1, 1))).unwrap();
        assert!(!first.join().unwrap().unwrap().0, "told of the takeover, and of no close");
        while bus.subscriptions()[0].delivered < Seq::new(2) {
            shuttle::thread::yield_now();
        }
        bus.close().unwrap();
        let mut last: Vec<_> = [second, third].into_iter().map(|one| one.join().unwrap().unwrap()).collect();
        // Whoever was taken over may have come to look only after the close.
        last.retain(|(_, delivered)| delivered.len() == 2);
        assert_eq!(last, [(true, vec![1, 2])], "one is left, and has all");
    });
}

/// An older connection that goes does not disconnect the one that took its place.
#[test]
fn the_end_of_the_older_connection_is_not_the_end_of_the_newer() {
    explore("an older connection goes", 1_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        let older = bus.subscribe(Subscribe::durable("a")).unwrap();
        let goes = spawn(move || older.disconnect());
        let newer = bus.subscribe(Subscribe::durable("a")).unwrap();
        bus.publish(draft(&payload(1, 0))).unwrap();
        goes.join().unwrap();
        assert_eq!(bus.subscriptions()[0].state, SubscriptionState::Live);
        let mut follower = Follower::new(newer, 1, Some(&disk));
        assert!(follower.follow(2).is_none());
        drop(follower);
        assert_eq!(bus.subscriptions()[0].state, SubscriptionState::Suspended);
        bus.close().unwrap();
    });
}

/// While it waits its subscription is deleted, and somebody makes one of the same name: that is another one.
#[test]
fn who_waits_is_told_of_the_removal() {
    explore("a removal", 1_500, || {
        let disk = MemoryDisk::default();
        let bus = open(&disk);
        let mut follower = Follower::new(bus.subscribe(Subscribe::durable("a")).unwrap(), 1, Some(&disk));
        let waits = spawn(move || {
            let told = follower.follow(u64::MAX);
            assert!(matches!(told, Some(Received::Ended)), "{told:?}");
            let late = follower.subscription.acknowledge(Seq::new(1));
            assert!(matches!(late, Err(EventBusError::Acknowledge(_))), "{late:?}");
        });
        let mine = bus.clone();
        let removes = spawn(move || mine.remove("a").unwrap());
        bus.publish(draft(&payload(1, 0))).unwrap();
        removes.join().unwrap();
        waits.join().unwrap();
        let again = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        assert!(Follower::new(again, 1, Some(&disk)).follow(2).is_none());
        bus.close().unwrap();
        assert_eq!(super::after_power_loss(&disk).pointer, Seq::ZERO);
    });
}
