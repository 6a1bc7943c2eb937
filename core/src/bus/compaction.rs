//! Keeping the journal `subscriptions` small: once it has a second segment, everything that is true is recorded
//! again there, and what came before is given up.

use super::{EventBus, Record, RecordId, Unrecorded};
use crate::{Pryj, Seq, View};

/// A snapshot that is being recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compaction {
    /// It begins with the first record after this one.
    from: Option<RecordId>,
    /// Its first record's number.
    first: Option<Seq>,
    /// Its last record, once it was asked for.
    last: Option<RecordId>,
}

impl Compaction {
    pub(super) fn accepted(&mut self, id: RecordId, seq: Seq) {
        if self.from.is_some_and(|from| id > from) {
            self.first.get_or_insert(seq);
        }
    }

    pub(super) fn everything_is_asked(&mut self, asked: RecordId) {
        if self.from.is_some() {
            self.last.get_or_insert(asked);
        }
    }

    /// The first record to keep, once all of the snapshot is durable.
    pub(super) fn finish(&mut self, recorded: RecordId) -> Option<Seq> {
        let first = self.first.filter(|_| self.last.is_some_and(|last| last <= recorded))?;
        *self = Self::default();
        Some(first)
    }
}

impl EventBus {
    /// Looks whether the journal `subscriptions` is worth compacting. Call it after records became durable.
    pub fn compact_records(&mut self, records: &View<Pryj>) {
        let sealed = records.segments().next().filter(|_| records.segments().len() > 1);
        let wanted = sealed.is_some_and(|oldest| oldest.end() > records.first());
        if !wanted || self.compaction.from.is_some() {
            return;
        }
        self.compaction.from = Some(self.asked);
        self.records.push_back(Record::NextId(self.next_id));
        for found in self.subscriptions.values_mut() {
            found.touch(Unrecorded::Everything);
        }
        self.urgent = true;
    }
}
