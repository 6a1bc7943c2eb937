//! Sequence numbers, segment and commit identities.

use core::fmt;

/// The sequence number of a record, or an exclusive end (one past the last record).
///
/// Records are numbered without gaps. The highest number a record can have is [`Seq::LAST`], so
/// that its exclusive end still fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(u64);

impl Seq {
    /// The lowest sequence number.
    pub const ZERO: Self = Self(0);
    /// The highest number that a record can have; after it, append refuses.
    pub const LAST: Self = Self(u64::MAX - 1);

    /// The sequence number `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number after this one, saturating at `u64::MAX` (which no record can have).
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number before this one: the last record before an exclusive end. 0 stays 0.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    /// How many records lie in `self..end`; zero if `end` lies before.
    #[must_use]
    pub const fn until(self, end: Self) -> u64 {
        end.0.saturating_sub(self.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<u64> for Seq {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

/// A segment of a journal, named by the sequence number of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub Seq);

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}", self.0.get())
    }
}

/// The identity of a commit. Unlike a sequence number it is never given out twice, so it is what
/// a waiter remembers: a number can be handed out again after a void.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(u64);

impl CommitId {
    /// The commit numbered `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
