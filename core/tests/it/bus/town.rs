//! A bus with both its journals in memory, driven the way an adapter drives it.

use bytes::Bytes;
use strandline_core::bus::{
    AckRequest, AcknowledgeError, BusConfig, BusRequest, ConnectionId, Delivery, EventBus, Restore,
    Subscribe, SubscriptionGap, SubscriptionId, SubscriptionStatus, Urgency,
};
use strandline_core::{
    Config, EventDraft, Journal, Monotonic, Occupied, Output, Pcpj, Pryj, ReadUpTo, Seq, Timestamp,
};

use crate::world::{World, close, drain, open, read_from, small};

/// The settings of a small bus: segments of 2 KiB.
pub(crate) fn settings() -> (Config, BusConfig) {
    let config = Config { segment_bytes: 2_048, index_events: true, tail_bytes_max: 512, ..small(2) };
    (config, BusConfig::default())
}

pub(crate) struct Town {
    pub(crate) events_world: World,
    pub(crate) records_world: World,
    pub(crate) events: Box<Journal<Pcpj>>,
    pub(crate) records: Box<Journal<Pryj>>,
    pub(crate) bus: EventBus,
    pub(crate) now: u64,
    pub(crate) config: (Config, BusConfig),
    /// Records are accepted and become durable only when this is set.
    pub(crate) records_flow: bool,
}

/// What a subscriber saw, in a form that is easy to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Event(u64),
    Gap(SubscriptionGap),
    Awaiting(u64),
    CaughtUp,
    Ended,
}

impl Town {
    pub(crate) fn new(config: (Config, BusConfig)) -> Self {
        Self::over(World::default(), World::default(), config, 0)
    }

    pub(crate) fn over(
        mut events_world: World,
        mut records_world: World,
        config: (Config, BusConfig),
        now: u64,
    ) -> Self {
        let (events, _) = open::<Pcpj>(&mut events_world, config.0.clone()).unwrap();
        let record_settings = Config { segment_bytes: 1_024, index_events: false, ..config.0.clone() };
        let (records, _) = open::<Pryj>(&mut records_world, record_settings).unwrap();
        let mut restore = Restore::new();
        let payloads =
            read_from(&records_world, records.view(), records.view().first(), ReadUpTo::Durable, |record| {
                (record.seq, record.payload.to_vec())
            });
        for (seq, payload) in payloads {
            restore.take(seq, &payload).unwrap();
        }
        let bus = restore.start(config.1, Monotonic::from_millis(now), wall(now), events.view());
        let mut town =
            Self { events_world, records_world, events, records, bus, now, config, records_flow: true };
        town.run();
        town
    }

    /// The process is killed and started again.
    pub(crate) fn restart(self) -> Self {
        Self::over(self.events_world, self.records_world, self.config, self.now)
    }

    /// The same after a clean close.
    pub(crate) fn close_and_restart(mut self) -> Self {
        close(self.events, &mut self.events_world);
        close(self.records, &mut self.records_world);
        Self::over(self.events_world, self.records_world, self.config, self.now)
    }

    pub(crate) fn publish(&mut self, events: u64) {
        self.publish_as("source", "type", events);
    }

    pub(crate) fn publish_as(&mut self, source: &str, event_type: &str, events: u64) {
        for _ in 0..events {
            let draft = EventDraft { domain: 1, event_type, source, payload: &[b'x'; 100] };
            self.events.append(wall(self.now), draft).unwrap();
            drain(&mut self.events, &mut self.events_world);
            if self.events.waits_for_room() {
                self.run();
            }
        }
        self.run();
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now += ms;
        self.run();
    }

    pub(crate) fn bytes(&self) -> u64 {
        let files = self.events_world.files.values().chain(self.records_world.files.values());
        files.map(|file| file.len() as u64).sum()
    }

    /// Whatever there is to do, until nothing is left.
    pub(crate) fn run(&mut self) {
        let now = Monotonic::from_millis(self.now);
        for _ in 0..100 {
            self.tick(now);
            if !self.requests(now) {
                return;
            }
            drain(&mut self.events, &mut self.events_world);
        }
        panic!("the bus does not come to rest");
    }

    /// The same, but what the journal of events wants is left to the caller.
    pub(crate) fn decide(&mut self) {
        let now = Monotonic::from_millis(self.now);
        self.tick(now);
        while self.requests(now) {}
    }

    fn tick(&mut self, now: Monotonic) {
        let others = self.records_world.files.values().map(|file| file.len() as u64).sum();
        let occupied = Occupied {
            others,
            segment: self.config.0.segment_bytes,
            segments_max: self.config.0.segments_bytes_max,
            wanted: self.events.room_wanted(),
        };
        self.bus.tick(now, wall(self.now), self.events.view(), occupied);
    }

    fn requests(&mut self, now: Monotonic) -> bool {
        let mut any = false;
        let mut newest = None;
        while self.records_flow
            && let Some(request) = self.bus.poll_request(now)
        {
            any = true;
            match request {
                BusRequest::Record { id, payload } => {
                    let accepted = self.records.append(wall(self.now), &payload).unwrap();
                    self.bus.handle_accepted(id, accepted.seq);
                    newest = Some(id);
                }
                BusRequest::TrimEvents { to } => self.events.trim_to(to),
                BusRequest::TrimRecords { to } => self.records.trim_to(to),
            }
        }
        let told = drain(&mut self.records, &mut self.records_world);
        if told.iter().any(|output| matches!(output, Output::Void { .. })) {
            self.bus.handle_refused(now);
            return false;
        }
        if let Some(id) = newest {
            self.bus.handle_recorded(id);
            self.bus.compact_records(self.records.view());
        }
        any
    }

    pub(crate) fn subscribe(&mut self, request: Subscribe) -> ConnectionId {
        let connection = self.bus.subscribe(wall(self.now), request, self.events.view()).unwrap();
        self.run();
        connection
    }

    /// Everything that the connection is given until it has to wait; what it has to wait for comes last.
    pub(crate) fn receive(&mut self, connection: ConnectionId) -> Vec<Seen> {
        let mut seen = Vec::new();
        loop {
            match self.bus.poll_delivery(connection, self.events.view()) {
                Delivery::Events(batch) => {
                    seen.extend(batch.events().map(|event| Seen::Event(event.seq.get())));
                }
                Delivery::Read(read) => {
                    let bytes = self.events_world.slice(read.segment, read.offset, read.len);
                    self.bus.handle_read(connection, Ok(Bytes::copy_from_slice(bytes))).unwrap();
                }
                Delivery::Gap(gap) => seen.push(Seen::Gap(gap)),
                Delivery::Awaiting { sequence } => {
                    seen.push(Seen::Awaiting(sequence.get()));
                    return seen;
                }
                Delivery::CaughtUp => {
                    seen.push(Seen::CaughtUp);
                    return seen;
                }
                Delivery::Ended => {
                    seen.push(Seen::Ended);
                    return seen;
                }
            }
        }
    }

    pub(crate) fn acknowledge(
        &mut self,
        connection: ConnectionId,
        sequence: u64,
    ) -> Result<(), AcknowledgeError> {
        let ack = AckRequest { subscription_id: connection.subscription, sequence: Seq::new(sequence) };
        let now = Monotonic::from_millis(self.now);
        let acknowledged = self.bus.acknowledge(now, wall(self.now), ack, Urgency::Now);
        self.run();
        acknowledged.map(drop)
    }

    pub(crate) fn disconnect(&mut self, connection: ConnectionId) {
        self.bus.disconnect(Monotonic::from_millis(self.now), wall(self.now), connection);
        self.run();
    }

    pub(crate) fn status(&self, id: SubscriptionId) -> SubscriptionStatus {
        self.bus.status(id, self.events.view()).unwrap()
    }

    /// How the durable subscription of this name stands.
    pub(crate) fn named(&self, name: &str) -> SubscriptionStatus {
        self.status(self.bus.find(name).unwrap())
    }
}

pub(crate) fn wall(ms: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + i64::try_from(ms).unwrap())
}

/// Events one after the other.
pub(crate) fn events(range: std::ops::RangeInclusive<u64>) -> Vec<Seen> {
    range.map(Seen::Event).collect()
}

/// The same, and what comes behind them.
pub(crate) fn events_then(range: std::ops::RangeInclusive<u64>, last: Seen) -> Vec<Seen> {
    let mut seen = events(range);
    seen.push(last);
    seen
}
