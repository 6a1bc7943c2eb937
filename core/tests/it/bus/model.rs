//! Random work on a bus, held against a model that knows every event there ever was and what each subscriber was
//! given: an event is delivered, or covered by a gap, or still to come, and nothing else.

use std::collections::BTreeMap;

use proptest::prelude::*;
use strandline_core::bus::{BusConfig, ConnectionId, GapReason, Subscribe};
use strandline_core::{Config, Effect, Filter, IoCause, IoFailure, IoOperation, Retention};

use super::town::{Seen, Town, settings};

const SOURCES: [&str; 2] = ["a", "b"];
const NAMES: [&str; 3] = ["all", "only a", "only b"];
const BYTES_MAX: u64 = 10 * 2_048;

#[derive(Clone, Debug)]
enum Op {
    Publish {
        source: usize,
        events: u64,
    },
    Subscribe {
        who: usize,
        last: Option<u64>,
    },
    Receive {
        who: usize,
    },
    /// Acknowledges what was given, or so many before it.
    Acknowledge {
        who: usize,
        back: u64,
    },
    Leave {
        who: usize,
    },
    Kill,
    Close,
    HoldRecords(bool),
    RecordsFail(bool),
    Wait(u64),
}

/// What one subscriber knows.
#[derive(Default)]
struct Subscriber {
    exists: bool,
    connection: Option<ConnectionId>,
    /// The last event that it was given on this connection, or before which it wants nothing.
    position: u64,
    /// The last event that it has acknowledged, or that a gap told it to.
    acknowledged: u64,
    /// The same, as far as it was on the disk when that returned.
    durable: u64,
    /// A gap that it was told and has not acknowledged; its end.
    gap: Option<u64>,
}

struct Model {
    town: Town,
    /// The source of every event ever published; the first one is number 1.
    events: Vec<usize>,
    subscribers: BTreeMap<usize, Subscriber>,
    records_fail: bool,
    waited: u64,
}

fn filter(who: usize) -> Filter {
    match who {
        0 => Filter::all(),
        who => Filter::all().source(SOURCES[who - 1]),
    }
}

impl Model {
    fn new() -> Self {
        let (config, bus) = settings();
        let retention =
            Retention { age_ms_max: Some(100_000), compact_above: 5 * 2_048, bytes_max: BYTES_MAX };
        let config = Config { segments_bytes_max: BYTES_MAX - 4 * 1_024, waits_for_room: true, ..config };
        let bus = BusConfig { retention, replay_events_max: 20, ..bus };
        Self {
            town: Town::new((config, bus)),
            events: Vec::new(),
            subscribers: BTreeMap::new(),
            records_fail: false,
            waited: 0,
        }
    }

    /// The numbers in `from..=to` that a subscriber wants.
    fn wanted(&self, who: usize, from: u64, to: u64) -> impl Iterator<Item = u64> {
        let events = self.events.iter().zip(1u64..).skip(usize::try_from(from.max(1) - 1).unwrap());
        events
            .filter(move |(source, seq)| *seq <= to && (who == 0 || **source == who - 1))
            .map(|(_, seq)| seq)
    }

    fn end(&self) -> u64 {
        self.events.len() as u64
    }

    fn apply(&mut self, op: &Op) {
        // One that subscribes may find a gap of its own making, and then needs nothing any more.
        let gaps = NAMES.map(|name| self.has_gap(name) || matches!(op, Op::Subscribe { .. }));
        let before = (self.town.bytes(), self.town.events.view().first().get());
        match *op {
            Op::Publish { source, events } => self.publish(source, events),
            Op::Subscribe { who, last } => self.subscribe(who, last),
            Op::Receive { who } => self.receive(who),
            Op::Acknowledge { who, back } => self.acknowledge(who, back),
            Op::Leave { who } => {
                let subscriber = self.subscribers.entry(who).or_default();
                if let Some(connection) = subscriber.connection.take() {
                    self.town.disconnect(connection);
                }
            }
            Op::Kill => self.restart(Town::restart),
            Op::Close => self.restart(Town::close_and_restart),
            Op::HoldRecords(hold) => self.town.records_flow = !hold,
            Op::RecordsFail(fail) => {
                self.records_fail = fail;
                let failing: crate::world::Fault = Box::new(|effect| {
                    let failure = IoFailure::new(IoOperation::Write, IoCause::NoSpace);
                    matches!(effect, Effect::Write { .. }).then_some(failure)
                });
                self.town.records_world.fault = fail.then_some(failing);
            }
            Op::Wait(ms) => {
                self.waited += ms;
                self.town.wait(ms);
            }
        }
        self.check(before, gaps);
    }

    fn has_gap(&self, name: &str) -> bool {
        self.town.bus.find(name).is_some_and(|id| self.town.status(id).gap.is_some())
    }

    fn check(&self, (bytes_before, first_before): (u64, u64), had_gap: [bool; NAMES.len()]) {
        let bytes = self.town.bytes();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
        let first = self.town.events.view().first().get();
        for (who, subscriber) in &self.subscribers {
            let Some(id) = self.town.bus.find(NAMES[*who]) else { continue };
            let status = self.town.status(id);
            let pinned = self.wanted(*who, subscriber.acknowledged + 1, first - 1).next();
            let Some(lost) = pinned.filter(|_| subscriber.gap.is_none()) else { continue };
            let Some(gap) = status.gap else { panic!("{} lost {lost} without a gap", NAMES[*who]) };
            if gap.reason != GapReason::Expired || had_gap[*who] || lost < first_before {
                continue; // It was not to be given it anyway.
            }
            // Below the hard bound only age takes what somebody needs; a step publishes less than two segments.
            let full = bytes_before + 5 * 2_048 > BYTES_MAX;
            assert!(full || self.waited > 100_000, "{lost} went, of {bytes_before} bytes");
        }
    }

    fn publish(&mut self, source: usize, events: u64) {
        for _ in 0..events {
            let before = self.town.events.view().durable_end();
            self.town.publish_as(SOURCES[source], "t", 1);
            if self.town.events.view().durable_end() > before {
                self.events.push(source);
            } else {
                // It waits for room, which cannot be made while losses cannot be recorded.
                self.town.events.refuse_waiting();
                self.town.run();
            }
            assert_eq!(self.town.events.view().durable_end().get(), self.end() + 1);
        }
    }

    fn restart(&mut self, how: fn(Town) -> Town) {
        self.town.records_flow = true;
        self.town.records_world.fault = None;
        self.records_fail = false;
        // What was acknowledged while nothing could be recorded is what a crash may take back.
        let before = std::mem::replace(&mut self.town, Town::new(settings()));
        self.town = how(before);
        for (who, subscriber) in &mut self.subscribers {
            subscriber.connection = None;
            if subscriber.exists {
                let found = self.town.bus.find(NAMES[*who]);
                subscriber.exists = found.is_some();
                let pointer = found.map_or(0, |id| self.town.status(id).pointer.get());
                assert!(pointer <= subscriber.acknowledged, "a pointer never passes what was acknowledged");
                assert!(pointer >= subscriber.durable, "a pointer never moves back once it is durable");
            }
        }
    }

    fn subscribe(&mut self, who: usize, last: Option<u64>) {
        let end = self.end();
        let last = last.map(|last| last.min(end));
        let request = Subscribe { last_sequence: last.map(Into::into), ..Subscribe::durable(NAMES[who]) };
        let connection = self.town.subscribe(request.filter(filter(who)));
        let subscriber = self.subscribers.entry(who).or_default();
        if !subscriber.exists {
            let from = last.unwrap_or(end);
            *subscriber = Subscriber { exists: true, acknowledged: from, ..Subscriber::default() };
        }
        // Recorded acknowledgements only: what could not be recorded is promised to nobody.
        subscriber.position = last.unwrap_or_else(|| self.town.status(connection.subscription).pointer.get());
        // Who says that it has processed what a gap was to tell it of has acknowledged it.
        subscriber.acknowledged = subscriber.acknowledged.max(last.unwrap_or(0));
        let settled = last.is_some() && self.town.status(connection.subscription).gap.is_none();
        subscriber.gap = subscriber.gap.filter(|_| !settled);
        subscriber.connection = Some(connection);
    }

    fn receive(&mut self, who: usize) {
        let Some(connection) = self.subscribers.get(&who).and_then(|found| found.connection) else { return };
        let seen = self.town.receive(connection);
        for one in seen {
            let end = self.end();
            let position = self.subscribers[&who].position;
            let next = self.wanted(who, position + 1, end).next();
            let gap_is_due = self.subscribers[&who].gap.is_some();
            match one {
                Seen::Event(seq) => {
                    assert!(!gap_is_due, "a gap is told until it is acknowledged");
                    assert_eq!(Some(seq), next, "the next wanted event behind {position}");
                    self.subscribers.get_mut(&who).unwrap().position = seq;
                }
                Seen::Gap(gap) => {
                    let (from, to) = (gap.from.get(), gap.to.get());
                    assert!(
                        next.is_none_or(|next| from <= next),
                        "{next:?} is neither delivered nor in {gap}"
                    );
                    assert_eq!((to, gap.resume_after.get()), (end, end));
                    let count = self.wanted(who, from, to).count() as u64;
                    assert!(gap.count.is_none_or(|told| told == count), "{gap}, but {count} are wanted");
                    let subscriber = self.subscribers.get_mut(&who).unwrap();
                    (subscriber.position, subscriber.gap) = (to, Some(to));
                }
                Seen::Awaiting(seq) => assert!(seq <= position, "{seq} was given before it is awaited"),
                Seen::CaughtUp => {
                    let recorded = self.town.bus.is_recorded(connection.subscription);
                    assert!(next.is_none() || !recorded, "{next:?} was not delivered");
                }
                Seen::Ended => panic!("nobody took over"),
            }
        }
    }

    fn acknowledge(&mut self, who: usize, back: u64) {
        let Some(subscriber) = self.subscribers.get_mut(&who) else { return };
        let Some(connection) = subscriber.connection else { return };
        let sequence = subscriber.position.saturating_sub(back);
        let taken = self.town.acknowledge(connection, sequence);
        match (taken, subscriber.gap) {
            // One that has grown meanwhile is told again.
            (Ok(()), Some(gap)) if sequence == gap => {
                let is_due = self.town.status(connection.subscription).gap.is_some();
                subscriber.gap = subscriber.gap.filter(|_| is_due);
                if is_due {
                    return;
                }
            }
            (Ok(()), _) => {}
            (Err(_), Some(gap)) => assert!(sequence < gap, "the end of a gap can be acknowledged"),
            (Err(error), None) => panic!("{error}"),
        }
        subscriber.acknowledged = subscriber.acknowledged.max(sequence);
        if self.town.records_flow && !self.records_fail {
            subscriber.durable = self.town.status(connection.subscription).pointer.get();
        }
    }
}

fn ops() -> impl Strategy<Value = Op> {
    let who = 0..NAMES.len();
    prop_oneof![
        6 => (0..SOURCES.len(), 1..12u64).prop_map(|(source, events)| Op::Publish { source, events }),
        3 => who.clone().prop_map(|who| Op::Subscribe { who, last: None }),
        1 => (who.clone(), 0..200u64).prop_map(|(who, last)| Op::Subscribe { who, last: Some(last) }),
        6 => who.clone().prop_map(|who| Op::Receive { who }),
        4 => (who.clone(), prop_oneof![3 => Just(0), 1 => 0..30u64])
            .prop_map(|(who, back)| Op::Acknowledge { who, back }),
        1 => who.prop_map(|who| Op::Leave { who }),
        1 => Just(Op::Kill),
        1 => Just(Op::Close),
        1 => any::<bool>().prop_map(Op::HoldRecords),
        1 => any::<bool>().prop_map(Op::RecordsFail),
        1 => (1..60_000u64).prop_map(Op::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_event_is_delivered_or_covered_by_a_gap_or_still_to_come(ops in prop::collection::vec(ops(), 1..80)) {
        let mut model = Model::new();
        for op in &ops {
            model.apply(op);
        }
    }
}
