//! A simulated machine with an open journal: performs operations and effects, and tells the oracle what was said.

use std::rc::Rc;

use rand::Rng;
use strandline::Performer;
use strandline_core::{
    AppendError, Completion, Effect, EffectId, Journal, Mark, Monotonic, Output, ReadUpTo, Seq, Timestamp,
};

use super::damage;
use super::machine::{Machine, describe, outcome};
use super::opening::is_clean;
use super::reading::read;
use crate::disk::{Call, DiskState, Fault, Survivors};
use crate::interpreter::Interpreter;
use crate::violation::{Broken, Check, Loss, Stop};
use crate::workload::{Operation, SimFraming, Submitted};

/// How many bytes of the last segment a payload may repeat.
const RECENT_BYTES_MAX: usize = 200;

/// How many records more than there are a forged mark claims.
const FORGED_RECORDS: u64 = 1_000;

/// How many deadlines a close may wait for; a removal that failed is one.
const CLOSE_DEADLINES_MAX: usize = 8;

/// A machine on which the journal is open.
pub(crate) struct Running<'a, F: SimFraming, D: Interpreter> {
    pub(crate) machine: Machine<'a, F, D>,
    performer: Performer<D>,
    journal: Box<Journal<F>>,
    outstanding: Vec<(EffectId, Effect)>,
    stopped: Option<Stopped>,
}

/// Why nothing more comes from a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    Poisoned,
    Closed,
}

impl<'a, F: SimFraming, D: Interpreter> Running<'a, F, D> {
    pub(crate) fn new(machine: Machine<'a, F, D>, performer: Performer<D>, journal: Box<Journal<F>>) -> Self {
        Self { machine, performer, journal, outstanding: Vec::new(), stopped: None }
    }

    /// Performs one operation of a script.
    ///
    /// # Errors
    /// The first check that does not hold, or the refusal of what a lying disk left.
    pub(crate) fn execute(mut self, operation: &Operation) -> Result<Self, Stop> {
        match operation {
            Operation::Append(sizes) => self.append(sizes)?,
            Operation::Drain => self.drain()?,
            Operation::Step => self.step()?,
            Operation::Tick(ms) => self.tick(u64::from(*ms))?,
            Operation::Sync => self.journal.request_sync(),
            Operation::Trim(records) => self.trim(u64::from(*records)),
            Operation::Clock(ms) => self.move_clock(i64::from(*ms)),
            Operation::Read => self.read_everything()?,
            Operation::Reopen => return self.reopen(),
            Operation::Kill => return self.restart(Loss::Kill),
            Operation::PowerLoss(survivors) => return self.restart(Loss::Power(*survivors)),
            Operation::Rot(seed) => damage::rot(&self.machine, *seed)?,
            Operation::Forge(forgery) => damage::forge(&self.machine, *forgery)?,
            fault => self.break_disk(fault),
        }
        if self.stopped == Some(Stopped::Poisoned) {
            return self.restart(Loss::Kill);
        }
        Ok(self)
    }

    /// Closes the journal cleanly. A journal that was poisoned meanwhile is left as it is.
    ///
    /// # Errors
    /// The first check that does not hold, [`Check::CloseCompletes`] among them.
    pub(crate) fn close(mut self) -> Result<(Machine<'a, F, D>, bool), Broken> {
        self.journal.close();
        let mut deadlines = 0;
        self.journal.tick(self.machine.world.now);
        self.pump()?;
        while self.stopped.is_none() {
            if !self.outstanding.is_empty() {
                self.step()?;
                continue;
            }
            deadlines += 1;
            match self.journal.next_deadline() {
                Some(deadline) if deadlines <= CLOSE_DEADLINES_MAX => {
                    self.machine.world.now = self.machine.world.now.max(deadline);
                    self.journal.tick(self.machine.world.now);
                    self.pump()?;
                }
                _ => return Err(Check::CloseCompletes.broken("the close waits, with nothing outstanding")),
            }
        }
        let closed = self.stopped == Some(Stopped::Closed);
        if closed {
            let was_space = !self.machine.disk.state().is_limited();
            self.machine.world.oracle.closed(was_space)?;
        }
        Ok((self.machine, closed))
    }

    /// The machine, with the process gone.
    pub(crate) fn abandon(self) -> Machine<'a, F, D> {
        self.machine
    }

    /// Reads all durable records as a subscriber would, and holds the journal to having shown them.
    ///
    /// # Errors
    /// The first check that does not hold.
    pub(crate) fn read_everything(&mut self) -> Result<(), Broken> {
        let view = self.journal.view();
        let end = read(&self.machine, &self.performer, view, ReadUpTo::Durable)?;
        let (durable, oracle) = (view.durable_end(), &mut self.machine.world.oracle);
        if end != durable || end.get() < oracle.durable_end() {
            let announced = oracle.durable_end();
            let detail = format!("a reader got up to {end}, durable is {durable}, announced {announced}");
            return Err(Check::ReadersSeeOnlyDurable.broken(detail));
        }
        oracle.shown(end);
        Ok(())
    }

    fn append(&mut self, sizes: &[u32]) -> Result<(), Broken> {
        for size in sizes {
            let len = usize::try_from(*size).unwrap_or(usize::MAX);
            let world = &mut self.machine.world;
            let record =
                Submitted::new(world.submitted, world.clock, len, &recent::<F>(&self.machine.disk.state()));
            world.submitted += 1;
            world.clock = Timestamp::from_millis(world.clock.as_millis() + 1);
            match self.journal.append(record.at, F::draft(&record)) {
                Ok(accepted) => {
                    self.machine.log(|| {
                        format!("append {} of {len} bytes, commit {}", accepted.seq, accepted.commit.get())
                    });
                    self.machine.world.oracle.accepted(accepted.seq, accepted.commit, Rc::new(record))?;
                }
                Err(error @ (AppendError::Full { .. } | AppendError::Poisoned(_))) => {
                    self.machine.log(|| format!("append of {len} bytes refused: {error}"));
                }
                Err(error) => return Err(Check::WorkCompletes.broken(format!("append: {error}"))),
            }
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), Broken> {
        self.journal.tick(self.machine.world.now);
        self.pump()?;
        while !self.outstanding.is_empty() && self.stopped.is_none() {
            self.step()?;
        }
        Ok(())
    }

    /// Performs one of the outstanding effects, whichever the order says.
    fn step(&mut self) -> Result<(), Broken> {
        self.journal.tick(self.machine.world.now);
        self.pump()?;
        if self.outstanding.is_empty() || self.stopped.is_some() {
            return Ok(());
        }
        let last = u32::try_from(self.outstanding.len() - 1).unwrap_or(u32::MAX);
        let chosen = usize::try_from(self.machine.order.random_range(0..=last)).unwrap_or(0);
        let (id, effect) = self.outstanding.swap_remove(chosen);
        let result = self.performer.perform(&effect);
        self.machine.record_moment();
        self.machine.log(|| format!("{}: {}", describe(&effect), outcome(result)));
        self.journal.handle_completion(Completion { id, result });
        if let (Effect::Remove { .. }, Ok(())) = (&effect, result) {
            let oldest = self.journal.view().segments().next().map(|segment| segment.id().0);
            oldest.into_iter().for_each(|first| self.machine.world.oracle.removed_before(first));
        }
        self.pump()
    }

    fn tick(&mut self, ms: u64) -> Result<(), Broken> {
        self.machine.world.now = Monotonic::from_millis(self.machine.world.now.as_millis() + ms);
        self.move_clock(i64::try_from(ms).unwrap_or(i64::MAX));
        self.journal.tick(self.machine.world.now);
        self.pump()
    }

    fn trim(&mut self, records: u64) {
        let first = self.journal.view().first().get();
        self.journal.trim_to(Seq::new(first + records));
    }

    fn move_clock(&mut self, ms: i64) {
        let clock = &mut self.machine.world.clock;
        *clock = Timestamp::from_millis(clock.as_millis() + ms);
    }

    /// Takes everything that the journal has to say.
    fn pump(&mut self) -> Result<(), Broken> {
        while let Some(output) = self.journal.poll_output() {
            if !matches!(output, Output::Effect { .. }) {
                self.machine.log(|| format!("{output:?}"));
            }
            let oracle = &mut self.machine.world.oracle;
            match output {
                Output::Effect { id, effect } => self.take_effect(id, effect)?,
                Output::Written { end, commit } => oracle.written(end, commit)?,
                Output::Durable { end, commit } => oracle.durable(end, commit)?,
                Output::Void { from, commit, .. } => oracle.void(from, commit)?,
                Output::Trimmed { first } => oracle.trimmed(first)?,
                Output::Poisoned(poison) => {
                    if !self.machine.disk.has_failed() {
                        return Err(Check::WorkCompletes.broken(format!("poisoned by no fault: {poison}")));
                    }
                    self.stopped = Some(Stopped::Poisoned);
                }
                Output::Closed => self.stopped = Some(Stopped::Closed),
            }
        }
        Ok(())
    }

    fn take_effect(&mut self, id: EffectId, effect: Effect) -> Result<(), Broken> {
        let kind = |effect: &Effect| match effect {
            Effect::Reserve { .. } => 0,
            Effect::Remove { .. } => 1,
            _ => 2,
        };
        if let Some((_, other)) = self.outstanding.iter().find(|(_, other)| kind(other) == kind(&effect)) {
            let detail = format!("{} is outstanding beside {}", describe(&effect), describe(other));
            return Err(Check::EffectsAreBounded.broken(detail));
        }
        self.outstanding.push((id, effect));
        Ok(())
    }

    fn reopen(self) -> Result<Self, Stop> {
        let (machine, closed) = self.close()?;
        let (running, report) = machine.lose(Loss::Kill).open(Loss::Kill)?;
        if closed && !is_clean(&report) {
            let detail = format!("after a clean close: {:?}, {:?}", report.verdict, report.repair);
            return Err(Check::SecondOpenIsClean.broken(detail).into());
        }
        Ok(running)
    }

    /// Ends the process, and starts it again after such a loss. Effects that were outstanding never happened.
    fn restart(self, loss: Loss) -> Result<Self, Stop> {
        let (running, _) = self.machine.lose(loss).open(loss)?;
        Ok(running)
    }

    fn break_disk(&self, fault: &Operation) {
        let disk = &self.machine.disk;
        let error = |survivors: &Survivors| Fault::Error(*survivors);
        match fault {
            Operation::Space(bytes) => {
                disk.set_capacity(Some(disk.state().allocated_bytes() + u64::from(*bytes)));
            }
            Operation::SpaceBack => disk.set_capacity(None),
            Operation::FailSync(survivors) => disk.plan_fault(Call::Sync, 0, false, error(survivors)),
            Operation::FailDirectorySync(survivors) => {
                disk.plan_fault(Call::SyncDirectory, 0, false, error(survivors));
            }
            Operation::FailWrite => disk.plan_fault(Call::Write, 0, false, error(&Survivors::None)),
            Operation::FailRead => disk.plan_fault(Call::Read, 0, false, error(&Survivors::None)),
            // Where the format cannot tell a wrong record, nobody can ask it to.
            Operation::LoseWrite if self.machine.settings.notices_damage() => {
                disk.plan_fault(Call::Write, 0, false, Fault::LostWrite);
            }
            Operation::MisdirectWrite(sectors) if self.machine.settings.notices_damage() => {
                disk.plan_fault(Call::Write, 0, false, Fault::MisdirectedWrite(u64::from(*sectors)));
            }
            Operation::FailRemove => disk.plan_fault(Call::Remove, 0, false, error(&Survivors::None)),
            Operation::Short(bytes) => {
                let len = usize::try_from(*bytes).unwrap_or(usize::MAX);
                disk.plan_fault(Call::Write, 0, false, Fault::Interrupted);
                disk.plan_fault(Call::Write, 1, false, Fault::Short(len));
            }
            _ => {}
        }
    }
}

/// Bytes for payloads to repeat: the last ones that the journal wrote, reserved zeros left out, and a forged
/// mark that claims far too much. Its salt is the real one, but it says that it stands elsewhere.
fn recent<F: SimFraming>(state: &DiskState) -> Vec<u8> {
    let last = state.files().filter(|(name, _)| name.ends_with(".seg")).last();
    let bytes = last.map(|(_, bytes)| bytes).unwrap_or_default();
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut recent =
        bytes.get(written.saturating_sub(RECENT_BYTES_MAX)..written).unwrap_or_default().to_vec();
    if let Some(mark) = bytes.get(F::HEADER_LEN..).and_then(F::parse_mark) {
        let mut forged = vec![0; F::MARK_LEN];
        let durable_end = Seq::new(mark.durable_end.get() + FORGED_RECORDS);
        F::encode_mark(&Mark { durable_end, offset: 1, ..mark }, Timestamp::default(), &mut forged);
        recent.extend(forged);
    }
    recent
}
