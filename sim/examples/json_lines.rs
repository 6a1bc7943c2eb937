//! Crashes a naive log of JSON Lines, and finds what it loses.
//!
//! `cargo run --release -p strandline-sim --example json_lines`

mod applications;

use std::process::ExitCode;
use std::time::Instant;

use applications::JsonLines;
use strandline_sim::{Options, explore_application};

fn main() -> ExitCode {
    let started = Instant::now();
    let result = explore_application(&JsonLines, applications::SECTOR_BYTES, Options::default());
    let seconds = started.elapsed().as_secs_f64();
    match result {
        Ok(statistics) => {
            println!("no loss found in {seconds:.2} s: {statistics}");
            ExitCode::SUCCESS
        }
        Err(loss) => {
            println!("found in {seconds:.2} s: {loss}");
            ExitCode::FAILURE
        }
    }
}
