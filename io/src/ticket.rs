//! The receipt of an append that was accepted and is not acknowledged yet.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use strandline_core::{Framing, Seq, Shortage};

use crate::commit::{CommitState, Outcome};
use crate::disk::Disk;
use crate::error::AppendError;
use crate::shared::Shared;
use crate::std_disk::StdDisk;

/// The receipt of [`append_nowait`](crate::Journal::append_nowait).
///
/// Wait for it with a thread ([`wait`](Self::wait)) or as a future. The record is committed either way, also
/// if the ticket is dropped.
///
/// ```
/// use strandline::{Directory, Pryj, config};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let root = tempfile::tempdir()?;
/// let (journal, _) = Directory::open(root.path())?.journal::<Pryj>("log", config())?;
/// let tickets = [b"a", b"b", b"c"].map(|payload| journal.append_nowait(payload));
/// for ticket in tickets {
///     let seq = ticket?.wait()?; // or, in a task, `ticket?.await?`
///     assert!(journal.durable_end() > seq);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "the record is not durable until the ticket says so"]
pub struct Ticket<F: Framing, D: Disk = StdDisk> {
    shared: Arc<Shared<F, D>>,
    commit: Arc<CommitState>,
    seq: Seq,
}

impl<F: Framing, D: Disk> Ticket<F, D> {
    pub(crate) const fn new(shared: Arc<Shared<F, D>>, commit: Arc<CommitState>, seq: Seq) -> Self {
        Self { shared, commit, seq }
    }

    /// The record's sequence number, if it comes to be: after [`AppendError::NoSpace`] or
    /// [`AppendError::TooManyFiles`] another record gets it.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    pub(crate) const fn commit(&self) -> &Arc<CommitState> {
        &self.commit
    }

    /// Blocks until the record is acknowledged, as the journal's sync policy has it.
    ///
    /// # Errors
    /// [`AppendError::NoSpace`], [`AppendError::TooManyFiles`] or [`AppendError::Poisoned`].
    pub fn wait(self) -> Result<Seq, AppendError> {
        let outcome = match self.commit.outcome() {
            Some(outcome) => outcome,
            None => self.shared.wait(self.shared.lock(), &self.commit),
        };
        outcome.into_result(self.seq)
    }

    /// How it ended, if it has.
    pub fn try_wait(&self) -> Option<Result<Seq, AppendError>> {
        self.commit.outcome().map(|outcome| outcome.into_result(self.seq))
    }
}

impl Outcome {
    /// What the outcome of a commit is to a record in it.
    pub(crate) fn into_result(self, seq: Seq) -> Result<Seq, AppendError> {
        match self {
            Self::Acknowledged => Ok(seq),
            Self::Void(Shortage::Space) => Err(AppendError::NoSpace),
            Self::Void(Shortage::Files) => Err(AppendError::TooManyFiles),
            Self::Poisoned(poisoned) => Err(AppendError::Poisoned(poisoned)),
        }
    }
}

impl<F: Framing, D: Disk> Future for Ticket<F, D> {
    type Output = Result<Seq, AppendError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.commit.register(context.waker()) {
            return Poll::Ready(outcome.into_result(self.seq));
        }
        // A task does not lead: it may be polled where blocking is forbidden.
        let mut state = self.shared.lock();
        if !state.leading {
            self.shared.wake_housekeeping(&mut state);
        }
        Poll::Pending
    }
}

impl<F: Framing, D: Disk> fmt::Debug for Ticket<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = self.commit.outcome();
        f.debug_struct("Ticket").field("seq", &self.seq).field("outcome", &outcome).finish_non_exhaustive()
    }
}
