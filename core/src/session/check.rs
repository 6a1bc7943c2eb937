//! The replay check: whether the recorded events are those that the recorded commands cause, and their digest.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::error::{PlaybackError, Side};
use super::playback::{Play, Playback};
use crate::{Engine, IoFailure, Pryj, ReadError, ReadRequest, Seq, View};

/// SHA-256 over events: of each one its length (4 bytes), its number (8 bytes), both little-endian, and its payload. How
/// a log is cut into segments does not matter.
#[derive(Clone, Debug, Default)]
pub struct EventDigest(Sha256);

/// A replay check on its way. Its memory does not grow with the session.
#[derive(Debug)]
pub struct ReplayCheck<E> {
    playback: Playback<E>,
    digest: EventDigest,
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

impl EventDigest {
    /// Takes the next event in.
    ///
    /// # Panics
    /// If it is longer than 4 GiB: a programmer error.
    pub fn update(&mut self, seq: Seq, event: &[u8]) {
        let len = u32::try_from(event.len());
        assert!(len.is_ok(), "an event is at most 16 MiB");
        self.0.update(len.unwrap_or_default().to_le_bytes());
        self.0.update(seq.get().to_le_bytes());
        self.0.update(event);
    }

    /// The digest of all events that were taken in.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
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
        Self { playback: Playback::new(), digest: EventDigest::default(), commands: 0 }
    }

    /// Commands that were applied so far.
    #[must_use]
    pub const fn commands(&self) -> u64 {
        self.commands
    }

    /// What was compared so far, and was the same.
    #[must_use]
    pub fn compared(&self) -> Checked {
        let events = super::FIRST_EVENT.until(self.playback.next_event());
        Checked { commands: self.commands, events, sha256: self.digest.clone().finish() }
    }

    /// Goes on until there is something to read or to say.
    ///
    /// # Errors
    /// [`CheckError`]: the first event that differs, or why nothing can be compared. The check is over then.
    pub fn poll(&mut self, input: &View<Pryj>, log: &View<Pryj>) -> Result<CheckStep, CheckError<E::Error>> {
        loop {
            match self.playback.poll(input, log)? {
                Play::Read(side, request) => return Ok(CheckStep::Read(side, request)),
                Play::Started => {}
                Play::Command => {
                    self.playback.apply();
                    self.commands += 1;
                }
                Play::Event { is_recorded: false } => return Err(self.playback.difference(None).into()),
                Play::Event { is_recorded: true } => {
                    if let Some((seq, event)) = self.playback.event() {
                        self.digest.update(seq, event);
                    }
                    self.playback.take_event();
                }
                Play::CaughtUp => return self.end(),
            }
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
        self.playback.handle_read(side, answer)
    }

    fn end(&self) -> Result<CheckStep, CheckError<E::Error>> {
        if self.playback.engine().is_none() {
            return Err(CheckError::NoSession);
        }
        Ok(CheckStep::Same(self.compared()))
    }
}
