//! The replay check: whether the recorded events are those that the recorded commands cause, and their digest.

use bytes::Bytes;

use super::digest::{Digester, EventDigest};
use super::error::{PlaybackError, Side};
use super::playback::{Play, Playback};
use super::source::FromView;
use crate::{Engine, IoFailure, Pryj, ReadError, ReadRequest, View};

/// A replay check on its way. Its memory does not grow with the session.
#[derive(Debug)]
pub struct ReplayCheck<E, D = EventDigest, S = FromView> {
    playback: Playback<E, S>,
    digest: D,
    commands: u64,
}

/// What a check says next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckStep {
    /// Read these bytes of the journal, and hand them to [`ReplayCheck::handle_read`].
    Read(Side, ReadRequest),
    /// Everything was compared, and is the same.
    Same(Checked),
}

/// What a check has found: the same events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Commands that were applied.
    pub commands: u64,
    /// Events that were compared.
    pub events: u64,
    /// [`EventDigest`] of them.
    pub sha256: [u8; 32],
}

/// Why a check has no result, or a bad one.
#[derive(Debug, thiserror::Error)]
pub enum CheckError<E> {
    /// The journal `input` has no record.
    #[error("journal `input` is empty: no session was ever begun here")]
    NoSession,
    /// What is recorded differs, or cannot be played back.
    #[error(transparent)]
    Playback(#[from] PlaybackError<E>),
}

impl<E: Engine> Default for ReplayCheck<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Engine> ReplayCheck<E> {
    /// A check at its beginning.
    #[must_use]
    pub fn new() -> Self {
        Self::digested_by(EventDigest::default())
    }
}

impl<E: Engine, D: Digester> ReplayCheck<E, D> {
    /// A check at its beginning, whose events are digested by somebody else.
    #[must_use]
    pub fn digested_by(digest: D) -> Self {
        Self::of(Playback::new(), digest)
    }

    /// Goes on until there is something to read or to say.
    ///
    /// # Errors
    /// [`CheckError`]: the first event that differs, or why nothing can be compared. The check is over then.
    pub fn poll(&mut self, input: &View<Pryj>, log: &View<Pryj>) -> Result<CheckStep, CheckError<E::Error>> {
        self.go_on(|playback| playback.poll(input, log))
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

impl<E: Engine, D: Digester, S> ReplayCheck<E, D, S> {
    pub(super) const fn of(playback: Playback<E, S>, digest: D) -> Self {
        Self { playback, digest, commands: 0 }
    }

    /// Commands that were applied so far.
    #[must_use]
    pub const fn commands(&self) -> u64 {
        self.commands
    }

    /// What was compared so far, and was the same.
    #[must_use]
    pub fn compared(&mut self) -> Checked {
        let events = super::FIRST_EVENT.until(self.playback.next_event());
        Checked { commands: self.commands, events, sha256: self.digest.so_far() }
    }

    /// Goes on, as `play` does, until there is something to read or to say.
    pub(super) fn go_on(
        &mut self,
        mut play: impl FnMut(&mut Playback<E, S>) -> Result<Play, PlaybackError<E::Error>>,
    ) -> Result<CheckStep, CheckError<E::Error>> {
        loop {
            match play(&mut self.playback)? {
                Play::Read(side, request) => return Ok(CheckStep::Read(side, request)),
                Play::Started => {}
                Play::Command => {
                    self.playback.apply();
                    self.commands += 1;
                }
                Play::Event { is_recorded: false } => return Err(self.playback.difference(None).into()),
                Play::Event { is_recorded: true } => {
                    if let Some((seq, event)) = self.playback.event() {
                        self.digest.take(seq, event);
                    }
                    self.playback.take_event();
                }
                Play::CaughtUp => return self.end(),
            }
        }
    }

    pub(super) const fn playback(&self) -> &Playback<E, S> {
        &self.playback
    }

    pub(super) fn into_playback(self) -> Playback<E, S> {
        self.playback
    }

    pub(super) const fn playback_mut(&mut self) -> &mut Playback<E, S> {
        &mut self.playback
    }

    fn end(&mut self) -> Result<CheckStep, CheckError<E::Error>> {
        if self.playback.engine().is_none() {
            return Err(CheckError::NoSession);
        }
        Ok(CheckStep::Same(self.compared()))
    }
}
