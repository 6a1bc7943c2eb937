//! What a subscriber missed and cannot get.

use core::fmt;

use crate::Seq;

/// Why events are not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapReason {
    /// More were missed than a replay delivers. They are still in the journal.
    TooMany,
    /// Retention dropped them: the bound on size or age.
    Expired,
    /// The subscriber has seen numbers that this journal has not reached: it was emptied, or restored from a copy.
    Beyond,
}

impl GapReason {
    /// What it means, in a word or two.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::TooMany => "too_many",
            Self::Expired => "expired",
            Self::Beyond => "beyond_the_end",
        }
    }
}

impl fmt::Display for GapReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "more were missed than a replay delivers",
            Self::Expired => "they are no longer kept",
            Self::Beyond => "the journal ends before what was seen: it was emptied, or restored from a copy",
        })
    }
}

/// Events that a subscriber does not get, in place of them. It refreshes its view of the world from elsewhere, then
/// acknowledges [`resume_after`](Self::resume_after), and goes on live behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionGap {
    /// The first number that is not delivered.
    pub from: Seq,
    /// The last number that is not delivered. Lower than `from` where the journal holds nothing at all.
    pub to: Seq,
    /// How many of them the subscription's filter would have let through; none where that is unknown.
    pub count: Option<u64>,
    /// Why.
    pub reason: GapReason,
    /// Acknowledge this to go on with the event after it.
    pub resume_after: Seq,
}

impl fmt::Display for SubscriptionGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, count, reason, resume_after } = self;
        write!(f, "events {from} to {to} are not delivered")?;
        match count {
            Some(count) => write!(f, ", {count} of them wanted")?,
            None => f.write_str(", how many of them wanted is unknown")?,
        }
        write!(f, ": {reason}. Refresh, then acknowledge {resume_after}")
    }
}

/// A gap as it is recorded, before it is told how far it reaches by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedGap {
    pub(crate) from: Seq,
    /// Exclusive.
    pub(crate) end: Seq,
    pub(crate) count: Option<u64>,
    pub(crate) reason: GapReason,
}

impl RecordedGap {
    /// The gap that also covers up to `end`, with `more` events that were wanted.
    #[must_use]
    pub(crate) fn grown(self, end: Seq, more: u64) -> Self {
        Self { end: end.max(self.end), count: self.count.map(|count| count + more), ..self }
    }

    /// The gap as it is told: up to the journal's `end`.
    pub(crate) fn told(self, end: Seq, more: u64) -> SubscriptionGap {
        let Self { from, end, count, reason } = self.grown(end, more);
        let last = end.previous();
        SubscriptionGap { from, to: last, count, reason, resume_after: last }
    }
}
