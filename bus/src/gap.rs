//! A gap as JSON: what a stream tells, and the command line prints.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use strandline::bus::SubscriptionGap;

/// Events that are not delivered. Refresh, then acknowledge `resume_after` to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first that is missing.
    pub from: u64,
    /// The last that is missing.
    pub to: u64,
    /// How many of them were wanted; nothing where it is unknown.
    pub count: Option<u64>,
    /// `too_many`, `expired` or `beyond_the_end`.
    pub reason: Cow<'static, str>,
    /// Acknowledge this.
    pub resume_after: u64,
}

impl Gap {
    /// For people, in a few words.
    #[must_use]
    pub fn to_text(&self) -> String {
        let count = self.count.map_or_else(|| "unknown".to_string(), |count| count.to_string());
        format!("{} to {} ({count}, {})", self.from, self.to, self.reason)
    }
}

impl From<SubscriptionGap> for Gap {
    fn from(gap: SubscriptionGap) -> Self {
        Self {
            from: gap.from.get(),
            to: gap.to.get(),
            count: gap.count,
            reason: gap.reason.label().into(),
            resume_after: gap.resume_after.get(),
        }
    }
}
