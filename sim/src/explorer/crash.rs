//! What happens to one crashed machine: it is opened, read, opened again, written to, closed, opened once more.

use std::collections::HashSet;
use std::marker::PhantomData;

use super::machine::{Machine, Moment, SharedBuffer, World};
use super::opening::is_clean;
use super::{Options, Statistics, guarded};
use crate::disk::{Call, Detail, DiskState, Fault, SimDisk, Snapshot, Survivors};
use crate::interpreter::Interpreter;
use crate::violation::{Broken, Check, CrashPoint, Loss, Stop};
use crate::workload::{Operation, Settings, SimFraming};

/// Payload sizes appended after a recovery: one that lies within a sector, and one that does not.
const SIZES_AFTER: [u32; 2] = [9, 70];

/// In one of so many states the disk is full for a while.
const FULL_EVERY: u64 = 8;

/// How much space is left then, in bytes: enough to begin with a commit, and not enough to end it.
const FULL_BYTES: u32 = 130;

/// Time that passes then, long enough for an idle mark, in milliseconds.
const IDLE_MS: u32 = 200;

/// The calls that fail inside a recovery, those that matter most more often.
const FAULTY_CALLS: [Call; 10] = [
    Call::Sync,
    Call::Write,
    Call::Sync,
    Call::SyncDirectory,
    Call::SetLen,
    Call::Sync,
    Call::Read,
    Call::Create,
    Call::Rename,
    Call::Remove,
];

/// Crashes of one run, and what they led to.
pub(crate) struct Crashes<'a, F, D> {
    pub(crate) settings: &'a Settings,
    pub(crate) buffer: SharedBuffer,
    pub(crate) statistics: Statistics,
    /// The crashes that led to the state in hand; after a violation, to the violation.
    pub(crate) path: Vec<CrashPoint>,
    pub(crate) options: Options,
    seen: HashSet<u64>,
    kind: PhantomData<fn() -> (F, D)>,
}

impl<'a, F: SimFraming, D: Interpreter> Crashes<'a, F, D> {
    pub(crate) fn new(settings: &'a Settings, options: Options, buffer: SharedBuffer) -> Self {
        Self {
            settings,
            buffer,
            statistics: Statistics::default(),
            path: Vec::new(),
            options,
            seen: HashSet::new(),
            kind: PhantomData,
        }
    }

    /// Crashes at every step of a moment of the script, in every way.
    pub(crate) fn visit(&mut self, moment: &Moment) -> Result<(), Broken> {
        for snapshot in &moment.snapshots {
            self.statistics.steps += 1;
            self.crash(&moment.world, snapshot, Loss::Kill)?;
            for survivors in every_survivors(snapshot, self.options.random_subsets) {
                self.crash(&moment.world, snapshot, Loss::Power(survivors))?;
            }
        }
        Ok(())
    }

    /// Crashes inside a recovery: at every call, and at the first, middle and last byte of every write.
    fn visit_deeper(&mut self, moments: &[Moment]) -> Result<(), Broken> {
        for moment in moments {
            for snapshot in &moment.snapshots {
                self.statistics.steps += 1;
                let random = Survivors::Random(snapshot.step);
                for loss in [Loss::Kill, Loss::Power(Survivors::None), Loss::Power(random)] {
                    self.crash(&moment.world, snapshot, loss)?;
                }
            }
        }
        Ok(())
    }

    fn crash(&mut self, world: &World, snapshot: &Snapshot, loss: Loss) -> Result<(), Broken> {
        self.statistics.crashes += 1;
        let state = match loss {
            Loss::Kill => snapshot.state.clone(),
            Loss::Power(survivors) => snapshot.state.power_loss(survivors),
        };
        let depth = self.path.len() as u64;
        let key = state.digest() ^ world.oracle.digest(loss).rotate_left(1) ^ depth.rotate_left(60);
        if !self.seen.insert(key) {
            return Ok(());
        }
        self.statistics.states += 1;
        self.path.push(CrashPoint { step: snapshot.step, loss });
        match guarded(|| self.check(world, state, loss)) {
            Ok(()) | Err(Stop::Refused) => {}
            Err(Stop::Broken(broken)) => return Err(broken),
        }
        self.path.pop();
        Ok(())
    }

    fn check(&mut self, world: &World, state: DiskState, loss: Loss) -> Result<(), Stop> {
        let number = self.statistics.states;
        let deeper = self.path.len() < self.options.depth_max && is_turn(number, self.options.deeper_every);
        let mut machine = self.machine(world.clone(), state).recording(deeper.then_some(Detail::Landmarks));
        machine.world.oracle.lost(loss);
        if is_turn(number + 1, self.options.faults_every) {
            plan_fault(&machine.disk, number / self.options.faults_every);
        }
        let (mut running, _) = machine.open(loss)?;
        running.machine.disk.clear_faults();
        let faulted = running.machine.disk.take_failure();
        let moments = std::mem::take(&mut running.machine.moments);
        self.visit_deeper(&moments)?;
        let machine = running.abandon().recording(None);
        self.check_second_loss(&machine)?;
        // What is removed as best it can be, and was not, goes with the next opening.
        let machine = if faulted { machine.lose(Loss::Kill).open(Loss::Kill)?.0.abandon() } else { machine };
        let machine = self.check_second_open(machine)?;
        self.statistics.openings += machine.world.openings - world.openings;
        Ok(())
    }

    /// What an opening promised must not hang on the cache.
    fn check_second_loss(&mut self, machine: &Machine<'a, F, D>) -> Result<(), Stop> {
        let state = machine.disk.state();
        if state.is_durable() {
            return Ok(());
        }
        let loss = Loss::Power(Survivors::None);
        let lost = self.machine(machine.world.clone(), state.power_loss(Survivors::None));
        lost.open(loss)?;
        self.statistics.openings += 1;
        Ok(())
    }

    /// Opens again, which must find nothing to do; writes, closes and opens once more.
    fn check_second_open(&mut self, machine: Machine<'a, F, D>) -> Result<Machine<'a, F, D>, Stop> {
        let before = machine.disk.state();
        let (mut running, report) = machine.lose(Loss::Kill).open(Loss::Kill)?;
        let after = running.machine.disk.state();
        if !is_clean(&report) || !same_frames(&before, &after) {
            let (was, is) = (lengths(&before), lengths(&after));
            let detail = format!("{:?}, {:?}, files were {was} and are {is}", report.verdict, report.repair);
            return Err(Check::SecondOpenIsClean.broken(detail).into());
        }
        // Whether there is space is the script's matter; from here on there is, but for a while in some.
        running.machine.disk.set_capacity(None);
        let full = is_turn(self.statistics.states, FULL_EVERY).then(|| full_disk(self.statistics.states));
        let after = [
            Operation::Append(SIZES_AFTER.to_vec()),
            Operation::Drain,
            Operation::Tick(IDLE_MS),
            Operation::Trim(1),
        ];
        for operation in full.into_iter().flatten().chain(after) {
            running = running.execute(&operation)?;
        }
        let (machine, closed) = running.close()?;
        if !closed {
            return Err(Check::CloseCompletes.broken("poisoned on a disk without faults").into());
        }
        let lied = machine.disk.state().has_lied();
        let loss = Loss::Power(Survivors::None);
        let (running, report) = machine.lose(loss).open(loss)?;
        if !is_clean(&report) && !lied {
            let detail = format!("after a clean close: {:?}, {:?}", report.verdict, report.repair);
            return Err(Check::SecondOpenIsClean.broken(detail).into());
        }
        Ok(running.abandon())
    }

    fn machine(&self, world: World, state: DiskState) -> Machine<'a, F, D> {
        Machine::start(self.settings, state, world, self.buffer.clone())
    }
}

/// Every choice of survivors at a step: none, all, each prefix, each single change missing, and so many random subsets.
pub(super) fn every_survivors(
    snapshot: &Snapshot,
    random_subsets: u64,
) -> impl Iterator<Item = Survivors> + use<> {
    let (ranks, step) = (snapshot.state.unsynced(), snapshot.step);
    let random = (0..random_subsets).map(move |n| Survivors::Random(step * random_subsets + n));
    [Survivors::None, Survivors::All]
        .into_iter()
        .chain((1..ranks).map(Survivors::Prefix))
        .chain((0..ranks).map(Survivors::AllBut))
        .chain(random.filter(move |_| ranks > 1))
}

/// A commit of which only a part finds space, and a power loss once that was told; a second one, and space again.
fn full_disk(number: u64) -> [Operation; 7] {
    let commit = || Operation::Append(vec![9, 300]);
    let lost = Operation::PowerLoss(Survivors::Random(number));
    [
        Operation::Space(FULL_BYTES),
        commit(),
        Operation::Drain,
        lost,
        commit(),
        Operation::Drain,
        Operation::SpaceBack,
    ]
}

/// Whether it is the turn of the state of this number, where every so many have one; 0 stands for none.
const fn is_turn(number: u64, every: u64) -> bool {
    every > 0 && number.is_multiple_of(every)
}

/// Plans a fault of the next recovery: which call fails, after how many of its kind, and what a failed sync
/// leaves, all drawn from this number.
fn plan_fault(disk: &SimDisk, number: u64) {
    let count = FAULTY_CALLS.len() as u64;
    let call = usize::try_from(number % count).ok().and_then(|at| FAULTY_CALLS.get(at));
    let survivors = match number / count % 3 {
        0 => Survivors::None,
        1 => Survivors::All,
        _ => Survivors::Random(number),
    };
    let after = number / (3 * count) % 4;
    call.into_iter().for_each(|call| disk.plan_fault(*call, after, false, Fault::Error(survivors)));
}

/// Whether both hold the same files with the same bytes. Reserved zeros do not count: an opening gives them
/// back, since it cannot tell them from what a torn write left.
fn same_frames(one: &DiskState, other: &DiskState) -> bool {
    let frames = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let same = |(name, bytes): (&str, &[u8]), (other, others): (&str, &[u8])| {
        name == other && bytes.get(..frames(bytes)) == others.get(..frames(others))
    };
    let (mut files, mut others) = (one.files(), other.files());
    loop {
        match (files.next(), others.next()) {
            (None, None) => return true,
            (Some(file), Some(other)) if same(file, other) => {}
            _ => return false,
        }
    }
}

/// Names and lengths of all files, for a message.
fn lengths(state: &DiskState) -> String {
    let files: Vec<String> = state.files().map(|(name, bytes)| format!("{name} {}", bytes.len())).collect();
    files.join(", ")
}
