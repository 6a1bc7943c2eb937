//! One subscription: what is recorded of it, and the connection that is served.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::gap::{GapReason, RecordedGap, SubscriptionGap};
use super::lifecycle::{SubscriptionState, Trigger, next_state};
use super::record::{Presence, Record, Recorded};
use super::{Acknowledged, RecordId};
use crate::{Cursor, Filter, Pcpj, ReadUpTo, Seq, Timestamp, View};

/// The identity of a subscription. Never given out twice in one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(u64);

impl SubscriptionId {
    /// The subscription numbered `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One connection of a subscriber: what it is given by a subscribe. A later subscribe to the same subscription ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// Whose connection it is.
    pub subscription: SubscriptionId,
    pub(super) number: u64,
}

/// What is not on the disk yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unrecorded {
    Nothing,
    /// The pointer alone.
    Pointer,
    Everything,
}

/// A subscription while the bus runs.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) id: SubscriptionId,
    /// None for one that is not durable.
    pub(super) name: Option<Box<str>>,
    pub(super) filter: Arc<Filter>,
    /// The last event that was acknowledged.
    pub(super) pointer: Seq,
    /// Every event before it was acknowledged, or is not wanted.
    pub(super) passed: Seq,
    /// The last event that was delivered, or that the subscriber says it has seen.
    pub(super) delivered: Seq,
    pub(super) state: SubscriptionState,
    pub(super) since: Timestamp,
    /// What was missed and not acknowledged as such.
    pub(super) gap: Option<RecordedGap>,
    pub(super) connection: Option<Connection>,
    pub(super) unrecorded: Unrecorded,
    /// The last record of it.
    pub(super) record: RecordId,
}

/// Somebody is there.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) cursor: Cursor<Pcpj>,
    pub(super) phase: Phase,
    /// The part of the recorded gap that was not delivered: what this connection is to be told, or was told and has not
    /// acknowledged.
    pub(super) undelivered: Option<Undelivered>,
}

/// Events of a recorded gap that a connection was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    pub(super) from: Seq,
    /// How many it wanted of those up to the recorded end; none where that is unknown.
    pub(super) lost: Option<u64>,
    /// The end that it was told.
    pub(super) told: Option<Seq>,
}

/// What a connection is being given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The events before `end`, of which `last` is the last one that it wants.
    Replaying { end: Seq, last: Seq },
    /// A gap has to be told.
    GapDue,
    /// Nothing, until it acknowledges this.
    Awaiting { sequence: Seq, gap: bool },
    /// Whatever becomes durable.
    Live,
}

impl Subscription {
    pub(super) fn restored(recorded: Recorded, record: RecordId) -> Self {
        let Recorded { id, name, filter, pointer, passed, presence, since, gap } = recorded;
        let state = match presence {
            Presence::Expired => SubscriptionState::Expired,
            // Whoever was connected is not any more: the process that served it is gone.
            Presence::Connected | Presence::Suspended => SubscriptionState::Suspended,
        };
        Self {
            id,
            name: Some(name),
            filter: Arc::new(filter),
            pointer,
            passed,
            delivered: pointer,
            state,
            since,
            gap,
            connection: None,
            unrecorded: Unrecorded::Nothing,
            record,
        }
    }

    pub(super) const fn is_durable(&self) -> bool {
        self.name.is_some()
    }

    /// What is to be written of it, if anything.
    pub(super) fn to_record(&self) -> Option<Record> {
        match self.unrecorded {
            Unrecorded::Nothing => None,
            Unrecorded::Pointer => {
                Some(Record::Pointer { id: self.id, pointer: self.pointer, passed: self.passed })
            }
            Unrecorded::Everything => Some(Record::Subscription(Recorded {
                id: self.id,
                name: self.name.clone()?,
                filter: Filter::clone(&self.filter),
                pointer: self.pointer,
                passed: self.passed,
                presence: match self.state {
                    SubscriptionState::Live | SubscriptionState::Replaying => Presence::Connected,
                    SubscriptionState::Suspended => Presence::Suspended,
                    SubscriptionState::Expired => Presence::Expired,
                },
                since: self.since,
                gap: self.gap,
            })),
        }
    }

    /// Whether everything about it is durable, `recorded` being the newest record that is.
    pub(super) fn is_recorded(&self, recorded: RecordId) -> bool {
        self.unrecorded == Unrecorded::Nothing && self.record <= recorded
    }

    pub(super) fn touch(&mut self, what: Unrecorded) {
        if self.is_durable() {
            self.unrecorded = self.unrecorded.max(what);
        }
    }

    /// Takes the transition that the table has for this.
    pub(super) fn change(&mut self, on: Trigger, now: Timestamp) {
        let next = next_state(Some(self.state), on);
        debug_assert!(next.is_some(), "{} has no answer to {on:?}", self.state);
        if let Some(next) = next.filter(|next| *next != self.state) {
            (self.state, self.since) = (next, now);
            self.touch(Unrecorded::Everything);
        }
    }

    /// The first event that it can still be given, whether it wants it or not; none while a gap is all that it will be
    /// given.
    pub(super) fn needs_from(&self) -> Option<Seq> {
        let kept = self.passed.max(self.gap.map_or(self.passed, |gap| gap.end));
        let Some(connection) = &self.connection else { return self.gap.is_none().then_some(kept) };
        match connection.phase {
            Phase::GapDue => None,
            Phase::Awaiting { sequence, gap: true } => Some(sequence.next()),
            // What it asked for again, it needs again.
            Phase::Replaying { .. } => Some(kept.min(connection.cursor.next_seq())),
            Phase::Awaiting { .. } | Phase::Live => Some(kept),
        }
    }

    /// The first event that it wants and has not acknowledged: what pins retention.
    pub(super) fn pins(&self, view: &View<Pcpj>) -> Option<Seq> {
        let from = self.needs_from().filter(|_| self.is_durable())?;
        view.first_match(&self.filter, from, view.durable_end()).map(|place| place.seq)
    }

    /// Whether it may acknowledge this: an event that it was given, or the end of a gap that it was told.
    pub(super) fn may_acknowledge(&self, sequence: Seq) -> bool {
        sequence <= self.delivered || self.told_end() == Some(sequence)
    }

    /// Whether it has a gap that nobody who is connected was told.
    pub(super) fn is_gap_untold(&self) -> bool {
        self.gap.is_some() && self.told_end().is_none()
    }

    /// The end of the gap that the connection was told last.
    fn told_end(&self) -> Option<Seq> {
        self.connection.as_ref()?.undelivered?.told
    }

    /// Moves the pointer, which never moves back, and ends what waited for it.
    ///
    /// The end of a gap that has grown since it was told settles nothing: it is told again, as a whole.
    pub(super) fn acknowledge(&mut self, sequence: Seq, now: Timestamp) -> Acknowledged {
        let is_due = |connection: &Connection| connection.phase == Phase::GapDue;
        if sequence > self.delivered && self.connection.as_ref().is_some_and(is_due) {
            return Acknowledged::Noted;
        }
        if sequence > self.pointer {
            self.pointer = sequence;
            self.passed = self.passed.max(sequence.next());
            self.delivered = self.delivered.max(sequence);
            self.touch(Unrecorded::Pointer);
        }
        let phase = self.connection.as_ref().map(|connection| connection.phase);
        let covers_gap = self.gap.is_some_and(|gap| sequence.next() >= gap.end);
        let (settles, ends) = match phase {
            None => (covers_gap, self.state == SubscriptionState::Expired && covers_gap),
            Some(Phase::GapDue) => (false, false),
            Some(Phase::Live) => (covers_gap, false),
            Some(Phase::Awaiting { sequence: end, gap: true }) => (sequence >= end, sequence >= end),
            Some(Phase::Awaiting { sequence: end, .. } | Phase::Replaying { last: end, .. }) => {
                (covers_gap, sequence >= end)
            }
        };
        if settles && let Some(gap) = self.gap.take() {
            // What went behind the end that was told was not wanted, or the gap would be due again.
            self.passed = self.passed.max(gap.end);
            self.touch(Unrecorded::Everything);
            if let Some(connection) = &mut self.connection {
                connection.undelivered = None;
            }
        }
        if !ends {
            return Acknowledged::Noted;
        }
        if let Some(connection) = &mut self.connection {
            connection.phase = Phase::Live;
        }
        self.change(Trigger::AcknowledgeEnd, now);
        Acknowledged::GoesOn
    }

    /// Notes that it loses the events from `from` to before `end`, of which it wanted `lost`.
    pub(super) fn lose(&mut self, from: Seq, end: Seq, lost: u64) {
        self.gap = Some(match self.gap {
            Some(gap) => gap.grown(end, lost),
            None => RecordedGap { from, end, count: Some(lost), reason: GapReason::Expired },
        });
        self.touch(Unrecorded::Everything);
    }

    /// Notes that so many events from `from` on, which the connection was not given, are gone, and has that told.
    pub(super) fn give_gap(&mut self, from: Seq, lost: u64) {
        if let Some(connection) = &mut self.connection {
            connection.undelivered = Some(match connection.undelivered {
                Some(before) => Undelivered { lost: before.lost.map(|before| before + lost), ..before },
                None => Undelivered { from, lost: Some(lost), told: None },
            });
        }
    }

    /// Nobody acknowledges the end of what was missed where nothing is kept: it is live by itself.
    pub(super) fn go_live(&mut self) {
        if let Some(state) = next_state(Some(self.state), Trigger::AcknowledgeEnd) {
            self.state = state;
        }
    }

    /// The gap as it is told now. From then on its acknowledgement is awaited, if the subscription is durable.
    pub(super) fn tell_gap(&mut self, view: &View<Pcpj>) -> Option<SubscriptionGap> {
        let (end, gap) = (view.durable_end(), self.gap?);
        let connection = self.connection.as_mut()?;
        let Undelivered { from, lost: count, .. } = connection.undelivered?;
        let more = view.count_matches(&self.filter, gap.end, end);
        let told = RecordedGap { from, count, ..gap }.told(end, more);
        connection.cursor = Cursor::new(told.resume_after.next(), ReadUpTo::Durable);
        connection.undelivered = Some(Undelivered { from, lost: count, told: Some(told.resume_after) });
        if self.name.is_some() {
            connection.phase = Phase::Awaiting { sequence: told.resume_after, gap: true };
        } else {
            (connection.phase, connection.undelivered) = (Phase::Live, None);
            self.gap = None;
            self.go_live();
            (self.passed, self.pointer) = (told.resume_after.next(), told.resume_after);
        }
        Some(told)
    }
}
