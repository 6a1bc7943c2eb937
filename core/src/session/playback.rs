//! Running a journal's commands through an engine, and holding what it emits against the recorded events. Running,
//! resuming and checking are this one path.

use alloc::boxed::Box;

use bytes::Bytes;

use super::FIRST_EVENT;
use super::error::{Difference, PlaybackError, Side};
use super::setup::Setup;
use crate::{
    Batch, Cursor, Engine, Events, IoFailure, Pryj, ReadError, ReadRequest, ReadUpTo, Replay, Seq, View,
};

/// A place in one of a session's two journals, and the records that it has read and not given out.
#[derive(Debug)]
struct Source {
    cursor: Cursor<Pryj>,
    batch: Option<Batch<Pryj>>,
}

/// What a source has next.
enum Sourced {
    Record(Seq, Bytes),
    Read(ReadRequest),
    End,
}

/// The engine of a session on its way through the recorded commands.
///
/// It owns neither journal and does no I/O: drive it with [`poll`](Self::poll), which lends it both views.
#[derive(Debug)]
pub struct Playback<E> {
    /// None until the setup was read.
    engine: Option<E>,
    commands: Source,
    recorded: Source,
    /// What the last command emitted, and how many of these were compared or taken.
    emitted: Events,
    taken: usize,
    /// The next one of them is what the log has.
    is_same: bool,
    /// The newest command that was read, and its bytes.
    command: Option<(Seq, Bytes)>,
    is_applied: bool,
    /// The number of the next event.
    next_event: Seq,
}

/// What a playback says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// Read these bytes of the journal, and hand them to [`Playback::handle_read`].
    Read(Side, ReadRequest),
    /// The setup was read, and the engine is at its beginning.
    Started,
    /// A command is next: [`Playback::apply`] it. Its events come then.
    Command,
    /// An event was emitted. [`Playback::event`] has it, until [`Playback::take_event`].
    Event {
        /// Whether the log has it, byte for byte. If not, the log ends before it.
        is_recorded: bool,
    },
    /// Every durable command was applied, and everything that is recorded was emitted.
    CaughtUp,
}

impl<E: Engine> Default for Playback<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Engine> Playback<E> {
    /// A playback at the beginning.
    #[must_use]
    pub fn new() -> Self {
        Self {
            engine: None,
            commands: Source::new(Seq::ZERO),
            recorded: Source::new(FIRST_EVENT),
            emitted: Events::default(),
            taken: 0,
            is_same: false,
            command: None,
            is_applied: true,
            next_event: FIRST_EVENT,
        }
    }

    /// The engine, once it was started.
    #[must_use]
    pub const fn engine(&self) -> Option<&E> {
        self.engine.as_ref()
    }

    /// The newest command that was read.
    #[must_use]
    pub fn command(&self) -> Option<Seq> {
        self.command.as_ref().map(|(seq, _)| *seq)
    }

    /// The number of the next event.
    #[must_use]
    pub const fn next_event(&self) -> Seq {
        self.next_event
    }

    /// The next event, with its number: emitted, and neither compared nor taken.
    #[must_use]
    pub fn event(&self) -> Option<(Seq, &[u8])> {
        Some((self.next_event, self.emitted.get(self.taken)?))
    }

    /// Goes on behind [`event`](Self::event).
    pub fn take_event(&mut self) {
        if self.taken < self.emitted.len() {
            (self.taken, self.next_event, self.is_same) = (self.taken + 1, self.next_event.next(), false);
        }
    }

    /// What comes next, of the durable commands in `input` and the durable events in `log`.
    ///
    /// # Errors
    /// [`PlaybackError`]; the playback is over then.
    pub fn poll(&mut self, input: &View<Pryj>, log: &View<Pryj>) -> Result<Play, PlaybackError<E::Error>> {
        for (side, view, first) in [(Side::Input, input, Seq::ZERO), (Side::Events, log, FIRST_EVENT)] {
            if view.first() > first {
                return Err(PlaybackError::Trimmed { side, first: view.first() });
            }
        }
        if self.taken < self.emitted.len() {
            let is_due = !self.is_same && self.next_event < log.durable_end();
            return if is_due { self.compare(log) } else { Ok(Play::Event { is_recorded: self.is_same }) };
        }
        if !self.is_applied {
            return Ok(Play::Command);
        }
        match self.commands.poll(input, Side::Input)? {
            Sourced::Read(request) => Ok(Play::Read(Side::Input, request)),
            Sourced::Record(SETUP, setup) => self.start(&setup),
            Sourced::Record(seq, command) => {
                (self.command, self.is_applied) = (Some((seq, command)), false);
                Ok(Play::Command)
            }
            Sourced::End if self.engine.is_some() && self.next_event < log.durable_end() => self.compare(log),
            Sourced::End => Ok(Play::CaughtUp),
        }
    }

    /// Takes the bytes that were asked for, or the failure of the read.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped.
    ///
    /// # Panics
    /// If no read of this journal was asked for: a programmer error.
    pub fn handle_read(&mut self, side: Side, answer: Result<Bytes, IoFailure>) -> Result<(), ReadError> {
        let source = match side {
            Side::Input => &mut self.commands,
            Side::Events => &mut self.recorded,
        };
        source.cursor.handle_read(answer)
    }

    fn start(&mut self, setup: &[u8]) -> Result<Play, PlaybackError<E::Error>> {
        let Setup { engine, setup } = Setup::decode(setup).map_err(PlaybackError::Setup)?;
        if engine != E::ID {
            return Err(PlaybackError::ForeignEngine { found: engine.into(), expected: E::ID });
        }
        self.engine = Some(E::start(setup).map_err(PlaybackError::Start)?);
        Ok(Play::Started)
    }

    /// Applies the next command; gives its number and the events that it emits. It takes as long as the engine does,
    /// and needs no view.
    ///
    /// # Panics
    /// If no command is next: a programmer error.
    pub fn apply(&mut self) -> (Seq, &Events) {
        assert!(!self.is_applied, "a command is applied once, after it was found to be next");
        self.emitted.clear();
        (self.taken, self.is_applied) = (0, true);
        if let (Some(engine), Some((seq, command))) = (&mut self.engine, &self.command) {
            engine.apply(*seq, command, &mut self.emitted);
        }
        (self.command.as_ref().map_or(SETUP, |(seq, _)| *seq), &self.emitted)
    }

    /// Holds the next event against the recorded one. Where nothing was emitted, the log has too much.
    fn compare(&mut self, log: &View<Pryj>) -> Result<Play, PlaybackError<E::Error>> {
        match self.recorded.poll(log, Side::Events)? {
            Sourced::Read(request) => Ok(Play::Read(Side::Events, request)),
            Sourced::Record(seq, recorded) if self.event() == Some((seq, &recorded)) => {
                self.is_same = true;
                Ok(Play::Event { is_recorded: true })
            }
            Sourced::Record(_, recorded) => Err(self.difference(Some(recorded))),
            Sourced::End => Ok(Play::CaughtUp),
        }
    }

    /// What is wrong with the next event.
    pub(super) fn difference(&self, recorded: Option<Bytes>) -> PlaybackError<E::Error> {
        let (command, command_bytes) = self.command.clone().unzip();
        let replayed = self.event().map(|(_, event)| Bytes::copy_from_slice(event));
        let (event, command_bytes) = (self.next_event, command_bytes.unwrap_or_default());
        PlaybackError::Differs(Box::new(Difference { event, command, command_bytes, recorded, replayed }))
    }
}

/// The record that is the setup.
const SETUP: Seq = Seq::ZERO;

impl Source {
    const fn new(from: Seq) -> Self {
        Self { cursor: Cursor::new(from, ReadUpTo::Durable), batch: None }
    }

    fn poll<X>(&mut self, view: &View<Pryj>, side: Side) -> Result<Sourced, PlaybackError<X>> {
        loop {
            if let Some((seq, payload)) = self.batch.as_mut().and_then(Batch::pop_first) {
                return Ok(Sourced::Record(seq, payload));
            }
            match self.cursor.poll(view) {
                Replay::Records(batch) => self.batch = Some(batch),
                Replay::Read(request) => return Ok(Sourced::Read(request)),
                Replay::CaughtUp => return Ok(Sourced::End),
                // An empty log stands before the first event.
                Replay::Beyond { .. } => return Ok(Sourced::End),
                Replay::Trimmed { first } => return Err(PlaybackError::Trimmed { side, first }),
            }
        }
    }
}
