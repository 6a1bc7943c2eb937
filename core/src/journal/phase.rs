//! What is in flight on the commit path: one thing at a time, and the variant owns its data.

use alloc::vec::Vec;

use bytes::Bytes;

use super::active::NewSegment;
use crate::{CommitId, EffectId, Mark, Seq, Shortage};

/// A commit that was taken from the queue.
pub(super) struct InFlight {
    pub(super) commit: CommitId,
    pub(super) first: Seq,
    pub(super) end: Seq,
    pub(super) frames: Bytes,
    /// Bytes of its records alone.
    pub(super) record_bytes: usize,
    /// Some record starts, relative to the head of `frames`.
    pub(super) points: Vec<(Seq, u64)>,
    /// The mark it ends with, if any.
    pub(super) last_mark: Option<Mark>,
}

/// The steps that give a file its exact length: nothing unsynced, cut, cut made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exact {
    Sync,
    Truncate,
    SyncAgain,
}

/// What the commit path waits for.
pub(super) enum Phase {
    /// Nothing.
    Idle,
    /// A commit's write.
    Writing(EffectId, InFlight),
    /// The sync that makes everything before `end` durable.
    Syncing { id: EffectId, end: Seq },
    /// An idle mark's write.
    Marking(EffectId, Mark),
    /// The old segment is being cut to its exact length.
    Sealing(EffectId, Exact),
    /// The next segment is being created.
    Creating(EffectId, NewSegment),
    /// No space: wait for the reserve to come to an end, then cut back.
    VoidPending(Voided),
    /// No space: the file is being cut back, or the cut synced.
    Voiding { id: EffectId, synced: bool, voided: Voided },
    /// The closing mark's write.
    ClosingMark(EffectId, Mark),
    /// The last segment is being cut to its exact length.
    Closing(EffectId, Exact),
    /// Closed for good.
    Closed,
}

/// What a void takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Voided {
    pub(super) first: Seq,
    pub(super) commit: CommitId,
    pub(super) shortage: Shortage,
}

impl Phase {
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// The effect that it waits for.
    pub(super) const fn id(&self) -> Option<EffectId> {
        match self {
            Self::Idle | Self::VoidPending(_) | Self::Closed => None,
            Self::Writing(id, _)
            | Self::Syncing { id, .. }
            | Self::Marking(id, _)
            | Self::Sealing(id, _)
            | Self::Creating(id, _)
            | Self::Voiding { id, .. }
            | Self::ClosingMark(id, _)
            | Self::Closing(id, _) => Some(*id),
        }
    }
}
