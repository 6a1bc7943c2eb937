//! Doing what the story says, noting what was promised, and looking at what a crash has left.

use strandline::{Access, Disk};
use strandline_core::EventDraft;
use strandline_core::bus::{ConnectionId, GapReason, Subscribe};

use super::machine::{Given, Machine, bytes, segment_bytes};
use super::promise::{BusPromise, Known, known, published};
use super::story::{BusStory, NAMES, Step, filter, payload, seq, source, wants};
use crate::disk::SimDisk;
use crate::driven::Stopped;
use crate::explorer::{Application, Promises};

/// Bytes that one step publishes at most, marks included.
const PUBLISHED_MAX: u64 = 11 * (34 + 2 + 22 + 2 * 58);

/// The file that says that a check has begun to acknowledge.
const CHECKED: &str = "checked";

/// A subscriber while the story runs.
#[derive(Clone, Copy, Debug, Default)]
struct Subscriber {
    connection: Option<ConnectionId>,
    /// The last event that it was given, or the end of a gap.
    position: u64,
}

struct Telling<'a> {
    story: &'a BusStory,
    disk: SimDisk,
    machine: Machine,
    subscribers: [Subscriber; NAMES.len()],
    promises: &'a mut Promises<BusPromise>,
}

impl Application for BusStory {
    type Promise = BusPromise;

    fn run(&self, disk: SimDisk, promises: &mut Promises<BusPromise>) {
        let machine = Machine::open(disk.clone(), self.limits, 0, 0).expect("an empty disk");
        let mut telling = Telling { story: self, disk, machine, subscribers: Default::default(), promises };
        for step in &self.steps {
            let before = telling.needs();
            telling = telling.step(*step).expect("a disk that only fills up");
            telling.hold_pins(*step, before);
            if let Err(found) = self.within_bounds(&telling.disk) {
                panic!("{found} after {step:?}");
            }
        }
    }

    fn check(&self, disk: SimDisk, promised: &[BusPromise]) -> Result<(), String> {
        self.within_bounds(&disk)?;
        // Later than anything in the story, so that time has passed; nothing grew old by it.
        let mut machine =
            Machine::open(disk.clone(), self.limits, 1_000_000, -1_000_000).map_err(|Stopped(why)| why)?;
        // It opens on a full disk; what it could not record is tried again once there is space.
        disk.set_capacity(None);
        machine.now += 2_000;
        machine.wall_offset -= 2_000;
        machine.run().map_err(|Stopped(why)| why)?;
        // A crash in here comes after acknowledgements that no promise tells of.
        let has_acknowledged = disk.open(CHECKED, Access::Read).is_ok();
        let mut check = Check { machine, promised, has_acknowledged };
        check.events()?;
        if !has_acknowledged {
            disk.create(CHECKED).and_then(|_| disk.sync_directory()).map_err(|error| error.to_string())?;
        }
        let mut acknowledged = Vec::new();
        for who in 0..NAMES.len() {
            acknowledged.push(check.subscriber(who)?);
        }
        let mut again =
            Machine::open(disk, self.limits, 2_000_000, -2_000_000).map_err(|Stopped(why)| why)?;
        for (who, pointer) in acknowledged.into_iter().enumerate() {
            let found = again.pointer(NAMES[who]).map(|(pointer, _)| pointer);
            if pointer.is_some() && found != pointer {
                return Err(format!(
                    "B2: {} stood at {pointer:?}, and after another start at {found:?}",
                    NAMES[who]
                ));
            }
        }
        again.close().map_err(|Stopped(why)| why)
    }
}

impl BusStory {
    fn within_bounds(&self, disk: &SimDisk) -> Result<(), String> {
        let all = ("all files", bytes(disk), self.limits.bytes_max());
        let events = ("the segments of events", segment_bytes(disk), self.limits.segments_max());
        for (what, found, bound) in [all, events] {
            if found > bound {
                return Err(format!("B6: {what} have {found} bytes, the bound is {bound}"));
            }
        }
        Ok(())
    }
}

impl Telling<'_> {
    /// How large the events are, and the first event that each durable subscription without a gap needs.
    fn needs(&self) -> (u64, [Option<u64>; NAMES.len()]) {
        (self.machine.event_bytes(), std::array::from_fn(|who| self.needed(who)))
    }

    /// The first event that a durable subscription wants and has not acknowledged, unless all it will get is a gap.
    fn needed(&self, who: usize) -> Option<u64> {
        let (pointer, has_gap) = self.machine.pointer(NAMES[who])?;
        (pointer + 1..self.machine.end()).find(|number| !has_gap && wants(who, *number))
    }

    /// Holds what went during a step against the bounds: what somebody needs goes only when it has to.
    fn hold_pins(&self, step: Step, (bytes, needs): (u64, [Option<u64>; NAMES.len()])) {
        let limits = &self.story.limits;
        // One that subscribes may find a gap of its own making, and time takes what is too old.
        let has_to = bytes + PUBLISHED_MAX + 2 * limits.event_segment > limits.segments_max();
        if has_to || limits.bus.retention.age_ms_max.is_some() || matches!(step, Step::Subscribe { .. }) {
            return;
        }
        for (name, needed) in NAMES.iter().zip(needs) {
            let went = needed.filter(|needed| *needed < self.machine.first());
            assert!(went.is_none(), "B8: {name} needs {went:?}, which went at {bytes} bytes");
        }
    }

    fn step(mut self, step: Step) -> Result<Self, Stopped> {
        match step {
            Step::Publish(count) => self.publish(count)?,
            Step::Subscribe { who, says } => self.subscribe(who, says)?,
            Step::Receive { who } => self.receive(who)?,
            Step::Acknowledge { who, back } => {
                let sequence = self.subscribers[who].position.saturating_sub(back);
                self.acknowledge(who, sequence)?;
            }
            Step::AcknowledgeWrongly { who } => {
                if let Some(connection) = self.subscribers[who].connection {
                    let never = self.machine.end() + 5;
                    assert!(!self.machine.acknowledge(connection, never)?, "never delivered");
                    // Once more what is long acknowledged: it settles nothing.
                    let (pointer, _) = self.machine.pointer(NAMES[who]).unwrap_or_default();
                    self.acknowledge(who, pointer)?;
                }
            }
            Step::Leave { who } => {
                if let Some(connection) = self.subscribers[who].connection.take() {
                    self.machine.disconnect(connection)?;
                }
            }
            Step::Restart => return self.restart(),
            Step::Wait(ms) => {
                self.machine.now += ms;
                self.machine.run()?;
            }
            Step::ClockSteps(ms) => self.machine.wall_offset += ms,
            Step::HoldRecords(hold) => {
                self.machine.holds_records = hold;
                self.machine.run()?;
            }
            Step::DiskFull(full) => {
                let capacity = full.then(|| bytes(&self.disk));
                self.disk.set_capacity(capacity);
            }
        }
        Ok(self)
    }

    fn restart(mut self) -> Result<Self, Stopped> {
        let (now, offset) = (self.machine.now, self.machine.wall_offset);
        self.disk.set_capacity(None);
        self.machine = Machine::open(self.disk.clone(), self.story.limits, now, offset)?;
        self.subscribers = Default::default();
        Ok(self)
    }

    fn publish(&mut self, count: u64) -> Result<(), Stopped> {
        for _ in 0..count {
            let next = self.machine.end();
            let (payload, source) = (payload(next), source(next));
            let draft = EventDraft { domain: 1, event_type: "t", source, payload: &payload };
            if self.machine.publish(draft)? {
                self.promises.promise(BusPromise::Published { end: next + 1 });
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, who: usize, says: Option<u64>) -> Result<(), Stopped> {
        let says = says.map(|says| says.min(self.machine.end() - 1));
        if let Some(sequence) = says {
            self.promises.promise(BusPromise::Said { who, sequence });
        }
        let request = Subscribe { last_sequence: says.map(seq), ..Subscribe::durable(NAMES[who]) };
        let newest = self.machine.end() - 1;
        let known = self.machine.pointer(NAMES[who]).is_some();
        if !known {
            self.promises.promise(BusPromise::Asked { who, sequence: says.unwrap_or(newest) });
        }
        let connection = self.machine.subscribe(request.filter(filter(who)))?;
        let (pointer, _) = self.machine.pointer(NAMES[who]).unwrap_or_default();
        let position = says.unwrap_or(pointer);
        self.subscribers[who] = Subscriber { connection: Some(connection), position };
        if self.machine.is_recorded(connection) {
            self.promises.promise(BusPromise::Subscribed { who, pointer });
        }
        Ok(())
    }

    fn receive(&mut self, who: usize) -> Result<(), Stopped> {
        let Some(connection) = self.subscribers[who].connection else { return Ok(()) };
        for given in self.machine.next(connection)? {
            match given {
                Given::Event(number, _) => self.subscribers[who].position = number,
                Given::Gap(gap) => {
                    let resume_after = gap.resume_after.get();
                    self.subscribers[who].position = resume_after;
                    self.promises.promise(BusPromise::GapTold { who, resume_after });
                }
                Given::Awaiting(_) | Given::Nothing => {}
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, who: usize, sequence: u64) -> Result<(), Stopped> {
        let Some(connection) = self.subscribers[who].connection else { return Ok(()) };
        let (before, _) = self.machine.pointer(NAMES[who]).unwrap_or_default();
        self.promises.promise(BusPromise::Asked { who, sequence });
        let durable = self.machine.acknowledge(connection, sequence)?;
        let (pointer, gap) = self.machine.pointer(NAMES[who]).unwrap_or_default();
        assert!(pointer >= before, "B2: a pointer moved from {before} back to {pointer}");
        if durable {
            self.promises.promise(BusPromise::Acknowledged { who, sequence: pointer });
        }
        if gap {
            // One that has grown meanwhile is told again, as a whole.
            self.promises.promise(BusPromise::GapTold { who, resume_after: self.machine.end() - 1 });
        }
        Ok(())
    }
}

/// Looking at what is left.
struct Check<'a> {
    machine: Machine,
    promised: &'a [BusPromise],
    has_acknowledged: bool,
}

impl Check<'_> {
    fn events(&self) -> Result<(), String> {
        let events = self.machine.events().map_err(|Stopped(why)| why)?;
        let (first, end) = (self.machine.first(), self.machine.end());
        if end < published(self.promised) {
            return Err(format!(
                "B1: {} were published, the journal ends at {end}",
                published(self.promised)
            ));
        }
        for (number, (found, bytes)) in (first..end).zip(&events) {
            if number != *found || *bytes != payload(number) {
                return Err(format!("B1: event {found} stands where {number} belongs, or is another"));
            }
        }
        let whole = events.len() as u64 == end - first;
        if whole { Ok(()) } else { Err(format!("B1: {} events in {first}..{end}", events.len())) }
    }

    /// Has the subscriber come back and take everything; gives where it then stands.
    fn subscriber(&mut self, who: usize) -> Result<Option<u64>, String> {
        let (name, mut known) = (NAMES[who], known(self.promised, who));
        if self.has_acknowledged {
            known = Known { pointer_max: u64::MAX, gap: None, ..known };
        }
        let found = self.machine.pointer(name);
        let (Some(least), Some((pointer, has_gap))) = (known.pointer_min, found) else {
            let lost = known.pointer_min.is_some();
            return if lost { Err(format!("B7: {name} is gone")) } else { Ok(None) };
        };
        if pointer < least || pointer > known.pointer_max {
            return Err(format!("B2: {name} stands at {pointer}, not in {least}..={}", known.pointer_max));
        }
        if known.gap.is_some() && !has_gap {
            return Err(format!("B4: {name} was told a gap and has not acknowledged it"));
        }
        let request = Subscribe::durable(name).filter(filter(who));
        let connection = self.machine.subscribe(request).map_err(|Stopped(why)| why)?;
        let mut position = pointer;
        let (mut gap_is_due, mut has_published) = (known, false);
        // More than there can be is a loop.
        for _ in 0..200 {
            let given = self.machine.next(connection).map_err(|Stopped(why)| why)?;
            for one in given {
                match self.take(who, one, &mut position, &mut gap_is_due)? {
                    Next::More => {}
                    Next::Acknowledge(sequence) => {
                        // It comes while the acknowledgement is awaited, and is live behind it.
                        if !std::mem::replace(&mut has_published, true) {
                            self.publish()?;
                        }
                        let taken = self.machine.acknowledge(connection, sequence);
                        if !taken.map_err(|Stopped(why)| why)? {
                            return Err(format!("B3: {name} cannot acknowledge {sequence}"));
                        }
                    }
                    Next::End => return self.stands(who, connection, position),
                }
            }
        }
        Err(format!("B3: {name} is never done"))
    }

    fn publish(&mut self) -> Result<(), String> {
        let next = self.machine.end();
        let payload = payload(next);
        let draft = EventDraft { domain: 1, event_type: "t", source: source(next), payload: &payload };
        self.machine.publish(draft).map(drop).map_err(|Stopped(why)| why)
    }

    fn take(&self, who: usize, given: Given, position: &mut u64, known: &mut Known) -> Result<Next, String> {
        let end = self.machine.end();
        let next = (*position + 1..end).find(|number| wants(who, *number));
        match given {
            Given::Event(number, bytes) => {
                if known.gap.is_some() || Some(number) != next || bytes != payload(number) {
                    return Err(format!("B3: {} was given {number} behind {position}", NAMES[who]));
                }
                *position = number;
            }
            Given::Gap(gap) => {
                let (from, to) = (gap.from.get(), gap.to.get());
                if next.is_some_and(|next| from > next) || to + 1 != end {
                    return Err(format!("B3: {} misses {next:?}, and is told {gap}", NAMES[who]));
                }
                let wanted = (from..end).filter(|number| wants(who, *number)).count() as u64;
                if gap.reason == GapReason::Expired && gap.count.is_none() && !known.has_said {
                    return Err(format!("B4: what {} lost is not recorded: {gap}", NAMES[who]));
                }
                if gap.count.is_some_and(|count| count != wanted) {
                    return Err(format!("B3: {wanted} are wanted, and {} is told {gap}", NAMES[who]));
                }
                (*position, known.gap) = (to, None);
            }
            Given::Awaiting(sequence) if sequence <= *position => return Ok(Next::Acknowledge(sequence)),
            Given::Awaiting(sequence) => {
                return Err(format!("B5: {} awaits {sequence}, and was given {position}", NAMES[who]));
            }
            Given::Nothing if next.is_none() => return Ok(Next::End),
            Given::Nothing => return Err(format!("B3: {} was not given {next:?}", NAMES[who])),
        }
        Ok(Next::More)
    }

    fn stands(&mut self, who: usize, connection: ConnectionId, position: u64) -> Result<Option<u64>, String> {
        self.machine.acknowledge(connection, position).map_err(|Stopped(why)| why)?;
        Ok(self.machine.pointer(NAMES[who]).map(|(pointer, _)| pointer))
    }
}

enum Next {
    More,
    Acknowledge(u64),
    End,
}
