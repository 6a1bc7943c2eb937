//! An event bus as it would be if it were opened now: read without its lock, and without a change.

use std::path::Path;

use strandline::bus::{BusConfig, SubscriptionStatus};
use strandline::{Inspection, OfflineStep};
use strandline_core::bus::{EventBus, Restore};
use strandline_core::{
    Framing, Listing, Monotonic, Pcpj, Pryj, ReadUpTo, RecoveryPolicy, Seq, Timestamp, Verdict, View,
};

use crate::finding::Finding;
use crate::outcome::{Ended, Failure, say};
use crate::progress::WatchedDisk;
use crate::target::Source;

/// A live writer changes both journals while they are read. What is read last may be of a moment that differs from
/// the first by a little after so many tries.
const TRIES: usize = 5;

/// Both journals, read.
pub(crate) struct OfflineBus {
    /// The events, as opening would leave them.
    pub(crate) events: View<Pcpj>,
    /// Bytes of all its files.
    pub(crate) bytes: u64,
    /// Of these, what is not in segments of events.
    pub(crate) other_bytes: u64,
    /// Whether something had to be told of either journal.
    pub(crate) ended: Ended,
    subscriptions: Restore,
}

impl OfflineBus {
    /// Whether there is one to read.
    pub(crate) fn check_there(directory: &Path) -> Result<(), Failure> {
        Self::sources(directory).map(drop)
    }

    /// The journal of events, and that of subscriptions if anybody ever subscribed.
    fn sources(directory: &Path) -> Result<(Source, Option<Source>), Failure> {
        let place = directory.display();
        match Source::bus(directory)? {
            (Some(events), records) => Ok((events, records)),
            (None, Some(_)) => Err(Failure::cannot_run(anyhow::anyhow!(
                "{place} holds subscriptions but no events: the files of event-journal were removed. Restore them, or open the bus, which then tells every subscriber"
            ))),
            (None, None) => Err(Failure::cannot_run(anyhow::anyhow!(
                "there is no event bus in {place}: it holds neither events (event-journal) nor subscriptions"
            ))),
        }
    }

    /// Reads the bus of a directory.
    pub(crate) fn read(directory: &Path) -> Result<Self, Failure> {
        let (events, records) = Self::sources(directory)?;
        let mut before = Records::read(records.as_ref())?;
        for _ in 1..TRIES {
            let view = Events::read(&events)?;
            let after = Records::read(records.as_ref())?;
            if before.end == after.end {
                return Self::new(view, after, &events, records.as_ref());
            }
            before = after;
        }
        let view = Events::read(&events)?;
        Self::new(view, before, &events, records.as_ref())
    }

    fn new(
        Events { view, damage }: Events,
        found: Records,
        events: &Source,
        records: Option<&Source>,
    ) -> Result<Self, Failure> {
        let (mut bytes, mut other_bytes) = (0, 0);
        for source in [Some(events), records].into_iter().flatten() {
            let files = source.files()?;
            let segments = match files.listing {
                Listing::Segments(segments) => segments.iter().map(|segment| segment.len).sum(),
                Listing::Bare { len } => len,
            };
            bytes += segments + files.other_bytes;
            other_bytes += files.other_bytes;
            if records.is_some_and(|records| std::ptr::eq(records, source)) {
                other_bytes += segments;
            }
        }
        let mut ended = Ended::Sound;
        for damage in [damage, found.damage].into_iter().flatten() {
            say(damage);
            ended = Ended::Problem;
        }
        Ok(Self { events: view, bytes, other_bytes, ended, subscriptions: found.restore })
    }

    /// The bus over its events.
    pub(crate) fn start(self, config: BusConfig) -> StartedBus {
        let now = Timestamp::from_millis(jiff::Timestamp::now().as_millisecond());
        let bus = self.subscriptions.start(config, Monotonic::from_millis(0), now, &self.events);
        StartedBus { bus, events: self.events }
    }
}

/// A bus that decides, and does nothing.
pub(crate) struct StartedBus {
    pub(crate) bus: EventBus,
    pub(crate) events: View<Pcpj>,
}

impl StartedBus {
    /// How its subscriptions stand.
    pub(crate) fn statuses(&self) -> Vec<SubscriptionStatus> {
        self.bus.statuses(&self.events).collect()
    }
}

struct Events {
    view: View<Pcpj>,
    damage: Option<String>,
}

impl Events {
    fn read(source: &Source) -> Result<Self, Failure> {
        let found = source.inspect_indexed()?;
        let damage = damage(source, &found)?;
        Ok(Self { view: found.view.as_recovered(), damage })
    }
}

/// What is recorded of subscriptions.
struct Records {
    restore: Restore,
    end: Seq,
    damage: Option<String>,
}

impl Records {
    fn read(source: Option<&Source>) -> Result<Self, Failure> {
        let mut restore = Restore::new();
        let Some(source) = source else { return Ok(Self { restore, end: Seq::ZERO, damage: None }) };
        let found = source.inspect::<Pryj>(RecoveryPolicy::Standard)?;
        let damage = damage(source, &found)?;
        let mut reader = found.reader(found.view.first(), ReadUpTo::Written);
        let name = || source.name().to_string();
        while let OfflineStep::Records(batch) =
            reader.next_batch().map_err(|error| Failure::problem(error).context(name()))?
        {
            for record in batch.records() {
                restore.take(Pryj::seq(record), record.payload).map_err(Failure::problem)?;
            }
        }
        Ok(Self { restore, end: found.report.end, damage })
    }
}

/// What is to be told of a torn end. Behind any other damage there may be more: then nothing can be said of who
/// stands where.
fn damage<F: Framing>(
    source: &Source,
    found: &Inspection<F, WatchedDisk>,
) -> Result<Option<String>, Failure> {
    let finding = Finding::new(source, found);
    let told = finding
        .message
        .map(|message| format!("{}: stopped before record {}: {message}", source.name(), found.report.end));
    match (&found.report.verdict, told) {
        (Verdict::Refused(_), Some(told)) => Err(Failure::problem(anyhow::anyhow!(told))),
        (_, told) => Ok(told),
    }
}
