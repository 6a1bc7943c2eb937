//! Crashes the same application over Strandline, and finds no loss.
//!
//! `cargo run --release -p strandline-sim --example strandline_log`

mod applications;

use std::process::ExitCode;
use std::time::Instant;

use applications::StrandlineLog;
use strandline_sim::{Options, explore_application};

fn main() -> ExitCode {
    let started = Instant::now();
    let result = explore_application(&StrandlineLog, applications::SECTOR_BYTES, Options::smoke());
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
