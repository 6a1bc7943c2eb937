//! A gap as JSON.

use serde::Serialize;
use strandline::bus::SubscriptionGap;

/// Events that are not delivered.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Gap {
    from: u64,
    to: u64,
    /// Nothing where it is unknown.
    count: Option<u64>,
    reason: &'static str,
    resume_after: u64,
}

impl Gap {
    /// For people, in a few words.
    pub(crate) fn to_text(&self) -> String {
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
            reason: gap.reason.label(),
            resume_after: gap.resume_after.get(),
        }
    }
}
