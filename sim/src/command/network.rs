//! `--network`: the event bus over a simulated network.

use std::process::ExitCode;
use std::time::Instant;

use super::{Flags, Progress, say};
use crate::Trace;
use crate::network::{NetworkStatistics, NetworkStory, run_network};

/// Runs the seeds of the flags. Prints a line for each, violations, and the trace of one.
pub(super) fn run(flags: &Flags, trace: &mut Trace) -> ExitCode {
    let started = Instant::now();
    let (first, last) = flags.seed_range().into_inner();
    let progress = Progress::new("seeds", last - first + 1, flags.seeds.is_some());
    let mut total = NetworkStatistics::default();
    let mut code = ExitCode::SUCCESS;
    for seed in first..=last {
        let story = NetworkStory::from_seed(seed, flags.smoke);
        match run_network(&story, trace) {
            Ok(statistics) => {
                total.add(&statistics);
                if flags.seeds.is_some() {
                    progress.aside(|| say(&format!("seed {seed}: {statistics}")));
                }
            }
            Err(broken) => {
                let smoke = if flags.smoke { " --smoke" } else { "" };
                let again = format!("strandline sim --network --seed {seed}{smoke}");
                say(&format!("violation of {}\n{broken}\n{again}", broken.check()));
                code = ExitCode::FAILURE;
                break;
            }
        }
        progress.set(seed - first + 1);
    }
    eprintln!("{total}; {:.1} s", started.elapsed().as_secs_f64());
    say(&format!("trace {}", trace.hash()));
    code
}
