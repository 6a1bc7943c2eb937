//! `exchange`: records sessions of the reference exchange.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use strandline::session::{PlaybackError, Session, SessionOpenError, SessionSettings, Side};
use strandline::{Directory, Seq};
use strandline_sim::exchange::{Exchange, Workload};

use crate::outcome::{Ended, Failure};
use crate::progress::Steps;

/// Run the reference exchange, an engine to try sessions with
#[derive(Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(RunFlags),
}

/// Record a session of traders on an exchange.
///
/// Producers submit orders, changes and cancels to an exchange of three instruments, each from its own thread, while
/// a clock opens and closes the market. Every command is answered when it and its events are on the disk. Check the session
/// with `strandline replay-check DIR`, look at it with `strandline decode DIR --journal events`.
#[derive(Args)]
struct RunFlags {
    /// The session's directory; it is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Commands in all
    #[arg(long, value_name = "N", default_value_t = Workload::default().commands,
          value_parser = clap::value_parser!(u64).range(Workload::COMMANDS_MIN..))]
    commands: u64,
    /// Threads that submit the traders' commands
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    producers: u16,
    /// Decides what the traders do
    #[arg(long, value_name = "SEED", default_value_t = Workload::default().seed)]
    seed: u64,
    /// Submit in an order that the seed decides. The same seed and number of commands then give the same session, byte for
    /// byte, with any number of producers, and a session that was broken off is gone on with
    #[arg(long)]
    in_turn: bool,
    /// Print the number of every command that was answered, one a line
    #[arg(long)]
    answered: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let Command::Run(flags) = &flags.command;
    let place = flags.directory.display().to_string();
    trade(flags).map_err(|error| error.context(place))
}

fn trade(flags: &RunFlags) -> Result<Ended, Failure> {
    let directory = Directory::open(&flags.directory)?;
    let setup = Workload::setup().to_bytes();
    let settings = SessionSettings::default();
    let opened = Session::<Exchange>::open_or_create(&directory, &setup, settings);
    let (session, _) = opened.map_err(not_opened)?;
    let RunFlags { commands, seed, in_turn, .. } = *flags;
    let workload = Workload { commands, producers: flags.producers.into(), seed, in_turn };
    let steps = Steps::new("{msg} {bar:30} {human_pos} of {human_len} ({per_sec}, {eta} left)", "answered");
    let ran = workload.run(&session, |command| {
        if flags.answered {
            // Whoever stopped listening has heard enough.
            let mut out = io::stdout().lock();
            let _ = writeln!(out, "{command}").and_then(|()| out.flush());
        }
        steps.one_of(commands);
    });
    steps.finish();
    ran.map_err(Failure::problem)?;
    let [commands, events] =
        [Side::Input, Side::Events].map(|side| Seq::new(1).until(session.durable_end(side)));
    session.close().map_err(Failure::problem)?;
    let mut out = io::stdout().lock();
    writeln!(out, "commands  {commands}")?;
    writeln!(out, "events    {events}")?;
    Ok(out.flush()?).map(|()| Ended::Sound)
}

/// What is wrong with what is recorded is a problem; the rest means that it cannot run.
fn not_opened<E: std::error::Error + Send + Sync + 'static>(error: SessionOpenError<E>) -> Failure {
    match error {
        SessionOpenError::Journal(error) => error.into(),
        SessionOpenError::Playback(PlaybackError::Differs(_) | PlaybackError::Trimmed { .. })
        | SessionOpenError::Read(_)
        | SessionOpenError::Stopped(_) => Failure::problem(error),
        _ => Failure::cannot_run(error),
    }
}
