//! Running a journal's commands through an engine, and holding what it emits against the recorded events. Running,
//! resuming and checking are this one path.

use alloc::boxed::Box;

use bytes::Bytes;

use super::error::{Difference, PlaybackError, Side};
use super::setup::Setup;
use super::source::{FromView, Sourced};
use super::{FIRST_EVENT, SETUP};
use crate::{Engine, Events, IoFailure, Pryj, ReadError, ReadRequest, Seq, View};

/// The engine of a session on its way through the recorded commands.
///
/// It owns neither journal and does no I/O: drive it with [`poll`](Self::poll), which lends it both views.
#[derive(Debug)]
pub struct Playback<E, S = FromView> {
    /// None until the setup was read.
    engine: Option<E>,
    commands: S,
    recorded: S,
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
        Self::of(FromView::new(SETUP), FromView::new(FIRST_EVENT))
    }

    /// What comes next, of the durable commands in `input` and the durable events in `log`.
    ///
    /// # Errors
    /// [`PlaybackError`]; the playback is over then.
    pub fn poll(&mut self, input: &View<Pryj>, log: &View<Pryj>) -> Result<Play, PlaybackError<E::Error>> {
        is_whole(input, log)?;
        // Behind the end there is nothing to compare with, wherever the source stands: what is appended to the log
        // meanwhile is what the engine emitted.
        let is_at_end = self.next_event >= log.durable_end();
        self.poll_from(|source, side| match side {
            Side::Input => source.poll(input, side),
            Side::Events if is_at_end => Ok(Sourced::End),
            Side::Events => source.poll(log, side),
        })
    }

    /// Takes the bytes that were asked for, or the failure of the read.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped.
    ///
    /// # Panics
    /// If no read of this journal was asked for: a programmer error.
    pub fn handle_read(&mut self, side: Side, answer: Result<Bytes, IoFailure>) -> Result<(), ReadError> {
        self.source_mut(side).handle_read(answer)
    }
}

impl<E: Engine, S> Playback<E, S> {
    /// A playback at the beginning of these two journals.
    pub(super) fn of(commands: S, recorded: S) -> Self {
        Self {
            engine: None,
            commands,
            recorded,
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

    /// What comes next, of what the sources have; `next` asks them.
    pub(super) fn poll_from(
        &mut self,
        mut next: impl FnMut(&mut S, Side) -> Result<Sourced, PlaybackError<E::Error>>,
    ) -> Result<Play, PlaybackError<E::Error>> {
        if self.taken < self.emitted.len() {
            return if self.is_same { Ok(Play::Event { is_recorded: true }) } else { self.compare(next) };
        }
        if !self.is_applied {
            return Ok(Play::Command);
        }
        match next(&mut self.commands, Side::Input)? {
            Sourced::Read(request) => Ok(Play::Read(Side::Input, request)),
            Sourced::Record(SETUP, setup) => self.start(&setup),
            Sourced::Record(seq, command) => {
                (self.command, self.is_applied) = (Some((seq, command)), false);
                Ok(Play::Command)
            }
            Sourced::End if self.engine.is_some() => self.compare(next),
            Sourced::End => Ok(Play::CaughtUp),
        }
    }

    pub(super) const fn source(&self, side: Side) -> &S {
        match side {
            Side::Input => &self.commands,
            Side::Events => &self.recorded,
        }
    }

    pub(super) const fn source_mut(&mut self, side: Side) -> &mut S {
        match side {
            Side::Input => &mut self.commands,
            Side::Events => &mut self.recorded,
        }
    }

    /// Both sources: of the input, and of the log.
    pub(super) fn into_sources(self) -> [S; 2] {
        [self.commands, self.recorded]
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
    fn compare(
        &mut self,
        mut next: impl FnMut(&mut S, Side) -> Result<Sourced, PlaybackError<E::Error>>,
    ) -> Result<Play, PlaybackError<E::Error>> {
        match next(&mut self.recorded, Side::Events)? {
            Sourced::Read(request) => Ok(Play::Read(Side::Events, request)),
            Sourced::Record(seq, recorded) if self.event() == Some((seq, &recorded)) => {
                self.is_same = true;
                Ok(Play::Event { is_recorded: true })
            }
            Sourced::Record(_, recorded) => Err(self.difference(Some(recorded))),
            Sourced::End if self.taken < self.emitted.len() => Ok(Play::Event { is_recorded: false }),
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

/// Whether both journals begin where a session does.
pub(super) fn is_whole<X>(input: &View<Pryj>, log: &View<Pryj>) -> Result<(), PlaybackError<X>> {
    for (side, view, first) in [(Side::Input, input, SETUP), (Side::Events, log, FIRST_EVENT)] {
        if view.first() > first {
            return Err(PlaybackError::Trimmed { side, first: view.first() });
        }
        if view.first() < first && view.first() < view.durable_end() {
            return Err(PlaybackError::BeginsEarly { side, first: view.first() });
        }
    }
    Ok(())
}
