//! A gap as JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use strandline::bus::SubscriptionGap;

/// Events that are not delivered.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gap {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Nothing where it is unknown.
    pub(crate) count: Option<u64>,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) resume_after: u64,
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
            reason: gap.reason.label().into(),
            resume_after: gap.resume_after.get(),
        }
    }
}
