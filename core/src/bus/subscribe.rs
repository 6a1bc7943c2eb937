//! A subscriber arrives: what it missed decides how it begins.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::gap::{GapReason, RecordedGap};
use super::lifecycle::{Trigger, next_state};
use super::record::Record;
use super::subscription::{Connection, Phase, Undelivered, Unrecorded};
use super::{ConnectionId, EventBus, RecordId, SubscribeError, Subscription, SubscriptionId};
use crate::{Cursor, Filter, Pcpj, ReadUpTo, Seq, Timestamp, View};

/// The longest name of a subscription, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// The longest filter, in bytes of its texts.
const FILTER_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a subscription's record beside its texts, with room for their lengths.
const RECORD_BYTES: usize = 96;

/// What a subscriber asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscribe {
    /// The name of a durable subscription; none for one that leaves nothing behind.
    pub name: Option<Box<str>>,
    /// Which events it wants. A durable subscription that comes back with another filter has that one from then on.
    pub filter: Filter,
    /// The last event that the subscriber has processed; 0 for the beginning. Without one, a durable subscription goes
    /// on where it was acknowledged, and a new one begins with what is published next.
    pub last_sequence: Option<Seq>,
}

impl Subscribe {
    /// A subscription that keeps its place while the subscriber is away.
    #[must_use]
    pub fn durable(name: &str) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// The same, from the event after this one.
    #[must_use]
    pub fn after(self, last_sequence: u64) -> Self {
        Self { last_sequence: Some(Seq::new(last_sequence)), ..self }
    }

    /// The same, of these events only.
    #[must_use]
    pub fn filter(self, filter: Filter) -> Self {
        Self { filter, ..self }
    }
}

/// How a connection begins.
enum Start {
    Live,
    Replay { last: Seq },
    Gap(RecordedGap),
}

impl EventBus {
    /// Connects a subscriber. If its subscription was connected, the older connection is taken over.
    ///
    /// The subscription is durable once [`is_recorded`](Self::is_recorded) says so.
    ///
    /// # Errors
    /// [`SubscribeError`]; nothing was changed then.
    pub fn subscribe(
        &mut self,
        wall: Timestamp,
        request: Subscribe,
        events: &View<Pcpj>,
    ) -> Result<ConnectionId, SubscribeError> {
        let known = self.check(&request)?;
        let end = events.durable_end();
        let id = match known {
            Some(id) => id,
            None => self.create(wall, &request, end),
        };
        self.next_connection += 1;
        let number = self.next_connection;
        let first = events.first().max(self.trim.as_ref().map_or(Seq::ZERO, |trim| trim.to));
        let replay_max = self.config.replay_events_max;
        let Some(found) = self.subscriptions.get_mut(&id) else {
            return Ok(ConnectionId { subscription: id, number });
        };
        if *found.filter != request.filter {
            found.filter = Arc::new(request.filter);
            found.touch(Unrecorded::Everything);
        }
        let from = found.arrive(wall, request.last_sequence, end);
        let start = match from {
            None => Start::Gap(found.beyond(first, end)),
            Some(from) => found.start(from, first, replay_max, events),
        };
        found.connect(number, start, end, from.unwrap_or(end));
        let live = matches!(found.connection.as_ref().map(|connection| connection.phase), Some(Phase::Live));
        let trigger = if live { Trigger::Subscribe } else { Trigger::SubscribeBehind };
        if known.is_some() {
            found.change(trigger, wall);
        } else if let Some(state) = next_state(None, trigger) {
            found.state = state;
        }
        self.urgent = true;
        Ok(ConnectionId { subscription: id, number })
    }

    /// Whether the request is one, and the subscription that it means.
    fn check(&self, request: &Subscribe) -> Result<Option<SubscriptionId>, SubscribeError> {
        let Some(name) = &request.name else { return Ok(None) };
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(SubscribeError::Name { name: name.clone(), max: NAME_BYTES_MAX });
        }
        let len = filter_bytes(&request.filter);
        if len > FILTER_BYTES_MAX {
            return Err(SubscribeError::Filter { name: name.clone(), len, max: FILTER_BYTES_MAX });
        }
        let known = self.find(name);
        let others = self.subscriptions.values().filter(|other| Some(other.id) != known);
        let taken: usize = others.filter_map(|other| record_bytes(other.name.as_ref()?, &other.filter)).sum();
        let bytes = taken.saturating_add(record_bytes(name, &request.filter).unwrap_or(0));
        if bytes > self.config.subscriptions_bytes_max {
            let max = self.config.subscriptions_bytes_max;
            return Err(SubscribeError::Full { count: self.names.len(), bytes: taken, max });
        }
        Ok(known)
    }

    fn create(&mut self, wall: Timestamp, request: &Subscribe, end: Seq) -> SubscriptionId {
        let id = SubscriptionId::new(self.next_id);
        self.next_id += 1;
        let newest = end.previous();
        let pointer = request.last_sequence.map_or(newest, |last| last.min(newest));
        if let Some(name) = &request.name {
            self.names.insert(name.clone(), id);
            self.records.push_back(Record::NextId(self.next_id));
        }
        let mut subscription = Subscription {
            id,
            name: request.name.clone(),
            filter: Arc::new(request.filter.clone()),
            pointer,
            passed: pointer.next(),
            delivered: pointer,
            state: super::lifecycle::SubscriptionState::Live,
            since: wall,
            gap: None,
            connection: None,
            unrecorded: Unrecorded::Nothing,
            record: RecordId::default(),
        };
        subscription.touch(Unrecorded::Everything);
        self.subscriptions.insert(id, subscription);
        id
    }
}

impl Subscription {
    /// Where the subscriber stands: the first event that it has not processed, or none if it has seen numbers that the
    /// journal does not have.
    fn arrive(&mut self, wall: Timestamp, last_sequence: Option<Seq>, end: Seq) -> Option<Seq> {
        let Some(last) = last_sequence else { return Some(self.passed) };
        if last >= end {
            return None;
        }
        self.delivered = self.delivered.max(last);
        // It has processed what the gap was to tell it of.
        let behind_gap = |gap: &RecordedGap| gap.reason != GapReason::Beyond && last.next() >= gap.end;
        if self.gap.as_ref().is_some_and(behind_gap) {
            if self.state == super::lifecycle::SubscriptionState::Expired {
                self.change(Trigger::AcknowledgeEnd, wall);
            }
            self.gap = None;
            self.pointer = self.pointer.max(last);
            self.passed = self.passed.max(last.next());
            self.touch(Unrecorded::Everything);
        }
        // Behind its own acknowledgements it wants those events again; before them, it does not want what
        // went by.
        Some(if last < self.pointer { last.next() } else { self.passed.max(last.next()) })
    }

    /// The gap of a subscriber that is ahead of the journal.
    fn beyond(&self, first: Seq, end: Seq) -> RecordedGap {
        let from = self.gap.map_or(first, |gap| gap.from.min(first));
        RecordedGap { from, end, count: None, reason: GapReason::Beyond }
    }

    fn start(&self, from: Seq, first: Seq, replay_max: u64, events: &View<Pcpj>) -> Start {
        let end = events.durable_end();
        if let Some(gap) = self.gap {
            // Behind its own acknowledgements, what it wants again is part of what it does not get.
            let more = (from >= first).then(|| events.count_matches(&self.filter, from, gap.from));
            let wider =
                RecordedGap { from, count: gap.count.zip(more).map(|(count, more)| count + more), ..gap };
            return Start::Gap(if from < gap.from { wider } else { gap });
        }
        if from < first {
            let reason = GapReason::Expired;
            return Start::Gap(RecordedGap { from, end: first, count: None, reason });
        }
        let count = events.count_matches(&self.filter, from, end);
        match events.last_match(&self.filter, from, end) {
            None => Start::Live,
            Some(_) if count > replay_max => {
                let reason = GapReason::TooMany;
                Start::Gap(RecordedGap { from, end, count: Some(count), reason })
            }
            Some(last) => Start::Replay { last: last.seq },
        }
    }

    fn connect(&mut self, number: u64, start: Start, end: Seq, from: Seq) {
        let (phase, undelivered) = match start {
            Start::Live => (Phase::Live, None),
            Start::Replay { last } => (Phase::Replaying { end, last }, None),
            Start::Gap(gap) => {
                if self.gap != Some(gap) {
                    self.gap = Some(gap);
                    self.touch(Unrecorded::Everything);
                }
                (Phase::GapDue, Some(Undelivered { from: gap.from, lost: gap.count, told: None }))
            }
        };
        let cursor = Cursor::new(from, ReadUpTo::Durable);
        self.connection = Some(Connection { number, cursor, phase, undelivered });
    }
}

fn filter_bytes(filter: &Filter) -> usize {
    let texts = filter.sources().chain(filter.event_types());
    texts.map(|text| text.len() + 2).sum::<usize>() + filter.domains().len()
}

fn record_bytes(name: &str, filter: &Filter) -> Option<usize> {
    Some(RECORD_BYTES + name.len() + filter_bytes(filter))
}
