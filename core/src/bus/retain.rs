//! Retention: who loses what, and in which order that becomes true.

use alloc::vec::Vec;

use super::lifecycle::Trigger;
use super::subscription::{Phase, Subscription, SubscriptionId};
use super::{BusRequest, EventBus, RecordId, Unrecorded};
use crate::retention::Occupied;
use crate::{Monotonic, Pcpj, Seq, Timestamp, View};

/// A trim that was decided on, and waits until everybody's loss is on the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingTrim {
    pub(super) to: Seq,
    /// The record that has to be durable before; none while it was not asked for.
    pub(super) after: Option<RecordId>,
}

/// What a retention would do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPlan {
    /// The first event that would be kept.
    pub to: Seq,
    /// How many events would go.
    pub events: u64,
    /// Who would lose some.
    pub losses: Vec<Loss>,
}

/// What one subscription would lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Whose.
    pub subscription: SubscriptionId,
    /// How many events that it wants and has not acknowledged.
    pub events: u64,
}

impl EventBus {
    /// What [`tick`](Self::tick) would drop now, and who would lose by it; nothing is changed.
    #[must_use]
    pub fn plan_retention(
        &self,
        now: Monotonic,
        events: &View<Pcpj>,
        occupied: Occupied,
    ) -> Option<RetentionPlan> {
        let retention = self.config.retention;
        let pinned = self.subscriptions.values().filter_map(|found| found.pins(events)).min();
        let young = retention.age_ms_max.map_or(Seq::ZERO, |age| self.ages.young(now, age));
        let to = retention.candidate(events, occupied, pinned, young)?;
        let loss = |found: &Subscription| {
            let lost = events.count_matches(&found.filter, found.needs_from()?, to);
            (lost > 0).then_some(Loss { subscription: found.id, events: lost })
        };
        let losses = self.subscriptions.values().filter_map(loss).collect();
        Some(RetentionPlan { to, events: events.first().until(to), losses })
    }

    pub(super) fn retain(
        &mut self,
        now: Monotonic,
        wall: Timestamp,
        events: &View<Pcpj>,
        occupied: Occupied,
    ) {
        if self.trim.is_some() {
            return;
        }
        let Some(RetentionPlan { to, .. }) = self.plan_retention(now, events, occupied) else { return };
        for found in self.subscriptions.values_mut() {
            found.pass(to, wall, events);
        }
        self.trim = Some(PendingTrim { to, after: None });
        self.urgent = true;
    }

    /// Everything that was unrecorded has been asked for.
    pub(super) fn everything_is_asked(&mut self) {
        if let Some(trim) = &mut self.trim {
            trim.after.get_or_insert(self.asked);
        }
        self.compaction.everything_is_asked(self.asked);
    }

    pub(super) fn next_trim(&mut self) -> Option<BusRequest> {
        let is_recorded = |trim: &mut PendingTrim| trim.after.is_some_and(|after| after <= self.recorded);
        if let Some(PendingTrim { to, .. }) = self.trim.take_if(is_recorded) {
            return Some(BusRequest::TrimEvents { to });
        }
        self.compaction.finish(self.recorded).map(|to| BusRequest::TrimRecords { to })
    }
}

impl Subscription {
    /// The events before `to` go.
    fn pass(&mut self, to: Seq, wall: Timestamp, events: &View<Pcpj>) {
        if let Some(gap) = self.gap.filter(|_| self.is_given_a_gap()) {
            return self.pass_within_gap(gap.end, to, wall, events);
        }
        let Some(from) = self.needs_from().filter(|from| *from < to) else { return };
        let lost = |from: Seq| events.count_matches(&self.filter, from, to);
        // An older connection may have been given more than this one.
        let next = self.connection.as_ref().map_or(from, |connection| connection.cursor.next_seq());
        let (all, undelivered_from) = (lost(from), from.max(next));
        if all == 0 {
            self.passed = self.passed.max(to);
            return self.touch(Unrecorded::Pointer);
        }
        let undelivered = lost(undelivered_from);
        self.lose(from, to, all);
        if self.connection.is_none() {
            self.change(Trigger::RetentionPasses, wall);
        } else if undelivered > 0 {
            self.give_gap(undelivered_from, undelivered);
            self.tell_again(wall);
        }
    }

    /// Whether a gap, and nothing else, is what it is given: it grows with what goes.
    fn is_given_a_gap(&self) -> bool {
        let phase = self.connection.as_ref().map(|connection| connection.phase);
        matches!(phase, None | Some(Phase::GapDue | Phase::Awaiting { gap: true, .. }))
    }

    fn pass_within_gap(&mut self, gap_end: Seq, to: Seq, wall: Timestamp, events: &View<Pcpj>) {
        if to <= gap_end {
            return;
        }
        let more = events.count_matches(&self.filter, gap_end, to);
        self.lose(gap_end, to, more);
        if more == 0 {
            return;
        }
        self.give_gap(gap_end, more);
        match self.connection.as_ref().map(|connection| connection.phase) {
            None => self.change(Trigger::RetentionPasses, wall),
            Some(Phase::Awaiting { sequence, .. })
                if events.count_matches(&self.filter, sequence.next(), to) > 0 =>
            {
                self.tell_again(wall);
            }
            Some(_) => {}
        }
    }

    fn tell_again(&mut self, wall: Timestamp) {
        if let Some(connection) = &mut self.connection {
            connection.phase = Phase::GapDue;
        }
        self.change(Trigger::RetentionPasses, wall);
    }
}
