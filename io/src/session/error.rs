//! Why a session cannot be opened, and why a command is not answered.

use strandline_core::ReadError;
use strandline_core::session::PlaybackError;

use crate::error::{AppendError, Poisoned};
use crate::journal::OpenError;
use crate::listing::ListingError;

/// Why a session was not opened. What is recorded of it was not changed, except that torn tails were cut.
#[derive(Debug, thiserror::Error)]
pub enum SessionOpenError<E> {
    /// There is none.
    #[error(
        "there is no session in the directory: its journal `input` has no record; make one with `create_new`"
    )]
    NoSession,
    /// The input is wholly missing, and the log is there.
    #[error(
        "journal `input` is missing or empty, and journal `events` is there: restore the files of `input`, which cannot be made again"
    )]
    InputMissing,
    /// There is one already.
    #[error(
        "there is a session in the directory already, with {input} records in its journal `input` and {events} in `events`: open it, or use another directory"
    )]
    AlreadyExists {
        /// Records of `input`, the setup among them.
        input: u64,
        /// Records of `events`.
        events: u64,
    },
    /// The log is wholly missing.
    #[error(
        "journal `events` is missing, and journal `input` has {commands} commands: restore its files, or have it made again from the input (`rebuild_events`)"
    )]
    EventsMissing {
        /// Commands that are recorded.
        commands: u64,
    },
    /// What is recorded differs from what the engine does, or cannot be played back.
    #[error(transparent)]
    Playback(PlaybackError<E>),
    /// The engine refuses the setup of a session that is to be made.
    #[error("the engine refuses the setup, no session was made: {0}")]
    Start(E),
    /// A journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The directory cannot be listed.
    #[error(transparent)]
    Listing(#[from] ListingError),
    /// A journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The setup could not be appended.
    #[error("the setup could not be recorded, no session was made: {0}")]
    Append(#[from] AppendError),
    /// Events that were missing could not be appended.
    #[error(transparent)]
    Stopped(SessionStopped),
    /// The system gave no thread.
    #[error("no thread could be started for the session: {0}")]
    Thread(std::io::Error),
}

/// Why a command is not answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    /// The command was not accepted, or found no space: it is not in the journal, and the engine never saw it.
    #[error("the command was not recorded: {0}")]
    Refused(AppendError),
    /// The session stopped: what becomes of the command is known once the session is opened again.
    #[error(transparent)]
    Stopped(#[from] SessionStopped),
}

/// Why a session goes on no more. Commands that were answered are safe; those in flight were accepted or not, which is
/// known after it was opened again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SessionStopped {
    /// It was closed.
    #[error("the session is closed: open it again to go on")]
    Closed,
    /// A journal stopped.
    #[error("the session stopped: {0}; open it again to find out what became of commands in flight")]
    Poisoned(Poisoned),
    /// Events could not be appended, as when there is no space.
    #[error("the session stopped, since its events could not be recorded: {}", unrecorded(.0))]
    Events(AppendError),
    /// The engine panicked.
    #[error(
        "the session stopped: the engine panicked at command {command}, and will again when the session is opened; mend the engine"
    )]
    Panicked {
        /// The command.
        command: strandline_core::Seq,
    },
    /// What is recorded cannot be read.
    #[error("the session stopped: {0}")]
    Read(ReadError),
    /// What is recorded changed under way.
    #[error("the session stopped: {0}")]
    Playback(std::sync::Arc<str>),
}

impl From<AppendError> for SubmitError {
    /// Of a journal that stopped it is not known what it holds: nothing is refused by that.
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Poisoned(poisoned) => Self::Stopped(SessionStopped::Poisoned(poisoned)),
            AppendError::Closed => Self::Stopped(SessionStopped::Closed),
            refused => Self::Refused(refused),
        }
    }
}

/// What to do about events that could not be recorded.
fn unrecorded(error: &AppendError) -> String {
    let why = match error {
        // It says that the journal goes on, and the session does not.
        AppendError::NoSpace => "there was no space left; free some".to_string(),
        AppendError::TooManyFiles => {
            "there were too many open files; raise the limit (ulimit -n)".to_string()
        }
        other => other.to_string(),
    };
    format!("{why}. The commands are recorded: open it again, which appends what is missing")
}
