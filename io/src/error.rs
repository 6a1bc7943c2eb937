//! Why an operation on an open journal was refused.

use strandline_core::{DraftError, Poison, Seq};

/// The journal stopped for good: something failed whose outcome is unknown. Reading what is durable goes on;
/// the way to append again is to reopen the journal, which finds out what the disk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Poisoned {
    /// A call to the disk failed.
    #[error(transparent)]
    Disk(#[from] Poison),
    /// A thread panicked in the middle of a commit.
    #[error(
        "the journal stopped: a thread panicked during a commit, and what of it is on the disk is unknown. \
         What was acknowledged before is safe; reopen the journal to go on"
    )]
    Abandoned,
}

/// Why an append was refused, or failed. Nothing of it is in the journal, except that after
/// [`Poisoned`](AppendError::Poisoned) it may turn out to be once the journal is reopened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The draft cannot be stored.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// Too much is waiting to become durable.
    #[error(
        "{pending} bytes wait to be committed, and with this record they would be more than the limit of {max}: wait for a commit and try again"
    )]
    Full {
        /// Bytes that wait.
        pending: usize,
        /// The limit, [`pending_bytes_max`](strandline_core::Config::pending_bytes_max).
        max: usize,
    },
    /// The disk, the quota or the file size limit is exhausted.
    #[error("there was no space left to write the record: free some and append again; the journal goes on")]
    NoSpace,
    /// The process, or the system, has too many files open.
    #[error(
        "there were too many open files to begin a segment for the record: close some or raise the limit (ulimit -n), and append again; the journal goes on"
    )]
    TooManyFiles,
    /// Another number comes next than the one that was asked for: others appended, or what was accepted before
    /// was lost for lack of space.
    #[error(
        "sequence number {next} comes next, not {expected} as was asked for: see what became of those before"
    )]
    NotNext {
        /// The number that was asked for.
        expected: Seq,
        /// The number that comes next.
        next: Seq,
    },
    /// The highest sequence number is taken.
    #[error("sequence number {} is taken and there is none after it: start a new journal", Seq::LAST)]
    SequenceExhausted,
    /// The journal stopped.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
    /// The journal was closed.
    #[error("the journal is closed: open it again to append")]
    Closed,
}

impl From<strandline_core::AppendError> for AppendError {
    fn from(error: strandline_core::AppendError) -> Self {
        match error {
            strandline_core::AppendError::Draft(error) => Self::Draft(error),
            strandline_core::AppendError::Full { pending, max } => Self::Full { pending, max },
            strandline_core::AppendError::SequenceExhausted => Self::SequenceExhausted,
            strandline_core::AppendError::Poisoned(poison) => Self::Poisoned(poison.into()),
            strandline_core::AppendError::Closed => Self::Closed,
        }
    }
}

/// Why a flush failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// Records that were waiting found no space; their appends failed too.
    #[error("there was no space left for records that were waiting: free some and append them again")]
    NoSpace,
    /// Records that were waiting found no file; their appends failed too.
    #[error(
        "there were too many open files to begin a segment for records that were waiting: close some or raise the limit (ulimit -n), and append them again"
    )]
    TooManyFiles,
    /// The journal stopped.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
    /// The journal was closed, which made everything durable.
    #[error("the journal is closed, and everything in it is durable")]
    Closed,
}
