//! `demo`: the promises of a bus, kept before one's eyes by processes that are killed.

mod process;
pub(crate) mod publisher;
mod stopping_disk;
mod story;
pub(crate) mod subscriber;
mod wire;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::outcome::{Ended, Failure, say};
use story::Story;

/// Show what a bus promises: kill its processes, and check that nothing is missing.
///
/// In a temporary directory, a publisher process holds an event bus, and subscriber processes are connected to it. They
/// are killed with SIGKILL, one in the middle of a write, and started again, and every line that is printed was checked. Exit code 1 if something
/// is missing. Takes a few seconds, and leaves nothing behind.
#[derive(Args)]
pub(crate) struct Flags {
    /// Make the bus in this directory, which must not exist, and leave it there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Tells the story.
pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let failed = |error: io::Error| Failure::cannot_run(error).context("a temporary directory");
    let root = tempfile::Builder::new().prefix("strandline-demo-").tempdir().map_err(failed)?;
    let directory = match &flags.keep {
        Some(keep) if keep.exists() => {
            return Err(Failure::cannot_run(anyhow::anyhow!(
                "{} exists already: name a directory that does not",
                keep.display()
            )));
        }
        Some(keep) => keep.clone(),
        None => root.path().join("bus"),
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        // Without it an interrupted demo leaves its directory behind.
        let _ = signal_hook::flag::register(signal, Arc::clone(&interrupted));
    }
    Story::new(directory, root.path(), interrupted).tell()?;
    root.close().map_err(failed)?;
    if let Some(keep) = &flags.keep {
        say(format_args!("the bus is in {}: look at it with subscriptions, replay, stat", keep.display()));
    }
    Ok(Ended::Sound)
}
