//! What a seed decides: the limits of the bus, and what happens on it.

use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_core::bus::BusConfig;
use strandline_core::{Config, Filter, Occupied, Retention, Seq, Timestamp};

use super::machine::small_bus;

/// The subscribers of a story, and what each one wants.
pub(super) const NAMES: [&str; 3] = ["all", "only a", "only b"];

/// The source of an event.
pub(super) const fn source(seq: u64) -> &'static str {
    if seq.is_multiple_of(3) { "b" } else { "a" }
}

/// Whether a subscriber wants an event.
pub(super) fn wants(who: usize, seq: u64) -> bool {
    who == 0 || source(seq) == ["a", "b"][(who - 1) % 2]
}

pub(super) fn filter(who: usize) -> Filter {
    if who == 0 { Filter::all() } else { Filter::all().source(["a", "b"][(who - 1) % 2]) }
}

/// The payload of an event, which its number decides.
pub(super) fn payload(seq: u64) -> Vec<u8> {
    let len = usize::try_from(seq.wrapping_mul(7) % 23).unwrap_or_default();
    seq.to_le_bytes().iter().copied().cycle().take(len).collect()
}

/// Sizes of files and of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) sector_bytes: u64,
    pub(crate) event_segment: u64,
    pub(crate) record_segment: u64,
    pub(crate) reserve: bool,
    /// Bytes that one commit may have; half as many are kept in memory for who reads.
    pub(crate) commit_bytes: usize,
    /// Decides whose effects come first.
    pub(crate) turns: u64,
    pub(crate) salt: u64,
    pub(crate) bus: BusConfig,
}

impl Limits {
    /// Bytes that all files together may have.
    pub(crate) const fn bytes_max(&self) -> u64 {
        self.bus.retention.bytes_max
    }

    /// Beside the events: two segments of records, one that is being created, and a copy of a torn tail of either.
    pub(crate) const fn segments_max(&self) -> u64 {
        self.bytes_max() - 4 * self.record_segment - self.event_segment
    }

    fn config(&self, segment_bytes: u64) -> Config {
        Config {
            segment_bytes,
            reserve_bytes: if self.reserve { segment_bytes } else { 0 },
            tail_bytes_max: self.commit_bytes / 2,
            commit_bytes_max: self.commit_bytes,
            block_bytes: self.sector_bytes,
            ..Config::new(self.salt, Timestamp::from_millis(0))
        }
    }

    pub(crate) fn events_config(&self) -> Config {
        let segments_bytes_max = self.segments_max();
        Config {
            index_events: true,
            segments_bytes_max,
            waits_for_room: true,
            ..self.config(self.event_segment)
        }
    }

    pub(crate) fn records_config(&self) -> Config {
        Config { reserve_bytes: self.record_segment, ..self.config(self.record_segment) }
    }

    pub(crate) const fn occupied(&self, others: u64, wanted: u64) -> Occupied {
        Occupied { others, segment: self.event_segment, segments_max: self.segments_max(), wanted }
    }
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Publish(u64),
    Subscribe {
        who: usize,
        says: Option<u64>,
    },
    Receive {
        who: usize,
    },
    Acknowledge {
        who: usize,
        back: u64,
    },
    AcknowledgeWrongly {
        who: usize,
    },
    Leave {
        who: usize,
    },
    Restart,
    Wait(u64),
    ClockSteps(i64),
    /// What is to be recorded waits, as it does while another thread is about to.
    HoldRecords(bool),
    DiskFull(bool),
}

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusStory {
    seed: u64,
    pub(super) limits: Limits,
    pub(super) steps: Vec<Step>,
}

impl BusStory {
    /// The story of a seed; a shorter one for a smoke run.
    #[must_use]
    pub fn from_seed(seed: u64, smoke: bool) -> Self {
        let mut choice = ChaCha8Rng::seed_from_u64(seed);
        let event_segment = choice.random_range(250..450);
        let record_segment = choice.random_range(700..1_100);
        let least = 4 * record_segment + 9 * event_segment;
        let retention = Retention {
            age_ms_max: choice.random_bool(0.5).then_some(50_000),
            compact_above: least - choice.random_range(0..event_segment),
            bytes_max: least + choice.random_range(0..3) * event_segment,
        };
        let bus =
            BusConfig { replay_events_max: choice.random_range(2..9), retention, ..BusConfig::default() };
        let limits = Limits {
            sector_bytes: 64,
            event_segment,
            record_segment,
            reserve: choice.random_bool(0.5),
            commit_bytes: 400,
            turns: choice.random(),
            salt: choice.random(),
            bus: small_bus(bus),
        };
        let len = if smoke { choice.random_range(8..20) } else { choice.random_range(20..60) };
        let steps = (0..len).map(|_| step(&mut choice)).collect();
        Self { seed, limits, steps }
    }

    pub(super) const fn sector_bytes(&self) -> usize {
        64
    }
}

fn step(choice: &mut ChaCha8Rng) -> Step {
    let who = choice.random_range(0..NAMES.len());
    match choice.random_range(0..100) {
        0..29 => Step::Publish(choice.random_range(1..12)),
        29..43 => Step::Subscribe { who, says: choice.random_bool(0.2).then(|| choice.random_range(0..40)) },
        43..62 => Step::Receive { who },
        62..78 => Step::Acknowledge { who, back: choice.random_range(0..2) * choice.random_range(0..4) },
        78..82 => Step::AcknowledgeWrongly { who },
        82..84 => Step::Leave { who },
        84..86 => Step::Restart,
        86..90 => Step::Wait(choice.random_range(1..40_000)),
        90..92 => Step::ClockSteps(choice.random_range(-100_000..100_000)),
        92..96 => Step::HoldRecords(choice.random_bool(0.5)),
        _ => Step::DiskFull(choice.random_bool(0.5)),
    }
}

impl fmt::Display for BusStory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { sector_bytes, event_segment, record_segment, reserve, turns, bus, .. } = &self.limits;
        writeln!(f, "seed              {}", self.seed)?;
        writeln!(f, "sector bytes      {sector_bytes}")?;
        writeln!(f, "segments          events {event_segment}, records {record_segment}, reserve {reserve}")?;
        writeln!(f, "turns             {turns:#018x}")?;
        writeln!(f, "retention         {:?}", bus.retention)?;
        writeln!(f, "replay            at most {} events", bus.replay_events_max)?;
        write!(f, "steps             {:?}", self.steps)
    }
}

/// The number as the core has it.
pub(super) const fn seq(value: u64) -> Seq {
    Seq::new(value)
}
