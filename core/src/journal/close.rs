//! A clean close: a mark that states the end, synced, and a file of exact length.

use super::phase::{Exact, Phase};
use super::{Journal, Output};
use crate::{Effect, Framing, IoFailure, Mark};

impl<F: Framing> Journal<F> {
    /// The next step of a close; nothing is queued and nothing in flight on the commit path.
    pub(super) fn start_close(&mut self) {
        if self.removals_remain() || self.reserve_is_outstanding() {
            return;
        }
        let (end, first) = (self.view.written_end(), self.view.first());
        if self.has_unsynced_records() {
            self.start_sync();
        } else if self.active.layout.has_marks()
            && !self.active.states(end, first)
            && self.has_room_for_mark()
        {
            let mark = self.active.mark(end, first);
            let id = self.write_mark(&mark);
            self.phase = Phase::ClosingMark(id, mark);
        } else if self.active.unsynced || self.active.extent > self.active.end {
            self.start_exact();
        } else {
            self.closed();
        }
    }

    /// Without space, or a file, the mark is left out: the records are durable, only the proof is missing.
    pub(super) fn handle_closing_mark(&mut self, mark: Mark, result: Result<(), IoFailure>) {
        let found_no_file = result.is_err_and(|failure| failure.is_no_file());
        if found_no_file && !self.active.unsynced && self.active.extent == self.active.end {
            self.closed();
        } else if self.take_mark(mark, result) {
            self.start_exact();
        }
    }

    pub(super) fn handle_close(&mut self, step: Exact, result: Result<(), IoFailure>) {
        match self.handle_exact(step, result) {
            None => {}
            Some(Some((id, step))) => self.phase = Phase::Closing(id, step),
            Some(None) => self.closed(),
        }
    }

    fn start_exact(&mut self) {
        let id = self.emit(Effect::Sync { segment: self.active.id });
        self.phase = Phase::Closing(id, Exact::Sync);
    }

    fn closed(&mut self) {
        self.phase = Phase::Closed;
        self.outputs.push_back(Output::Closed);
    }
}
