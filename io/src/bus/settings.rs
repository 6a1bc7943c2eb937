//! How a bus is opened: one bound for the directory, and what follows from it for two journals.

use strandline_core::bus::BusConfig;
use strandline_core::{Config, Occupied, Retention, Seq};

use super::BusOpenError;
use crate::journal::config;

/// The settings of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusSettings {
    /// What is kept, and how far a replay goes.
    pub bus: BusConfig,
    /// The settings of the events' journal; sizes and index follow from the retention.
    pub events: Config,
    /// Whether events may be dropped at opening, where the journal is larger than its bound. Default no.
    pub may_drop_at_open: bool,
}

/// The least bound of a directory: 1 MiB.
const BYTES_MIN: u64 = 1 << 20;

/// Bytes around an event's payload in a segment of its own, at most: head, marks, type and source.
const EVENT_OVERHEAD: u64 = 4 << 10;

impl Default for BusSettings {
    fn default() -> Self {
        Self { bus: BusConfig::default(), events: config(), may_drop_at_open: false }
    }
}

/// The shares of the two journals in the directory's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// A segment of events, and the spare for the next one.
    pub(super) event_segment: u64,
    /// A segment of records; there are at most two, and a spare.
    pub(super) record_segment: u64,
    /// All segments of events.
    pub(super) events: u64,
}

impl BusSettings {
    /// The default settings, with this retention.
    #[must_use]
    pub fn with_retention(retention: Retention) -> Self {
        let settings = Self::default();
        Self { bus: BusConfig { retention, ..settings.bus }, ..settings }
    }

    /// What retention reckons with in a directory that has `others` bytes beside the segments of events: records of
    /// subscriptions, spare files, copies of cut bytes. For planning without opening.
    ///
    /// # Errors
    /// [`BusOpenError::TooSmall`].
    pub fn occupied_beside(&self, others: u64) -> Result<Occupied, BusOpenError> {
        Ok(Self::occupied(self.shares()?, others, 0))
    }

    pub(super) fn shares(&self) -> Result<Shares, BusOpenError> {
        let bytes_max = self.bus.retention.bytes_max;
        if bytes_max < BYTES_MIN {
            return Err(BusOpenError::TooSmall { bytes_max, least: BYTES_MIN });
        }
        let event_segment = (bytes_max / 50).clamp(64 << 10, 1 << 20);
        let record_segment = (bytes_max / 200).clamp(16 << 10, 256 << 10);
        // Beside the records: a spare segment of events, and room for a copy of a torn tail.
        let events = bytes_max - 3 * record_segment - 2 * event_segment;
        Ok(Shares { event_segment, record_segment, events })
    }

    pub(super) fn events_config(&self, shares: Shares) -> Config {
        Config {
            segment_bytes: shares.event_segment,
            reserve_bytes: self.events.reserve_bytes.min(shares.event_segment),
            segments_bytes_max: shares.events,
            // One beside another, and a segment to spare: for what is longer no room could ever be made.
            payload_bytes_max: usize::try_from((shares.events - shares.event_segment) / 2 - EVENT_OVERHEAD)
                .unwrap_or(usize::MAX)
                .min(self.events.payload_bytes_max),
            waits_for_room: true,
            index_events: true,
            ..self.events.clone()
        }
    }

    pub(super) fn records_config(&self, shares: Shares) -> Config {
        let fresh = config();
        Config {
            segment_bytes: shares.record_segment,
            // Reserved, so that acknowledging goes on when the disk is full.
            reserve_bytes: shares.record_segment,
            block_bytes: self.events.block_bytes,
            recovery: self.events.recovery,
            first_seq: Some(Seq::ZERO),
            // They are read when a bus opens, and never again.
            tail_bytes_max: 0,
            ..fresh
        }
    }

    pub(super) fn bus_config(&self, shares: Shares) -> BusConfig {
        let half = usize::try_from(shares.record_segment / 2).unwrap_or(usize::MAX);
        BusConfig { subscriptions_bytes_max: self.bus.subscriptions_bytes_max.min(half), ..self.bus }
    }

    pub(super) fn occupied(shares: Shares, others: u64, wanted: u64) -> Occupied {
        Occupied { others, segment: shares.event_segment, segments_max: shares.events, wanted }
    }
}
