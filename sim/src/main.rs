//! The simulator's command: explores the runs of given seeds, and exits with 1 at the first violation.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use strandline_sim::{Options, Script, Settings, Statistics, Trace, Violation, explore, shrink};

/// Crashes a journal at every byte of every write and at every call, and checks what can be opened afterwards.
///
/// Prints the seed, every parameter that it decides, and a trace; the last line on stdout is `trace` and the
/// SHA-256 of the trace. The same seed gives the same trace. Exit code 1 if a check does not hold.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The seed of the run.
    #[arg(long, conflicts_with_all = ["seeds", "commit"])]
    seed: Option<u64>,
    /// The seeds A, A+1, .. up to but without B, as A..B.
    #[arg(long, value_parser = parse_range, conflicts_with = "commit")]
    seeds: Option<(u64, u64)>,
    /// A commit hash, whose first 16 hexadecimal digits are the seed.
    #[arg(long, value_parser = parse_commit)]
    commit: Option<u64>,
    /// How many operations the script has, instead of the number that the seed gives.
    #[arg(long)]
    steps: Option<usize>,
    /// A shorter script, crashed only at calls and at the first, middle and last byte of writes.
    #[arg(long)]
    smoke: bool,
    /// This script instead of the seed's: what a violation prints.
    #[arg(long, conflicts_with_all = ["seeds", "steps"])]
    script: Option<Script>,
    /// Runs on a disk whose syncs do nothing; must fail.
    #[arg(long)]
    canary: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // The explorer reports a panic of the code under test as a violation, once it has the shortest script.
    std::panic::set_hook(Box::new(|_| {}));
    let (from, to) = match (arguments.seed.or(arguments.commit), arguments.seeds) {
        (Some(seed), _) => (seed, None),
        (None, Some((from, to))) => (from, Some(to)),
        (None, None) => (0, None),
    };
    let started = Instant::now();
    let mut total = Statistics::default();
    let mut outcome = ExitCode::SUCCESS;
    let mut trace = if to.is_some() { Trace::silent() } else { Trace::shown(io::stdout()) };
    let last = to.map_or(from, |to| to.saturating_sub(1));
    for seed in from..=last {
        match run(&arguments, seed, &mut trace) {
            Ok(statistics) => total.add(&statistics),
            Err(violation) => {
                report(&arguments, *violation);
                outcome = ExitCode::FAILURE;
                break;
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("{total}; {}", rate(&total, seconds));
    say(&format!("trace {}", trace.hash()));
    outcome
}

/// Explores the run of one seed.
fn run(arguments: &Arguments, seed: u64, trace: &mut Trace) -> Result<Statistics, Box<Violation>> {
    let mut settings = Settings::from_seed(seed, arguments.smoke);
    settings.operations = arguments.steps.unwrap_or(settings.operations);
    let script = arguments.script.clone().unwrap_or_else(|| Script::generate(&settings));
    if arguments.seeds.is_none() {
        say(&format!("{settings}\nscript            {script}"));
    }
    trace.line(&format!("seed {seed}"));
    let statistics = explore(&settings, &script, options(arguments), trace)?;
    if arguments.seeds.is_some() {
        say(&format!("seed {seed}: {statistics}"));
    }
    Ok(statistics)
}

/// Prints a violation with the shortest script that still shows it.
fn report(arguments: &Arguments, violation: Violation) {
    say(&format!("{violation}\nlooking for a shorter script"));
    let shortest = shrink(violation, options(arguments));
    let canary = if arguments.canary { " --canary" } else { "" };
    say(&format!("{shortest}{canary}"));
}

fn options(arguments: &Arguments) -> Options {
    let options = if arguments.smoke { Options::smoke() } else { Options::default() };
    Options { canary: arguments.canary, ..options }
}

/// Prints a line; a reader that went away is no error.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs three digits")]
fn rate(total: &Statistics, seconds: f64) -> String {
    let per_second = |count: u64| count as f64 / seconds.max(1e-9);
    format!(
        "{seconds:.1} s; per second: {:.0} crashes, {:.0} distinct states, {:.0} openings",
        per_second(total.crashes),
        per_second(total.states),
        per_second(total.openings)
    )
}

fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    match parsed {
        Some((from, to)) if from < to => Ok((from, to)),
        _ => Err("expected A..B with A below B".to_owned()),
    }
}

fn parse_commit(text: &str) -> Result<u64, String> {
    let digits = text.get(..16).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "expected a commit hash of hexadecimal digits".to_owned())
}
