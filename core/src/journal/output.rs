//! What a journal tells the world, and why it stops.

use crate::{CommitId, Effect, EffectId, IoFailure, SegmentId, Seq, Shortage};

/// One thing that a journal has to say. Drain with
/// [`Journal::poll_output`](crate::Journal::poll_output) until nothing is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Do this, and answer with a [`Completion`](crate::Completion) of the same id.
    Effect {
        /// The identity of the effect.
        id: EffectId,
        /// What to do.
        effect: Effect,
    },
    /// Every record before `end` is with the operating system. Only under the weaker sync policies, where
    /// this acknowledges.
    Written {
        /// Exclusive end.
        end: Seq,
        /// The newest commit that it covers.
        commit: CommitId,
    },
    /// Every record before `end` is durable.
    Durable {
        /// Exclusive end.
        end: Seq,
        /// The newest commit that it covers.
        commit: CommitId,
    },
    /// No space, or no file: nothing from `from` on was kept, and the numbers are given out again. Every commit up to
    /// `commit` that was not announced before has failed.
    Void {
        /// The first sequence number that is free again.
        from: Seq,
        /// The newest commit that failed.
        commit: CommitId,
        /// What there was too little of.
        shortage: Shortage,
    },
    /// Records before `first` are no longer kept.
    Trimmed {
        /// The new logical start.
        first: Seq,
    },
    /// The journal stopped for good; the way back is to reopen it. Told once.
    Poisoned(Poison),
    /// A close is complete.
    Closed,
}

/// Why a journal stopped: something failed whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the journal stopped: segment {segment}: {failure}. What was acknowledged before is safe; reopen the journal to go on"
)]
pub struct Poison {
    /// The segment that it happened in.
    pub segment: SegmentId,
    /// What failed.
    pub failure: IoFailure,
}

/// Why an append was refused. Nothing of it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The draft cannot be stored.
    #[error(transparent)]
    Draft(#[from] crate::DraftError),
    /// Too much is waiting to become durable.
    #[error(
        "{pending} bytes wait to be committed, and with this record they would be more than the limit of {max}: wait for a commit and try again"
    )]
    Full {
        /// Bytes that wait.
        pending: usize,
        /// The limit, `pending_bytes_max`.
        max: usize,
    },
    /// The highest sequence number is taken.
    #[error("sequence number {} is taken and there is none after it: start a new journal", Seq::LAST)]
    SequenceExhausted,
    /// The journal is poisoned.
    #[error(transparent)]
    Poisoned(#[from] Poison),
    /// The journal is closed, or being closed.
    #[error("the journal is closed: open it again to append")]
    Closed,
}

/// An accepted append. It is acknowledged by the commit, not by the number: a number can be given
/// out again after a void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The record's sequence number.
    pub seq: Seq,
    /// The commit that carries it.
    pub commit: CommitId,
}

/// What a consistent copy of a journal consists of: bytes that are durable, and nothing behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupPlan {
    /// Each segment, and how many of its bytes to copy.
    pub segments: alloc::vec::Vec<(SegmentId, u64)>,
    /// The mark to write behind the last segment's bytes: its offset and itself.
    pub mark: Option<(u64, bytes::Bytes)>,
    /// The records of the copy end here (exclusive).
    pub end: Seq,
}
