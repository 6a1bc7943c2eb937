//! What a connection is given.

use alloc::sync::Arc;

use bytes::Bytes;

use super::subscription::{Connection, Phase};
use super::{ConnectionId, EventBus, SubscriptionGap};
use crate::batch::{Batch, Records};
use crate::cursor::{ReadError, Replay};
use crate::{Event, Filter, IoFailure, Pcpj, ReadRequest, Seq, View};

/// What comes next on a connection.
#[derive(Debug)]
pub enum Delivery {
    /// Events, at least one.
    Events(EventBatch),
    /// Read these bytes of the events and hand them to [`EventBus::handle_read`].
    Read(ReadRequest),
    /// Events that are not delivered.
    Gap(SubscriptionGap),
    /// Nothing, until this is acknowledged.
    Awaiting {
        /// The end of the replay or of the gap.
        sequence: Seq,
    },
    /// Nothing, until more becomes durable.
    CaughtUp,
    /// The subscription was taken over by a later connection, or removed.
    Ended,
}

/// Events for one subscriber. It owns its bytes, which all subscribers share; what the filter does not let through is
/// passed over when it is read.
#[derive(Clone, Debug)]
pub struct EventBatch {
    batch: Batch<Pcpj>,
    filter: Arc<Filter>,
}

impl EventBatch {
    /// The events in order, borrowed from the batch.
    #[must_use]
    pub fn events(&self) -> Events<'_> {
        Events { records: self.batch.records(), filter: &self.filter }
    }

    /// One past the last number that the batch covers.
    #[must_use]
    pub const fn end(&self) -> Seq {
        self.batch.end()
    }
}

/// The events of an [`EventBatch`], in order.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    records: Records<'a, Pcpj>,
    filter: &'a Filter,
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        self.records.find(|event| self.filter.matches(event))
    }
}

/// An event that is wanted is sought, and not read up to, when it is at least so many events away.
const SEEK_FROM: u64 = 64;

impl EventBus {
    /// What comes next on a connection.
    pub fn poll_delivery(&mut self, connection: ConnectionId, events: &View<Pcpj>) -> Delivery {
        let recorded = self.recorded;
        let Some(found) = self.connected(connection) else { return Delivery::Ended };
        let (is_durable, is_recorded) = (found.is_durable(), found.is_recorded(recorded));
        let filter = Arc::clone(&found.filter);
        let Some(current) = &mut found.connection else { return Delivery::Ended };
        let limit = match current.phase {
            Phase::Live => events.durable_end(),
            Phase::Replaying { end, .. } => end,
            Phase::Awaiting { sequence, .. } => return Delivery::Awaiting { sequence },
            // It has to survive a crash before anybody hears of it.
            Phase::GapDue if is_durable && !is_recorded => return Delivery::CaughtUp,
            Phase::GapDue => {
                let told = found.tell_gap(events);
                return told.map_or(Delivery::CaughtUp, Delivery::Gap);
            }
        };
        match current.next(&filter, limit, events) {
            Next::Events(batch, last) => {
                found.delivered = found.delivered.max(last);
                Delivery::Events(EventBatch { batch, filter })
            }
            Next::Read(request) => Delivery::Read(request),
            Next::End => match found.end_of_replay() {
                Some(delivery) => delivery,
                // What came during the replay is there already, and would be no news to who now waits for some.
                None => self.poll_delivery(connection, events),
            },
        }
    }

    /// Takes the bytes of the last [`Delivery::Read`] of this connection, or the failure of the read.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped; polling again tries again.
    pub fn handle_read(
        &mut self,
        connection: ConnectionId,
        answer: Result<Bytes, IoFailure>,
    ) -> Result<(), ReadError> {
        let current = self.connected(connection).and_then(|found| found.connection.as_mut());
        match current {
            // What was to be read may have become a gap meanwhile.
            Some(current) if current.cursor.awaits_read() => current.cursor.handle_read(answer),
            _ => Ok(()),
        }
    }
}

enum Next {
    /// Events, and the last one of them that is wanted.
    Events(Batch<Pcpj>, Seq),
    Read(ReadRequest),
    End,
}

impl Connection {
    /// The next events before `limit` that the filter lets through.
    fn next(&mut self, filter: &Filter, limit: Seq, events: &View<Pcpj>) -> Next {
        loop {
            let from = self.cursor.next_seq();
            let Some(wanted) = events.first_match(filter, from, limit) else {
                self.cursor.skip_before(limit);
                return Next::End;
            };
            if from.until(wanted.seq) >= SEEK_FROM {
                self.cursor.skip_to(wanted.seq, wanted.segment, wanted.offset);
            }
            match self.cursor.poll_before(events, limit) {
                Replay::Read(request) => return Next::Read(request),
                Replay::Records(batch) => {
                    if let Some(last) = events.last_match(filter, batch.first(), batch.end()) {
                        return Next::Events(batch, last.seq);
                    }
                }
                // Whatever was wanted of it became a gap before it went.
                Replay::Trimmed { .. } => {}
                Replay::CaughtUp | Replay::Beyond { .. } => return Next::End,
            }
        }
    }
}

impl super::Subscription {
    /// Everything before the limit was delivered. Gives nothing if it is live from now on.
    fn end_of_replay(&mut self) -> Option<Delivery> {
        let is_durable = self.is_durable();
        let Some(current) = &mut self.connection else { return Some(Delivery::Ended) };
        match current.phase {
            Phase::Replaying { last, .. } if is_durable => {
                current.phase = Phase::Awaiting { sequence: last, gap: false };
                Some(Delivery::Awaiting { sequence: last })
            }
            Phase::Replaying { .. } => {
                current.phase = Phase::Live;
                self.go_live();
                None
            }
            _ => Some(Delivery::CaughtUp),
        }
    }
}
