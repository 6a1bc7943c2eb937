//! What must be true, kept apart from the journal: what was submitted, what was acknowledged, what was told
//! void, and what therefore may and must be there after a crash.

#[cfg(test)]
mod tests;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use strandline_core::{CommitId, Seq};

use crate::violation::{Broken, Check, Loss};
use crate::workload::{SimFraming, Submitted};

/// The oracle of one journal, through all its openings.
///
/// Invariant: `first_min <= first_max <= next` and `durable_end <= written_end <= next`.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// The number of the first record that there ever was.
    base: u64,
    /// What is in the journal if nothing is lost, from `base` on; trimmed records stay for comparison.
    line: Vec<Accepted>,
    /// Records that must never be seen again, with the number they had.
    dead: Vec<(u64, Rc<Submitted>)>,
    durable_end: u64,
    written_end: u64,
    /// Readers that asked for durable records were given everything before this.
    shown_end: u64,
    /// Everything before this must be proven by a mark or by a later segment.
    proven_min: u64,
    /// The lowest logical start that may be found.
    first_min: u64,
    /// The highest logical start that was asked for.
    first_max: u64,
    /// Whether the format can state a logical start inside a segment.
    has_marks: bool,
}

#[derive(Clone, Debug)]
struct Accepted {
    record: Rc<Submitted>,
    commit: CommitId,
}

/// What an opening found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The logical start.
    pub first: Seq,
    /// One past the last record.
    pub end: Seq,
}

impl Oracle {
    /// The oracle of a journal that does not exist yet and will begin at `first`. Version 1 has no marks.
    #[must_use]
    pub fn new(first: Seq, has_marks: bool) -> Self {
        let base = first.get();
        Self {
            base,
            line: Vec::new(),
            dead: Vec::new(),
            durable_end: base,
            written_end: base,
            shown_end: base,
            proven_min: base,
            first_min: base,
            first_max: base,
            has_marks,
        }
    }

    /// An append was accepted.
    ///
    /// # Errors
    /// [`Check::NumbersNeverRestart`] if it did not get the next number.
    pub fn accepted(&mut self, seq: Seq, commit: CommitId, record: Rc<Submitted>) -> Result<(), Broken> {
        if seq.get() != self.next() {
            let next = self.next();
            return Err(Check::NumbersNeverRestart.broken(format!("an append got {seq} instead of {next}")));
        }
        self.line.push(Accepted { record, commit });
        Ok(())
    }

    /// Everything before `end` was announced durable, and with it every commit up to `commit`.
    ///
    /// # Errors
    /// [`Check::WatermarkCoversCommit`].
    pub fn durable(&mut self, end: Seq, commit: CommitId) -> Result<(), Broken> {
        self.check_watermark("durable", end, commit, self.durable_end)?;
        if self.has_marks && end.get() > self.durable_end {
            // The write that this sync covers began with a mark of what was durable then.
            self.proven_min = self.durable_end;
        }
        self.durable_end = end.get();
        self.written_end = self.written_end.max(end.get());
        Ok(())
    }

    /// A close was announced complete. It leaves a mark that states the end and the logical start, unless there
    /// `was_space` for none.
    ///
    /// # Errors
    /// [`Check::CloseCompletes`] if something is not durable.
    pub fn closed(&mut self, was_space: bool) -> Result<(), Broken> {
        let (durable, next) = (self.durable_end, self.next());
        if durable == next {
            self.stated(was_space);
            return Ok(());
        }
        Err(Check::CloseCompletes.broken(format!("closed with durable {durable}, next {next}")))
    }

    /// Everything before `end` was announced written, and with it every commit up to `commit`.
    ///
    /// # Errors
    /// [`Check::WatermarkCoversCommit`].
    pub fn written(&mut self, end: Seq, commit: CommitId) -> Result<(), Broken> {
        self.check_watermark("written", end, commit, self.written_end)?;
        self.written_end = end.get();
        Ok(())
    }

    /// A reader that asked for durable records was given everything before `end`: a promise as good as an
    /// announcement.
    pub fn shown(&mut self, end: Seq) {
        self.shown_end = self.shown_end.max(end.get());
    }

    /// The records from `from` on were told void; every commit up to `commit` that was not announced has failed.
    ///
    /// # Errors
    /// [`Check::WatermarkCoversCommit`] if acknowledged records are among them, or records that were not told.
    pub fn void(&mut self, from: Seq, commit: CommitId) -> Result<(), Broken> {
        let covered = Check::WatermarkCoversCommit;
        if from.get() < self.written_end || from.get() > self.next() {
            let (written, next) = (self.written_end, self.next());
            return Err(covered.broken(format!("void from {from}, acknowledged {written}, next {next}")));
        }
        let kept = index(from.get() - self.base);
        if let Some(left) = self.line.iter().skip(kept).find(|accepted| accepted.commit > commit) {
            let (untold, commit) = (left.commit.get(), commit.get());
            return Err(covered.broken(format!("void up to commit {commit} takes the number of {untold}")));
        }
        self.bury(from.get());
        Ok(())
    }

    /// Trimming was asked for; the logical start is now `first`.
    ///
    /// # Errors
    /// [`Check::NumbersNeverRestart`] if it moved back.
    pub fn trimmed(&mut self, first: Seq) -> Result<(), Broken> {
        if first.get() < self.first_max || first.get() > self.next() {
            let (was, next) = (self.first_max, self.next());
            let detail = format!("the logical start moved from {was} to {first}, next {next}");
            return Err(Check::NumbersNeverRestart.broken(detail));
        }
        self.first_max = first.get();
        Ok(())
    }

    /// Every file before the one that begins at `first` is gone for good.
    pub fn removed_before(&mut self, first: Seq) {
        self.first_min = self.first_min.max(first.get());
    }

    /// Holds what an opening found after such a loss against what must and may be there.
    ///
    /// # Errors
    /// The check that it breaks.
    pub fn check_recovered(&self, loss: Loss, found: Recovered) -> Result<(), Broken> {
        let (first, end, next) = (found.first.get(), found.end.get(), self.next());
        let acknowledged = match loss {
            Loss::Kill => self.written_end,
            Loss::Power(_) => self.durable_end,
        };
        if end < acknowledged {
            let detail =
                format!("acknowledged up to {acknowledged}, recovered only up to {end} after a {loss}");
            return Err(Check::AcknowledgedIsRecovered.broken(detail));
        }
        if end < self.shown_end {
            let shown = self.shown_end;
            let detail = format!("readers were shown everything up to {shown}, recovered only up to {end}");
            return Err(Check::ReadersSeeOnlyDurable.broken(detail));
        }
        if end > next {
            let undead = self.dead.iter().any(|(seq, _)| *seq == next);
            let check = if undead { Check::NothingUndead } else { Check::RecoveredIsSubmittedPrefix };
            return Err(check.broken(format!("recovered up to {end}, submitted only up to {next}")));
        }
        if first < self.first_min || first > self.first_max {
            let (min, max) = (self.first_min, self.first_max);
            let detail = format!("the logical start is {first}, it must lie in {min}..={max}");
            return Err(Check::NumbersNeverRestart.broken(detail));
        }
        Ok(())
    }

    /// The same after a disk has lied: what was acknowledged may be gone, and what proved it, but nothing may be
    /// there that was not submitted.
    ///
    /// # Errors
    /// The check that it breaks.
    pub fn check_remains(&mut self, found: Recovered) -> Result<(), Broken> {
        let (end, next) = (found.end.get(), self.next());
        if end > next {
            let detail = format!("recovered up to {end}, submitted only up to {next}");
            return Err(Check::RecoveredIsSubmittedPrefix.broken(detail));
        }
        // Where there is no space for a new mark, nothing has to prove what the lost ones did.
        self.proven_min = self.base;
        Ok(())
    }

    /// The machine stopped like this. After a power loss nobody is promised what was only written.
    pub fn lost(&mut self, loss: Loss) {
        if matches!(loss, Loss::Power(_)) {
            self.written_end = self.durable_end;
        }
    }

    /// What is proven durable before anything is repaired.
    ///
    /// # Errors
    /// [`Check::DurableIsProven`].
    pub fn check_proven(&self, proven_end: Seq) -> Result<(), Broken> {
        if proven_end.get() >= self.proven_min {
            return Ok(());
        }
        let min = self.proven_min;
        Err(Check::DurableIsProven
            .broken(format!("records up to {min} must be proven, those up to {proven_end} are")))
    }

    /// An opening has ended: what it found is durable now and stated by a mark, unless there `was_space` for
    /// none; the rest is lost for good.
    pub fn settle(&mut self, found: Recovered, was_space: bool) {
        self.bury(found.end.get());
        self.durable_end = found.end.get();
        self.written_end = found.end.get();
        self.shown_end = found.end.get();
        self.first_max = found.first.get();
        if self.has_marks {
            self.first_min = found.first.get();
        }
        self.proven_min = self.proven_min.min(found.end.get());
        self.stated(was_space);
        for accepted in &mut self.line {
            accepted.commit = CommitId::default();
        }
    }

    /// Compares a record that was read back with what was submitted under its number.
    ///
    /// # Errors
    /// [`Check::NothingUndead`] or [`Check::RecoveredIsSubmittedPrefix`].
    pub fn check_record<F: SimFraming>(&self, record: F::Record<'_>) -> Result<(), Broken> {
        let seq = F::seq(record).get();
        let submitted = seq.checked_sub(self.base).and_then(|at| self.line.get(index(at)));
        if submitted.is_some_and(|submitted| F::matches(record, &submitted.record)) {
            return Ok(());
        }
        let mut dead = self.dead.iter().filter(|(_, dead)| dead.is_unique() && F::matches(record, dead));
        match (dead.next(), submitted) {
            (Some((was, dead)), _) => Err(Check::NothingUndead.broken(format!(
                "record {seq} is submission {}, which had number {was} and was told void or cut",
                dead.id
            ))),
            (None, Some(submitted)) => Err(Check::RecoveredIsSubmittedPrefix.broken(format!(
                "record {seq} is {:?}, but submitted was {:?}",
                F::payload(record),
                submitted.record
            ))),
            (None, None) => {
                Err(Check::RecoveredIsSubmittedPrefix.broken(format!("record {seq} was never submitted")))
            }
        }
    }

    /// The number that the next append must get.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.base + self.line.len() as u64
    }

    /// Everything before this was acknowledged as durable.
    #[must_use]
    pub const fn durable_end(&self) -> u64 {
        self.durable_end
    }

    /// A hash of everything that the checks after such a loss depend on.
    #[must_use]
    pub fn digest(&self, loss: Loss) -> u64 {
        let mut hasher = DefaultHasher::new();
        let acknowledged = match loss {
            Loss::Kill => self.written_end,
            Loss::Power(_) => self.durable_end,
        };
        (loss == Loss::Kill, acknowledged.max(self.shown_end), self.proven_min).hash(&mut hasher);
        (self.first_min, self.first_max).hash(&mut hasher);
        // Ids are never given out twice, so that they stand for the records.
        self.line.iter().for_each(|accepted| accepted.record.id.hash(&mut hasher));
        self.dead.iter().for_each(|(_, dead)| dead.id.hash(&mut hasher));
        hasher.finish()
    }

    /// A mark states the end and the logical start.
    fn stated(&mut self, was_space: bool) {
        if self.has_marks && was_space {
            self.proven_min = self.durable_end;
            self.first_min = self.first_max;
        }
    }

    fn check_watermark(&self, what: &str, end: Seq, commit: CommitId, before: u64) -> Result<(), Broken> {
        let end = end.get();
        let covered = self.line.iter().filter(|accepted| accepted.commit <= commit).count();
        let needed = self.base + covered as u64;
        if end < before || end > self.next() || end < needed {
            let next = self.next();
            return Err(Check::WatermarkCoversCommit.broken(format!(
                "{what} up to {end} for commit {}, which needs {needed}; it was {before}, next is {next}",
                commit.get()
            )));
        }
        Ok(())
    }

    /// The records from `from` on are lost.
    fn bury(&mut self, from: u64) {
        let kept = index(from.saturating_sub(self.base)).min(self.line.len());
        let lost = self.line.drain(kept..).zip(from..).map(|(accepted, seq)| (seq, accepted.record));
        self.dead.extend(lost);
    }
}

/// A distance between sequence numbers of a simulation as an index.
fn index(distance: u64) -> usize {
    usize::try_from(distance).unwrap_or(usize::MAX)
}
