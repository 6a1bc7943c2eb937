//! One subscriber's end of the simulated bus.

use std::future::pending;
use std::sync::Arc;

use strandline::bus::{EventBusError, Received};
use strandline_bus::Subscriber;
use strandline_core::bus::{ConnectionId, Delivery, Urgency};
use strandline_core::{ReadError, Seq};

use super::shell::{Inner, State, acknowledge};
use crate::driven::Stopped;

/// One subscriber's end.
pub(super) struct SimSubscriber {
    inner: Arc<Inner>,
    pub(super) connection: ConnectionId,
    /// The acknowledgement that it was last told to be awaited.
    told: Option<Seq>,
}

impl SimSubscriber {
    pub(super) const fn new(inner: Arc<Inner>, connection: ConnectionId) -> Self {
        Self { inner, connection, told: None }
    }

    /// What there is for it now.
    fn look(&mut self) -> Option<Result<Received, ReadError>> {
        let inner = Arc::clone(&self.inner);
        let State { machine, is_over, .. } = &mut *inner.lock();
        loop {
            let received = match machine.bus.poll_delivery(self.connection, machine.events.journal.view()) {
                Delivery::Read(request) => {
                    let bytes = match machine.events.read(request) {
                        Ok(bytes) => bytes,
                        // Nobody hears of it.
                        Err(_) if inner.disk.is_crashed() => return None,
                        Err(Stopped(why)) => panic!("what is kept cannot be read: {why}"),
                    };
                    if let Err(error) = machine.bus.handle_read(self.connection, Ok(bytes)) {
                        return Some(Err(error));
                    }
                    continue;
                }
                Delivery::Events(batch) => Received::Events(batch),
                Delivery::Gap(gap) => Received::Gap(gap),
                Delivery::Ended | Delivery::CaughtUp | Delivery::Awaiting { .. } if *is_over => {
                    Received::Closed
                }
                Delivery::Ended => Received::Ended,
                Delivery::Awaiting { sequence } if self.told != Some(sequence) => {
                    self.told = Some(sequence);
                    return Some(Ok(Received::Awaiting { sequence }));
                }
                Delivery::CaughtUp | Delivery::Awaiting { .. } => return None,
            };
            self.told = None;
            return Some(Ok(received));
        }
    }
}

impl Subscriber for SimSubscriber {
    async fn recv(&mut self) -> Result<Received, ReadError> {
        loop {
            let inner = Arc::clone(&self.inner);
            let news = inner.news.notified();
            match self.look() {
                Some(_) if inner.disk.is_crashed() => return pending().await,
                Some(received) => return received,
                None => news.await,
            }
        }
    }

    fn acknowledge_soon(&self, sequence: Seq) -> Result<(), EventBusError> {
        let mut state = self.inner.now();
        acknowledge(&mut state, self.connection.subscription, sequence, Urgency::Soon)?;
        self.inner.wake(state);
        Ok(())
    }
}

impl Drop for SimSubscriber {
    fn drop(&mut self) {
        // A machine that loses its power has no time any more to look at.
        let mut state = self.inner.lock();
        let (now, wall) = (state.machine.monotonic(), state.machine.wall());
        state.machine.bus.disconnect(now, wall, self.connection);
        self.inner.wake(state);
    }
}
