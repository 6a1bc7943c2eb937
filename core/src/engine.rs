//! What a session runs: a deterministic engine, and the events that it emits.

use alloc::vec::Vec;
use core::fmt;

use crate::Seq;

/// A deterministic state machine: the same setup and the same commands give the same events, byte for byte.
///
/// It knows no clock, no randomness, no thread and no file: whatever it has to know comes in a command, the time
/// too. It does not iterate over maps in random order, nor print floats. What it must never do is found by a replay
/// check, which runs the recorded commands through a fresh engine and compares.
///
/// ```
/// use strandline_core::{Engine, Events, Seq};
///
/// /// Adds up what it is told.
/// struct Counter {
///     total: u64,
/// }
///
/// impl Engine for Counter {
///     const ID: &'static str = "adder/1";
///     type Error = std::num::ParseIntError;
///
///     fn start(setup: &[u8]) -> Result<Self, Self::Error> {
///         Ok(Self { total: String::from_utf8_lossy(setup).parse()? })
///     }
///
///     fn apply(&mut self, _: Seq, command: &[u8], events: &mut Events) {
///         self.total += command.len() as u64;
///         events.push(&self.total.to_le_bytes());
///     }
/// }
///
/// let mut counter = Counter::start(b"40").unwrap();
/// let mut events = Events::default();
/// counter.apply(Seq::new(1), b"ab", &mut events);
/// assert_eq!(events.iter().collect::<Vec<_>>(), [42u64.to_le_bytes()]);
/// ```
pub trait Engine: Sized {
    /// Names the engine and what its bytes mean, in at most 255 bytes. It is recorded with the setup, and a session of
    /// another one is refused: change it when the same commands shall give other events. Sessions that were recorded are replayed by
    /// the engine that they name; keep it as long as they matter.
    const ID: &'static str;

    /// Why a setup is refused.
    type Error: core::error::Error + Send + Sync + 'static;

    /// An engine at its beginning. Everything that it is configured by is in the setup, which is the first record of a
    /// session: a configuration that changes later does not change a replay.
    ///
    /// # Errors
    /// The setup makes no sense.
    fn start(setup: &[u8]) -> Result<Self, Self::Error>;

    /// Applies one command, the record `seq` of the journal `input` (the first is 1), and emits what follows from it: nothing, or any number of events. A command that makes no
    /// sense is answered by an event that says so.
    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events);
}

/// The events that a command has caused, in order. One buffer serves all commands: nothing is allocated per event.
#[derive(Clone, Default)]
pub struct Events {
    bytes: Vec<u8>,
    /// Where each event ends.
    ends: Vec<usize>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Events {
    /// Emits an event.
    ///
    /// # Panics
    /// If it is longer than [`PAYLOAD_BYTES_MAX`](Self::PAYLOAD_BYTES_MAX): a programmer error.
    pub fn push(&mut self, event: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(event));
    }

    /// Emits an event that is encoded in place. What is in `bytes` already belongs to earlier events.
    ///
    /// # Panics
    /// If it is longer than [`PAYLOAD_BYTES_MAX`](Self::PAYLOAD_BYTES_MAX), or earlier bytes are removed: programmer errors.
    pub fn push_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        encode(&mut self.bytes);
        let len = self.bytes.len().checked_sub(start);
        assert!(
            len.is_some_and(|len| len <= Self::PAYLOAD_BYTES_MAX),
            "an event of {len:?} bytes was emitted"
        );
        self.ends.push(self.bytes.len());
    }

    /// The longest event, in bytes: what a journal takes, 16 MiB.
    pub const PAYLOAD_BYTES_MAX: usize = crate::PAYLOAD_BYTES_MAX;

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// An event by its place among those of the command.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(index)?)
    }

    /// The events in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Forgets all events and keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
