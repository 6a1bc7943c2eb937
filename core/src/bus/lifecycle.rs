//! The life of a subscription, as a table.
//!
//! | state | by | what happens | becomes | effect |
//! |---|---|---|---|---|
//! | - | subscriber | subscribes | `LIVE` | it is recorded; delivery begins behind the end |
//! | - | subscriber | subscribes and missed something | `REPLAYING` | the missed events, or the gap, are delivered |
//! | `SUSPENDED` | subscriber | subscribes | `LIVE` | delivery goes on at the pointer |
//! | `SUSPENDED` | subscriber | subscribes and missed something | `REPLAYING` | the missed events, or the gap, are delivered |
//! | `EXPIRED` | subscriber | subscribes and missed something | `REPLAYING` | the gap is delivered; it starts fresh behind it |
//! | `LIVE` | subscriber | subscribes | `LIVE` | the older connection is told that it was taken over |
//! | `LIVE` | subscriber | subscribes and missed something | `REPLAYING` | the same, and what was not acknowledged comes again |
//! | `REPLAYING` | subscriber | subscribes | `LIVE` | the older connection is told that it was taken over |
//! | `REPLAYING` | subscriber | subscribes and missed something | `REPLAYING` | the same, and the replay begins again |
//! | `REPLAYING` | subscriber | acknowledges the end | `LIVE` | live delivery begins behind the replay or the gap |
//! | `LIVE` | subscriber | leaves | `SUSPENDED` | its pointer pins what it needs |
//! | `REPLAYING` | subscriber | leaves | `SUSPENDED` | its pointer pins what it needs |
//! | `LIVE` | retention | passes | `REPLAYING` | the gap is recorded, the events go, the gap is delivered |
//! | `REPLAYING` | retention | passes | `REPLAYING` | the gap is recorded, the events go, the gap is delivered |
//! | `SUSPENDED` | retention | passes | `EXPIRED` | the gap is recorded, then the events go |
//! | `EXPIRED` | retention | passes | `EXPIRED` | the gap grows |
//! | `EXPIRED` | subscriber | acknowledges the end | `SUSPENDED` | the gap is settled |
//!
//! A subscription that is not durable has the same life while it is connected; when it leaves, it is forgotten.

use core::fmt;

/// Where a subscription stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubscriptionState {
    /// Delivered up to the durable end; new events follow as they become durable.
    Live,
    /// A durable subscriber is away; its pointer pins retention.
    Suspended,
    /// What was missed, or the gap in its place, is being delivered; live delivery waits for the acknowledgement of
    /// its end.
    Replaying,
    /// Retention passed its pointer while it was away; its next subscribe starts fresh, with a gap.
    Expired,
}

/// Who makes a subscription change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The program that subscribes, or its end.
    Subscriber,
    /// The bus, which needs room.
    Retention,
}

/// What happens to a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A subscribe that missed nothing.
    Subscribe,
    /// A subscribe with events, or a gap, to be delivered first.
    SubscribeBehind,
    /// The acknowledgement of a replay's end, or of a gap.
    AcknowledgeEnd,
    /// A disconnect, or the end of either process.
    Leave,
    /// Events that it still needs are dropped.
    RetentionPasses,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state before; none for a subscription that does not exist.
    pub from: Option<SubscriptionState>,
    /// Who makes it change.
    pub by: Actor,
    /// What happens.
    pub on: Trigger,
    /// The state after.
    pub to: SubscriptionState,
    /// What the bus does.
    pub effect: &'static str,
}

use Actor::{Retention, Subscriber};
use SubscriptionState::{Expired, Live, Replaying, Suspended};
use Trigger::{AcknowledgeEnd, Leave, RetentionPasses, Subscribe, SubscribeBehind};

const fn row(
    from: Option<SubscriptionState>,
    by: Actor,
    on: Trigger,
    to: SubscriptionState,
    effect: &'static str,
) -> Transition {
    Transition { from, by, on, to, effect }
}

/// The table, in the order of the module's page. What is not in it cannot happen.
pub const TRANSITIONS: [Transition; 17] = [
    row(None, Subscriber, Subscribe, Live, "it is recorded; delivery begins behind the end"),
    row(None, Subscriber, SubscribeBehind, Replaying, "the missed events, or the gap, are delivered"),
    row(Some(Suspended), Subscriber, Subscribe, Live, "delivery goes on at the pointer"),
    row(
        Some(Suspended),
        Subscriber,
        SubscribeBehind,
        Replaying,
        "the missed events, or the gap, are delivered",
    ),
    row(
        Some(Expired),
        Subscriber,
        SubscribeBehind,
        Replaying,
        "the gap is delivered; it starts fresh behind it",
    ),
    row(Some(Live), Subscriber, Subscribe, Live, "the older connection is told that it was taken over"),
    row(
        Some(Live),
        Subscriber,
        SubscribeBehind,
        Replaying,
        "the same, and what was not acknowledged comes again",
    ),
    row(Some(Replaying), Subscriber, Subscribe, Live, "the older connection is told that it was taken over"),
    row(Some(Replaying), Subscriber, SubscribeBehind, Replaying, "the same, and the replay begins again"),
    row(
        Some(Replaying),
        Subscriber,
        AcknowledgeEnd,
        Live,
        "live delivery begins behind the replay or the gap",
    ),
    row(Some(Live), Subscriber, Leave, Suspended, "its pointer pins what it needs"),
    row(Some(Replaying), Subscriber, Leave, Suspended, "its pointer pins what it needs"),
    row(
        Some(Live),
        Retention,
        RetentionPasses,
        Replaying,
        "the gap is recorded, the events go, the gap is delivered",
    ),
    row(
        Some(Replaying),
        Retention,
        RetentionPasses,
        Replaying,
        "the gap is recorded, the events go, the gap is delivered",
    ),
    row(Some(Suspended), Retention, RetentionPasses, Expired, "the gap is recorded, then the events go"),
    row(Some(Expired), Retention, RetentionPasses, Expired, "the gap grows"),
    row(Some(Expired), Subscriber, AcknowledgeEnd, Suspended, "the gap is settled"),
];

/// The state that follows, if the table has one.
#[must_use]
pub fn next_state(from: Option<SubscriptionState>, on: Trigger) -> Option<SubscriptionState> {
    TRANSITIONS.iter().find(|row| row.from == from && row.on == on).map(|row| row.to)
}

impl SubscriptionState {
    /// The state's name, in capitals as in the tables.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Live => "LIVE",
            Self::Suspended => "SUSPENDED",
            Self::Replaying => "REPLAYING",
            Self::Expired => "EXPIRED",
        }
    }

    /// Whether somebody is connected.
    #[must_use]
    pub const fn is_connected(self) -> bool {
        matches!(self, Self::Live | Self::Replaying)
    }
}

impl fmt::Display for SubscriptionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_documentation_is_the_one_that_decides() {
        let state = |state: Option<SubscriptionState>| match state {
            None => "-".into(),
            Some(state) => alloc::format!("`{state}`"),
        };
        let rows = include_str!("lifecycle.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
        let mut rows = rows.skip_while(|row| !row.starts_with("- |"));
        for row in TRANSITIONS {
            let by = if row.by == Subscriber { "subscriber" } else { "retention" };
            let on = match row.on {
                Subscribe => "subscribes",
                SubscribeBehind => "subscribes and missed something",
                AcknowledgeEnd => "acknowledges the end",
                Leave => "leaves",
                RetentionPasses => "passes",
            };
            let (from, to) = (state(row.from), state(Some(row.to)));
            let wanted = alloc::format!("{from} | {by} | {on} | {to} | {} |", row.effect);
            assert_eq!(rows.next(), Some(wanted.as_str()));
        }
        assert_eq!(rows.next(), None);
    }

    #[test]
    fn each_state_has_one_answer_to_each_trigger() {
        for (n, row) in TRANSITIONS.iter().enumerate() {
            let same = |other: &&Transition| other.from == row.from && other.on == row.on;
            assert_eq!(TRANSITIONS.iter().filter(same).count(), 1, "row {n}");
        }
        assert_eq!(next_state(Some(Expired), Subscribe), None, "an expired one always has a gap");
        assert_eq!(next_state(Some(Suspended), Leave), None);
    }
}
