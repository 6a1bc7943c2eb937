//! One subscriber's end of the bus.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use strandline_core::bus::Delivery;
use strandline_core::{IoCause, ReadError, ReadRequest, Seq};

use super::{
    AckRequest, ConnectionId, EventBatch, EventBusError, Inner, Subscribe, SubscriptionGap, SubscriptionId,
    Urgency,
};
use crate::clock::timestamp;
use crate::disk::Disk;
use crate::news::Seen;
use crate::reader::ReadBuffer;
use crate::segment_reader::{SegmentReader, Target};
use crate::std_disk::StdDisk;
use crate::sync::Instant;

/// What a subscriber is given.
#[derive(Clone, Debug)]
pub enum Received {
    /// Events, at least one.
    Events(EventBatch),
    /// Events that it does not get. Once it has refreshed what it knows, it acknowledges
    /// [`resume_after`](SubscriptionGap::resume_after) and goes on.
    Gap(SubscriptionGap),
    /// Nothing more until this is acknowledged: the end of what was missed, or of a gap. Told once; the next
    /// receive waits for it.
    Awaiting {
        /// What is to be acknowledged.
        sequence: Seq,
    },
    /// Nothing new came in time.
    TimedOut,
    /// Another connection took the subscription over, or it was removed.
    Ended,
    /// The bus was closed, or stopped: one of its journals did, and what comes next for this subscriber needs it.
    Closed,
}

/// A connected subscriber. It holds a place and no queue: what it does not receive stays in the journal.
///
/// Dropping it disconnects; a durable subscription keeps its place.
pub struct Subscription<D: Disk = StdDisk> {
    inner: Arc<Inner<D>>,
    connection: ConnectionId,
    files: SegmentReader<D>,
    buffer: ReadBuffer,
    /// The acknowledgement that the subscriber was last told to be awaited.
    told: Option<Seq>,
}

impl<D: Disk> Subscription<D> {
    pub(super) fn begin(inner: &Arc<Inner<D>>, request: Subscribe) -> Result<Self, EventBusError> {
        let mut state = inner.lock();
        if state.closing {
            return Err(EventBusError::Closed);
        }
        let connection = inner.events.look(|events| state.core.subscribe(timestamp(), request, events))?;
        let performer = &inner.events.shared().performer;
        let target = Target::Journal(performer.journal().clone());
        let files = SegmentReader::new(Arc::clone(performer.disk()), target);
        // From here on a failure disconnects.
        let subscription =
            Self { inner: Arc::clone(inner), connection, files, buffer: ReadBuffer::default(), told: None };
        inner.record(state, Some(connection.subscription))?;
        Ok(subscription)
    }

    /// The subscription's identity, for [`AckRequest`].
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.connection.subscription
    }

    /// What comes next; blocks until there is something, at most for `timeout`.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped; receiving again tries again.
    pub fn recv(&mut self, timeout: Option<Duration>) -> Result<Received, ReadError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            match self.next()? {
                Next::Received(received) => return Ok(received),
                Next::Read => {}
                Next::Wait(seen) => {
                    if !self.inner.events.wait_for_news(seen, deadline) {
                        return Ok(Received::TimedOut);
                    }
                }
            }
        }
    }

    /// The same for a task: [`Poll::Pending`] in place of waiting. Files are read on the calling thread; what is new
    /// comes from memory.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped; receiving again tries again.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<Received, ReadError>> {
        loop {
            if let Some(received) = ready!(self.poll_recv_in_memory(context))? {
                return Poll::Ready(Ok(received));
            }
            if let Next::Received(received) = self.next()? {
                return Poll::Ready(Ok(received));
            }
        }
    }

    /// The same without reading files: nothing where what comes next has to be read. Then
    /// [`recv`](Self::recv) with a timeout of zero gets it, on a thread that may block.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped; receiving again tries again.
    pub fn poll_recv_in_memory(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Received>, ReadError>> {
        loop {
            match self.look(Reads::No)? {
                Next::Received(received) => return Poll::Ready(Ok(Some(received))),
                Next::Read => return Poll::Ready(Ok(None)),
                Next::Wait(seen) => {
                    if !self.inner.events.register_for_news(seen, context.waker()) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Acknowledges everything up to `sequence`, and blocks until that is durable.
    ///
    /// # Errors
    /// [`EventBusError`].
    pub fn acknowledge(&self, sequence: Seq) -> Result<(), EventBusError> {
        self.inner.acknowledge(AckRequest { subscription_id: self.id(), sequence }, Urgency::Now)
    }

    /// The same without waiting: see [`EventBus::acknowledge_soon`](super::EventBus::acknowledge_soon).
    ///
    /// # Errors
    /// [`EventBusError`].
    pub fn acknowledge_soon(&self, sequence: Seq) -> Result<(), EventBusError> {
        self.inner.acknowledge(AckRequest { subscription_id: self.id(), sequence }, Urgency::Soon)
    }

    /// Leaves. The same as dropping it.
    pub fn disconnect(self) {}

    /// What can be had without waiting, or what was seen before there was nothing.
    fn next(&mut self) -> Result<Next, ReadError> {
        let next = self.look(Reads::Yes);
        // Who does not come back keeps no segment on the disk that retention has removed.
        self.files.close_files();
        next
    }

    fn look(&mut self, reads: Reads) -> Result<Next, ReadError> {
        loop {
            let (delivery, seen, is_over) = self.poll();
            let received = match delivery {
                Delivery::Read(_) if reads == Reads::No => return Ok(Next::Read),
                Delivery::Read(request) => {
                    self.read(request)?;
                    continue;
                }
                Delivery::Events(batch) => Received::Events(batch),
                Delivery::Gap(gap) => Received::Gap(gap),
                Delivery::Ended if is_over => Received::Closed,
                Delivery::Ended => Received::Ended,
                Delivery::Awaiting { sequence } if self.told != Some(sequence) && !is_over => {
                    self.told = Some(sequence);
                    return Ok(Next::Received(Received::Awaiting { sequence }));
                }
                Delivery::CaughtUp | Delivery::Awaiting { .. } if is_over => Received::Closed,
                Delivery::CaughtUp | Delivery::Awaiting { .. } => return Ok(Next::Wait(seen)),
            };
            self.told = None;
            return Ok(Next::Received(received));
        }
    }

    fn poll(&self) -> (Delivery, Seen, bool) {
        let mut state = self.inner.lock();
        let closing = state.closing;
        let shared = self.inner.events.shared();
        let journal = shared.lock();
        let delivery = state.core.poll_delivery(self.connection, journal.view());
        // A gap is told once it is recorded, and this one never will be.
        let waits_in_vain = matches!(delivery, Delivery::CaughtUp)
            && state.core.awaits_record(self.connection.subscription)
            && self.inner.records.poisoned().is_some();
        (delivery, journal.seen(), closing || waits_in_vain || journal.is_over())
    }

    fn read(&mut self, request: ReadRequest) -> Result<(), ReadError> {
        let files = &mut self.files;
        let answer = self.buffer.fill(request.len, |buffer| files.read(request, buffer));
        let read = self.inner.lock().core.handle_read(self.connection, answer);
        match read {
            // Retention removed it meanwhile; the next look says what that means.
            Err(ReadError::Failed { failure, segment, .. })
                if failure.cause == IoCause::NotFound && self.inner.events.first() > segment.0 =>
            {
                Ok(())
            }
            read => read,
        }
    }
}

enum Next {
    Received(Received),
    /// It has to be read from a file.
    Read,
    Wait(Seen),
}

/// Whether files may be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Yes,
    No,
}

impl<D: Disk> Drop for Subscription<D> {
    fn drop(&mut self) {
        let now = self.inner.events.monotonic();
        self.inner.lock().core.disconnect(now, timestamp(), self.connection);
        self.inner.events.call_keeper();
    }
}

impl<D: Disk> fmt::Debug for Subscription<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("connection", &self.connection).finish_non_exhaustive()
    }
}
