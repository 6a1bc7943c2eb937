//! Sessions over a directory: many producers, one engine, two journals.
//!
//! A command is appended to the journal `input` and group-committed; then the engine's thread applies it, appends its
//! events to the journal `events` and group-commits them; then the command is answered. The engine never sees a command
//! that a crash could take back, and nobody is told of an event that it could.

mod check;
mod error;
mod files;
mod open;
mod stage;
mod ticket;

#[cfg(all(test, not(strandline_shuttle)))]
mod tests;

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::Waker;

use strandline_core::{Engine, Pryj, ReadUpTo, Seq};

pub use check::{ReplayCheckError, replay_check, replay_check_on};
pub use error::{SessionOpenError, SessionStopped, SubmitError};
pub use open::{Resumed, SessionSettings};
pub use strandline_core::session::{
    Checked, Difference, EventDigest, FIRST_EVENT, PlaybackError, Setup, Side,
};
pub use ticket::{Answer, SessionTicket};

use crate::disk::Disk;
use crate::error::AppendError;
use crate::journal::Journal;
use crate::reader::Reader;
use crate::std_disk::StdDisk;
use crate::sync::thread::{self, JoinHandle, ThreadId};
use crate::sync::{Condvar, Mutex, MutexGuard};
use ticket::{Slot, Unanswered};

/// The journal of the setup and the commands.
pub const INPUT: &str = "input";
/// The journal of the events.
pub const EVENTS: &str = "events";

/// A running session. Cloning gives another handle on the same one; handles can be used from many threads. Dropping the
/// last one closes it.
///
/// ```
/// use strandline::session::{Session, SessionSettings};
/// use strandline::{Directory, Engine, Events, Seq};
///
/// struct Counter(u64);
///
/// impl Engine for Counter {
///     const ID: &'static str = "counter/1";
///     type Error = std::convert::Infallible;
///
///     fn start(_: &[u8]) -> Result<Self, Self::Error> {
///         Ok(Self(0))
///     }
///
///     fn apply(&mut self, _: Seq, command: &[u8], events: &mut Events) {
///         self.0 += command.len() as u64;
///         events.push(&self.0.to_le_bytes());
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let root = tempfile::tempdir()?;
/// let directory = Directory::open(root.path())?;
/// let session = Session::<Counter>::create_new(&directory, b"", SessionSettings::default())?;
/// let answer = session.submit(b"three")?.wait()?;
/// assert_eq!(answer.events.get(0), Some(&5u64.to_le_bytes()[..]));
/// session.close()?;
///
/// let (session, resumed) = Session::<Counter>::open(&directory, SessionSettings::default())?;
/// assert_eq!((resumed.commands, resumed.events), (1, 1));
/// let answer = session.submit(b"four")?.wait()?;
/// assert_eq!(answer.events.get(0), Some(&9u64.to_le_bytes()[..]));
/// # Ok(())
/// # }
/// ```
pub struct Session<E: Engine, D: Disk = StdDisk> {
    inner: Arc<Inner<D>>,
    /// Closes the session with the last handle.
    _closer: Arc<Closer<D>>,
    engine: PhantomData<fn() -> E>,
}

pub(super) struct Inner<D: Disk> {
    input: Journal<Pryj, D>,
    events: Journal<Pryj, D>,
    queue: Mutex<Queue>,
    /// There is room in the queue.
    room: Condvar,
    unanswered_max: usize,
    /// The engine's thread, until the close.
    stage: Mutex<Option<JoinHandle<()>>>,
}

/// Commands in flight.
#[derive(Default)]
struct Queue {
    unanswered: VecDeque<Unanswered>,
    closing: bool,
    stopped: Option<SessionStopped>,
    /// The engine's thread.
    stage: Option<ThreadId>,
}

struct Closer<D: Disk> {
    inner: Arc<Inner<D>>,
}

impl<D: Disk> Drop for Closer<D> {
    fn drop(&mut self) {
        // What was answered is safe whatever this says.
        let _ = self.inner.close();
    }
}

impl<E: Engine, D: Disk> Clone for Session<E, D> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), _closer: Arc::clone(&self._closer), engine: PhantomData }
    }
}

impl<E: Engine, D: Disk> std::fmt::Debug for Session<E, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unanswered = self.inner.lock().unanswered.len();
        f.debug_struct("Session")
            .field("engine", &E::ID)
            .field("unanswered", &unanswered)
            .finish_non_exhaustive()
    }
}

impl<E: Engine, D: Disk> Session<E, D> {
    /// Submits a command. Where too many are in flight already, it first blocks until some are answered.
    ///
    /// # Errors
    /// [`SubmitError`]. The command was not accepted then.
    pub fn submit(&self, command: &[u8]) -> Result<SessionTicket<D>, SubmitError> {
        self.inner.submit(command, None)
    }

    /// Submits a command that has to get this number: for whoever has others in flight on whose being recorded it depends.
    ///
    /// # Errors
    /// [`SubmitError::Refused`] with [`AppendError::NotNext`] if another number comes next: what was
    /// submitted before found no space, or others have submitted.
    pub fn submit_at(&self, number: Seq, command: &[u8]) -> Result<SessionTicket<D>, SubmitError> {
        self.inner.submit(command, Some(number))
    }

    /// A reader of one of the journals, which follows its end. Only what is durable is read.
    #[must_use]
    pub fn reader(&self, side: Side, from: Seq) -> Reader<Pryj, D> {
        self.journal(side).reader(from, ReadUpTo::Durable)
    }

    /// One past the last durable record of a journal.
    #[must_use]
    pub fn durable_end(&self, side: Side) -> Seq {
        self.journal(side).durable_end()
    }

    fn journal(&self, side: Side) -> &Journal<Pryj, D> {
        match side {
            Side::Input => &self.inner.input,
            Side::Events => &self.inner.events,
        }
    }

    /// Why the session stopped, if it did.
    #[must_use]
    pub fn stopped(&self) -> Option<SessionStopped> {
        self.inner.lock().stopped.clone()
    }

    /// How many commands are in flight.
    #[cfg(test)]
    pub(crate) fn unanswered(&self) -> usize {
        self.inner.lock().unanswered.len()
    }

    /// Answers everything that was submitted, and closes both journals. Where a task's waker calls it on a thread that the
    /// close has to wait for, it returns at once, and the close goes on by itself.
    ///
    /// # Errors
    /// [`SessionStopped`] if the session stopped before that; it is closed all the same.
    pub fn close(&self) -> Result<(), SessionStopped> {
        self.inner.close()
    }
}

impl<D: Disk> Inner<D> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(&self, command: &[u8], number: Option<Seq>) -> Result<SessionTicket<D>, SubmitError> {
        let mut queue = self.lock();
        loop {
            if let Some(stopped) = &queue.stopped {
                return Err(stopped.clone().into());
            }
            if queue.closing {
                return Err(SessionStopped::Closed.into());
            }
            if queue.unanswered.len() < self.unanswered_max {
                let appended = match number {
                    Some(number) => self.input.append_nowait_at(number, command),
                    None => self.input.append_nowait(command),
                };
                match appended {
                    Ok(ticket) => {
                        let (commit, slot) = (Arc::clone(ticket.commit()), Arc::default());
                        let unanswered =
                            Unanswered { command: ticket.seq(), commit, slot: Arc::clone(&slot) };
                        queue.unanswered.push_back(unanswered);
                        return Ok(SessionTicket::new(ticket, slot));
                    }
                    Err(AppendError::Full { .. }) if !queue.unanswered.is_empty() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if !queue.forget_void() {
                queue = self.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn close(self: &Arc<Self>) -> Result<(), SessionStopped> {
        self.lock().closing = true;
        self.room.notify_all();
        if !self.can_wait() {
            // A task that one of these threads wakes drops the last handle: the thread cannot wait for itself.
            let inner = Arc::clone(self);
            let closes = thread::spawn("strandline-close".into(), move || drop(inner.close()));
            return closes.map(drop).or_else(|_| self.input.close().map_err(SessionStopped::Poisoned));
        }
        let input = self.input.close();
        {
            // Who finds it closed already still waits for the end.
            let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(stage) = stage.take() {
                // A panic of the engine was noted by the stage itself.
                let _ = stage.join();
            }
        }
        let events = self.events.close();
        match &self.lock().stopped {
            None | Some(SessionStopped::Closed) => input.and(events).map_err(SessionStopped::Poisoned),
            Some(stopped) => Err(stopped.clone()),
        }
    }

    /// Whether this thread can wait for what the session's own threads do.
    fn can_wait(&self) -> bool {
        let is_stage = self.lock().stage == Some(thread::current().id());
        !is_stage && self.input.can_be_waited_for() && self.events.can_be_waited_for()
    }

    /// Tells these answers.
    fn answer(&self, answers: Vec<Answer>) {
        let told: Vec<_> = {
            let mut queue = self.lock();
            let slot = |answer: Answer| Some((queue.take(answer.command)?, answer));
            answers.into_iter().filter_map(slot).collect()
        };
        self.room.notify_all();
        wake(told.into_iter().filter_map(|(slot, answer)| slot.fill(Ok(answer))).collect());
    }

    /// Who waits to submit looks again: what was in flight may have found no space.
    fn make_room(&self) {
        if self.lock().forget_void() {
            self.room.notify_all();
        }
    }

    /// The session goes on no more: everybody who waits is told.
    fn stop(&self, stopped: SessionStopped) {
        let unanswered = {
            let mut queue = self.lock();
            queue.stopped.get_or_insert_with(|| stopped.clone());
            std::mem::take(&mut queue.unanswered)
        };
        self.room.notify_all();
        wake(unanswered.into_iter().filter_map(|command| command.slot.fill(Err(stopped.clone()))).collect());
    }
}

/// Wakes tasks, when all that they wait for is there. A waker is foreign code: if it panics, that goes no further.
fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

impl Queue {
    /// Forgets commands that found no space: their tickets say so, and their numbers belong to others. Gives whether
    /// there were some.
    fn forget_void(&mut self) -> bool {
        let before = self.unanswered.len();
        self.unanswered.retain(|command| !command.is_void());
        self.unanswered.len() < before
    }

    /// The slot of a command that is answered.
    fn take(&mut self, command: Seq) -> Option<Arc<Slot>> {
        while let Some(oldest) = self.unanswered.front() {
            if oldest.is_void() || oldest.command < command {
                self.unanswered.pop_front();
            } else if oldest.command == command {
                return self.unanswered.pop_front().map(|found| found.slot);
            } else {
                break;
            }
        }
        None
    }
}

impl Unanswered {
    fn is_void(&self) -> bool {
        matches!(self.commit.outcome(), Some(crate::commit::Outcome::Void(_)))
    }
}
