//! Keeping a bus within its bounds: retention, records that nobody waits for, and room for what is published. And the
//! end of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use strandline_core::bus::RetentionPlan;
use strandline_core::{JournalName, Listing, Monotonic, Occupied, Seq};

use super::open::{EVENT_JOURNAL, SUBSCRIPTIONS};
use super::settings::BusSettings;
use super::{EventBusError, Inner};
use crate::clock::timestamp;
use crate::disk::Disk;
use crate::listing::files_of;
use crate::sync::thread;

impl<D: Disk> Inner<D> {
    /// Runs until the bus is closed. It outlives the journal of events: what was accepted may wait for room until that is
    /// closed, and where it stops, acknowledgements go on.
    pub(super) fn run_keeper(&self) {
        while let Some((deadline, saw)) = self.next_look() {
            self.events.await_keeping(deadline, saw);
            self.keep_room();
        }
        let _ = self.end();
    }

    /// By when it has to look again, and what it knows to be durable if more of that is a reason too; nothing once the bus
    /// is closed.
    fn next_look(&self) -> Option<(Option<Monotonic>, Option<Seq>)> {
        let state = self.lock();
        match (state.closing, self.events.is_over()) {
            (false, false) => {}
            (false, true) => return Some((state.core.record_deadline(), None)),
            // Only who waits for room is still looked after.
            (true, false) => return Some((None, None)),
            (true, true) => return None,
        }
        let now = self.events.monotonic();
        Some(self.events.look(|events| {
            let saw = state.core.awaits_events(events).then(|| events.durable_end());
            (state.core.next_deadline(now, events), saw)
        }))
    }

    /// Looks at what is kept. What waits for room fails if there is none to be made; without space for records it is
    /// tried again, and what stops a journal is told to whoever uses it.
    fn keep_room(&self) {
        let waiting = self.events.waits_for_room();
        if waiting.is_some() {
            let mut state = self.lock();
            // One that could not be recorded is tried again now, rather than when its time comes.
            if state.core.is_trimming() {
                state.core.record_now();
            }
        }
        // A disk that panics has poisoned its journal. Those who wait for room have to be told all the same.
        let kept = catch_unwind(AssertUnwindSafe(|| self.keep()));
        if let Some(first) = waiting
            && (!matches!(kept, Ok(Ok(()))) || !self.lock().core.is_trimming())
        {
            self.events.refuse_waiting(first);
        }
    }

    /// Looks at what is kept, and does what follows from it.
    pub(super) fn keep(&self) -> Result<(), EventBusError> {
        loop {
            let occupied = self.occupied();
            let first = self.events.first();
            let mut state = self.lock();
            if !self.events.is_ending() {
                let now = self.events.monotonic();
                self.events.look(|events| state.core.tick(now, timestamp(), events, occupied));
            }
            let trims = state.core.is_trimming();
            self.record(state, None)?;
            if !trims {
                return Ok(());
            }
            let waits = self.lock().core.is_trimming();
            let goes_on = match waits {
                // Somebody else's record of it is on its way, or it has to be asked for again, which has its time.
                true => self.await_asked()?,
                // What is being closed is left as it is.
                false => self.events.first() > first,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    pub(super) fn plan_retention(&self) -> Option<RetentionPlan> {
        let occupied = self.occupied();
        let state = self.lock();
        self.events.look(|events| state.core.plan_retention(self.events.monotonic(), events, occupied))
    }

    pub(super) fn close(self: &Arc<Self>) -> Result<(), EventBusError> {
        let is_keeper = {
            let mut state = self.lock();
            state.closing = true;
            state.keeper == Some(thread::current().id())
        };
        self.events.nudge();
        if is_keeper {
            // It wakes tasks, and what a task's waker drops may be the last handle. It cannot wait for itself.
            let inner = Arc::clone(self);
            let closes = thread::spawn("strandline-close".into(), move || drop(inner.close()));
            // Without a thread, what waits for room is in the way; rarely is there any.
            return closes.map(drop).or_else(|_| Ok(self.events.close()?));
        }
        if !self.events.can_be_waited_for() {
            // The same with who leads a commit: the journal is closed once it is done, and the keeper does the rest.
            return Ok(self.events.close()?);
        }
        // Whoever waits for room gets it before the close, which makes none. What fails is told to who appended it.
        let _ = self.events.flush();
        let events = self.events.close();
        self.events.call_keeper();
        // Who finds it closed already still waits for the end.
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = keeper.take() {
            // If it panicked, the end is left to this one.
            let _ = keeper.join();
        }
        drop(keeper);
        let ended = self.end();
        events?;
        ended
    }

    /// Records where everybody stands, and closes the journal `subscriptions`. Only the first one does.
    fn end(&self) -> Result<(), EventBusError> {
        let mut state = self.lock();
        if let Some(ended) = &state.ended {
            return ended.clone();
        }
        state.core.record_now();
        let recorded = self.record(state, None);
        let recorded = recorded.and_then(|()| match self.await_asked()? {
            true => Ok(()),
            false => Err(EventBusError::NoSpace),
        });
        let ended = self.records.close().map_err(EventBusError::from).and(recorded);
        self.lock().ended = Some(ended.clone());
        ended
    }

    /// What the directory holds beside the segments of events.
    fn occupied(&self) -> Occupied {
        let others = self.other_bytes().unwrap_or(0);
        BusSettings::occupied(self.shares, others, self.events.room_wanted())
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
