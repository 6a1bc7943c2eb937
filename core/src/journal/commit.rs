//! The commit path: what is started when nothing is in flight, and what follows each answer.

use bytes::{Bytes, BytesMut};

use super::active::Reserve;
use super::phase::{InFlight, Phase, Voided};
use super::room::{Room, marks_len};
use super::{Journal, Output};
use crate::view::TailCommit;
use crate::{Effect, EffectId, Framing, IoFailure, Mark, Seq, Shortage, SyncPolicy};

/// A commit that reaches into a reserve waits for it, and each sync flushes what of it was written.
const RESERVE_STEP: u64 = 4 * 1024 * 1024;

impl<F: Framing> Journal<F> {
    /// Starts whatever can be started. At most one thing is in flight on the commit path, one
    /// reserve and one removal beside it.
    pub(super) fn advance(&mut self) {
        if self.poison.is_some() {
            return;
        }
        self.advance_removal();
        match self.phase {
            Phase::Idle => self.advance_commits(),
            Phase::VoidPending(voided) if !self.reserve_is_outstanding() => self.cut_back(voided),
            _ => {}
        }
    }

    fn advance_commits(&mut self) {
        if self.sync_is_wanted() {
            self.start_sync();
        } else if !self.queue.is_empty() {
            self.advance_queue();
        } else if self.trim_wants_a_new_segment() {
            self.advance_trim();
        } else if self.closing {
            self.start_close();
        } else if self.wants_idle_mark()
            && self.timers.is_due(self.timers.mark_due(self.config.idle_mark_ms))
            && !self.overlaps_reserve(F::MARK_LEN as u64)
        {
            self.start_idle_mark();
        }
    }

    /// What follows the answer to the commit path's effect.
    pub(super) fn handle_phase(&mut self, result: Result<(), IoFailure>) {
        let segment = self.active.id;
        match core::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle | Phase::Closed | Phase::VoidPending(_) => {}
            Phase::Writing(_, commit) => match result {
                Ok(()) => self.commit_written(commit),
                Err(failure) => match failure.shortage() {
                    Some(shortage) => self.take_back(&commit, shortage),
                    None => self.stop(segment, failure),
                },
            },
            Phase::Syncing { end, .. } => match result {
                Ok(()) => self.synced(end),
                Err(failure) => self.stop(segment, failure),
            },
            Phase::Marking(_, mark) => self.handle_idle_mark(mark, result),
            Phase::Sealing(_, step) => self.handle_seal(step, result),
            Phase::Creating(_, segment) => self.handle_create(segment, result),
            Phase::Voiding { synced, voided, .. } => self.handle_void(synced, voided, result),
            Phase::ClosingMark(_, mark) => self.handle_closing_mark(mark, result),
            Phase::Closing(_, step) => self.handle_close(step, result),
        }
    }

    pub(super) fn reserve_is_outstanding(&self) -> bool {
        matches!(self.active.reserve, Reserve::Outstanding { .. })
    }

    /// Starts a sync that will prove everything written so far. The watermark is captured before
    /// the sync begins: what is written later is not covered.
    pub(super) fn start_sync(&mut self) {
        let id = self.emit(Effect::Sync { segment: self.active.id });
        self.phase = Phase::Syncing { id, end: self.view.written_end() };
    }

    /// A sync that was started when the written end was `end` has finished.
    pub(super) fn synced(&mut self, end: Seq) {
        self.active.unsynced = false;
        self.timers.synced();
        if let Some(last) = self.view.last_mut() {
            last.mark_durable();
        }
        let asked = self.sync_after.take_if(|commit| *commit <= self.written_commit).is_some();
        if end > self.view.durable_end() || asked {
            self.view.set_durable_end(end);
            self.outputs.push_back(Output::Durable { end, commit: self.written_commit });
        }
    }

    /// The idle mark is worth writing: everything is durable, and the last frame does not say so.
    pub(super) fn wants_idle_mark(&self) -> bool {
        self.phase.is_idle()
            && self.queue.is_empty()
            && !self.closing
            && self.active.layout.has_marks()
            && !self.has_unsynced_records()
            && !self.active.states(self.view.durable_end(), self.view.first())
            && self.has_room_for_mark()
    }

    pub(super) fn handle_reserve(&mut self, result: Result<(), IoFailure>) {
        let Reserve::Outstanding { to, .. } = self.active.reserve else { return };
        match result {
            Ok(()) => {
                self.active.reserve = Reserve::Ready;
                self.active.unsynced = true;
            }
            // Without reserve the file grows with each write: slower, and nothing else.
            Err(failure) if failure.shortage().is_some() => self.active.reserve = Reserve::Off,
            Err(failure) => return self.stop(self.active.id, failure),
        }
        self.active.extent = self.active.extent.max(to);
    }

    fn sync_is_wanted(&self) -> bool {
        let asked = self.sync_after.is_some_and(|commit| commit <= self.written_commit);
        let interval = match self.config.sync {
            SyncPolicy::Interval { ms } => {
                self.has_unsynced_records() && self.timers.has_reached(self.timers.sync_due(ms))
            }
            SyncPolicy::Always | SyncPolicy::Never => false,
        };
        asked || interval
    }

    fn advance_queue(&mut self) {
        let Some(next) = self.queue.front() else { return };
        let bytes = next.record_bytes::<F>(self.layout) as u64;
        let rolls = self.needs_new_segment(bytes);
        match self.room_for(bytes, rolls) {
            Room::Enough if rolls => return self.start_seal(),
            Room::Enough => {}
            Room::AfterRemoval => return,
            Room::None if self.rolls_to_shrink() => return self.start_seal(),
            Room::None if self.config.waits_for_room => return,
            Room::None => {
                self.void_waiting(Shortage::Space);
                return;
            }
        }
        if !self.overlaps_reserve(bytes + marks_len::<F>(self.active.layout)) {
            self.start_commit();
        }
    }

    fn start_commit(&mut self) {
        let Some(mut gathered) = self.queue.take() else { return };
        let record_bytes = gathered.record_bytes::<F>(self.layout);
        let (durable_end, first) = (self.view.durable_end(), self.view.first());
        let (last_mark, dropped) =
            self.active.enclose::<F>(durable_end, first, self.now, &mut gathered.frames);
        let points =
            gathered.points.iter().map(|(seq, at)| (*seq, at.saturating_sub(dropped) as u64)).collect();
        let frames = gathered.frames.freeze();
        let id = self.write_commit(frames.clone());
        let (commit, first, end) = (gathered.id, gathered.first, gathered.end);
        let in_flight = InFlight { commit, first, end, frames, record_bytes, points, last_mark };
        self.phase = Phase::Writing(id, in_flight);
    }

    /// Writes a commit at the end. Where the file has no header and no mark, the first commit creates it anew
    /// instead, in the place of the empty one: a file that was torn in its first bytes could not be
    /// told from a foreign one.
    fn write_commit(&mut self, data: Bytes) -> EffectId {
        let (segment, offset, len) = (self.active.id, self.active.end, data.len() as u64);
        if offset == 0 {
            return self.emit(Effect::Create { segment, head: data, reserve: len });
        }
        self.start_reserve(offset + len);
        self.emit(Effect::Write { segment, offset, data })
    }

    fn commit_written(&mut self, commit: InFlight) {
        let offset = self.active.end;
        self.active.end += commit.frames.len() as u64;
        self.active.extent = self.active.extent.max(self.active.end);
        self.active.last_mark = commit.last_mark;
        self.active.unsynced = true;
        if let Some(last) = self.view.last_mut() {
            for (seq, at) in &commit.points {
                last.note_record(*seq, offset + at);
            }
            last.note_events::<F>(&commit.frames, offset);
            last.extend(commit.end, self.active.end);
        }
        self.view.set_written_end(commit.end);
        let (first, end, frames) = (commit.first, commit.end, commit.frames);
        self.view.keep_in_tail(TailCommit { first, end, frames });
        self.queue.settle(commit.record_bytes);
        self.written_commit = commit.commit;
        self.roll_refused = false;
        self.timers.activity();
        match self.config.sync {
            SyncPolicy::Always => self.start_sync(),
            SyncPolicy::Interval { .. } | SyncPolicy::Never => {
                self.outputs.push_back(Output::Written { end, commit: commit.commit });
            }
        }
    }

    /// Where a commit found no file, nothing of it was written; where it found no space, something may have been.
    fn take_back(&mut self, commit: &InFlight, shortage: Shortage) {
        let voided = Voided { first: commit.first, commit: commit.commit, shortage };
        match shortage {
            Shortage::Space => self.phase = Phase::VoidPending(voided),
            Shortage::Files => self.void(voided),
        }
    }

    /// Whether a write of this many bytes at the end would touch what a reserve is writing.
    fn overlaps_reserve(&self, bytes: u64) -> bool {
        match self.active.reserve {
            Reserve::Outstanding { from, .. } => self.active.end.saturating_add(bytes) > from,
            Reserve::Off | Reserve::Ready => false,
        }
    }

    /// Keeps zeros ready behind a write that ends at `end`; in the background, beside the write.
    fn start_reserve(&mut self, end: u64) {
        let step = self.config.reserve_bytes.min(RESERVE_STEP);
        let from = self.active.extent.max(end);
        let room = self.room(self.sealed_bytes());
        let to = from.saturating_add(step).min(self.config.segment_bytes).min(room);
        let enough = from - end >= step / 2;
        if self.active.reserve != Reserve::Ready || enough || to <= from {
            return;
        }
        let id = self.emit(Effect::Reserve { segment: self.active.id, from, to });
        self.active.reserve = Reserve::Outstanding { id, from, to };
    }

    fn start_idle_mark(&mut self) {
        let mark = self.active.mark(self.view.durable_end(), self.view.first());
        let id = self.write_mark(&mark);
        self.phase = Phase::Marking(id, mark);
    }

    pub(super) fn write_mark(&mut self, mark: &Mark) -> EffectId {
        let mut data = BytesMut::with_capacity(F::MARK_LEN);
        super::push_mark::<F>(mark, self.now, &mut data);
        let (segment, offset) = (self.active.id, self.active.end);
        self.emit(Effect::Write { segment, offset, data: data.freeze() })
    }

    fn handle_idle_mark(&mut self, mark: Mark, result: Result<(), IoFailure>) {
        self.timers.mark_done();
        self.take_mark(mark, result);
    }

    /// A mark's write has ended. Without space, or a file, it is not worth a void: its place is written over by
    /// the next commit. Gives whether the journal goes on.
    pub(super) fn take_mark(&mut self, mark: Mark, result: Result<(), IoFailure>) -> bool {
        let end = self.active.end + F::MARK_LEN as u64;
        self.active.extent = self.active.extent.max(end);
        match result {
            Ok(()) => {
                self.active.end = end;
                self.active.last_mark = Some(mark);
                self.active.unsynced = true;
                if let Some(last) = self.view.last_mut() {
                    last.extend(last.end(), end);
                }
            }
            Err(failure) if failure.shortage().is_some() => {}
            Err(failure) => {
                self.stop(self.active.id, failure);
                return false;
            }
        }
        true
    }
}
