//! Keeping a bus within its bounds: retention, records that nobody waits for, and room for what is published.

use strandline_core::bus::RetentionPlan;
use strandline_core::{JournalName, Listing, Occupied};

use super::open::{EVENT_JOURNAL, SUBSCRIPTIONS};
use super::settings::BusSettings;
use super::{EventBusError, Inner};
use crate::clock::timestamp;
use crate::disk::Disk;
use crate::listing::files_of;

impl<D: Disk> Inner<D> {
    /// Runs until the bus is closed, or the journal of events is over.
    pub(super) fn run_keeper(&self) {
        loop {
            let deadline = {
                let state = self.lock();
                if state.closing {
                    return;
                }
                self.events.look(|events| state.core.next_deadline(self.events.monotonic(), events))
            };
            self.events.await_keeping(deadline);
            if self.events.is_over() {
                return;
            }
            // Without space it is tried again; what stops a journal is told to whoever uses it.
            let kept = self.keep();
            if self.events.waits_for_room() && (kept.is_err() || !self.lock().core.is_trimming()) {
                self.events.refuse_waiting();
            }
        }
    }

    /// Looks at what is kept, and does what follows from it.
    pub(super) fn keep(&self) -> Result<(), EventBusError> {
        loop {
            let occupied = self.occupied();
            let mut state = self.lock();
            let now = self.events.monotonic();
            self.events.look(|events| state.core.tick(now, timestamp(), events, occupied));
            let trims = state.core.is_trimming();
            self.record(state, None)?;
            if !trims {
                return Ok(());
            }
        }
    }

    pub(super) fn plan_retention(&self) -> Option<RetentionPlan> {
        let occupied = self.occupied();
        let state = self.lock();
        self.events.look(|events| state.core.plan_retention(self.events.monotonic(), events, occupied))
    }

    /// What the directory holds beside the segments of events.
    fn occupied(&self) -> Occupied {
        let others = self.other_bytes().unwrap_or(0);
        BusSettings::occupied(self.shares, others)
    }

    /// A directory that cannot be listed now is taken for one without anything else: the shares leave room for it.
    fn other_bytes(&self) -> Option<u64> {
        let disk = &**self.events.shared().performer.disk();
        let files = |name: &str| files_of(disk, &JournalName::parse(name).ok()?).ok();
        let (events, records) = (files(EVENT_JOURNAL)?, files(SUBSCRIPTIONS)?);
        let Listing::Segments(segments) = records.listing else { return None };
        let records_bytes: u64 = segments.iter().map(|segment| segment.len).sum();
        Some(events.other_bytes + records.other_bytes + records_bytes)
    }
}
