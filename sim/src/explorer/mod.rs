//! The explorer: runs a script, crashes it at every step, and opens what each crash leaves.
//!
//! Every byte of every write and every call to the disk is a step. At each one the machine is stopped in every
//! way that [`Options`] ask for: a process kill, and power losses with no survivors, all, every prefix, each
//! single change missing, and random subsets. Whatever is left is opened, read, opened again, written to, closed
//! and opened once more; see [`crash`](self::crash). States that nothing can tell apart are looked at once.

mod application;
mod crash;
mod damage;
mod exhaustive;
mod machine;
mod opening;
mod reading;
mod running;
mod shrink;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use strandline_core::{FramingKind, Pcpj, Pryj};

pub use application::{Application, BrokenPromise, Promises, explore_application};
use crash::Crashes;
pub use exhaustive::{exhaust, small_scopes};
use machine::{Machine, shared_buffer};
pub use shrink::shrink;

use crate::disk::{Detail, SimDisk, Survivors};
use crate::interpreter::{Interpreter, NeverSyncs};
use crate::trace::Trace;
use crate::violation::{Broken, Check, Loss, Stop, Violation};
use crate::workload::{Script, Settings, SimFraming};

/// How thoroughly a run is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// At which steps of the script the machine is crashed. Crashes inside a recovery are always at landmarks.
    pub detail: Detail,
    /// Random subsets of survivors at each step, besides the enumerated ones.
    pub random_subsets: u64,
    /// Of so many states after a crash one is crashed again inside its recovery; 0 for none.
    pub deeper_every: u64,
    /// How many crashes there are at most, each inside the recovery from the one before.
    pub depth_max: usize,
    /// Of so many recoveries one meets a failing call; 0 for none.
    pub faults_every: u64,
    /// The canary: syncs of files do nothing. Such a run must fail.
    pub canary: bool,
}

impl Options {
    /// A quick look: crashes at landmarks only.
    #[must_use]
    pub const fn smoke() -> Self {
        Self {
            detail: Detail::Landmarks,
            random_subsets: 1,
            deeper_every: 16,
            depth_max: 3,
            faults_every: 4,
            canary: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            detail: Detail::EveryStep,
            random_subsets: 3,
            deeper_every: 16,
            depth_max: 3,
            faults_every: 4,
            canary: false,
        }
    }
}

/// What was visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Steps at which the machine was crashed.
    pub steps: u64,
    /// Crashes: steps times ways to lose.
    pub crashes: u64,
    /// Crashes that left a state not seen before in the run; each was opened and checked.
    pub states: u64,
    /// Openings, the second and third of each state and those of the script included.
    pub openings: u64,
}

impl Statistics {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.states += other.states;
        self.openings += other.openings;
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, crashes, states, openings } = self;
        write!(f, "{steps} steps, {crashes} crashes, {states} distinct states, {openings} openings")
    }
}

/// Runs a script and crashes it everywhere. The same arguments give the same trace and the same result.
///
/// # Errors
/// The first violation.
pub fn explore(
    settings: &Settings,
    script: &Script,
    options: Options,
    trace: &mut Trace,
) -> Result<Statistics, Box<Violation>> {
    match (settings.framing, options.canary) {
        (FramingKind::Pryj, false) => explore_as::<Pryj, SimDisk>(settings, script, options, trace),
        (FramingKind::Pcpj, false) => explore_as::<Pcpj, SimDisk>(settings, script, options, trace),
        (FramingKind::Pryj, true) => explore_as::<Pryj, NeverSyncs>(settings, script, options, trace),
        (FramingKind::Pcpj, true) => explore_as::<Pcpj, NeverSyncs>(settings, script, options, trace),
    }
}

fn explore_as<F: SimFraming, D: Interpreter>(
    settings: &Settings,
    script: &Script,
    options: Options,
    trace: &mut Trace,
) -> Result<Statistics, Box<Violation>> {
    let mut crashes = Crashes::<F, D>::new(settings, options, shared_buffer());
    run_script(&mut crashes, script, 0, trace)?;
    Ok(crashes.statistics)
}

/// Runs a script, and crashes it everywhere from the operation `from` on.
fn run_script<F: SimFraming, D: Interpreter>(
    crashes: &mut Crashes<'_, F, D>,
    script: &Script,
    from: usize,
    trace: &mut Trace,
) -> Result<(), Box<Violation>> {
    let mut run = Run { crashes, trace, from, operation: 0 };
    match run.script(script) {
        Ok(()) | Err(Stop::Refused) => Ok(()),
        Err(Stop::Broken(broken)) => Err(Box::new(Violation {
            settings: run.crashes.settings.clone(),
            script: script.clone(),
            operation: run.operation,
            crashes: run.crashes.path.clone(),
            broken,
        })),
    }
}

/// One script on its way.
struct Run<'a, 'r, F: SimFraming, D: Interpreter> {
    crashes: &'r mut Crashes<'a, F, D>,
    trace: &'r mut Trace,
    /// The first operation that is crashed.
    from: usize,
    /// The operation in hand.
    operation: usize,
}

impl<'a, F: SimFraming, D: Interpreter> Run<'a, '_, F, D> {
    /// Runs the script to its end, or to where a disk that lied is refused.
    fn script(&mut self, script: &Script) -> Result<(), Stop> {
        let mut machine = Machine::<F, D>::new(self.crashes.settings, self.crashes.buffer.clone());
        machine.log = Some(Vec::new());
        let detail = self.crashes.options.detail;
        let opened = guarded(|| machine.recording((self.from == 0).then_some(detail)).open(Loss::Kill));
        let (mut running, _) = opened?;
        self.visit(&mut running.machine)?;
        for (index, operation) in script.operations.iter().enumerate() {
            self.operation = index;
            if index > 0 && index == self.from {
                running.machine.start_recording(detail);
            }
            self.trace.line(&format!("operation {index} {operation}"));
            running = guarded(|| running.execute(operation))?;
            self.visit(&mut running.machine)?;
        }
        self.operation = script.operations.len();
        self.trace.line("final close");
        let (mut machine, closed) = guarded(|| running.close())?;
        self.visit(&mut machine)?;
        // After a clean close nothing hangs on the cache.
        let loss = if closed { Loss::Power(Survivors::None) } else { Loss::Kill };
        let (mut running, _) = guarded(|| machine.recording(None).lose(loss).open(loss))?;
        self.visit(&mut running.machine)?;
        self.crashes.statistics.openings += running.machine.world.openings;
        Ok(())
    }

    /// Explores the crashes of the steps since the last visit.
    fn visit(&mut self, machine: &mut Machine<'a, F, D>) -> Result<(), Broken> {
        machine.log.iter_mut().flat_map(|log| log.drain(..)).for_each(|line| self.trace.line(&line));
        for moment in std::mem::take(&mut machine.moments) {
            self.crashes.visit(&moment)?;
        }
        let statistics = self.crashes.statistics;
        self.trace.line(&format!("crashes {} states {}", statistics.crashes, statistics.states));
        Ok(())
    }
}

/// Turns a panic into a broken check.
pub(crate) fn guarded<T, E: From<Broken>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            Err(Check::NeverPanics.broken(text.unwrap_or("a panic without a text")).into())
        }
    }
}
