//! The command line `strandline`: record events into a journal, read them back, and say exactly what is wrong
//! with one.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 all is well, 1 a problem was
//! found or something was skipped, 2 it could not run.
//!
//! This is a library only so that what parses foreign text can be called, and fuzzed, without a process around
//! it: [`event_lines`] and [`lines`] for the input of `record`, [`size`] and [`duration`] for flags; and for
//! [`replay_check`], which an engine of one's own needs. To embed a journal, use the `strandline` crate.

mod ack;
mod cat;
mod compact;
mod decode;
mod demo;
pub mod duration;
pub mod event_lines;
mod exchange;
mod finding;
mod http;
pub mod lines;
mod offline_bus;
mod outcome;
mod output;
mod progress;
mod record;
mod replay;
pub mod replay_check;
mod selection;
pub mod size;
mod stat;
mod subscriptions;
mod table;
mod tail;
mod target;
mod terminal;
mod verify;
mod wanted;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use strandline_sim::exchange::Exchange;

/// A crash-safe event journal: record events, read them back, check what is on the disk.
#[derive(Parser)]
#[command(name = "strandline", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 sound, 1 a problem was found or something was skipped, 2 could not run."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Record(record::Flags),
    Cat(cat::Flags),
    Tail(tail::Flags),
    Stat(stat::Flags),
    Verify(verify::Flags),
    Replay(replay::Flags),
    Subscriptions(subscriptions::Flags),
    Ack(ack::Flags),
    Compact(compact::Flags),
    Serve(http::serve::Flags),
    Pub(http::publish::Flags),
    Sub(http::follow::Flags),
    Exchange(exchange::Flags),
    ReplayCheck(replay_check::Flags),
    Decode(decode::Flags),
    Demo(demo::Flags),
    #[command(hide = true)]
    DemoPublisher(demo::publisher::Flags),
    #[command(hide = true)]
    DemoSubscriber(demo::subscriber::Flags),
    Sim(strandline_sim::command::Flags),
}

/// Does what the program's arguments ask for, and gives its exit code.
///
/// Ends the process with code 2 where the arguments cannot be parsed.
#[must_use]
pub fn run() -> ExitCode {
    outlive_file_size_limit();
    let Cli { command } = Cli::parse();
    let ended = match command {
        Command::Record(flags) => record::Settings::check(flags).and_then(record::run),
        Command::Cat(flags) => cat::Settings::check(flags).and_then(|settings| cat::run(&settings)),
        Command::Tail(flags) => tail::Settings::check(flags).and_then(|settings| tail::run(&settings)),
        Command::Stat(flags) => stat::Settings::check(flags).and_then(|settings| stat::run(&settings)),
        Command::Verify(flags) => verify::Settings::check(flags).and_then(|settings| verify::run(&settings)),
        Command::Replay(flags) => replay::Settings::check(flags).and_then(|settings| replay::run(&settings)),
        Command::Subscriptions(flags) => subscriptions::run(&flags),
        Command::Ack(flags) => ack::run(&flags),
        Command::Compact(flags) => {
            compact::Settings::check(flags).and_then(|settings| compact::run(&settings))
        }
        Command::Serve(flags) => http::serve::run(&flags),
        Command::Pub(flags) => http::publish::run(&flags),
        Command::Sub(flags) => http::follow::run(&flags),
        Command::Exchange(flags) => exchange::run(&flags),
        Command::ReplayCheck(flags) => return replay_check::run::<Exchange>(&flags),
        Command::Decode(flags) => decode::run(&flags),
        Command::Demo(flags) => demo::run(&flags),
        Command::DemoPublisher(flags) => demo::publisher::run(&flags),
        Command::DemoSubscriber(flags) => demo::subscriber::run(&flags),
        Command::Sim(flags) => return strandline_sim::command::run(&flags),
    };
    outcome::exit_code(ended)
}

/// A write beyond the file size limit of the process (`ulimit -f`) kills it, unless it takes the signal. Then the
/// write fails instead, as on a full disk, and is told as that.
fn outlive_file_size_limit() {
    // Without it, the program does what it did, only less gently.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}
