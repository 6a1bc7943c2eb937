//! The simulator's own binary; see [`strandline_sim::command`].

use std::process::ExitCode;

use clap::Parser;
use strandline_sim::command::{Flags, run};

/// Crashes a journal at every byte of every write and at every call, and checks what can be opened afterwards.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

fn main() -> ExitCode {
    run(&Arguments::parse().flags)
}
