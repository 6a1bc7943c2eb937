//! The event bus: subscribers that wait, the keeper, and the two journals beneath, in thousands of interleavings.

mod closing;
mod failing;
mod retention;
mod takeover;
mod waiting;

use shuttle::rand::{Rng, thread_rng};
use strandline_core::{Config, EventDraft, Retention, Seq};

use super::memory_disk::MemoryDisk;
use super::tasks::block_on;
use super::{explore, payload, small, spawn};
use crate::Directory;
use crate::bus::{
    BusConfig, BusSettings, EventBus, EventBusError, Received, Subscription, SubscriptionStatus,
};

type TestBus = EventBus<MemoryDisk>;
type TestSubscription = Subscription<MemoryDisk>;

const KEEPS_ALL: Retention = Retention { age_ms_max: None, compact_above: 1 << 20, bytes_max: 1 << 20 };

/// Acknowledgements that nobody waits for are due at any moment; nothing else depends on time unless the retention
/// does.
fn settings(retention: Retention) -> BusSettings {
    let bus = BusConfig { retention, acknowledge_ms: 5, ..BusConfig::default() };
    BusSettings { bus, events: Config { tail_bytes_max: 64, ..small() }, may_drop_at_open: false }
}

fn open(disk: &MemoryDisk) -> TestBus {
    open_with(disk, settings(KEEPS_ALL))
}

fn open_with(disk: &MemoryDisk, settings: BusSettings) -> TestBus {
    EventBus::open(&Directory::on(disk.clone()), settings).unwrap().0
}

fn draft(payload: &[u8]) -> EventDraft<'_> {
    EventDraft { domain: 1, event_type: "type", source: "source", payload }
}

/// How the only durable subscription stands after a power loss that takes all that it can.
fn after_power_loss(disk: &MemoryDisk) -> SubscriptionStatus {
    let bus = open(&disk.after_power_loss());
    let status = bus.subscriptions().remove(0);
    bus.close().unwrap();
    status
}

/// Tossed: whether something is done in the one way or the other.
fn either() -> bool {
    thread_rng().gen_ratio(1, 2)
}

/// Waits as a thread does, or as a task.
fn receive(subscription: &mut TestSubscription, as_task: bool) -> Received {
    match as_task {
        false => subscription.recv(None).unwrap(),
        true => block_on(|context| subscription.poll_recv(context)).unwrap(),
    }
}

/// A subscriber that holds the bus to its word: each event once and in order, or covered by a gap.
struct Follower {
    subscription: TestSubscription,
    as_task: bool,
    /// Where nothing is removed: what comes has to be durable there.
    disk: Option<MemoryDisk>,
    /// The first event that it has heard nothing of.
    next: u64,
    /// Where the gap begins that it was told last: until it is acknowledged it may be told again, longer.
    gap_from: Option<u64>,
    delivered: Vec<u64>,
}

impl Follower {
    /// One that has seen all before `next`.
    fn new(subscription: TestSubscription, next: u64, disk: Option<&MemoryDisk>) -> Self {
        let (as_task, disk) = (either(), disk.cloned());
        Self { subscription, as_task, disk, next, gap_from: None, delivered: Vec::new() }
    }

    /// Receives, and acknowledges where that is awaited, until it has heard of all before `end`; or until something
    /// else comes, which it gives.
    fn follow(&mut self, end: u64) -> Option<Received> {
        while self.next < end {
            match receive(&mut self.subscription, self.as_task) {
                Received::Events(batch) => {
                    for event in batch.events() {
                        assert_eq!(event.seq, Seq::new(self.next), "each once, in order and without a hole");
                        assert!(self.disk.as_ref().is_none_or(|disk| disk.is_durable(event.payload)));
                        self.delivered.push(self.next);
                        self.next += 1;
                    }
                    self.gap_from = None;
                }
                Received::Gap(gap) => {
                    let begins = [Some(self.next), self.gap_from];
                    assert!(begins.contains(&Some(gap.from.get())), "{gap}, and {begins:?} were possible");
                    assert!(gap.to.next() > Seq::new(self.next), "{gap}, and it knew that before");
                    self.gap_from = Some(gap.from.get());
                    self.next = gap.to.next().get();
                }
                Received::Awaiting { sequence } => {
                    let acknowledged = match either() {
                        true => self.subscription.acknowledge(sequence),
                        false => self.subscription.acknowledge_soon(sequence),
                    };
                    assert!(matches!(acknowledged, Ok(()) | Err(EventBusError::Closed)), "{acknowledged:?}");
                }
                other => return Some(other),
            }
        }
        None
    }
}
