//! The digest of a session's events.

use sha2::{Digest as _, Sha256};

use crate::Seq;

/// SHA-256 over events: of each one its length (4 bytes), its number (8 bytes), both little-endian, and its payload. How
/// a log is cut into segments does not matter.
#[derive(Clone, Debug, Default)]
pub struct EventDigest(Sha256);

/// Who digests events for a check: an [`EventDigest`] itself, or somebody who has one on another thread.
pub trait Digester {
    /// Takes the next event in.
    ///
    /// # Panics
    /// If it is longer than 4 GiB: a programmer error.
    fn take(&mut self, seq: Seq, event: &[u8]);

    /// The digest of all events that were taken in so far.
    fn so_far(&mut self) -> [u8; 32];
}

impl EventDigest {
    /// Takes the next event in.
    ///
    /// # Panics
    /// If it is longer than 4 GiB: a programmer error.
    pub fn update(&mut self, seq: Seq, event: &[u8]) {
        self.0.update(Self::head(seq, event));
        self.0.update(event);
    }

    /// What goes before the event's payload.
    ///
    /// # Panics
    /// If it is longer than 4 GiB: a programmer error.
    #[must_use]
    pub fn head(seq: Seq, event: &[u8]) -> [u8; 12] {
        let len = u32::try_from(event.len());
        assert!(len.is_ok(), "an event is at most 16 MiB");
        let mut head = [0; 12];
        let (len_at, seq_at) = head.split_at_mut(4);
        len_at.copy_from_slice(&len.unwrap_or_default().to_le_bytes());
        seq_at.copy_from_slice(&seq.get().to_le_bytes());
        head
    }

    /// Takes in the next piece of [heads](Self::head) and payloads, each head before its payload. Where the pieces are
    /// cut does not matter.
    pub fn update_encoded(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all events that were taken in.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

impl Digester for EventDigest {
    fn take(&mut self, seq: Seq, event: &[u8]) {
        self.update(seq, event);
    }

    fn so_far(&mut self) -> [u8; 32] {
        self.clone().finish()
    }
}
