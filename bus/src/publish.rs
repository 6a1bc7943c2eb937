//! Publishing, each event once: what has the source and the id of an event that is still kept gets that event's number.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{FutureExt as _, Shared};
use sha2::{Digest as _, Sha256};
use strandline::AppendError;
use strandline_core::{Event, Seq};
use tokio::sync::oneshot;

use crate::cloud_event::CloudEvent;
use crate::intake::Incoming;
use crate::shell::{Accepted, Shell};

/// Which event it is: a digest of its source and id, so that long ones cost no memory.
type Identity = [u8; 16];

/// What becomes of an event that was accepted.
type Outcome = Shared<oneshot::Receiver<Result<Seq, AppendError>>>;

/// So many events of a batch are handed over at once; then it is somebody else's turn.
const AT_ONCE_MAX: usize = 64;

/// The events that are kept, by source and id.
#[derive(Debug, Default)]
pub(crate) struct Published {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_identity: HashMap<Identity, State>,
    /// In the order of their numbers, to forget them in.
    durable: VecDeque<(Seq, Identity)>,
}

#[derive(Clone, Debug)]
enum State {
    Durable(Seq),
    /// Accepted, and not durable yet.
    InFlight(Outcome),
}

/// An event on its way, or there already.
#[derive(Debug)]
pub(crate) enum Receipt {
    /// It was published before.
    Known(Seq),
    /// Its outcome will be known; and whether somebody else published it.
    InFlight { outcome: Outcome, is_new: bool },
}

fn identity(source: &str, id: &str) -> Identity {
    let mut digest = Sha256::new();
    // With its length in front, a source cannot run into the id.
    digest.update(source.len().to_le_bytes());
    digest.update(source);
    digest.update(id);
    let digest: [u8; 32] = digest.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

impl Published {
    /// What a bus keeps already.
    pub(crate) async fn read_back<S: Shell>(shell: &S) -> Result<Arc<Self>, strandline_core::ReadError> {
        let known = shell.read_back(Known::default(), Known::note).await?;
        Ok(Arc::new(Self { known: Mutex::new(known) }))
    }

    /// Publishes events in order, as far as they are accepted; gives the receipts, and why the next one was not. Nothing is published
    /// behind an event that is lost.
    pub(crate) fn publish<S: Shell>(
        self: &Arc<Self>,
        shell: &S,
        events: &[Incoming],
    ) -> (Vec<Receipt>, Option<AppendError>) {
        let mut receipts = Vec::with_capacity(events.len());
        let mut behind = None;
        for some in events.chunks(AT_ONCE_MAX) {
            let mut known = self.lock();
            known.forget_before(shell.first());
            for event in some {
                match self.publish_one(&mut known, shell, event, &mut behind) {
                    Ok(receipt) => receipts.push(receipt),
                    Err(error) => return (receipts, Some(error)),
                }
            }
        }
        (receipts, None)
    }

    fn publish_one<S: Shell>(
        self: &Arc<Self>,
        known: &mut Known,
        shell: &S,
        event: &Incoming,
        behind: &mut Option<Seq>,
    ) -> Result<Receipt, AppendError> {
        let identity = event.id.as_ref().map(|id| identity(event.source(), id));
        let found = identity.and_then(|identity| known.by_identity.get(&identity)).cloned();
        Ok(match found {
            Some(State::Durable(seq)) => Receipt::Known(seq),
            Some(State::InFlight(outcome)) => Receipt::InFlight { outcome, is_new: false },
            None => {
                let accepted = shell.publish(event.draft(), *behind)?;
                *behind = Some(accepted.seq());
                let outcome = self.settle_later(accepted, identity);
                if let Some(identity) = identity {
                    known.by_identity.insert(identity, State::InFlight(outcome.clone()));
                }
                Receipt::InFlight { outcome, is_new: true }
            }
        })
    }

    /// The outcome of an event. It is seen to whoever stops waiting for it.
    fn settle_later(self: &Arc<Self>, accepted: impl Accepted, identity: Option<Identity>) -> Outcome {
        let (tell, outcome) = oneshot::channel();
        let published = Arc::clone(self);
        tokio::spawn(async move {
            let result = accepted.await;
            if let Some(identity) = identity {
                published.lock().settle(identity, result);
            }
            // Nobody may wait for it any more.
            let _ = tell.send(result);
        });
        outcome.shared()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// An event that is on the disk.
    fn note(&mut self, event: &Event<'_>) {
        let text = std::str::from_utf8(event.payload).ok();
        let Some(event_of) = text.and_then(CloudEvent::read) else { return };
        let identity = identity(&event_of.source, event_of.id());
        // The first one has the number.
        if let std::collections::hash_map::Entry::Vacant(entry) = self.by_identity.entry(identity) {
            entry.insert(State::Durable(event.seq));
            self.durable.push_back((event.seq, identity));
        }
    }

    fn settle(&mut self, identity: Identity, result: Result<Seq, AppendError>) {
        match result {
            Ok(seq) => {
                self.by_identity.insert(identity, State::Durable(seq));
                // Events of one commit are settled in any order.
                let at = self.durable.partition_point(|(before, _)| *before < seq);
                self.durable.insert(at, (seq, identity));
            }
            // It may be published again.
            Err(_) => _ = self.by_identity.remove(&identity),
        }
    }

    /// Forgets what is no longer kept.
    fn forget_before(&mut self, first: Seq) {
        while let Some((seq, identity)) = self.durable.front().copied().filter(|(seq, _)| *seq < first) {
            self.durable.pop_front();
            if matches!(self.by_identity.get(&identity), Some(State::Durable(known)) if *known == seq) {
                self.by_identity.remove(&identity);
            }
        }
    }
}

impl Receipt {
    /// Waits until the event is durable; gives its number, and whether it is new.
    pub(crate) async fn wait(self) -> Result<(Seq, bool), AppendError> {
        match self {
            Self::Known(seq) => Ok((seq, false)),
            Self::InFlight { outcome, is_new } => match outcome.await {
                Ok(result) => result.map(|seq| (seq, is_new)),
                // Whoever saw to it is gone, which only the end of the runtime brings about.
                Err(_) => Err(AppendError::Closed),
            },
        }
    }
}
