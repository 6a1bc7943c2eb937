//! Doing what the bus asks for, and telling it what became of it.

use super::{BusRequest, EventBusError, Inner, RecordId, State, SubscriptionId};
use crate::disk::Disk;
use crate::error::{AppendError, FlushError};
use crate::sync::MutexGuard;
use crate::ticket::Ticket;
use strandline_core::{Pryj, Seq};

/// How far recording has come.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The number that the next record is to get; none before the first, and where what was on its way is lost. A
    /// record is never appended behind a void: where one was lost, it and all later ones are asked for again.
    next: Option<Seq>,
    /// The newest record that was appended.
    asked: RecordId,
    /// Up to this one, what is not durable is lost and was asked for again.
    lost: RecordId,
}

/// A record that is on its way.
pub(super) struct Recording<D: Disk> {
    id: RecordId,
    ticket: Ticket<Pryj, D>,
}

impl<D: Disk> Inner<D> {
    /// Does what the bus asks for. Gives the newest record that has to become durable before it asks for more.
    fn perform(&self, state: &mut State) -> Result<Option<Recording<D>>, EventBusError> {
        let mut newest = None;
        let now = self.events.monotonic();
        while let Some(request) = state.core.poll_request(now) {
            match request {
                BusRequest::Record { id, payload } => match self.append(state, id, &payload) {
                    Ok(ticket) => newest = Some(Recording { id, ticket }),
                    // What was on its way is lost, and whoever waits for it has not come to say so. There may be space
                    // again.
                    Err(AppendError::NotNext { .. }) => {
                        self.lost(state);
                        state.core.record_now();
                    }
                    Err(error) => {
                        self.lost(state);
                        return Err(EventBusError::of_record(error));
                    }
                },
                BusRequest::TrimEvents { to } => self.events.trim_to(to)?,
                BusRequest::TrimRecords { to } => self.records.trim_to(to)?,
            }
        }
        Ok(newest)
    }

    fn append(
        &self,
        state: &mut State,
        id: RecordId,
        payload: &[u8],
    ) -> Result<Ticket<Pryj, D>, AppendError> {
        let next = state.records.next.unwrap_or_else(|| self.records.next_seq());
        let ticket = self.records.append_nowait_at(next, payload)?;
        state.core.handle_accepted(id, ticket.seq());
        (state.records.next, state.records.asked) = (Some(next.next()), id);
        Ok(ticket)
    }

    /// What is on its way will not come to be.
    fn lost(&self, state: &mut State) {
        (state.records.next, state.records.lost) = (None, state.records.asked);
        state.core.handle_refused(self.events.monotonic());
        self.events.call_keeper();
    }

    /// Records what is unrecorded, and blocks until it is durable. With a subscription, only if something about that one
    /// is not.
    pub(super) fn record<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        of: Option<SubscriptionId>,
    ) -> Result<(), EventBusError> {
        if of.is_some_and(|id| state.core.is_recorded(id)) {
            drop(state);
            self.events.nudge();
            return Ok(());
        }
        let mut was_asked = true;
        loop {
            let performed = self.perform(&mut state);
            drop(state);
            // Acknowledgements let others go on.
            self.events.nudge();
            let Some(recording) = performed? else { break };
            was_asked = false;
            let ended = recording.ticket.wait();
            state = self.lock();
            match ended {
                Ok(_) => self.recorded(&mut state, recording.id),
                Err(error) => {
                    if recording.id > state.records.lost {
                        self.lost(&mut state);
                    }
                    drop(state);
                    // Some may wait for what can never be recorded now.
                    self.events.nudge();
                    return Err(EventBusError::of_record(error));
                }
            }
        }
        // What was recorded here covers all that was asked for before.
        let Some(id) = of.filter(|_| was_asked) else { return Ok(()) };
        if self.await_asked()? || self.lock().core.is_recorded(id) {
            return Ok(());
        }
        Err(EventBusError::NoSpace)
    }

    /// Waits for the records that are on their way, whoever asked for them. Gives whether all of them are durable; they
    /// may have been lost before this looked.
    pub(super) fn await_asked(&self) -> Result<bool, EventBusError> {
        loop {
            let (asked, lost, end) = {
                let State { records, .. } = &*self.lock();
                let Some(end) = records.next else { return Ok(records.asked == RecordId::default()) };
                (records.asked, records.lost, end)
            };
            match self.records.flush() {
                Ok(()) | Err(FlushError::Closed) => {}
                Err(FlushError::NoSpace | FlushError::TooManyFiles) => return Err(EventBusError::NoSpace),
                Err(FlushError::Poisoned(poisoned)) => return Err(poisoned.into()),
            }
            let mut state = self.lock();
            if state.records.lost == lost {
                // The numbers of what was lost are not given out again before that is known here.
                let is_there = self.records.durable_end() >= end;
                if is_there {
                    self.recorded(&mut state, asked);
                }
                return Ok(is_there);
            }
        }
    }

    fn recorded(&self, state: &mut State, id: RecordId) {
        state.core.handle_recorded(id);
        self.records.look(|records| state.core.compact_records(records));
    }
}
