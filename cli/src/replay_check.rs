//! `replay-check` for an engine of one's own: three lines make it a program.
//!
//! ```no_run
//! # use strandline::{Engine, Events, Seq};
//! # struct Counter;
//! # impl Engine for Counter {
//! #     const ID: &'static str = "counter/1";
//! #     type Error = std::convert::Infallible;
//! #     fn start(_: &[u8]) -> Result<Self, Self::Error> { Ok(Self) }
//! #     fn apply(&mut self, _: Seq, _: &[u8], _: &mut Events) {}
//! # }
//! fn main() -> std::process::ExitCode {
//!     strandline_cli::replay_check::main::<Counter>()
//! }
//! ```

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, Parser};
use serde::Serialize;
use strandline::Engine;
use strandline::InspectError;
use strandline::session::{Checked, Difference, ReplayCheckError, replay_check};

use crate::outcome::{Ended, Failure, exit_code};
use crate::progress::Steps;

/// Apply the recorded commands of a session to a fresh engine, and compare the events with the recorded ones.
///
/// Prints the number of commands and events, and the SHA-256 of the events; or the first event that differs, with the
/// command that causes it and both payloads. Exit code 0 if they are the same, 1 if not, 2 if it could not be
/// looked at: no session, another engine's, a damaged journal. It takes no lock and changes nothing.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// The session's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print one JSON document, payloads in Base64
    #[arg(long)]
    json: bool,
}

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    flags: Flags,
}

/// What is printed with `--json`.
#[derive(Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
enum Document {
    Same {
        commands: u64,
        events: u64,
        sha256: String,
    },
    Differs {
        event: u64,
        command: Option<u64>,
        command_bytes: String,
        recorded: Option<String>,
        replayed: Option<String>,
    },
}

/// The whole program: parses the arguments, checks, and gives the exit code.
#[must_use]
pub fn main<E: Engine>() -> ExitCode {
    run::<E>(&Program::parse().flags)
}

/// Does what the flags ask for, and gives the exit code.
#[must_use]
pub fn run<E: Engine>(flags: &Flags) -> ExitCode {
    exit_code(check::<E>(flags))
}

fn check<E: Engine>(flags: &Flags) -> Result<Ended, Failure> {
    let steps = Steps::new("{msg} {bar:30} {human_pos} of {human_len} ({per_sec}, {eta} left)", "commands");
    let checked = replay_check::<E>(&flags.directory, |done, of| steps.at(done, of));
    steps.finish();
    match checked {
        Ok(checked) => {
            told(&checked, flags.json)?;
            Ok(Ended::Sound)
        }
        Err(error) => match error.difference() {
            Some(difference) if flags.json => {
                print(&Document::of(difference))?;
                Ok(Ended::Problem)
            }
            Some(_) => Err(Failure::problem(error).context(flags.directory.display().to_string())),
            None => Err(cannot_check(error).context(flags.directory.display().to_string())),
        },
    }
}

/// Which journal is missing says little to who has named none.
fn cannot_check<E: std::error::Error + Send + Sync + 'static>(error: ReplayCheckError<E>) -> Failure {
    match error {
        ReplayCheckError::Inspect(InspectError::NoJournal(name)) => Failure::cannot_run(anyhow::anyhow!(
            "there is no session, or not all of one: its journal `{name}` is missing; what can be done is said when the session is opened"
        )),
        other => Failure::cannot_run(other),
    }
}

fn told(checked: &Checked, json: bool) -> Result<(), Failure> {
    let Checked { commands, events, sha256 } = *checked;
    let sha256: String = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    if json {
        return print(&Document::Same { commands, events, sha256 });
    }
    let mut out = io::stdout().lock();
    writeln!(out, "commands  {commands}")?;
    writeln!(out, "events    {events}, all as recorded")?;
    writeln!(out, "sha256    {sha256}")?;
    Ok(out.flush()?)
}

fn print(document: &Document) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, document)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

impl Document {
    fn of(found: &Difference) -> Self {
        let base64 = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        Self::Differs {
            event: found.event.get(),
            command: found.command.map(strandline::Seq::get),
            command_bytes: base64(&found.command_bytes),
            recorded: found.recorded.as_deref().map(base64),
            replayed: found.replayed.as_deref().map(base64),
        }
    }
}
