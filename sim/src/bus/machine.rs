//! A bus over the simulated disk: both journals and the bus's own decisions, driven by one thread. Their turns come in
//! an order that the seed decides, one effect at a time, as the threads of a process take them.

use std::collections::VecDeque;

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use strandline::Disk;
use strandline_core::bus::{
    AckRequest, BusConfig, BusRequest, ConnectionId, Delivery, EventBus, RecordId, Restore, Subscribe,
    SubscriptionGap, Urgency,
};
use strandline_core::{EventDraft, Monotonic, Output, Pcpj, Pryj, Seq, Timestamp};

use super::story::Limits;
use crate::disk::SimDisk;
use crate::driven::{Driven, Stopped, stopped};

/// The machine and its clocks.
pub(crate) struct Machine {
    disk: SimDisk,
    limits: Limits,
    pub(crate) events: Driven<Pcpj>,
    records: Driven<Pryj>,
    pub(crate) bus: EventBus,
    /// Records that are on their way, oldest first.
    recording: VecDeque<(RecordId, Seq)>,
    /// The number that the next record is to get. A record is never appended behind a void.
    next_record: Option<Seq>,
    turns: ChaCha8Rng,
    /// How often records were refused for lack of space.
    pub(crate) refusals: u64,
    /// Those who may have something to do.
    awake: Vec<Turn>,
    pub(crate) now: u64,
    /// How far the wall clock is from the machine's own time, in milliseconds.
    pub(super) wall_offset: i64,
    /// What is to be recorded waits.
    pub(super) holds_records: bool,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Bus,
    Events,
    Records,
}

impl Turn {
    const ALL: [Self; 3] = [Self::Bus, Self::Events, Self::Records];
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// There was nothing to do.
    Idle,
    Did,
    /// The journal of events told something.
    Told(Output),
}

/// What a subscriber was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Event(u64, Vec<u8>),
    Gap(SubscriptionGap),
    Awaiting(u64),
    Nothing,
}

impl Machine {
    /// Opens what is on the disk.
    pub(crate) fn open(disk: SimDisk, limits: Limits, now: u64, wall_offset: i64) -> Result<Self, Stopped> {
        let records = Driven::<Pryj>::open(&disk, "subscriptions", limits.records_config())?;
        let mut restore = Restore::new();
        records.each(records.journal.view().first(), |record| {
            restore.take(record.seq, record.payload).map_err(stopped)
        })?;
        let events = Driven::<Pcpj>::open(&disk, "event-journal", limits.events_config())?;
        let wall = wall(now, wall_offset);
        let bus = restore.start(limits.bus, Monotonic::from_millis(now), wall, events.journal.view());
        let turns = ChaCha8Rng::seed_from_u64(limits.turns);
        let (recording, next_record, holds_records) = (VecDeque::new(), None, false);
        let mut machine = Self {
            disk,
            limits,
            events,
            records,
            bus,
            recording,
            next_record,
            turns,
            refusals: 0,
            awake: Vec::new(),
            now,
            wall_offset,
            holds_records,
        };
        machine.run()?;
        Ok(machine)
    }

    pub(crate) fn wall(&self) -> Timestamp {
        wall(self.now, self.wall_offset)
    }

    pub(crate) fn monotonic(&self) -> Monotonic {
        Monotonic::from_millis(self.now)
    }

    /// Publishes one event; gives whether it is durable.
    pub(super) fn publish(&mut self, draft: EventDraft<'_>) -> Result<bool, Stopped> {
        let before = self.end();
        self.events.journal.append(self.wall(), draft).map_err(stopped)?;
        self.run()?;
        if self.events.journal.waits_for_room() {
            self.events.journal.refuse_waiting();
            self.run()?;
        }
        Ok(self.end() > before)
    }

    /// Whatever there is to do, until nothing is left or there is no space for it.
    pub(crate) fn run(&mut self) -> Result<(), Stopped> {
        self.wake();
        while self.turn()?.is_some() {}
        Ok(())
    }

    /// Something happened: there may be something to do for everybody.
    pub(crate) fn wake(&mut self) {
        self.awake = Turn::ALL.to_vec();
    }

    /// Whether nobody has anything to do.
    #[cfg(feature = "network")]
    pub(crate) fn is_quiet(&self) -> bool {
        self.awake.is_empty()
    }

    /// How long nobody will have anything to do, in milliseconds; for ever, if nothing comes from outside.
    #[cfg(feature = "network")]
    pub(crate) fn sleeps_ms(&self) -> Option<u64> {
        let (now, events) = (self.monotonic(), &self.events.journal);
        let journals = [events.next_deadline(), self.records.journal.next_deadline()];
        let bus = self.bus.next_deadline(now, events.view());
        let next = journals.into_iter().chain([bus]).flatten().min()?;
        Some(next.as_millis().saturating_sub(self.now))
    }

    /// The turn of one who is awake; nothing once nobody is.
    pub(crate) fn turn(&mut self) -> Result<Option<Turned>, Stopped> {
        let Some(turn) = self.awake.choose(&mut self.turns).copied() else { return Ok(None) };
        let did = |did: bool| if did { Turned::Did } else { Turned::Idle };
        let turned = match turn {
            Turn::Bus => did(self.decide()?),
            Turn::Records => did(self.record()?),
            Turn::Events => match self.events.step()? {
                Some(Some(told)) => Turned::Told(told),
                step => did(step.is_some()),
            },
        };
        match turned {
            Turned::Idle => self.awake.retain(|other| *other != turn),
            Turned::Did | Turned::Told(_) => self.wake(),
        }
        Ok(Some(turned))
    }

    /// The bus looks at what there is, and asks for what follows from it.
    fn decide(&mut self) -> Result<bool, Stopped> {
        let occupied = self.limits.occupied(self.other_bytes(), self.events.journal.room_wanted());
        let (now, wall) = (self.monotonic(), self.wall());
        self.events.journal.tick(now);
        self.records.journal.tick(now);
        self.bus.tick(now, wall, self.events.journal.view(), occupied);
        let mut did_something = false;
        while self.may_record()
            && let Some(request) = self.bus.poll_request(now)
        {
            did_something = true;
            match request {
                BusRequest::Record { id, payload } => {
                    let accepted = self.records.journal.append(wall, &payload).map_err(stopped)?;
                    self.bus.handle_accepted(id, accepted.seq);
                    self.recording.push_back((id, accepted.seq));
                    self.next_record = Some(accepted.seq.next());
                }
                BusRequest::TrimEvents { to } => self.events.journal.trim_to(to),
                BusRequest::TrimRecords { to } => self.records.journal.trim_to(to),
            }
        }
        Ok(did_something)
    }

    /// Nobody holds records back, and none was lost that the bus has not been told of.
    fn may_record(&self) -> bool {
        let next = self.records.journal.next_seq();
        !self.holds_records && self.next_record.is_none_or(|expected| expected == next)
    }

    /// One step of the journal of records, and telling the bus what it means.
    fn record(&mut self) -> Result<bool, Stopped> {
        let Some(told) = self.records.step()? else { return Ok(false) };
        match told {
            Some(Output::Durable { end, .. }) => {
                let mut newest = None;
                while let Some((id, seq)) = self.recording.front().copied()
                    && seq < end
                {
                    newest = Some(id);
                    self.recording.pop_front();
                }
                if let Some(id) = newest {
                    self.bus.handle_recorded(id);
                    self.bus.compact_records(self.records.journal.view());
                }
            }
            Some(Output::Void { .. }) => self.refused(),
            _ => {}
        }
        Ok(true)
    }

    fn refused(&mut self) {
        self.refusals += 1;
        self.recording.clear();
        self.next_record = None;
        self.bus.handle_refused(self.monotonic());
    }

    pub(super) fn subscribe(&mut self, request: Subscribe) -> Result<ConnectionId, Stopped> {
        let wall = self.wall();
        let connection = self.bus.subscribe(wall, request, self.events.journal.view()).map_err(stopped)?;
        self.run()?;
        Ok(connection)
    }

    /// What the connection is given next.
    pub(super) fn next(&mut self, connection: ConnectionId) -> Result<Vec<Given>, Stopped> {
        loop {
            match self.bus.poll_delivery(connection, self.events.journal.view()) {
                Delivery::Events(batch) => {
                    let given = |event: strandline_core::Event<'_>| {
                        Given::Event(event.seq.get(), event.payload.to_vec())
                    };
                    return Ok(batch.events().map(given).collect());
                }
                Delivery::Read(request) => {
                    let bytes = self.events.read(request)?;
                    self.bus.handle_read(connection, Ok(bytes)).map_err(stopped)?;
                }
                Delivery::Gap(gap) => return Ok(vec![Given::Gap(gap)]),
                Delivery::Awaiting { sequence } => return Ok(vec![Given::Awaiting(sequence.get())]),
                Delivery::CaughtUp | Delivery::Ended => return Ok(vec![Given::Nothing]),
            }
        }
    }

    /// Acknowledges; gives whether it was taken and is durable.
    pub(super) fn acknowledge(&mut self, connection: ConnectionId, sequence: u64) -> Result<bool, Stopped> {
        let ack = AckRequest { subscription_id: connection.subscription, sequence: Seq::new(sequence) };
        let taken = self.bus.acknowledge(self.monotonic(), self.wall(), ack, Urgency::Now).is_ok();
        self.run()?;
        Ok(taken && self.bus.is_recorded(connection.subscription))
    }

    pub(super) fn disconnect(&mut self, connection: ConnectionId) -> Result<(), Stopped> {
        self.bus.disconnect(self.monotonic(), self.wall(), connection);
        self.run()
    }

    /// Whether everything about the subscription is on the disk.
    pub(super) fn is_recorded(&self, connection: ConnectionId) -> bool {
        self.bus.is_recorded(connection.subscription)
    }

    /// The pointer of a durable subscription, and whether it has a gap.
    pub(super) fn pointer(&self, name: &str) -> Option<(u64, bool)> {
        let status = self.bus.status(self.bus.find(name)?, self.events.journal.view())?;
        Some((status.pointer.get(), status.gap.is_some()))
    }

    /// Bytes of the events' segments.
    pub(super) fn event_bytes(&self) -> u64 {
        self.events.journal.view().bytes()
    }

    /// Every event that is kept, with its payload.
    pub(super) fn events(&self) -> Result<Vec<(u64, Vec<u8>)>, Stopped> {
        let mut events = Vec::new();
        self.events.each(self.events.journal.view().first(), |event| {
            events.push((event.seq.get(), event.payload.to_vec()));
            Ok(())
        })?;
        Ok(events)
    }

    pub(crate) fn first(&self) -> u64 {
        self.events.journal.view().first().get()
    }

    /// One past the last durable event.
    pub(crate) fn end(&self) -> u64 {
        self.events.journal.view().durable_end().get()
    }

    /// Closes both journals.
    pub(crate) fn close(&mut self) -> Result<(), Stopped> {
        self.bus.record_now();
        self.run()?;
        self.records.close()?;
        self.events.close()
    }

    fn other_bytes(&self) -> u64 {
        bytes(&self.disk) - segment_bytes(&self.disk)
    }
}

fn wall(now: u64, offset: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + i64::try_from(now).unwrap_or(i64::MAX).saturating_add(offset))
}

/// Bytes of all files.
pub(crate) fn bytes(disk: &SimDisk) -> u64 {
    disk.list().map_or(0, |entries| entries.iter().map(|entry| entry.len).sum())
}

/// Bytes of the files of events, reserved zeros included.
pub(super) fn segment_bytes(disk: &SimDisk) -> u64 {
    let events = |name: &str| name.starts_with("event-journal-") && name.ends_with(".seg");
    let entries = disk.list().unwrap_or_default();
    entries.iter().filter(|entry| events(&entry.name)).map(|entry| entry.len).sum()
}

/// The settings of the bus in a run.
pub(super) fn small_bus(bus: BusConfig) -> BusConfig {
    BusConfig { subscriptions_bytes_max: 600, ..bus }
}
