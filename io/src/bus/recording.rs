//! Doing what the bus asks for, and telling it what became of it.

use super::{BusRequest, EventBusError, Inner, RecordId, State, SubscriptionId};
use crate::disk::Disk;
use crate::error::AppendError;
use crate::sync::MutexGuard;
use crate::ticket::Ticket;
use strandline_core::{Pryj, Seq};

/// The number that the next record is to get; none before the first. A record is never appended behind a void:
/// where one was lost, it and all later ones are asked for again.
pub(super) type NextRecord = Option<Seq>;

/// A record that is on its way.
pub(super) struct Recording<D: Disk> {
    id: RecordId,
    ticket: Ticket<Pryj, D>,
}

impl<D: Disk> Inner<D> {
    /// Does what the bus asks for. Gives the newest record that has to become durable before it asks for more.
    pub(super) fn perform(&self, state: &mut State) -> Result<Option<Recording<D>>, EventBusError> {
        let mut newest = None;
        let now = self.events.monotonic();
        while let Some(request) = state.core.poll_request(now) {
            match request {
                BusRequest::Record { id, payload } => match self.append(state, id, &payload) {
                    Ok(ticket) => newest = Some(Recording { id, ticket }),
                    Err(error) => {
                        self.refused(state);
                        return match EventBusError::of_record(error) {
                            EventBusError::NoSpace => Ok(newest),
                            error => Err(error),
                        };
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
        let next = state.next_record.unwrap_or_else(|| self.records.next_seq());
        let ticket = self.records.append_nowait_at(next, payload)?;
        state.core.handle_accepted(id, ticket.seq());
        state.next_record = Some(next.next());
        Ok(ticket)
    }

    fn refused(&self, state: &mut State) {
        state.next_record = None;
        state.core.handle_refused(self.events.monotonic());
        self.events.call_keeper();
    }

    /// Records what is unrecorded, and blocks until it is durable. With a subscription, only until everything about
    /// that one is.
    pub(super) fn record<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        of: Option<SubscriptionId>,
    ) -> Result<(), EventBusError> {
        loop {
            let performed = self.perform(&mut state);
            drop(state);
            // Acknowledgements let others go on.
            self.events.nudge();
            let Some(recording) = performed? else { break };
            let ended = recording.ticket.wait();
            state = self.lock();
            match ended {
                Ok(_) => self.recorded(&mut state, recording.id),
                Err(error) => {
                    self.refused(&mut state);
                    return Err(EventBusError::of_record(error));
                }
            }
        }
        let Some(id) = of else { return Ok(()) };
        if self.lock().core.is_recorded(id) {
            return Ok(());
        }
        // Somebody else's record of it is on its way.
        match self.records.flush() {
            Ok(()) | Err(crate::error::FlushError::Closed) => {}
            Err(crate::error::FlushError::NoSpace) => return Err(EventBusError::NoSpace),
            Err(crate::error::FlushError::Poisoned(poisoned)) => return Err(poisoned.into()),
        }
        Ok(())
    }

    fn recorded(&self, state: &mut State, id: RecordId) {
        state.core.handle_recorded(id);
        self.records.look(|records| state.core.compact_records(records));
    }
}
