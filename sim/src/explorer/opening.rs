//! Opening a journal: the scan that somebody without the writer does, the recovery, and whether they agree.

use std::rc::Rc;

use strandline::{Performer, files_of};
use strandline_core::verdict::Row;
use strandline_core::{
    Answer, Config, Effect, Journal, Listing, Recovery, RecoveryError, RecoveryPolicy, RecoveryStep, Refusal,
    Report, Scan, ScanOptions, ScanStep, Verdict, View,
};

use super::machine::{Machine, describe, outcome, read_into};
use super::reading::read_all;
use super::running::Running;
use crate::disk::DiskState;
use crate::interpreter::Interpreter;
use crate::oracle::Recovered;
use crate::violation::{Broken, Check, Loss, Stop};
use crate::workload::SimFraming;

/// How often an opening is tried again when a fault of the disk is to blame.
const TRIES: usize = 6;

/// What a scan found.
pub(super) type Scanned<F> = (View<F>, Report);

/// A recovered journal, or why it was not.
pub(super) type Outcome<F> = Result<(Box<Journal<F>>, Report), RecoveryError>;

impl<'a, F: SimFraming, D: Interpreter> Machine<'a, F, D> {
    /// Opens the journal after such a loss, and checks everything that can be seen.
    ///
    /// # Errors
    /// The first check that does not hold, or the refusal of what a lying disk left.
    pub(crate) fn open(mut self, loss: Loss) -> Result<(Running<'a, F, D>, Report), Stop> {
        self.world.openings += 1;
        let lies = self.disk.state().exposed_lies();
        let mut policy = self.settings.recovery;
        let mut tries = 0;
        let (journal, report, scanned) = loop {
            let scanned = self.scan(policy)?;
            let before = self.disk.state();
            let error = match self.recover(policy)? {
                Ok((journal, report)) => break (journal, report, scanned),
                Err(error) => error,
            };
            self.log(|| format!("not opened: {error}"));
            tries += 1;
            policy = self.after_error(&error, policy, &before, tries)?;
        };
        self.check(loss, lies > 0, &journal, &report, scanned.as_ref())?;
        self.disk.forget_lies(lies);
        let performer = self.performer();
        let mut running = Running::new(self, performer, journal);
        running.read_everything()?;
        Ok((running, report))
    }

    /// What follows a failed opening: another try, under this policy, if there is an excuse for it.
    fn after_error(
        &self,
        error: &RecoveryError,
        policy: RecoveryPolicy,
        before: &DiskState,
        tries: usize,
    ) -> Result<RecoveryPolicy, Stop> {
        if tries + 1 == TRIES {
            self.disk.clear_faults();
        }
        match error {
            RecoveryError::Refused { .. } if !before.files().eq(self.disk.state().files()) => {
                let detail = format!("a refusal changed files: {error}");
                Err(Check::RefusalChangesNothing.broken(detail).into())
            }
            // A write in two pieces leaves two versions of one sector. If the second is lost, a frame lacks bytes in
            // the middle of a sector that is not zero from anywhere on: no evidence of a tear, so that strict
            // refuses. A person then takes standard.
            RecoveryError::Refused { refusal, .. }
                if policy == RecoveryPolicy::Strict && refusal.row() == Some(Row::G) && before.has_torn() =>
            {
                Ok(RecoveryPolicy::Standard)
            }
            RecoveryError::Failed { .. }
            | RecoveryError::Refused { refusal: Refusal::Unreadable { .. }, .. }
                if tries < TRIES && self.disk.relieve() =>
            {
                Ok(policy)
            }
            RecoveryError::Refused { .. } if before.exposed_lies() > 0 => Err(Stop::Refused),
            RecoveryError::Refused { .. } => {
                Err(Check::NeverRefusedAfterPlainCrash.broken(error.to_string()).into())
            }
            _ => Err(Check::WorkCompletes.broken(error.to_string()).into()),
        }
    }

    /// Holds what was found against what must be there, and takes it as what is there from now on.
    fn check(
        &mut self,
        loss: Loss,
        lied: bool,
        journal: &Journal<F>,
        report: &Report,
        scanned: Option<&Scanned<F>>,
    ) -> Result<(), Broken> {
        let found = Recovered { first: journal.view().first(), end: journal.view().written_end() };
        check_agreement(journal, report, scanned.map(|(_, report)| report))?;
        match lied {
            true => self.world.oracle.check_remains(found)?,
            false => {
                self.world.oracle.check_recovered(loss, found)?;
                scanned.map_or(Ok(()), |(_, scan)| self.world.oracle.check_proven(scan.proven_end))?;
            }
        }
        if let Some((view, _)) = scanned {
            read_all(self, &self.performer(), view, found)?;
        }
        let was_space = !self.disk.state().is_limited();
        self.world.oracle.settle(found, was_space);
        Ok(())
    }

    pub(super) fn recover(&mut self, policy: RecoveryPolicy) -> Result<Outcome<F>, Broken> {
        let performer = self.performer();
        let listing = listing(&performer)?;
        let config =
            Config { recovery: policy, ..self.settings.config(self.world.openings, self.world.clock) };
        let mut step = Recovery::<F>::start(config, listing);
        loop {
            let (effect, recovery) = match step {
                RecoveryStep::Perform(effect, recovery) => (effect, recovery),
                RecoveryStep::Done(journal, report) => return Ok(Ok((journal, *report))),
            };
            let resumed = match &effect {
                Effect::Read(request) => {
                    let buffer = Rc::clone(&self.buffer);
                    let buffer = &mut *buffer.borrow_mut();
                    let answer = read_into(&performer, *request, buffer);
                    self.record_moment();
                    recovery.resume(answer.map_or_else(Answer::Failed, Answer::Bytes))
                }
                effect => {
                    let result = performer.perform(effect);
                    self.record_moment();
                    self.log(|| format!("recovery: {} {}", describe(effect), outcome(result)));
                    recovery.resume(result.map_or_else(Answer::Failed, |()| Answer::Done))
                }
            };
            match resumed {
                Ok(next) => step = next,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Reads the journal as somebody without the writer would; nothing where there is no segment, since a scan cannot
    /// know the number that a new journal begins with, nor where a planned fault struck.
    pub(super) fn scan(&self, policy: RecoveryPolicy) -> Result<Option<Scanned<F>>, Broken> {
        if !self.disk.state().files().any(|(name, _)| name.ends_with(".seg")) {
            return Ok(None);
        }
        let performer = self.performer();
        let options =
            ScanOptions { policy, block_bytes: self.settings.sector_bytes as u64, ..ScanOptions::default() };
        let buffer = &mut *self.buffer.borrow_mut();
        let mut step = Scan::<F>::start(listing(&performer)?, options);
        loop {
            match step {
                ScanStep::Read(request, scan) => step = scan.resume(read_into(&performer, request, buffer)),
                ScanStep::Done(_, report)
                    if matches!(report.verdict, Verdict::Refused(Refusal::Unreadable { .. }))
                        && self.disk.has_failed() =>
                {
                    return Ok(None);
                }
                ScanStep::Done(view, report) => return Ok(Some((*view, *report))),
            }
        }
    }
}

fn listing<D: Interpreter>(performer: &Performer<D>) -> Result<Listing, Broken> {
    let files = files_of(&**performer.disk(), performer.journal());
    files.map(|files| files.listing).map_err(|error| Check::WorkCompletes.broken(error.to_string()))
}

/// Recovery saw what the scan saw, and the open journal shows it.
pub(super) fn check_agreement<F: SimFraming>(
    journal: &Journal<F>,
    report: &Report,
    scan: Option<&Report>,
) -> Result<(), Broken> {
    let disagree = |detail: String| Err(Check::EveryReaderAgrees.broken(detail));
    let view = journal.view();
    if view.durable_end() != view.written_end() || journal.next_seq() != view.written_end() {
        let (durable, written) = (view.durable_end(), view.written_end());
        let next = journal.next_seq();
        return disagree(format!("opened with durable {durable}, written {written}, next {next}"));
    }
    if report.end != view.written_end() || report.first != view.first() {
        let (first, end) = (view.first(), view.written_end());
        return disagree(format!(
            "recovery reported {}..{}, the journal shows {first}..{end}",
            report.first, report.end
        ));
    }
    let Some(scan) = scan else { return Ok(()) };
    if (scan.first, scan.end, &scan.verdict) != (report.first, report.end, &report.verdict) {
        return disagree(format!(
            "the scan says {:?} {}..{}, recovery says {:?} {}..{}",
            scan.verdict, scan.first, scan.end, report.verdict, report.first, report.end
        ));
    }
    Ok(())
}

/// Whether a report calls for no repair.
pub(crate) fn is_clean(report: &Report) -> bool {
    report.verdict == Verdict::Sound && !report.repair.cut && !report.repair.set_aside
}
