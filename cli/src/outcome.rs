//! How a command ends: the exit code, and the one line on standard error that says why.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use strandline::bus::BusOpenError;
use strandline::{DirectoryError, InspectError, ListingError, OpenError};
use strandline_core::{IoCause, RecoveryError, Refusal};

/// The end of a command that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All is well: exit code 0.
    Sound,
    /// A problem was found, and was told already, or something was skipped: exit code 1.
    Problem,
}

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A problem with the data or the disk: exit code 1.
    Problem(anyhow::Error),
    /// It could not run: exit code 2.
    CannotRun(anyhow::Error),
    /// Nobody reads standard output any more, which is nobody's fault: exit code 0.
    ReaderGone,
}

impl Failure {
    pub(crate) fn problem(error: impl Into<anyhow::Error>) -> Self {
        Self::Problem(error.into())
    }

    pub(crate) fn cannot_run(error: impl Into<anyhow::Error>) -> Self {
        Self::CannotRun(error.into())
    }

    /// Says in front what it was about.
    pub(crate) fn context(self, what: impl fmt::Display + Send + Sync + 'static) -> Self {
        match self {
            Self::Problem(error) => Self::Problem(error.context(what)),
            Self::CannotRun(error) => Self::CannotRun(error.context(what)),
            Self::ReaderGone => Self::ReaderGone,
        }
    }
}

/// What writing to standard output reports; no other errors of this type arrive here.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::CannotRun(anyhow::Error::new(error).context("standard output cannot be written")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Self {
        match &error {
            InspectError::Listing(ListingError::Doubtful { .. } | ListingError::InTheWay { .. }) => {
                Self::problem(error)
            }
            InspectError::Io { .. }
            | InspectError::NotAFile { .. }
            | InspectError::NotADirectory { .. }
            | InspectError::Listing(ListingError::Io(_))
            | InspectError::NoJournal(_) => Self::cannot_run(error),
        }
    }
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        Self::cannot_run(error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let is_problem = match &error {
            OpenError::Listing(ListingError::Doubtful { .. } | ListingError::InTheWay { .. }) => true,
            OpenError::Recovery { source, .. } => match source {
                RecoveryError::Refused { refusal, .. } => !is_denied(refusal),
                RecoveryError::Failed { failure, .. } => failure.cause != IoCause::Denied,
                RecoveryError::Unstable { .. } => true,
            },
            OpenError::Listing(ListingError::Io(_))
            | OpenError::Name(_)
            | OpenError::AlreadyOpen(_)
            | OpenError::Thread(_) => false,
        };
        if is_problem { Self::problem(error) } else { Self::cannot_run(error) }
    }
}

impl From<BusOpenError> for Failure {
    fn from(error: BusOpenError) -> Self {
        match error {
            BusOpenError::Journal(error) => error.into(),
            BusOpenError::TooSmall { .. } | BusOpenError::WouldDrop { .. } | BusOpenError::Thread(_) => {
                Self::cannot_run(error)
            }
            BusOpenError::Read(_) | BusOpenError::Restore(_) | BusOpenError::Bus(_) => Self::problem(error),
        }
    }
}

/// Whether nothing is known to be wrong with the journal, but it may not be read.
pub(crate) fn is_denied(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Unreadable { failure, .. } if failure.cause == IoCause::Denied)
}

/// Says something on standard error, where it does not disturb the data. If that fails, nobody wants to know.
pub(crate) fn say(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "{}: {}", program_name(), printable(&message.to_string()));
}

/// What the program is called: a replay check is a program of its own.
fn program_name() -> String {
    let path = std::env::args_os().next().map(std::path::PathBuf::from);
    let name = path.as_deref().and_then(std::path::Path::file_stem);
    name.map_or_else(|| "strandline".into(), |name| name.to_string_lossy().into_owned())
}

/// The exit code of how a command ended; says why it failed.
pub(crate) fn exit_code(ended: Result<Ended, Failure>) -> ExitCode {
    match ended {
        Ok(Ended::Sound) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Ok(Ended::Problem) => ExitCode::from(1),
        Err(Failure::Problem(error)) => {
            say(one_line(&error));
            ExitCode::from(1)
        }
        Err(Failure::CannotRun(error)) => {
            say(one_line(&error));
            ExitCode::from(2)
        }
    }
}

/// The whole chain of causes. A message that quotes its cause says it once.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if cause.starts_with(&line) {
            line = cause;
        } else if !line.contains(&cause) {
            let separator = if line.is_empty() { "" } else { ": " };
            line = format!("{line}{separator}{cause}");
        }
    }
    line.replace('\n', " ")
}

/// What others have said may hold anything: no control character of it reaches a terminal.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_one_line_and_says_nothing_twice() {
        let inner =
            anyhow::anyhow!("disk\non fire").context("cannot read: disk\non fire").context("journal a");
        assert_eq!(one_line(&inner), "journal a: cannot read: disk on fire");
    }

    #[test]
    fn what_a_server_said_cannot_command_a_terminal() {
        assert_eq!(printable("it said \x1b[2J and \u{9b}2J, ä"), "it said \\u{1b}[2J and \\u{9b}2J, ä");
    }
}
