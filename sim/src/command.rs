//! The command line of the simulator, for its own binary and for any other that offers it.
//!
//! A binary flattens or nests [`Flags`], which are clap arguments, and calls [`run`].

#[cfg(feature = "network")]
mod network;
mod progress;

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Instant;

use progress::Progress;

use crate::bus::{BusStory, explore_bus};
use crate::session::{SessionStory, explore_session};
use crate::{
    BrokenPromise, Options, Script, Settings, Statistics, Trace, Violation, exhaust, explore, shrink,
    small_scopes,
};

/// Crash a journal at every byte of every write and at every call, and check what can be opened afterwards.
///
/// Prints the seed, every parameter that it decides, and a trace; the last line on stdout is `trace` and the
/// SHA-256 of the trace. The same seed gives the same trace. Exit code 1 if a check does not hold.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// The seed of the run.
    #[arg(long, conflicts_with_all = ["seeds", "commit"])]
    pub seed: Option<u64>,
    /// The seeds A, A+1, .. up to but without B, as A..B.
    #[arg(long, value_parser = parse_range, conflicts_with = "commit", value_name = "A..B")]
    pub seeds: Option<(u64, u64)>,
    /// A commit hash, whose first 16 hexadecimal digits are the seed.
    #[arg(long, value_parser = parse_commit, value_name = "HASH")]
    pub commit: Option<u64>,
    /// How many operations the script has, instead of the number that the seed gives.
    #[arg(long, value_parser = parse_steps)]
    pub steps: Option<usize>,
    /// A shorter script, crashed only at calls and at the first, middle and last byte of writes.
    #[arg(long)]
    pub smoke: bool,
    /// This script instead of the seed's: what a violation prints.
    #[arg(long, conflicts_with_all = ["seeds", "steps"])]
    pub script: Option<Script>,
    /// Every sequence of up to so many operations, crashed everywhere, with the settings of the seed or of one
    /// seed for each framing, version and sync policy.
    #[arg(long, conflicts_with_all = ["seeds", "steps", "script", "smoke", "canary"], value_name = "LENGTH")]
    pub exhaustive: Option<usize>,
    /// Runs on a disk whose syncs do nothing; must fail.
    #[arg(long)]
    pub canary: bool,
    /// The event bus with its subscribers in place of a single journal.
    #[arg(long, conflicts_with_all = ["steps", "script", "exhaustive", "canary", "session"])]
    pub bus: bool,
    /// A session, whose engine is resumed after every crash, in place of a single journal.
    #[arg(long, conflicts_with_all = ["steps", "script", "exhaustive", "canary"])]
    pub session: bool,
    /// The event bus over a simulated network, with clients, in place of a single journal.
    #[cfg(feature = "network")]
    #[arg(long, conflicts_with_all = ["steps", "script", "exhaustive", "canary", "session", "bus"])]
    pub network: bool,
    /// Reports a violation as it was found, without looking for a shorter script.
    #[arg(long)]
    pub no_shrink: bool,
}

/// Does what the flags ask for. Writes the trace and violations to stdout, and counts and progress to stderr.
/// Gives 0 if every check holds, and 1 otherwise.
#[must_use]
pub fn run(flags: &Flags) -> ExitCode {
    // The explorer reports a panic of the code under test as a violation, once it has the shortest script.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let started = Instant::now();
    let mut total = Statistics::default();
    let mut trace = if flags.shows_trace() { Trace::shown(io::stdout()) } else { Trace::silent() };
    #[cfg(feature = "network")]
    if flags.network {
        let code = network::run(flags, &mut trace);
        std::panic::set_hook(hook);
        return code;
    }
    let outcome = match flags.exhaustive {
        Some(length) => run_scopes(flags, length, &mut trace, &mut total),
        None => run_seeds(flags, &mut trace, &mut total),
    };
    if let Err(failure) = &outcome {
        match failure {
            Failure::Journal(violation) => report(flags, violation),
            Failure::Promise { workload, seed, broken } => report_promise(flags, workload, *seed, broken),
        }
    }
    eprintln!("{total}; {}", rate(&total, started.elapsed().as_secs_f64()));
    say(&format!("trace {}", trace.hash()));
    std::panic::set_hook(hook);
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Flags {
    /// The one seed, if there is one.
    fn single(&self) -> Option<u64> {
        self.seed.or(self.commit)
    }

    /// The seeds that are to be run.
    fn seed_range(&self) -> RangeInclusive<u64> {
        match self.seeds {
            Some((from, to)) => from..=to - 1,
            None => self.single().unwrap_or(0)..=self.single().unwrap_or(0),
        }
    }

    fn shows_trace(&self) -> bool {
        self.seeds.is_none() && self.exhaustive.is_none()
    }

    fn options(&self) -> Options {
        let options = if self.smoke { Options::smoke() } else { Options::default() };
        Options { canary: self.canary, ..options }
    }
}

fn run_seeds(flags: &Flags, trace: &mut Trace, total: &mut Statistics) -> Result<(), Failure> {
    let (from, last) = flags.seed_range().into_inner();
    let progress = Progress::new("seeds", last - from + 1, flags.seeds.is_some());
    for seed in from..=last {
        let statistics = run_seed(flags, seed, trace)?;
        total.add(&statistics);
        if flags.seeds.is_some() {
            progress.aside(|| say(&format!("seed {seed}: {statistics}")));
        }
        progress.set(seed - from + 1);
    }
    Ok(())
}

/// What does not hold.
enum Failure {
    Journal(Box<Violation>),
    Promise {
        /// The flag of the workload.
        workload: &'static str,
        seed: u64,
        broken: Box<BrokenPromise>,
    },
}

impl From<Box<Violation>> for Failure {
    fn from(violation: Box<Violation>) -> Self {
        Self::Journal(violation)
    }
}

/// Explores the run of one seed.
fn run_seed(flags: &Flags, seed: u64, trace: &mut Trace) -> Result<Statistics, Failure> {
    if flags.bus {
        let story = BusStory::from_seed(seed, flags.smoke);
        return run_story(("--bus", seed), &story, trace, || explore_bus(&story, flags.options()));
    }
    if flags.session {
        let story = SessionStory::from_seed(seed, flags.smoke);
        return run_story(("--session", seed), &story, trace, || explore_session(&story, flags.options()));
    }
    let mut settings = Settings::from_seed(seed, flags.smoke);
    settings.operations = flags.steps.unwrap_or(settings.operations);
    let script = flags.script.clone().unwrap_or_else(|| Script::generate(&settings));
    if flags.seeds.is_none() {
        say(&format!("{settings}\nscript            {script}"));
    }
    trace.line(&format!("seed {seed}"));
    Ok(explore(&settings, &script, flags.options(), trace)?)
}

/// Notes the story of one seed, and explores it.
fn run_story(
    (workload, seed): (&'static str, u64),
    story: &impl std::fmt::Display,
    trace: &mut Trace,
    explore: impl FnOnce() -> Result<Statistics, BrokenPromise>,
) -> Result<Statistics, Failure> {
    trace.line(&story.to_string());
    let statistics =
        explore().map_err(|broken| Failure::Promise { workload, seed, broken: Box::new(broken) })?;
    trace.line(&statistics.to_string());
    Ok(statistics)
}

fn report_promise(flags: &Flags, workload: &str, seed: u64, broken: &BrokenPromise) {
    let smoke = if flags.smoke { " --smoke" } else { "" };
    say(&format!(
        "violation of {}\n{broken}\nstrandline sim {workload} --seed {seed}{smoke}",
        broken.check()
    ));
}

/// Explores every short sequence of operations.
fn run_scopes(
    flags: &Flags,
    length: usize,
    trace: &mut Trace,
    total: &mut Statistics,
) -> Result<(), Failure> {
    let scopes = match flags.single() {
        Some(seed) => vec![Settings::from_seed(seed, true)],
        None => small_scopes(),
    };
    for settings in scopes {
        let progress = Progress::new("sequences", 0, true);
        let statistics = exhaust(&settings, length, &mut |done, all| {
            progress.set_length(all);
            progress.set(done);
        })?;
        progress.clear();
        let Settings { seed, framing, version, sync, .. } = settings;
        let line = format!("seed {seed}, {}, version {version}, {sync:?}: {statistics}", framing.label());
        trace.line(&line);
        say(&line);
        total.add(&statistics);
    }
    Ok(())
}

/// Prints a violation with the shortest script that still shows it.
fn report(flags: &Flags, violation: &Violation) {
    let canary = if flags.canary { " --canary" } else { "" };
    if flags.no_shrink {
        return say(&format!("{violation}{canary}"));
    }
    say(&format!("{violation}{canary}\nlooking for a shorter script"));
    say(&format!("{}{canary}", shrink(violation.clone(), flags.options())));
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

/// More operations than these nobody waits for.
const STEPS_MAX: usize = 1_000_000;

fn parse_steps(text: &str) -> Result<usize, String> {
    let steps = text.parse().ok().filter(|steps| *steps <= STEPS_MAX);
    steps.ok_or_else(|| format!("expected a number up to {STEPS_MAX}"))
}

fn parse_commit(text: &str) -> Result<u64, String> {
    let digits = text.get(..16).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "expected a commit hash of hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_its_first_16_digits() {
        assert_eq!(parse_commit("00000000000000ffdeadbeef"), Ok(255));
        assert_eq!(parse_commit("e2a8099"), Ok(0x0e2a_8099));
        assert!(parse_commit("main").is_err());
    }

    #[test]
    fn steps_are_as_many_as_somebody_waits_for() {
        assert_eq!(parse_steps("1000000"), Ok(1_000_000));
        for bad in ["1000001", "18446744073709551616", "-1", ""] {
            assert!(parse_steps(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_range_has_at_least_one_seed() {
        assert_eq!(parse_range("0..300"), Ok((0, 300)));
        for bad in ["3..3", "4..3", "3", "..", "a..b"] {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
    }
}
