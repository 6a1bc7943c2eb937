//! What a seed decides: who is there, and what befalls them.

use std::fmt;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_core::Retention;
use strandline_core::bus::BusConfig;

use crate::bus::story::Limits;
use crate::disk::Survivors;

/// Where events come from.
pub(super) const SOURCES: [&str; 2] = ["/a", "/b"];

/// A subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FollowerPlan {
    /// Its name on the network.
    pub(super) name: String,
    pub(super) kind: FollowerKind,
    /// The name of its subscription; none for one that leaves nothing behind.
    pub(super) subscription: Option<String>,
    /// The source that it wants; none for all.
    pub(super) source: Option<&'static str>,
    /// It asks for what comes, and not for what was.
    pub(super) begins_live: bool,
    /// How long an event keeps it busy, on average, in milliseconds.
    pub(super) pause_ms: u64,
    /// Of so many hundred events it acknowledges each at once.
    pub(super) acknowledges: Percent,
    /// It comes until then, in milliseconds, if it is one of those that only disturb.
    pub(super) until_ms: u64,
    pub(super) seed: u64,
}

/// What a subscriber is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FollowerKind {
    /// The client of the bus.
    Client,
    /// What speaks HTTP by itself.
    EventSource,
    /// Who connects and never reads.
    Staller,
    /// Who takes the subscription of another one over now and then.
    Usurper,
}

/// A share of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Percent(pub(super) u32);

/// A publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PublisherPlan {
    /// It sends events until then, in milliseconds.
    pub(super) until_ms: u64,
    /// How long it waits between two, on average, in milliseconds.
    pub(super) pause_ms: u64,
    pub(super) seed: u64,
}

/// Something that goes wrong, or is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing goes through between the server and this client; what was sent is lost.
    Partition {
        client: usize,
    },
    /// The same in one direction.
    PartitionOneWay {
        client: usize,
        to_server: bool,
    },
    /// What is sent waits.
    Hold {
        client: usize,
    },
    /// The same for everybody at once.
    PartitionAll,
    HoldAll,
    /// Everything of that is over.
    Repair,
    /// The server's process is killed.
    Kill,
    /// The server loses its power, at once or in the middle of something, after so many steps of its disk.
    PowerLoss {
        after: u64,
        survivors: Survivors,
    },
    /// The server ends in good order.
    End,
    /// A sync of the server's disk fails, and it has to be started again.
    SyncFails {
        survivors: Survivors,
    },
    /// The server starts again.
    Start,
    /// All clients are killed and start again at the same moment.
    RestartClients,
    /// A client is killed.
    KillClient {
        client: usize,
    },
    /// It starts again.
    StartClient {
        client: usize,
    },
    /// No new file can be opened on it, or they can again.
    NoFiles(bool),
    /// There is only so much space left on the server's disk, or all there was.
    Space(Option<u64>),
}

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkStory {
    pub(super) seed: u64,
    pub(super) limits: Limits,
    pub(super) followers: Vec<FollowerPlan>,
    pub(super) publishers: Vec<PublisherPlan>,
    /// What goes wrong when, in milliseconds, in order.
    pub(super) faults: Vec<(u64, Fault)>,
    /// From then on, nothing does.
    pub(super) quiet_from: u64,
    /// The longest time that a message takes, in milliseconds.
    pub(super) latency_ms: u64,
    /// How many segments a connection holds that nobody reads.
    pub(super) segments_in_flight: usize,
}

impl NetworkStory {
    /// The story of a seed; a shorter one for a smoke run.
    #[must_use]
    pub fn from_seed(seed: u64, smoke: bool) -> Self {
        let mut choice = ChaCha8Rng::seed_from_u64(seed);
        let limits = limits(&mut choice);
        let length = if smoke { 20_000 } else { 90_000 };
        let mut followers: Vec<_> =
            (0..choice.random_range(3..7)).map(|n| follower(n, length, &mut choice)).collect();
        followers.extend(usurper(&followers, &mut choice));
        let publishers: Vec<_> =
            (0..choice.random_range(1..4)).map(|_| publisher(length, &mut choice)).collect();
        let clients = followers.len() + publishers.len();
        let mut faults = Vec::new();
        let count = choice.random_range(if smoke { 2..8 } else { 5..25 });
        for _ in 0..count {
            let at = choice.random_range(100..length);
            let lasts = match choice.random_range(0..3) {
                0 => choice.random_range(1..100),
                1 => choice.random_range(100..3_000),
                _ => choice.random_range(3_000..20_000),
            };
            let (fault, mended) = fault(clients, &mut choice);
            faults.push((at, fault));
            faults.extend(mended.map(|mended| (at + lasts, mended)));
        }
        faults.sort_by_key(|(at, _)| *at);
        let quiet_from = faults.last().map_or(0, |(at, _)| at + 1).max(length);
        let latency_ms = [1, 5, 50, 200].choose(&mut choice).copied().unwrap_or(1);
        let segments_in_flight = [24, 64].choose(&mut choice).copied().unwrap_or(64);
        Self { seed, limits, followers, publishers, faults, quiet_from, latency_ms, segments_in_flight }
    }
}

fn limits(choice: &mut ChaCha8Rng) -> Limits {
    let event_segment = choice.random_range(3_000..6_000);
    let record_segment = choice.random_range(3_000..5_000);
    let least = 4 * record_segment + 9 * event_segment;
    let retention = Retention {
        age_ms_max: choice.random_bool(0.3).then_some(30_000),
        compact_above: least - choice.random_range(0..event_segment),
        bytes_max: least + choice.random_range(0..10) * event_segment,
    };
    let bus = BusConfig {
        replay_events_max: choice.random_range(10..200),
        retention,
        subscriptions_bytes_max: 1_500,
        ..BusConfig::default()
    };
    Limits {
        sector_bytes: 512,
        event_segment,
        record_segment,
        reserve: choice.random_bool(0.5),
        commit_bytes: choice.random_range(1_000..4_000),
        turns: choice.random(),
        salt: choice.random(),
        bus,
    }
}

fn follower(number: usize, until_ms: u64, choice: &mut ChaCha8Rng) -> FollowerPlan {
    let kind = match choice.random_range(0..10) {
        0..6 => FollowerKind::Client,
        6..9 => FollowerKind::EventSource,
        _ => FollowerKind::Staller,
    };
    let is_durable = kind != FollowerKind::Staller && choice.random_bool(0.7);
    FollowerPlan {
        name: format!("f{number}"),
        kind,
        subscription: is_durable.then(|| format!("sub{number}")),
        source: choice.random_bool(0.4).then(|| SOURCES[choice.random_range(0..SOURCES.len())]),
        begins_live: kind == FollowerKind::EventSource && !is_durable && choice.random_bool(0.5),
        pause_ms: if choice.random_bool(0.2) { choice.random_range(20..400) } else { 0 },
        acknowledges: Percent([100, 50, 5].choose(choice).copied().unwrap_or(100)),
        until_ms,
        seed: choice.random(),
    }
}

/// Somebody who wants what a durable subscriber has, in some of the stories.
fn usurper(followers: &[FollowerPlan], choice: &mut ChaCha8Rng) -> Option<FollowerPlan> {
    let durable: Vec<_> = followers.iter().filter(|plan| plan.subscription.is_some()).collect();
    let victim = durable.choose(choice).copied().filter(|_| choice.random_bool(0.4))?;
    let name = format!("f{}", followers.len());
    Some(FollowerPlan { name, kind: FollowerKind::Usurper, seed: choice.random(), ..victim.clone() })
}

fn publisher(length: u64, choice: &mut ChaCha8Rng) -> PublisherPlan {
    let pause_ms = choice.random_range(20..300);
    PublisherPlan { until_ms: length, pause_ms, seed: choice.random() }
}

/// A fault, and what ends it.
fn fault(clients: usize, choice: &mut ChaCha8Rng) -> (Fault, Option<Fault>) {
    let client = choice.random_range(0..clients);
    let survivors = match choice.random_range(0..4) {
        0 => Survivors::None,
        1 => Survivors::All,
        _ => Survivors::Random(choice.random()),
    };
    match choice.random_range(0..100) {
        0..15 => (Fault::Partition { client }, Some(Fault::Repair)),
        15..25 => {
            (Fault::PartitionOneWay { client, to_server: choice.random_bool(0.5) }, Some(Fault::Repair))
        }
        25..35 => (Fault::Hold { client }, Some(Fault::Repair)),
        35..42 => (Fault::PartitionAll, Some(Fault::Repair)),
        42..46 => (Fault::HoldAll, Some(Fault::Repair)),
        46..56 => (Fault::Kill, Some(Fault::Start)),
        56..72 => {
            let after = if choice.random_bool(0.3) { 0 } else { choice.random_range(0..5_000) };
            (Fault::PowerLoss { after, survivors }, Some(Fault::Start))
        }
        72..77 => (Fault::End, Some(Fault::Start)),
        77..81 => (Fault::SyncFails { survivors }, Some(Fault::Start)),
        81..85 => (Fault::RestartClients, None),
        85..94 => (Fault::KillClient { client }, Some(Fault::StartClient { client })),
        94..97 => (Fault::NoFiles(true), Some(Fault::NoFiles(false))),
        _ => (Fault::Space(Some(choice.random_range(0..3_000))), Some(Fault::Space(None))),
    }
}

impl fmt::Display for NetworkStory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { event_segment, record_segment, reserve, commit_bytes, bus, .. } = &self.limits;
        writeln!(f, "seed              {}", self.seed)?;
        writeln!(f, "segments          events {event_segment}, records {record_segment}, reserve {reserve}")?;
        writeln!(f, "commits           at most {commit_bytes} bytes")?;
        writeln!(f, "retention         {:?}", bus.retention)?;
        writeln!(f, "replay            at most {} events", bus.replay_events_max)?;
        let (latency, segments) = (self.latency_ms, self.segments_in_flight);
        writeln!(f, "network           up to {latency} ms, {segments} segments in flight")?;
        for follower in &self.followers {
            writeln!(f, "subscriber        {follower:?}")?;
        }
        for publisher in &self.publishers {
            writeln!(f, "publisher         {publisher:?}")?;
        }
        for (at, fault) in &self.faults {
            writeln!(f, "fault             at {at} ms {fault:?}")?;
        }
        write!(f, "quiet             from {} ms", self.quiet_from)
    }
}
