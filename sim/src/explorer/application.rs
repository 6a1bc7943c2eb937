//! The same crashes for anybody's code: run it over a simulated disk, note what it promises, crash it at every step,
//! and have it look at what is left.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::crash::every_survivors;
use super::{Options, Statistics, guarded};
use crate::disk::{Detail, DiskState, SimDisk, Snapshot, Survivors};
use crate::violation::{Broken, Check, CrashPoint, Loss};

/// Code that keeps promises over a disk.
///
/// Both functions see the disk through [`strandline::Disk`], whose calls are those of a file system: create, open,
/// read, write, sync, rename, remove, sync the directory. Code that is generic over that trait runs on a real disk
/// ([`strandline::StdDisk`]) as it does here.
pub trait Application {
    /// What it promises: usually what it was told to keep.
    type Promise: Clone;

    /// Works, and says what it has promised, when it has. Runs once, on an empty disk.
    fn run(&self, disk: SimDisk, promises: &mut Promises<Self::Promise>);

    /// Starts again on what a crash has left, and says what is wrong with it, `promised` being all promises from
    /// before the crash. Runs once for each distinct state, and is itself crashed. A panic counts as an error.
    ///
    /// # Errors
    /// What is wrong, in words for people.
    fn check(&self, disk: SimDisk, promised: &[Self::Promise]) -> Result<(), String>;
}

/// What was promised so far, and what a crash before each promise would have left.
#[derive(Debug)]
pub struct Promises<P> {
    disk: SimDisk,
    kept: Vec<P>,
    moments: Vec<(Vec<Snapshot>, usize)>,
}

impl<P: Clone> Promises<P> {
    /// From now on a crash must leave this.
    pub fn promise(&mut self, promise: P) {
        self.note();
        self.kept.push(promise);
    }

    /// Takes what was recorded since the last promise: those crashes come before the next one.
    fn note(&mut self) {
        self.moments.push((self.disk.take_snapshots(), self.kept.len()));
    }
}

/// A promise that a crash has broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after {promised} promises, {}: {detail}", crashes.iter().map(|crash| format!("a crash at step {} ({})", crash.step, crash.loss)).collect::<Vec<_>>().join(", then "))]
pub struct BrokenPromise {
    /// How many promises had been made.
    pub promised: usize,
    /// The crashes, each one inside the check after the one before.
    pub crashes: Vec<CrashPoint>,
    /// What the application said.
    pub detail: String,
}

impl BrokenPromise {
    /// The beginning of what the application said, up to a colon: a name for the check, if it gives one.
    #[must_use]
    pub fn check(&self) -> &str {
        self.detail.split(':').next().unwrap_or_default()
    }
}

/// Runs an application and crashes it at every step, on a disk with sectors of so many bytes (at least one). Of the
/// options, [`Options::faults_every`] and [`Options::canary`] play no part.
///
/// An application without threads is always crashed at the same steps. One with threads may take its steps in another
/// order each time; what is promised is still held against what was there at that moment.
///
/// # Errors
/// The first promise that a crash breaks.
///
/// # Panics
/// If the application's own [`run`](Application::run) does, or if `sector_bytes` is zero.
pub fn explore_application<A: Application>(
    application: &A,
    sector_bytes: usize,
    options: Options,
) -> Result<Statistics, BrokenPromise> {
    let disk = SimDisk::new(sector_bytes);
    disk.record(options.detail);
    let mut promises = Promises { disk: disk.clone(), kept: Vec::new(), moments: Vec::new() };
    application.run(disk.clone(), &mut promises);
    promises.note();
    let Promises { kept, moments, .. } = promises;
    let end = Snapshot { step: disk.steps(), state: disk.state() };
    let mut exploring = Exploring {
        application,
        options,
        statistics: Statistics::default(),
        path: Vec::new(),
        seen: HashSet::new(),
    };
    for (snapshots, promised) in moments.iter().chain([&(vec![end], kept.len())]) {
        let promised = kept.get(..*promised).unwrap_or(&kept);
        for snapshot in snapshots {
            exploring.statistics.steps += 1;
            exploring.crash(snapshot, Loss::Kill, promised)?;
            for survivors in every_survivors(snapshot, options.random_subsets) {
                exploring.crash(snapshot, Loss::Power(survivors), promised)?;
            }
        }
    }
    Ok(exploring.statistics)
}

struct Exploring<'a, A> {
    application: &'a A,
    options: Options,
    statistics: Statistics,
    path: Vec<CrashPoint>,
    seen: HashSet<u64>,
}

impl<A: Application> Exploring<'_, A> {
    fn crash(
        &mut self,
        snapshot: &Snapshot,
        loss: Loss,
        promised: &[A::Promise],
    ) -> Result<(), BrokenPromise> {
        self.statistics.crashes += 1;
        let state = match loss {
            Loss::Kill => snapshot.state.clone(),
            Loss::Power(survivors) => snapshot.state.power_loss(survivors),
        };
        let mut hasher = DefaultHasher::new();
        (state.digest(), promised.len(), self.path.len()).hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return Ok(());
        }
        self.statistics.states += 1;
        self.path.push(CrashPoint { step: snapshot.step, loss });
        self.check(state, promised)?;
        self.path.pop();
        Ok(())
    }

    fn check(&mut self, state: DiskState, promised: &[A::Promise]) -> Result<(), BrokenPromise> {
        self.statistics.openings += 1;
        let every = self.options.deeper_every;
        let deeper = self.path.len() < self.options.depth_max
            && every > 0
            && self.statistics.states.is_multiple_of(every);
        let disk = SimDisk::from_state(state);
        if deeper {
            disk.record(Detail::Landmarks);
        }
        let checked = guarded(|| {
            let checked = self.application.check(disk.clone(), promised);
            checked.map_err(|detail| Check::AcknowledgedIsRecovered.broken(detail))
        });
        checked.map_err(|Broken { detail, .. }| BrokenPromise {
            promised: promised.len(),
            crashes: self.path.clone(),
            detail,
        })?;
        for snapshot in disk.take_snapshots() {
            self.statistics.steps += 1;
            for loss in
                [Loss::Kill, Loss::Power(Survivors::None), Loss::Power(Survivors::Random(snapshot.step))]
            {
                self.crash(&snapshot, loss, promised)?;
            }
        }
        Ok(())
    }
}
