//! Opening a bus: both journals, what is recorded of subscriptions, and whether it all fits.

use std::sync::Arc;
use std::time::Duration;

use strandline_core::bus::Restore;
use strandline_core::{Pryj, ReadUpTo, Report};

use super::recording::Records;
use super::settings::Shares;
use super::{BusOpenError, BusSettings, Closer, EventBus, Inner, State};
use crate::clock::timestamp;
use crate::directory::Directory;
use crate::disk::Disk;
use crate::journal::{Journal, OpenError};
use crate::listing::files_of;
use crate::reader::ReadStep;
use crate::sync::{Mutex, thread};
use strandline_core::{JournalName, Listing};

/// The name of the journal that holds a bus's events.
pub const EVENT_JOURNAL: &str = "event-journal";
/// The name of the journal that holds what is known of its durable subscriptions.
pub const SUBSCRIPTIONS: &str = "subscriptions";

/// What opening found in either journal.
#[derive(Clone, Debug)]
pub struct BusReport {
    /// The events.
    pub events: Report,
    /// The records of subscriptions.
    pub subscriptions: Report,
}

impl<D: Disk> EventBus<D> {
    /// Opens the bus of a directory, or makes one.
    ///
    /// # Errors
    /// [`BusOpenError`]. Nothing that was acknowledged is lost by it, and no event is dropped.
    pub fn open(directory: &Directory<D>, settings: BusSettings) -> Result<(Self, BusReport), BusOpenError> {
        let shares = settings.shares()?;
        check_size(directory, &settings, shares)?;
        let (records, subscriptions) =
            Journal::<Pryj, D>::open(directory, SUBSCRIPTIONS, settings.records_config(shares))?;
        let restore = restore(&records)?;
        let (events, report) = Journal::open(directory, EVENT_JOURNAL, settings.events_config(shares))?;
        let config = settings.bus_config(shares);
        let core = events.look(|view| restore.start(config, events.monotonic(), timestamp(), view));
        let state = Mutex::new(State {
            core,
            records: Records::default(),
            keeper: None,
            closing: false,
            ended: None,
        });
        let inner = Arc::new(Inner { events, records, shares, state, keeper: Mutex::new(None) });
        // Before the first append: what somebody missed by a journal that was wiped has to be on the disk.
        inner.record(inner.lock(), None)?;
        inner.keep()?;
        let for_thread = Arc::clone(&inner);
        let keeper = thread::spawn("strandline-bus".into(), move || for_thread.run_keeper());
        let keeper = keeper.map_err(BusOpenError::Thread)?;
        inner.lock().keeper = Some(keeper.thread().id());
        *inner.keeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(keeper);
        let closer = Arc::new(Closer { inner: Arc::clone(&inner) });
        let report = BusReport { events: report, subscriptions };
        Ok((Self { inner, _closer: closer }, report))
    }
}

fn restore<D: Disk>(records: &Journal<Pryj, D>) -> Result<Restore, BusOpenError> {
    let mut restore = Restore::new();
    let mut reader = records.reader(records.first(), ReadUpTo::Durable);
    while let ReadStep::Records(batch) = reader.next_batch(Some(Duration::ZERO))? {
        for record in batch.records() {
            restore.take(record.seq, record.payload)?;
        }
    }
    Ok(restore)
}

/// Refuses a journal that would have to lose events to fit.
fn check_size<D: Disk>(
    directory: &Directory<D>,
    settings: &BusSettings,
    shares: Shares,
) -> Result<(), BusOpenError> {
    let name = JournalName::parse(EVENT_JOURNAL).map_err(OpenError::from)?;
    let files = files_of(&**directory.disk(), &name).map_err(OpenError::from)?;
    let Listing::Segments(mut segments) = files.listing else { return Ok(()) };
    segments.sort_by_key(|segment| segment.id);
    let bytes: u64 = segments.iter().map(|segment| segment.len).sum();
    let bytes_max = settings.bus.retention.bytes_max;
    if settings.may_drop_at_open || bytes <= bytes_max {
        return Ok(());
    }
    let mut left = bytes;
    let keeps = segments.iter().find(|segment| {
        let fits = left <= shares.events;
        left -= segment.len;
        fits
    });
    let keeps = keeps.or(segments.last()).map_or(strandline_core::Seq::ZERO, |segment| segment.id.0);
    Err(BusOpenError::WouldDrop { bytes, bytes_max, keeps })
}
