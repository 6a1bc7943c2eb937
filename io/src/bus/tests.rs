//! The bus over real files and threads.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use super::lifecycle::SubscriptionState;
use super::*;
use crate::directory::Directory;
use crate::test_disk::TestDisk;

fn open(disk: &TestDisk) -> EventBus<TestDisk> {
    open_with(disk, BusSettings::default())
}

fn open_with(disk: &TestDisk, settings: BusSettings) -> EventBus<TestDisk> {
    EventBus::open(&Directory::on(disk.clone()), settings).unwrap().0
}

fn draft(payload: &[u8]) -> EventDraft<'_> {
    EventDraft { domain: 1, event_type: "type", source: "source", payload }
}

/// Bytes of all files; what goes meanwhile counts as gone.
fn bytes(disk: &TestDisk) -> u64 {
    let files = std::fs::read_dir(disk.path()).unwrap();
    files.filter_map(|file| file.ok()?.metadata().ok()).map(|file| file.len()).sum()
}

/// A disk with the same files.
fn copy(disk: &TestDisk) -> TestDisk {
    let copy = TestDisk::new();
    for name in disk.names() {
        copy.put(&name, disk.read(&name));
    }
    copy
}

/// The numbers of what is received until something else than events comes, and that.
fn receive(subscription: &mut Subscription<TestDisk>) -> (Vec<u64>, Received) {
    let mut seen = Vec::new();
    loop {
        match subscription.recv(Some(std::time::Duration::ZERO)).unwrap() {
            Received::Events(batch) => seen.extend(batch.events().map(|event| event.seq.get())),
            other => return (seen, other),
        }
    }
}

#[test]
fn a_durable_subscriber_goes_on_where_it_acknowledged() {
    let disk = TestDisk::new();
    let bus = open(&disk);
    let mut context = bus.subscribe(Subscribe::durable("context")).unwrap();
    for n in 1..=5u64 {
        assert_eq!(bus.publish(draft(b"x")).unwrap(), Seq::new(n));
    }
    let (seen, last) = receive(&mut context);
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert!(matches!(last, Received::TimedOut));
    context.acknowledge(Seq::new(3)).unwrap();
    drop(context);
    bus.close().unwrap();

    let bus = open(&disk);
    let status = &bus.subscriptions()[0];
    assert_eq!(
        (status.state, status.pointer, status.lag_events),
        (SubscriptionState::Suspended, Seq::new(3), 2)
    );
    let mut context = bus.subscribe(Subscribe::durable("context")).unwrap();
    let (seen, last) = receive(&mut context);
    assert_eq!(seen, [4, 5]);
    assert!(matches!(last, Received::Awaiting { sequence } if sequence == Seq::new(5)));
    assert!(matches!(receive(&mut context), (seen, Received::TimedOut) if seen.is_empty()), "told once");
    context.acknowledge(Seq::new(5)).unwrap();
    bus.publish(draft(b"y")).unwrap();
    assert_eq!(receive(&mut context).0, [6]);
}

#[test]
fn who_waits_is_woken_by_an_event_an_acknowledgement_a_takeover_and_the_close() {
    let disk = TestDisk::new();
    let bus = open(&disk);
    let mut context = bus.subscribe(Subscribe::durable("context")).unwrap();
    let waiter = thread::spawn(move || {
        let Received::Events(batch) = context.recv(None).unwrap() else { panic!("an event first") };
        assert_eq!(batch.events().count(), 1);
        assert!(matches!(context.recv(None).unwrap(), Received::Ended));
    });
    bus.publish(draft(b"x")).unwrap();
    while bus.subscriptions()[0].delivered != Seq::new(1) {
        thread::yield_now();
    }
    let mut again = bus.subscribe(Subscribe::durable("context")).unwrap();
    waiter.join().unwrap();
    assert_eq!(receive(&mut again).0, [1]);
    bus.publish(draft(b"y")).unwrap();
    let id = again.id();
    let waiter = thread::spawn(move || {
        let Received::Events(batch) = again.recv(None).unwrap() else {
            panic!("live after the acknowledgement")
        };
        assert_eq!(batch.events().map(|event| event.seq).collect::<Vec<_>>(), [Seq::new(2)]);
        assert!(matches!(again.recv(None).unwrap(), Received::Closed));
    });
    bus.acknowledge(AckRequest { subscription_id: id, sequence: Seq::new(1) }).unwrap();
    while bus.subscriptions()[0].delivered != Seq::new(2) {
        thread::yield_now();
    }
    bus.close().unwrap();
    waiter.join().unwrap();
    assert!(matches!(bus.publish(draft(b"z")), Err(AppendError::Closed)));
    assert!(matches!(bus.subscribe(Subscribe::default()), Err(EventBusError::Closed)));
}

#[test]
fn a_task_is_woken_too() {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let disk = TestDisk::new();
    let bus = open(&disk);
    let mut live = bus.subscribe(Subscribe::default()).unwrap();
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    assert!(live.poll_recv(&mut context).is_pending());
    bus.publish(draft(b"x")).unwrap();
    assert!(woken.0.load(Ordering::SeqCst));
    assert!(matches!(live.poll_recv(&mut context), Poll::Ready(Ok(Received::Events(_)))));
}

#[test]
fn a_fast_publisher_within_a_bound_waits_for_room_and_a_slow_subscriber_gets_its_gap() {
    let disk = TestDisk::new();
    let retention = Retention { age_ms_max: None, compact_above: 600 << 10, bytes_max: 1 << 20 };
    let bus = open_with(&disk, BusSettings::with_retention(retention));
    let mut slow = bus.subscribe(Subscribe::durable("slow")).unwrap();
    let payload = [b'x'; 1_000];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    bus.publish(draft(&payload)).unwrap();
                }
            });
        }
        scope.spawn(|| {
            while bus.events().durable_end() <= Seq::new(4_000) {
                assert!(bytes(&disk) <= 1 << 20, "{} bytes", bytes(&disk));
                thread::yield_now();
            }
        });
    });
    assert!(bus.events().first() > Seq::new(3_000), "4 MB went through 1 MiB");
    let Received::Gap(gap) = slow.recv(None).unwrap() else { panic!("nothing was received in time") };
    assert_eq!((gap.from, gap.to, gap.count), (Seq::new(1), Seq::new(4_000), Some(4_000)));
    slow.acknowledge(gap.resume_after).unwrap();
    bus.publish(draft(b"next")).unwrap();
    assert!(matches!(receive(&mut slow), (seen, _) if seen == [4_001]));
}

#[test]
fn acknowledgements_of_many_threads_share_records_and_survive() {
    let disk = TestDisk::new();
    let bus = open(&disk);
    bus.publish_all(std::iter::repeat_n(draft(b"x"), 500)).unwrap();
    let names: Vec<String> = (0..8).map(|n| format!("subscriber {n}")).collect();
    thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| {
                let mut subscription = bus.subscribe(Subscribe::durable(name).after(0)).unwrap();
                let (seen, _) = receive(&mut subscription);
                assert_eq!(seen, (1..=500).collect::<Vec<_>>());
                for sequence in 1..=250 {
                    subscription.acknowledge_soon(Seq::new(sequence)).unwrap();
                }
                subscription.acknowledge(Seq::new(251)).unwrap();
            });
        }
    });
    // As after a kill: nothing is closed.
    let copy = copy(&disk);
    let bus_after = open(&copy);
    let pointers: Vec<u64> = bus_after.subscriptions().iter().map(|status| status.pointer.get()).collect();
    assert_eq!(pointers, [251; 8]);
    drop(bus);
}

#[test]
fn a_journal_larger_than_the_bound_is_refused_unless_events_may_be_dropped() {
    let disk = TestDisk::new();
    let bus = open(&disk);
    for _ in 0..30 {
        bus.publish(draft(&[b'x'; 100_000])).unwrap();
    }
    bus.close().unwrap();
    drop(bus);
    let retention = Retention { bytes_max: 1 << 20, compact_above: 1 << 20, age_ms_max: None };
    let settings = BusSettings::with_retention(retention);
    let refused = EventBus::open(&Directory::on(disk.clone()), settings.clone()).unwrap_err();
    assert!(matches!(refused, BusOpenError::WouldDrop { .. }), "{refused}");
    let bus = open_with(&disk, BusSettings { may_drop_at_open: true, ..settings });
    assert!(bus.events().first() > Seq::new(1));
    assert_eq!(bus.publish(draft(b"x")).unwrap(), Seq::new(31), "numbers go on");
    assert!(bytes(&disk) <= 1 << 20, "{} bytes", bytes(&disk));
}

#[test]
fn after_a_close_nothing_is_removed_or_skipped_that_the_disk_still_has() {
    let disk = TestDisk::new();
    let directory = Directory::on(disk);
    let (bus, _) = EventBus::open(&directory, BusSettings::default()).unwrap();
    drop(bus.subscribe(Subscribe::durable("context")).unwrap());
    bus.close().unwrap();
    assert!(matches!(bus.remove("context"), Err(EventBusError::Closed)));
    assert!(matches!(bus.force_acknowledge("context", Seq::ZERO), Err(EventBusError::Closed)));
    assert_eq!(bus.subscriptions().len(), 1);
}
