//! The event bus: what it costs to publish through it, and how fast it delivers.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use strandline::bus::{BusSettings, EventBus, Received, Retention, Subscribe, Subscription};
use strandline::{Directory, Seq};

use crate::events::{EVENTS, event, event_config, open};
use crate::workloads::{BATCH, Sizes, done, per_second};
use crate::{Figures, raw};

/// How events are published in a workload.
#[derive(Clone, Copy)]
enum Commits {
    /// So many events, each durable before the next.
    Each(usize),
    /// So many times [`BATCH`] events, durable together.
    Batches(usize),
}

pub(crate) fn publish(root: &Path, sizes: &Sizes) -> Figures {
    let commits = Commits::Each(sizes.appends);
    beside_plain_journal(root, commits, |bus| {
        let start = Instant::now();
        publish_all(bus, commits)?;
        Ok(start.elapsed())
    })
}

pub(crate) fn publish_to_subscriber(root: &Path, sizes: &Sizes) -> Figures {
    let commits = Commits::Each(sizes.appends);
    beside_plain_journal(root, commits, |bus| until_delivered(bus, commits))
}

pub(crate) fn deliver_live(root: &Path, sizes: &Sizes) -> Figures {
    let commits = Commits::Batches(sizes.batches);
    beside_plain_journal(root, commits, |bus| until_delivered(bus, commits))
}

pub(crate) fn deliver_replay(root: &Path, _: &Sizes) -> Figures {
    let path = root.join("bus");
    if !path.exists() {
        let bus = done(open_bus(&path));
        done(publish_all(&bus, Commits::Batches(EVENTS / BATCH)));
        done(bus.close());
    }
    let (_, raw) = done(raw::read_files(&path));
    let bus = done(open_bus(&path));
    let start = Instant::now();
    let mut subscription = done(bus.subscribe(Subscribe::default().after(0)));
    done(receive(&mut subscription, EVENTS, |_, _| Ok(())));
    let ours = start.elapsed();
    done(bus.close());
    Figures { ours: per_second(EVENTS, ours), raw: per_second(EVENTS, raw) }
}

/// A bus that is new, and a journal of the same settings without one.
fn beside_plain_journal(
    root: &Path,
    commits: Commits,
    run: impl FnOnce(&EventBus) -> Result<Duration, Box<dyn Error>>,
) -> Figures {
    let raw = done(append(&root.join("journal"), commits));
    let path = root.join("bus-new");
    let bus = done(open_bus(&path));
    let ours = done(run(&bus));
    done(bus.close());
    done(fs::remove_dir_all(path));
    Figures { ours: per_second(commits.events(), ours), raw: per_second(commits.events(), raw) }
}

fn append(path: &Path, commits: Commits) -> Result<Duration, Box<dyn Error>> {
    let journal = open(path, event_config())?;
    let start = Instant::now();
    match commits {
        Commits::Each(count) => (0..count).try_for_each(|n| journal.append(event(n)).map(drop))?,
        Commits::Batches(count) => {
            (0..count).try_for_each(|n| journal.append_all(batch(n)).map(drop))?;
        }
    }
    let elapsed = start.elapsed();
    journal.close()?;
    fs::remove_dir_all(path)?;
    Ok(elapsed)
}

fn publish_all(bus: &EventBus, commits: Commits) -> Result<(), Box<dyn Error>> {
    match commits {
        Commits::Each(count) => (0..count).try_for_each(|n| bus.publish(event(n)).map(drop))?,
        Commits::Batches(count) => (0..count).try_for_each(|n| bus.publish_all(batch(n)).map(drop))?,
    }
    Ok(())
}

/// Publishes while a durable subscriber follows, acknowledging what it is given. Ends when it has all of it.
fn until_delivered(bus: &EventBus, commits: Commits) -> Result<Duration, Box<dyn Error>> {
    let mut subscription = bus.subscribe(Subscribe::durable("context"))?;
    let start = Instant::now();
    thread::scope(|scope| {
        let received = scope.spawn(move || {
            let acknowledge = |last, subscription: &Subscription| Ok(subscription.acknowledge_soon(last)?);
            done(receive(&mut subscription, commits.events(), acknowledge));
            start.elapsed()
        });
        publish_all(bus, commits)?;
        received.join().map_err(|_| "the subscriber failed".into())
    })
}

/// Receives so many events, and has every batch's last one acknowledged.
fn receive(
    subscription: &mut Subscription,
    count: usize,
    acknowledge: impl Fn(Seq, &Subscription) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let (mut seen, mut last) = (0, Seq::ZERO);
    while seen < count {
        let Received::Events(batch) = subscription.recv(None)? else {
            return Err("something else than events was delivered".into());
        };
        for event in batch.events() {
            (seen, last) = (seen + 1, event.seq);
        }
        acknowledge(last, subscription)?;
    }
    assert_eq!(seen, count, "every event was delivered once");
    Ok(())
}

fn batch(n: usize) -> impl Iterator<Item = strandline::EventDraft<'static>> {
    (n * BATCH..(n + 1) * BATCH).map(event)
}

/// Everything is kept, and a replay has no end but the journal's.
fn open_bus(path: &Path) -> Result<EventBus, Box<dyn Error>> {
    let retention = Retention { age_ms_max: None, compact_above: 1 << 30, bytes_max: 1 << 30 };
    let mut settings = BusSettings::with_retention(retention);
    settings.bus.replay_events_max = u64::MAX;
    Ok(EventBus::open(&Directory::open(path)?, settings)?.0)
}

impl Commits {
    const fn events(self) -> usize {
        match self {
            Self::Each(count) => count,
            Self::Batches(count) => count * BATCH,
        }
    }
}
