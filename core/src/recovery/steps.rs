//! The steps of a recovery, in the order that the module's page gives.

use alloc::boxed::Box;

use bytes::BytesMut;
use rand_chacha::rand_core::RngCore;

use super::plan::{Marking, Plan, Repair};
use super::rewrite::{Changed, Rewrite, RewriteStep};
use super::{Recovery, RecoveryError, RecoveryStep};
use crate::journal::{Active, NewSegment, Reserve, push_mark};
use crate::scan::LastSegment;
use crate::view::SegmentView;
use crate::{
    Answer, Config, Effect, Framing, IoFailure, Journal, Listing, Mark, Report, Scan, ScanOptions, ScanStep,
    SegmentId, Verdict, View,
};

type Next<F> = Result<RecoveryStep<F>, RecoveryError>;

/// What a recovery is about to do.
#[derive(Debug)]
pub(super) enum Stage<F: Framing> {
    /// Nothing: the stage is being worked on.
    Taken,
    /// The directory is being synced.
    Directory(Listing),
    Scanning(Box<Scan<F>>),
    Repairing(Box<Plan<F>>, Repair),
    Rewriting(Box<Plan<F>>, Rewrite),
    Marking(Box<Plan<F>>, Marking),
    Creating(Box<Plan<F>>, NewSegment),
}

impl<F: Framing> Recovery<F> {
    pub(super) fn directory_synced(mut self: Box<Self>, listing: Listing, answer: Answer<'_>) -> Next<F> {
        let first = match &listing {
            Listing::Segments(files) => files.iter().map(|file| file.id).min(),
            Listing::Bare { .. } => Some(Listing::BARE),
        };
        let first_seq = self.config.first_seq.unwrap_or(F::FIRST_SEQ);
        let first = first.unwrap_or(SegmentId(first_seq));
        done(answer, "sync the directory of", first)?;
        let Config { recovery: policy, block_bytes, index_events, .. } = self.config;
        let options = ScanOptions { policy, block_bytes, index_events };
        if matches!(&listing, Listing::Segments(files) if files.is_empty()) {
            // A journal that does not exist yet begins where the configuration says.
            let (view, report) = (View::empty(first_seq), Report::empty(first_seq));
            self.stage = Stage::Taken;
            return self.begin_repair(view, report);
        }
        self.scan_step(Scan::start(listing, options))
    }

    pub(super) fn scanned(self: Box<Self>, scan: Box<Scan<F>>, answer: Answer<'_>) -> Next<F> {
        let read = match answer {
            Answer::Bytes(bytes) => Ok(bytes),
            Answer::Done => Ok(&[][..]),
            Answer::Failed(failure) => Err(failure),
        };
        self.scan_step(scan.resume(read))
    }

    fn scan_step(mut self: Box<Self>, step: ScanStep<F>) -> Next<F> {
        match step {
            ScanStep::Read(request, scan) => {
                self.stage = Stage::Scanning(scan);
                Ok(RecoveryStep::Perform(Effect::Read(request), self))
            }
            ScanStep::Done(view, report) => match report.verdict {
                Verdict::Refused(refusal) => Err(RecoveryError::Refused { refusal, report }),
                Verdict::Sound | Verdict::Cut(_) => self.begin_repair(*view, *report),
            },
        }
    }

    fn begin_repair(mut self: Box<Self>, view: View<F>, report: Report) -> Next<F> {
        let plan = Box::new(Plan { view, report });
        self.stage = Stage::Repairing(plan, Repair::RemoveTemporaries);
        Ok(RecoveryStep::Perform(Effect::RemoveTemporaries, self))
    }

    pub(super) fn repaired(
        mut self: Box<Self>,
        mut plan: Box<Plan<F>>,
        step: Repair,
        answer: Answer<'_>,
    ) -> Next<F> {
        let segment = plan.cut().map_or_else(|| plan.report.last_id(), |cut| cut.segment);
        match (step, answer) {
            // Best effort: they are in nobody's way.
            (Repair::RemoveTemporaries, _) => {}
            // A full disk must not keep a journal shut: the copy is a courtesy.
            (Repair::SetAside, Answer::Failed(failure)) if failure.is_no_space() => {}
            (Repair::SetAside, answer) => {
                done(answer, "keep a copy of the torn tail of", segment)?;
                plan.report.repair.set_aside = true;
            }
            (Repair::RemoveTorn, answer) => done(answer, "remove the unfinished", segment)?,
            (Repair::Truncate, answer) => done(answer, "cut", segment)?,
            (Repair::Sync, answer) => done(answer, "sync", segment)?,
        }
        match plan.repair_after(step) {
            Some((step, effect)) => {
                self.stage = Stage::Repairing(plan, step);
                Ok(RecoveryStep::Perform(effect, self))
            }
            None => {
                plan.report.repair.cut = plan.cut().is_some();
                self.begin_rewrite(plan)
            }
        }
    }

    fn begin_rewrite(mut self: Box<Self>, mut plan: Box<Plan<F>>) -> Next<F> {
        let Some((view, last)) = plan.last() else { return self.create(plan) };
        let is_other = view.layout().version != self.config.version;
        if view.is_empty() && is_other && !self.marks_would_be_missed(&plan.view) {
            // It holds nothing yet, so it is replaced by one of the version that is asked for.
            return self.create(plan);
        }
        let (from, end) = (last.proven_bytes, view.bytes());
        let mut rewrite = Rewrite::new(view.id(), view.layout(), from, end);
        plan.report.repair.rewritten = end.saturating_sub(from);
        let effect = rewrite.next();
        self.stage = Stage::Rewriting(plan, rewrite);
        Ok(RecoveryStep::Perform(effect, self))
    }

    pub(super) fn rewritten(
        mut self: Box<Self>,
        plan: Box<Plan<F>>,
        mut rewrite: Rewrite,
        answer: Answer<'_>,
    ) -> Next<F> {
        let segment = plan.report.last_id();
        let effect = match (rewrite.step, answer) {
            (RewriteStep::Reading, Answer::Bytes(bytes)) => {
                let put_back = rewrite.put_back::<F>(bytes);
                put_back.map_err(|Changed { offset }| RecoveryError::Unstable { segment, offset })?
            }
            (RewriteStep::Reading, answer) => {
                done(answer, "read again the unproven end of", segment)?;
                rewrite.next()
            }
            (RewriteStep::Writing(len), answer) => {
                done(answer, "write again the unproven end of", segment)?;
                rewrite.wrote(len);
                rewrite.next()
            }
            (RewriteStep::Syncing, answer) => {
                done(answer, "sync the unproven end of", segment)?;
                return self.begin_mark(plan);
            }
        };
        self.stage = Stage::Rewriting(plan, rewrite);
        Ok(RecoveryStep::Perform(effect, self))
    }

    /// Whether the last segment, although it has no record, cannot be replaced by one without marks: they may state
    /// that records of the segments before were trimmed, and where there is no header either, an empty file behind a
    /// segment with marks is a torn creation to the next opening. Then it is filled as it is.
    fn marks_would_be_missed(&self, view: &View<F>) -> bool {
        let has_marks = view.last().is_some_and(|last| last.layout().has_marks());
        has_marks && !F::layout(self.config.version).has_marks() && view.segments().len() > 1
    }

    fn begin_mark(mut self: Box<Self>, plan: Box<Plan<F>>) -> Next<F> {
        let Some((segment, offset, LastSegment { salt, last_mark, .. })) =
            plan.last().map(|(view, last)| (view.id(), view.bytes(), *last))
        else {
            return self.create(plan);
        };
        let (durable_end, first) = (plan.report.end, plan.report.first);
        let Some(salt) = salt else { return self.finish(plan, last_mark) };
        let mark = Mark { durable_end, salt, offset, first };
        let has_room = plan.view.bytes().saturating_add(F::MARK_LEN as u64) <= self.config.segments_bytes_max;
        if last_mark.is_some_and(|last| last.states_same(&mark)) || !has_room {
            return self.finish(plan, last_mark);
        }
        let mut data = BytesMut::with_capacity(F::MARK_LEN);
        push_mark::<F>(&mark, self.config.opened_at, &mut data);
        self.stage = Stage::Marking(plan, Marking::Write(mark));
        Ok(RecoveryStep::Perform(Effect::Write { segment, offset, data: data.freeze() }, self))
    }

    pub(super) fn marked(
        mut self: Box<Self>,
        mut plan: Box<Plan<F>>,
        step: Marking,
        answer: Answer<'_>,
    ) -> Next<F> {
        let Some((segment, len)) = plan.view.last().map(|last| (last.id(), last.bytes())) else {
            return self.create(plan);
        };
        let (step, effect) = match (step, answer) {
            (Marking::Write(_), Answer::Failed(failure)) if failure.is_no_space() => {
                (Marking::TakeBack, Effect::Truncate { segment, len })
            }
            (Marking::Write(mark), answer) => {
                done(answer, "write the mark of", segment)?;
                (Marking::Sync(mark), Effect::Sync { segment })
            }
            (Marking::Sync(mark), answer) => {
                done(answer, "sync the mark of", segment)?;
                if let Some(last) = plan.view.last_mut() {
                    last.extend(last.end(), len + F::MARK_LEN as u64);
                }
                return self.finish(plan, Some(mark));
            }
            (Marking::TakeBack, answer) => {
                done(answer, "take back the mark of", segment)?;
                (Marking::SyncTakeBack, Effect::Sync { segment })
            }
            (Marking::SyncTakeBack, answer) => {
                done(answer, "sync", segment)?;
                let last_mark = plan.last().and_then(|(_, last)| last.last_mark);
                return self.finish(plan, last_mark);
            }
        };
        self.stage = Stage::Marking(plan, step);
        Ok(RecoveryStep::Perform(effect, self))
    }

    /// Creates the first segment, or an empty one again under the same name.
    fn create(mut self: Box<Self>, plan: Box<Plan<F>>) -> Next<F> {
        let (first, logical_first) = (plan.report.end, plan.report.first);
        let layout = F::layout(self.config.version);
        let room = self.config.segments_bytes_max.saturating_sub(plan.view.bytes());
        let reserve = self.config.reserve_bytes.min(self.config.segment_bytes).min(room);
        let (salt, now) = (self.salts.next_u64(), self.config.opened_at);
        let segment = NewSegment::new::<F>(layout, salt, first, logical_first, now, reserve);
        let effect =
            Effect::Create { segment: segment.id, head: segment.head.clone(), reserve: segment.reserve };
        self.stage = Stage::Creating(plan, segment);
        Ok(RecoveryStep::Perform(effect, self))
    }

    pub(super) fn created(
        self: Box<Self>,
        mut plan: Box<Plan<F>>,
        segment: NewSegment,
        answer: Answer<'_>,
    ) -> Next<F> {
        done(answer, "create", segment.id)?;
        let (first, bytes) = (segment.id.0, segment.head.len() as u64);
        if plan.view.last().is_some_and(|last| last.id() == segment.id) {
            plan.view.pop_newest();
        }
        let view = SegmentView::new(segment.id, segment.layout, first, bytes);
        plan.view.push(view.with_events(self.config.index_events));
        let active = segment.into_active(self.reserve());
        Ok(self.open(plan, active))
    }

    fn finish(self: Box<Self>, plan: Box<Plan<F>>, last_mark: Option<Mark>) -> Next<F> {
        let Some((view, last)) = plan.last() else { return self.create(plan) };
        let active = Active {
            id: view.id(),
            layout: view.layout(),
            salt: last.salt.unwrap_or_default(),
            end: view.bytes(),
            extent: view.bytes(),
            last_mark,
            unsynced: false,
            reserve: self.reserve(),
        };
        Ok(self.open(plan, active))
    }

    fn open(self: Box<Self>, plan: Box<Plan<F>>, active: Active) -> RecoveryStep<F> {
        let Plan { mut view, report } = *plan;
        if let Some(last) = view.last_mut() {
            last.mark_durable();
        }
        let journal = Journal::new(self.config, view, active, self.salts);
        RecoveryStep::Done(Box::new(journal), Box::new(report))
    }

    fn reserve(&self) -> Reserve {
        if self.config.reserve_bytes == 0 { Reserve::Off } else { Reserve::Ready }
    }
}

fn done(answer: Answer<'_>, step: &'static str, segment: SegmentId) -> Result<(), RecoveryError> {
    match answer {
        Answer::Done | Answer::Bytes(_) => Ok(()),
        Answer::Failed(failure) => Err(failed(step, segment, failure)),
    }
}

const fn failed(step: &'static str, segment: SegmentId, failure: IoFailure) -> RecoveryError {
    RecoveryError::Failed { step, segment, failure }
}
