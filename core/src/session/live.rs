//! A session while it runs: what is to be appended to the log, and which commands are answered.

use alloc::collections::VecDeque;

use bytes::Bytes;

use super::error::{PlaybackError, Side};
use super::playback::{Play, Playback};
use crate::{Engine, Events, IoFailure, Pryj, ReadError, ReadRequest, Seq, View};

/// A running session. It owns neither journal: it is lent both views, asks for reads and says what to append.
///
/// Opening one with a history resumes it: the same calls compare what is recorded, and append what is missing.
#[derive(Debug)]
pub struct Session<E> {
    playback: Playback<E>,
    /// Commands that were applied and whose events are not durable yet, oldest first.
    unanswered: VecDeque<Answered>,
}

/// A command whose events are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The command.
    pub command: Seq,
    /// Its first event, or where that would be.
    pub first: Seq,
    /// One past its last event.
    pub end: Seq,
}

/// What a session says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStep {
    /// Read these bytes of the journal, and hand them to [`Session::handle_read`].
    Read(Side, ReadRequest),
    /// A command is next: [`Session::apply`] it.
    Apply,
    /// Append [`Session::event`] to the log, then call [`Session::handle_appended`].
    Append,
    /// All durable commands were applied, and all that they emitted was appended.
    CaughtUp,
}

impl<E: Engine> Default for Session<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Engine> Session<E> {
    /// A session at its beginning. What is recorded already is gone through first.
    #[must_use]
    pub fn new() -> Self {
        Self { playback: Playback::new(), unanswered: VecDeque::new() }
    }

    /// The engine, once the setup was read.
    #[must_use]
    pub const fn engine(&self) -> Option<&E> {
        self.playback.engine()
    }

    /// What to append to the log next, and the number that it must get.
    #[must_use]
    pub fn event(&self) -> Option<(Seq, &[u8])> {
        self.playback.event()
    }

    /// [`event`](Self::event) was accepted by the journal `events`.
    pub fn handle_appended(&mut self) {
        self.playback.take_event();
    }

    /// What comes next. Ask again whenever a command became durable.
    ///
    /// # Errors
    /// [`PlaybackError`]: what is recorded is not what the engine emits, or cannot be played back. The session is over
    /// then, and nothing was changed by it.
    pub fn poll(
        &mut self,
        input: &View<Pryj>,
        log: &View<Pryj>,
    ) -> Result<SessionStep, PlaybackError<E::Error>> {
        loop {
            match self.playback.poll(input, log)? {
                Play::Read(side, request) => return Ok(SessionStep::Read(side, request)),
                Play::Started => {}
                Play::Command => return Ok(SessionStep::Apply),
                Play::Event { is_recorded: true } => self.playback.take_event(),
                Play::Event { is_recorded: false } => return Ok(SessionStep::Append),
                Play::CaughtUp => return Ok(SessionStep::CaughtUp),
            }
        }
    }

    /// Applies the next command; gives its number and the events that it emits.
    ///
    /// # Panics
    /// If no command is next: a programmer error.
    pub fn apply(&mut self) -> (Seq, &Events) {
        let first = self.playback.next_event();
        let (command, events) = self.playback.apply();
        let end = (0..events.len()).fold(first, |end, _| end.next());
        self.unanswered.push_back(Answered { command, first, end });
        (command, events)
    }

    /// The next command that is answered: its events, and those of all before it, are before `durable_end` of the log.
    pub fn poll_answered(&mut self, durable_end: Seq) -> Option<Answered> {
        self.unanswered.front().filter(|answer| answer.end <= durable_end)?;
        self.unanswered.pop_front()
    }

    /// Takes the bytes that were asked for, or the failure of the read.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped.
    ///
    /// # Panics
    /// If no read of this journal was asked for: a programmer error.
    pub fn handle_read(&mut self, side: Side, answer: Result<Bytes, IoFailure>) -> Result<(), ReadError> {
        self.playback.handle_read(side, answer)
    }
}
