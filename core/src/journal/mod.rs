//! The running journal.

mod active;
mod close;
mod commit;
mod output;
mod phase;
mod queue;
mod removal;
mod room;
mod rotate;
mod timers;
mod void;

use alloc::collections::VecDeque;

use bytes::BytesMut;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

pub(crate) use active::{Active, NewSegment, Reserve, push_mark};
pub use output::{Accepted, AppendError, BackupPlan, Output, Poison};
use phase::Phase;
use queue::Queue;
use removal::Removal;
use timers::Timers;

use crate::{
    CommitId, Completion, Config, Effect, EffectId, Framing, IoFailure, Layout, Monotonic, SegmentId, Seq,
    SyncPolicy, Timestamp, View,
};

/// A journal that is open for writing.
///
/// It has four kinds of methods:
///
/// - getters: [`view`](Self::view), [`poison`](Self::poison), ...
/// - plain verbs for what the application wants: [`append`](Self::append), [`trim_to`](Self::trim_to),
///   [`request_sync`](Self::request_sync), [`close`](Self::close), [`tick`](Self::tick);
/// - `handle_*` for what the world reports: [`handle_completion`](Self::handle_completion), the only way in;
/// - `poll_*` for what the journal wants: [`poll_output`](Self::poll_output), the only way out.
///
/// A commit begins when output is polled, not when something is appended, so that what is
/// appended between two drains is one commit. Forgetting to drain delays, and never corrupts.
///
/// A journal comes out of a [`Recovery`](crate::Recovery), whose page has an example.
pub struct Journal<F: Framing> {
    config: Config,
    view: View<F>,
    /// How records are encoded; decided when the journal is opened.
    layout: Layout,
    active: Active,
    queue: Queue,
    phase: Phase,
    removal: Removal,
    timers: Timers,
    outputs: VecDeque<Output>,
    next_effect: u64,
    /// The next record's number.
    next: Seq,
    /// The newest commit that is written.
    written_commit: CommitId,
    /// A sync was asked for, once this commit is written.
    sync_after: Option<CommitId>,
    /// There was no space for a segment that only a trim asked for; tried again after a removal.
    roll_refused: bool,
    closing: bool,
    poison: Option<Poison>,
    /// The newest wall-clock time that was passed in; marks are stamped with it.
    now: Timestamp,
    salts: ChaCha8Rng,
}

impl<F: Framing> Journal<F> {
    /// A journal over recovered, wholly durable files.
    pub(crate) fn new(config: Config, mut view: View<F>, active: Active, salts: ChaCha8Rng) -> Self {
        view.set_tail_bytes_max(config.tail_bytes_max);
        view.set_durable_end(view.written_end());
        let wanted = F::layout(config.version);
        let keeps =
            view.last().is_none_or(crate::SegmentView::is_empty) || active.layout.version == wanted.version;
        let layout = if keeps { active.layout } else { wanted };
        Self {
            layout,
            active,
            queue: Queue::new(),
            phase: Phase::Idle,
            removal: Removal::default(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            next_effect: 0,
            next: view.written_end(),
            written_commit: CommitId::default(),
            sync_after: None,
            roll_refused: false,
            closing: false,
            poison: None,
            now: config.opened_at,
            salts,
            config,
            view,
        }
    }

    /// Accepts a record. It is encoded now and written with the next commit; what acknowledges it
    /// is the output that covers its [`CommitId`].
    ///
    /// # Errors
    /// [`AppendError`]; nothing of the record was accepted then.
    pub fn append(&mut self, now: Timestamp, draft: F::Draft<'_>) -> Result<Accepted, AppendError> {
        if let Some(poison) = self.poison {
            return Err(AppendError::Poisoned(poison));
        }
        if self.closing {
            return Err(AppendError::Closed);
        }
        let len = F::measure(draft, self.config.payload_bytes_max)?;
        if self.next > Seq::LAST {
            return Err(AppendError::SequenceExhausted);
        }
        // A record larger than the limit is accepted when nothing else waits: it could never be otherwise.
        let (pending, max) = (self.queue.pending(), self.config.pending_bytes_max);
        if pending > 0 && pending.saturating_add(len) > max {
            return Err(AppendError::Full { pending, max });
        }
        self.now = now;
        let seq = self.next;
        let commit = self.queue.push::<F>(self.layout, (seq, now), draft, len, self.commit_bytes_max());
        self.next = seq.next();
        self.timers.activity();
        Ok(Accepted { seq, commit })
    }

    /// Takes the world's answer to an effect.
    ///
    /// # Panics
    /// If the effect is not outstanding: a programmer error. After a poison every answer is
    /// accepted and ignored.
    pub fn handle_completion(&mut self, completion: Completion) {
        let Completion { id, result } = completion;
        if self.poison.is_some() {
            return;
        }
        if self.removal.is_outstanding(id) {
            return self.handle_removal(result);
        }
        if matches!(self.active.reserve, Reserve::Outstanding { id: reserve, .. } if reserve == id) {
            return self.handle_reserve(result);
        }
        assert_eq!(self.phase.id(), Some(id), "a completion must answer an outstanding effect");
        self.handle_phase(result);
    }

    /// What the journal wants next; nothing while it waits.
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.outputs.is_empty() {
            self.advance();
        }
        self.outputs.pop_front()
    }

    /// Tells the journal the time. Call it before each drain, and once the
    /// [`next_deadline`](Self::next_deadline) has passed; time that goes back is ignored.
    pub fn tick(&mut self, now: Monotonic) {
        self.timers.tick(now);
    }

    /// When [`tick`](Self::tick) has something to do: an idle mark, an interval sync, a removal to try again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Monotonic> {
        if self.poison.is_some() || matches!(self.phase, Phase::Closed) {
            return None;
        }
        let mark = self.wants_idle_mark().then(|| self.timers.mark_due(self.config.idle_mark_ms)).flatten();
        let sync = match self.config.sync {
            SyncPolicy::Interval { ms } if self.has_unsynced_records() => Some(self.timers.sync_due(ms)),
            _ => None,
        };
        [mark, sync, self.timers.removal_retry()].into_iter().flatten().min()
    }

    /// Asks for everything accepted so far to be made durable, under any sync policy. The
    /// [`Output::Durable`] that covers [`last_commit`](Self::last_commit) tells when it is.
    pub fn request_sync(&mut self) {
        self.sync_after = Some(self.queue.last_id());
    }

    /// Gives up every record before `seq`, as far as they are durable. Readers see it at once, the next mark
    /// states it, and segment files that lie wholly before it are removed, oldest first.
    pub fn trim_to(&mut self, seq: Seq) {
        let first = seq.min(self.view.durable_end());
        if first <= self.view.first() || self.poison.is_some() || self.closing {
            return;
        }
        self.view.set_first(first);
        self.timers.activity();
        self.outputs.push_back(Output::Trimmed { first });
    }

    /// Begins a clean close: what was accepted is committed and made durable, a mark states the
    /// end, and the file gets its exact length. Drain until [`Output::Closed`], or a poison.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// What readers need.
    #[must_use]
    pub const fn view(&self) -> &View<F> {
        &self.view
    }

    /// Why the journal stopped, if it did.
    #[must_use]
    pub const fn poison(&self) -> Option<&Poison> {
        self.poison.as_ref()
    }

    /// The newest commit that a record was accepted for.
    #[must_use]
    pub const fn last_commit(&self) -> CommitId {
        self.queue.last_id()
    }

    /// The number that the next record will get.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        self.next
    }

    /// Bytes of records that were accepted and wait to be acknowledged.
    #[must_use]
    pub const fn pending_bytes(&self) -> usize {
        self.queue.pending()
    }

    /// Whether nothing waits and nothing is outstanding. A mark may still be due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
            && self.outputs.is_empty()
            && matches!(self.phase, Phase::Idle | Phase::Closed)
            && !matches!(self.active.reserve, Reserve::Outstanding { .. })
            && !self.removal.is_busy()
    }

    /// What a consistent copy consists of right now: durable bytes, and nothing behind them.
    #[must_use]
    pub fn backup_plan(&self) -> BackupPlan {
        let segments = self.view.segments().map(|s| (s.id(), s.durable_bytes())).collect();
        let (end, first) = (self.view.durable_end(), self.view.first());
        let offset = self.view.last().map_or(0, crate::SegmentView::durable_bytes);
        let mark = self.active.layout.has_marks().then(|| {
            let mut bytes = BytesMut::new();
            let mark = crate::Mark { offset, ..self.active.mark(end, first) };
            push_mark::<F>(&mark, self.now, &mut bytes);
            (offset, bytes.freeze())
        });
        BackupPlan { segments, mark, end }
    }

    /// Stops the journal from outside: the interpreter lost an effect, so that its outcome is
    /// unknown.
    pub fn poison_now(&mut self, failure: IoFailure) {
        self.stop(self.active.id, failure);
    }

    fn emit(&mut self, effect: Effect) -> EffectId {
        let id = EffectId(self.next_effect);
        self.next_effect += 1;
        self.outputs.push_back(Output::Effect { id, effect });
        id
    }

    /// The first failure is the state: stored, told once, returned by every later append. Effects
    /// that nobody has taken yet are withdrawn: after a poison nothing more is written or synced.
    fn stop(&mut self, segment: SegmentId, failure: IoFailure) {
        if self.poison.is_some() {
            return;
        }
        let poison = Poison { segment, failure };
        self.poison = Some(poison);
        self.queue.clear();
        self.phase = Phase::Idle;
        self.active.reserve = Reserve::Off;
        self.removal = Removal::default();
        self.outputs.retain(|output| !matches!(output, Output::Effect { .. }));
        self.outputs.push_back(Output::Poisoned(poison));
    }

    fn has_unsynced_records(&self) -> bool {
        self.view.durable_end() < self.view.written_end()
    }

    /// A commit never outgrows a segment, unless a single record does.
    fn commit_bytes_max(&self) -> usize {
        let overhead = (F::HEADER_LEN + 3 * F::MARK_LEN) as u64;
        let room = self.config.segment_bytes.saturating_sub(overhead);
        self.config.commit_bytes_max.min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    fn new_salt(&mut self) -> u64 {
        self.salts.next_u64()
    }
}

impl<F: Framing> core::fmt::Debug for Journal<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Journal")
            .field("framing", &F::LABEL)
            .field("first", &self.view.first())
            .field("durable_end", &self.view.durable_end())
            .field("next", &self.next)
            .field("poison", &self.poison)
            .finish_non_exhaustive()
    }
}
