//! What is known of a run from outside: which events are durable, what publishers were answered, what each subscriber was given.
//! Everything that is told is held against it at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strandline_bus::Gap;

use super::place::Place;
use crate::bus::machine::Machine;
use crate::trace::Trace;

/// A ledger that everybody writes into.
#[derive(Clone)]
pub(super) struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event as a publisher sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) id: String,
    pub(super) source: &'static str,
    /// The CloudEvent.
    pub(super) text: String,
}

/// What a journal keeps from some event on.
pub(super) struct Kept {
    first: u64,
    end: u64,
    events: Vec<(u64, String)>,
}

impl Kept {
    /// Everything from `from` on.
    pub(super) fn read(machine: &Machine, from: u64) -> Self {
        let (first, end) = (machine.first(), machine.end());
        let mut events = Vec::new();
        let read = machine.events.each(strandline_core::Seq::new(from.max(first)), |event| {
            events.push((event.seq.get(), String::from_utf8_lossy(event.payload).into_owned()));
            Ok(())
        });
        // A machine without power says nothing of what it has.
        if read.is_err() {
            events.clear();
        }
        Self { first, end, events }
    }
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkStatistics {
    /// Events that became durable.
    pub events: u64,
    /// Events that subscribers were given.
    pub deliveries: u64,
    /// Of them, those that they had been given before.
    pub again: u64,
    /// Gaps that subscribers were told.
    pub gaps: u64,
    /// Starts of the server.
    pub starts: u64,
    /// Faults of network, disks and machines.
    pub faults: u64,
    /// Simulated time, in milliseconds.
    pub elapsed_ms: u64,
}

impl NetworkStatistics {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.deliveries += other.deliveries;
        self.again += other.again;
        self.gaps += other.gaps;
        self.starts += other.starts;
        self.faults += other.faults;
        self.elapsed_ms += other.elapsed_ms;
    }
}

impl fmt::Display for NetworkStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, deliveries, again, gaps, starts, faults, elapsed_ms } = self;
        write!(
            f,
            "{events} events, {deliveries} deliveries ({again} repeated), {gaps} gaps, {starts} starts, {faults} faults in {} s",
            elapsed_ms / 1_000
        )
    }
}

/// One subscriber, as it is seen from outside.
pub(super) struct Seen {
    pub(super) name: String,
    /// The source that it wants; none for all.
    pub(super) source: Option<&'static str>,
    pub(super) place: Place,
    /// The newest event that it was ever given.
    pub(super) newest: u64,
    /// Whether it is to be given everything in the end.
    pub(super) is_served: bool,
}

/// The ledger of one run.
pub(super) struct Ledger {
    /// Every event that is or was durable.
    events: BTreeMap<u64, (String, &'static str)>,
    /// What publishers sent, by its text.
    sent: BTreeMap<String, Sent>,
    /// Events that were durable, and gone before anybody could say which they were.
    untold: BTreeSet<u64>,
    /// The numbers of each event's id.
    numbers: BTreeMap<String, Vec<u64>>,
    /// Where the running server's journal begins, and one past the last durable event.
    first: u64,
    end: u64,
    /// A replay has at most this many events.
    replay_max: u64,
    followers: Vec<Seen>,
    /// Events that a gap says are no longer kept. They have to go.
    to_go: Vec<u64>,
    pub(super) statistics: NetworkStatistics,
    trace: Trace,
    broken: Option<String>,
    /// Publishers that are not done, by their numbers.
    publishing: BTreeSet<usize>,
    /// The simulated time, in milliseconds, and when an event was last delivered.
    pub(super) now: u64,
    pub(super) moved_at: u64,
}

impl Ledger {
    pub(super) fn new(followers: Vec<Seen>, publishers: usize, replay_max: u64, trace: Trace) -> Self {
        Self {
            events: BTreeMap::new(),
            sent: BTreeMap::new(),
            untold: BTreeSet::new(),
            numbers: BTreeMap::new(),
            first: 1,
            end: 1,
            replay_max,
            followers,
            to_go: Vec::new(),
            statistics: NetworkStatistics::default(),
            trace,
            broken: None,
            publishing: (0..publishers).collect(),
            now: 0,
            moved_at: 0,
        }
    }

    /// One past the last event that is known to be durable.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn note(&mut self, line: impl fmt::Display) {
        let now = self.now;
        self.trace.line(&format!("{now} {line}"));
    }

    /// Something that must not be. The first one counts.
    fn breaks(&mut self, what: String) {
        self.note(&what);
        self.broken.get_or_insert(what);
    }

    pub(super) fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    /// The trace, at the end of the run.
    pub(super) fn take_trace(&mut self) -> Trace {
        std::mem::replace(&mut self.trace, Trace::silent())
    }

    /// A publisher is about to send it.
    pub(super) fn sends(&mut self, sent: &Sent) {
        self.sent.insert(sent.text.clone(), sent.clone());
    }

    /// The server says that these are durable.
    pub(super) fn durable(&mut self, kept: &Kept) {
        self.first = self.first.max(kept.first);
        for (number, text) in &kept.events {
            if *number > self.end {
                let end = self.end;
                self.breaks(format!("N1: event {number} became durable where {end} comes next"));
            }
            if *number >= self.end {
                self.is_new(*number, text);
            }
        }
    }

    fn is_new(&mut self, number: u64, text: &str) {
        self.end = number + 1;
        self.statistics.events += 1;
        let Some(sent) = self.sent.get(text).cloned() else {
            return self.breaks(format!("N1: event {number} is none that was sent: {text}"));
        };
        self.note(format_args!("durable {number} {}", sent.id));
        self.events.insert(number, (text.to_string(), sent.source));
        let first = self.first;
        let numbers = self.numbers.entry(sent.id.clone()).or_default();
        let twice = numbers.iter().copied().find(|before| *before >= first);
        numbers.push(number);
        if let Some(before) = twice {
            self.breaks(format!("N2: {} is event {before} and event {number}", sent.id));
        }
    }

    /// Where the running server's journal begins.
    pub(super) fn begins(&mut self, first: u64) {
        self.first = self.first.max(first);
        self.to_go.retain(|number| *number >= first);
    }

    /// A server starts over this.
    pub(super) fn starts(&mut self, kept: &Kept) {
        self.statistics.starts += 1;
        self.note(format_args!("starts with {}..{}", kept.first, kept.end));
        if kept.end < self.end {
            let (first, end) = (self.first, self.end);
            self.breaks(format!("N1: {first}..{end} was durable, and {}..{} is there", kept.first, kept.end));
        }
        // Of what became durable and was never told, retention may have dropped some already.
        self.untold.extend(self.end..kept.first);
        self.end = self.end.max(kept.first);
        // What was removed may be there again: nobody has waited for that to be durable.
        self.first = kept.first;
        // Nor has anybody to carry out what a server that is gone had in mind.
        self.to_go.clear();
        for (number, text) in &kept.events {
            match self.events.get(number) {
                Some((known, _)) if known == text => {}
                Some(_) => self.breaks(format!("N1: event {number} is another one than it was")),
                None => self.is_new(*number, text),
            }
        }
        let there = kept.events.len() as u64;
        if there != kept.end - kept.first {
            self.breaks(format!("N1: {there} events in {}..{}", kept.first, kept.end));
        }
    }

    /// A publisher was answered that its event has this number.
    pub(super) fn answered(&mut self, id: &str, number: u64) {
        self.note(format_args!("answered {id} {number}"));
        if !self.numbers.get(id).is_some_and(|numbers| numbers.contains(&number)) {
            self.breaks(format!("N1: {id} was answered to be event {number}, which is not durable"));
        }
    }

    /// The events from `from` on that a subscriber wants.
    fn wanted(&self, who: usize, from: u64) -> impl Iterator<Item = u64> {
        let wanted = self.followers.get(who).and_then(|follower| follower.source);
        let events = self.events.range(from..);
        let is_wanted = move |source| wanted.is_none_or(|wanted| wanted == source);
        events.filter(move |(_, (_, source))| is_wanted(*source)).map(|(number, _)| *number)
    }

    /// The next event behind `place` that a subscriber wants.
    fn next_wanted(&self, who: usize, place: u64) -> Option<u64> {
        self.wanted(who, place.saturating_add(1)).next()
    }

    fn follower(&mut self, who: usize) -> &mut Seen {
        self.followers.get_mut(who).expect("a subscriber of the story")
    }

    /// Changes what is expected of a subscriber.
    pub(super) fn expect(&mut self, who: usize, change: impl FnOnce(&mut Place)) {
        change(&mut self.follower(who).place);
        let Seen { name, place, .. } = self.follower(who);
        let line = format!("{name} stands {place:?}");
        self.note(line);
    }

    /// A subscriber was given an event.
    pub(super) fn event(&mut self, who: usize, number: u64, text: &str) {
        self.statistics.deliveries += 1;
        self.moved_at = self.now;
        let Seen { name, place, .. } = self.follower(who);
        let (name, place) = (name.clone(), *place);
        self.note(format_args!("{name} is given {number}"));
        let known = self.events.get(&number);
        if known.is_none_or(|(known, _)| known != text) {
            return self.breaks(format!(
                "N3: {name} was given event {number}, which is not durable as such: {text}"
            ));
        }
        let skipped = self.next_wanted(who, place.most).filter(|next| *next < number);
        if self.next_wanted(who, number - 1) != Some(number) {
            self.breaks(format!("N3: {name} was given event {number}, which it does not want"));
        } else if let Some(next) = skipped {
            self.breaks(format!("N3: {name} was given event {number}, and never {next}"));
        } else if number <= place.least {
            self.breaks(format!("N3: {name} was given event {number} again, behind {}", place.least));
        } else if place.owes_gap {
            self.breaks(format!(
                "N4: {name} was given event {number} in place of a gap that it has not acknowledged"
            ));
        }
        let seen = self.follower(who);
        let again = number <= seen.newest;
        (seen.place, seen.newest) = (Place::at(number), number.max(seen.newest));
        self.statistics.again += u64::from(again);
    }

    /// A subscriber was told a gap.
    pub(super) fn gap(&mut self, who: usize, gap: &Gap) {
        self.statistics.gaps += 1;
        let Seen { name, place, .. } = self.follower(who);
        let (name, place) = (name.clone(), *place);
        let text = format!("{name} is told {}", gap.to_text());
        self.note(&text);
        let next = self.next_wanted(who, place.most);
        if next.is_some_and(|next| gap.from > next) {
            self.breaks(format!("N3: {name} misses {next:?}, and is told {}", gap.to_text()));
        }
        if gap.resume_after != gap.to || gap.to >= self.end {
            self.breaks(format!("N3: {text}, where the journal ends at {}", self.end));
        }
        let wanted = self.wanted(who, gap.from).take_while(|number| *number <= gap.to).count() as u64;
        let untold = self.untold.range(gap.from..=gap.to.max(gap.from)).count() as u64;
        if gap.count.is_some_and(|count| !(wanted..=wanted + untold).contains(&count)) {
            self.breaks(format!("N3: {text}, of which it wants {wanted}"));
        }
        let is_due = match &*gap.reason {
            "too_many" => wanted > self.replay_max,
            // It is told as soon as that is recorded, and before the first of them goes.
            "expired" => {
                self.to_go.extend(Some(gap.from).filter(|from| *from >= self.first));
                true
            }
            _ => false,
        };
        if !is_due {
            self.breaks(format!("N5: {text} without need; the journal is {}..{}", self.first, self.end));
        }
        self.follower(who).place = Place { owes_gap: true, ..Place::at(gap.resume_after) };
    }

    /// A subscriber is told that nothing more comes until it acknowledges this.
    pub(super) fn awaits(&mut self, who: usize, sequence: u64) {
        let Seen { name, place, .. } = self.follower(who);
        if sequence > place.most {
            let what = format!("N3: {name} awaits {sequence}, and was given {}", place.most);
            self.breaks(what);
        }
    }

    /// A publisher has sent all it has.
    pub(super) fn has_published(&mut self, publisher: usize) {
        self.publishing.remove(&publisher);
    }

    /// Who has not sent, or has not been given, everything.
    pub(super) fn behind(&self) -> Option<String> {
        let waits = |(who, follower): (usize, &Seen)| {
            let next = self.next_wanted(who, follower.place.most).filter(|_| follower.is_served)?;
            Some(format!("{} waits for {next}", follower.name))
        };
        let publishes = self.publishing.first().map(|publisher| format!("p{publisher} is not done"));
        let goes = self.to_go.first().map(|number| format!("event {number} is told to be gone and is not"));
        publishes.or(goes).or_else(|| self.followers.iter().enumerate().find_map(waits))
    }

    /// The run ends without an end in sight.
    pub(super) fn never_ends(&mut self) {
        let who = self.behind().unwrap_or_default();
        self.breaks(format!("N6: {who}, although nothing is in the way any more"));
    }
}
