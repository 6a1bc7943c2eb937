//! Why a session cannot be played back, and where it differs from what is recorded.

use alloc::boxed::Box;
use core::fmt;

use bytes::Bytes;

use crate::Seq;
use crate::sbe::SbeError;

/// Which of a session's two journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The journal `input`: the setup and the commands.
    Input,
    /// The journal `events`.
    Events,
}

/// Why a playback is over.
#[derive(Debug, thiserror::Error)]
pub enum PlaybackError<E> {
    /// The recorded events are not those that the commands cause.
    #[error("{0}")]
    Differs(Box<Difference>),
    /// The session is of another engine.
    #[error("the session is of engine `{found}`, this is `{expected}`: use the program that recorded it")]
    ForeignEngine {
        /// What the setup says.
        found: Box<str>,
        /// [`Engine::ID`](crate::Engine::ID).
        expected: &'static str,
    },
    /// The first record is no setup.
    #[error(
        "journal `input`, record 0 is no session's setup: {0}. The directory holds something else than a session"
    )]
    Setup(SbeError),
    /// The engine refuses its setup.
    #[error("journal `input`, record 0: the engine refuses its setup: {0}")]
    Start(E),
    /// Old records of a journal are gone.
    #[error(
        "journal `{side}` begins with record {first}: a session is played back from its beginning; restore what was removed"
    )]
    Trimmed {
        /// The journal.
        side: Side,
        /// The first record that is there.
        first: Seq,
    },
}

/// The first event that is not recorded as the engine emits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The event's number.
    pub event: Seq,
    /// The command that causes it: the last one, where the log has an event that no command causes.
    pub command: Option<Seq>,
    /// The command's bytes.
    pub command_bytes: Bytes,
    /// What is recorded; nothing where the log ends before.
    pub recorded: Option<Bytes>,
    /// What the engine emits now; nothing where it emits none.
    pub replayed: Option<Bytes>,
}

/// How many bytes of a payload a message shows.
const SHOWN: usize = 64;

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Events => "events",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.first_byte();
        match from {
            Some(from) => write!(f, "event {} differs at byte {from}: ", self.event)?,
            None => write!(f, "event {} differs: ", self.event)?,
        }
        match (&self.recorded, &self.replayed) {
            (Some(recorded), Some(replayed)) => {
                let [recorded, replayed] = [recorded, replayed].map(|bytes| Shown { bytes, from });
                write!(f, "recorded is {recorded}, replayed {replayed}")?;
            }
            (None, Some(replayed)) => {
                write!(f, "it is not recorded, replayed is {}", Shown { bytes: replayed, from })?;
                f.write_str(" (all before it are the same; a session that a crash has stopped appends the rest when it is opened)")?;
            }
            (Some(recorded), None) => {
                let recorded = Shown { bytes: recorded, from };
                write!(f, "recorded is {recorded}, no command causes it")?;
            }
            (None, None) => write!(f, "it is neither recorded nor replayed")?,
        }
        match self.command {
            Some(command) => {
                let is_its_cause =
                    if self.replayed.is_some() { "it is caused by" } else { "the last one is" };
                let bytes = Shown { bytes: &self.command_bytes, from: None };
                write!(f, "; {is_its_cause} command {command}, {bytes}")
            }
            None => write!(f, "; there is no command"),
        }
    }
}

impl Difference {
    /// The first byte that differs, counted from 0, where there are two payloads.
    fn first_byte(&self) -> Option<usize> {
        let (recorded, replayed) = (self.recorded.as_ref()?, self.replayed.as_ref()?);
        Some(recorded.iter().zip(replayed).take_while(|(recorded, replayed)| recorded == replayed).count())
    }
}

/// Bytes as hexadecimal digits, with their number where there are more: those around the one at `from`.
struct Shown<'a> {
    bytes: &'a [u8],
    from: Option<usize>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.bytes.len();
        // Of what is long, what stands before the difference matters least.
        let skipped = self.from.filter(|_| len > SHOWN).map_or(0, |from| from.saturating_sub(SHOWN / 4));
        if skipped > 0 {
            f.write_str("...")?;
        }
        for byte in self.bytes.iter().skip(skipped).take(SHOWN) {
            write!(f, "{byte:02x}")?;
        }
        match len {
            0 => f.write_str("nothing"),
            len if len > SHOWN => {
                let rest = if len - skipped.min(len) > SHOWN { "..." } else { "" };
                write!(f, "{rest} ({len} bytes)")
            }
            _ => Ok(()),
        }
    }
}
