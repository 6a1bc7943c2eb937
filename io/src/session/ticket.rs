//! The receipt of a command that was submitted and is not answered yet.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use strandline_core::{Events, Pryj, Seq};

use super::{SessionStopped, SubmitError};
use crate::commit::CommitState;
use crate::disk::Disk;
use crate::std_disk::StdDisk;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::ticket::Ticket;

/// What became of a command: its events, all of them durable.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The command's number.
    pub command: Seq,
    /// The number of its first event; where it has none, of the next one.
    pub first_event: Seq,
    /// Its events, in order.
    pub events: Events,
}

/// The receipt of [`submit`](super::Session::submit).
///
/// Wait for it with a thread ([`wait`](Self::wait)) or as a future. The command is applied either way.
#[must_use = "the command is not answered until the ticket says so"]
pub struct SessionTicket<D: Disk = StdDisk> {
    /// None once it was acknowledged.
    input: Option<Ticket<Pryj, D>>,
    slot: Arc<Slot>,
    command: Seq,
}

/// Where an answer is left.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<SlotState>,
    filled: Condvar,
}

#[derive(Default)]
struct SlotState {
    outcome: Option<Result<Answer, SessionStopped>>,
    waker: Option<Waker>,
}

/// A command that is not answered: in the order of their numbers.
pub(super) struct Unanswered {
    pub(super) command: Seq,
    /// Says whether it found no space, and its number belongs to another one.
    pub(super) commit: Arc<CommitState>,
    pub(super) slot: Arc<Slot>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the outcome; the first one counts. Gives who is to be woken.
    pub(super) fn fill(&self, outcome: Result<Answer, SessionStopped>) -> Option<Waker> {
        let mut state = self.lock();
        if state.outcome.is_none() {
            state.outcome = Some(outcome);
        }
        self.filled.notify_all();
        state.waker.take()
    }
}

impl<D: Disk> SessionTicket<D> {
    pub(super) fn new(input: Ticket<Pryj, D>, slot: Arc<Slot>) -> Self {
        let command = input.seq();
        Self { input: Some(input), slot, command }
    }

    /// The command's number, if it comes to be.
    #[must_use]
    pub const fn command(&self) -> Seq {
        self.command
    }

    /// Blocks until the command and all its events are durable.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn wait(mut self) -> Result<Answer, SubmitError> {
        if let Some(input) = self.input.take() {
            input.wait()?;
        }
        let mut state = self.slot.lock();
        loop {
            if let Some(outcome) = state.outcome.take() {
                return Ok(outcome?);
            }
            state = self.slot.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<D: Disk> Future for SessionTicket<D> {
    type Output = Result<Answer, SubmitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(input) = &mut self.input {
            match Pin::new(input).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(_)) => self.input = None,
            }
        }
        // The waker before it is foreign code, also when it is dropped: not under the lock, which an answer needs.
        let _replaced;
        let mut state = self.slot.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome.map_err(SubmitError::Stopped)),
            None => {
                _replaced = state.waker.replace(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
