//! The event bus over a simulated network: the server and the client of `strandline-bus`, and the bus's own state machine over the
//! simulated disk, while links are cut and held, machines crash and come back, disks fill up, and subscribers are slow.
//!
//! | invariant | |
//! |---|---|
//! | N0 | nothing panics, and the server starts |
//! | N1 | an event that was durable, or answered to be, is there after any crash, with its number, or retention dropped it |
//! | N2 | an event that is sent again, however often, has one number while it is kept |
//! | N3 | each subscriber is given every event that it wants, in order and none twice, or one gap that covers what is missing |
//! | N4 | a gap is told until it is acknowledged |
//! | N5 | a gap is told only where more was missed than a replay delivers, or where retention dropped it |
//! | N6 | once nothing is in the way, everybody is given everything |
//!
//! One seed is one run: the same hosts, messages, delays and crashes each time, and the same trace.

mod eventsource;
mod follower;
mod intruders;
mod ledger;
mod link;
mod panics;
mod place;
mod process;
mod publisher;
mod shell;
mod story;
mod subscriber;
mod world;

use ledger::{Ledger, Seen, SharedLedger};
use place::Place;
use story::FollowerKind;
use world::World;

pub use ledger::NetworkStatistics;
pub use story::NetworkStory;

use crate::explorer::guarded;
use crate::trace::Trace;
use crate::violation::Broken;

/// Runs a story, and notes everything that happens.
///
/// # Errors
/// The first invariant that does not hold, and when.
pub fn run_network(story: &NetworkStory, trace: &mut Trace) -> Result<NetworkStatistics, BrokenNetwork> {
    trace.line(&story.to_string());
    let taken = std::mem::replace(trace, Trace::silent());
    let ledger = SharedLedger::new(ledger_of(story, taken));
    let told = guarded(|| Ok::<_, Broken>(World::new(story, ledger.clone()).run()));
    let mut ledger = ledger.lock();
    let statistics = ledger.statistics;
    *trace = ledger.take_trace();
    trace.line(&statistics.to_string());
    let detail = match told {
        Ok(Ok(())) => return Ok(statistics),
        Ok(Err(detail)) => detail,
        Err(Broken { detail, .. }) => format!("N0: {detail}"),
    };
    Err(BrokenNetwork { at_ms: statistics.elapsed_ms, detail })
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after {at_ms} ms: {detail}")]
pub struct BrokenNetwork {
    /// The simulated time, in milliseconds.
    pub at_ms: u64,
    /// Which one, and what was seen instead.
    pub detail: String,
}

impl BrokenNetwork {
    /// Which invariant: the beginning of what was seen, up to a colon.
    #[must_use]
    pub fn check(&self) -> &str {
        self.detail.split(':').next().unwrap_or_default()
    }
}

fn ledger_of(story: &NetworkStory, trace: Trace) -> Ledger {
    let seen = story.followers.iter().map(|plan| Seen {
        name: plan.name.clone(),
        source: plan.source,
        place: Place::default(),
        newest: 0,
        is_served: matches!(plan.kind, FollowerKind::Client | FollowerKind::EventSource),
    });
    let replay_max = story.limits.bus.replay_events_max;
    Ledger::new(seen.collect(), story.publishers.len(), replay_max, trace)
}
