//! Everything that a seed decides, as parameters with names.

use std::fmt;

use rand::Rng;
use strandline_core::{Config, FramingKind, RecoveryPolicy, Seq, SyncPolicy, Timestamp};

use super::SimRng;

/// The parameters of one run. All but the seed are derived from it, so that a seed names the run; tests
/// set them one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What everything below comes from.
    pub seed: u64,
    /// The framing of the journal.
    pub framing: FramingKind,
    /// The format version of new segments.
    pub version: u8,
    /// When appends are acknowledged.
    pub sync: SyncPolicy,
    /// How recovery judges doubtful damage.
    pub recovery: RecoveryPolicy,
    /// Sectors of the disk, and blocks of the verdict, in bytes.
    pub sector_bytes: usize,
    /// Segments are sealed beyond this.
    pub segment_bytes: u64,
    /// Zeros are kept ready in steps of this many bytes.
    pub reserve_bytes: u64,
    /// A commit gathers at most this many bytes.
    pub commit_bytes_max: usize,
    /// Bytes of the newest commits that are kept in memory.
    pub tail_bytes_max: usize,
    /// The number of the first record.
    pub first_seq: Seq,
    /// The longest payload that scripts use, in bytes.
    pub payload_bytes_max: u32,
    /// How many operations a script has.
    pub operations: usize,
    /// Which faults beside crashes the script may hold.
    pub faults: SwarmFaults,
}

/// Kinds of fault, each of which a run has or has not: a fault that is always present hides what happens
/// without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmFaults {
    /// Crashes in the middle of the script, besides those that the explorer adds at every step.
    pub crashes: bool,
    /// The disk fills up.
    pub space: bool,
    /// Syncs fail.
    pub syncs: bool,
    /// Writes and removals fail.
    pub errors: bool,
    /// Writes are interrupted or come out short.
    pub short: bool,
    /// The wall clock jumps.
    pub clock: bool,
    /// Reads fail.
    pub reads: bool,
    /// Writes are lost or misdirected.
    pub lies: bool,
    /// Copies of the disk rot, or hold forged marks.
    pub damage: bool,
}

/// Where the simulated wall clock begins: some time in 2023, in milliseconds.
pub(crate) const EPOCH_MS: i64 = 1_700_000_000_000;

impl Settings {
    /// The parameters that belong to a seed. A smoke run has a shorter script.
    #[must_use]
    pub fn from_seed(seed: u64, smoke: bool) -> Self {
        let rng = &mut super::rng(seed, super::Stream::Settings);
        let framing = if rng.random_bool(0.5) { FramingKind::Pryj } else { FramingKind::Pcpj };
        let version = if rng.random_bool(0.25) { 1 } else { 2 };
        let sync = match rng.random_range(0..4u32) {
            0 => SyncPolicy::Interval { ms: rng.random_range(1..100u64) },
            1 => SyncPolicy::Never,
            _ => SyncPolicy::Always,
        };
        let recovery = if rng.random_bool(0.25) { RecoveryPolicy::Strict } else { RecoveryPolicy::Standard };
        let segment_bytes = pick(rng, &[160, 256, 384, 512, 1_024, 4_096]);
        let reserve_bytes = pick(rng, &[0, 64, 96, 128, 256, 512]);
        let commit_bytes_max = usize::try_from(pick(rng, &[1, 64, 200, 1_000])).unwrap_or(1);
        let tail_bytes_max = usize::try_from(pick(rng, &[0, 100, 10_000])).unwrap_or(0);
        let first_seq = Seq::new(pick(rng, &[0, 1, 1_000]));
        let payload_bytes_max = u32::try_from(pick(rng, &[8, 40, 150, 600])).unwrap_or(8);
        let faults = SwarmFaults::draw(rng, &mut super::rng(seed, super::Stream::Additions));
        // Last, so that a smoke run differs in nothing else.
        let operations = if smoke { rng.random_range(2..=6u32) } else { rng.random_range(4..=24u32) };
        Self {
            seed,
            framing,
            version,
            sync,
            recovery,
            sector_bytes: 64,
            segment_bytes,
            reserve_bytes,
            commit_bytes_max,
            tail_bytes_max,
            first_seq,
            payload_bytes_max,
            operations: usize::try_from(operations).unwrap_or(2),
            faults,
        }
    }

    /// Whether the format notices every changed byte of a record. Version 1 events do not: their checksum
    /// covers the payload alone.
    #[must_use]
    pub fn notices_damage(&self) -> bool {
        self.version >= 2 || self.framing == FramingKind::Pryj
    }

    /// How the journal is opened for the `opening`-th time; each time has its own salts.
    #[must_use]
    pub fn config(&self, opening: u64, opened_at: Timestamp) -> Config {
        let mut config =
            Config::new(self.seed.rotate_left(17) ^ opening.wrapping_mul(0x9E37_79B9), opened_at);
        config.version = self.version;
        config.first_seq = Some(self.first_seq);
        config.sync = self.sync;
        config.recovery = self.recovery;
        config.segment_bytes = self.segment_bytes;
        config.reserve_bytes = self.reserve_bytes;
        config.commit_bytes_max = self.commit_bytes_max;
        config.tail_bytes_max = self.tail_bytes_max;
        config.block_bytes = self.sector_bytes as u64;
        config
    }
}

impl SwarmFaults {
    fn draw(rng: &mut SimRng, additions: &mut SimRng) -> Self {
        let mut draw = |probability| rng.random_bool(probability);
        let mut add = |probability| additions.random_bool(probability);
        Self {
            crashes: draw(0.5),
            space: draw(0.3),
            syncs: draw(0.3),
            errors: draw(0.2),
            short: draw(0.3),
            clock: draw(0.3),
            reads: add(0.2),
            lies: add(0.2),
            damage: add(0.4),
        }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed              {}", self.seed)?;
        writeln!(f, "framing           {}", self.framing.label())?;
        writeln!(f, "version           {}", self.version)?;
        writeln!(f, "sync              {:?}", self.sync)?;
        writeln!(f, "recovery          {:?}", self.recovery)?;
        writeln!(f, "sector_bytes      {}", self.sector_bytes)?;
        writeln!(f, "segment_bytes     {}", self.segment_bytes)?;
        writeln!(f, "reserve_bytes     {}", self.reserve_bytes)?;
        writeln!(f, "commit_bytes_max  {}", self.commit_bytes_max)?;
        writeln!(f, "tail_bytes_max    {}", self.tail_bytes_max)?;
        writeln!(f, "first_seq         {}", self.first_seq)?;
        writeln!(f, "payload_bytes_max {}", self.payload_bytes_max)?;
        writeln!(f, "operations        {}", self.operations)?;
        write!(f, "faults            {}", self.faults)
    }
}

impl fmt::Display for SwarmFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.crashes, "crashes"),
            (self.space, "space"),
            (self.syncs, "syncs"),
            (self.errors, "errors"),
            (self.short, "short"),
            (self.clock, "clock"),
            (self.reads, "reads"),
            (self.lies, "lies"),
            (self.damage, "damage"),
        ];
        let drawn: Vec<&str> = kinds.iter().filter(|(drawn, _)| *drawn).map(|(_, name)| *name).collect();
        f.write_str(if drawn.is_empty() { "none" } else { "" })?;
        f.write_str(&drawn.join(" "))
    }
}

fn pick(rng: &mut SimRng, choices: &[u64]) -> u64 {
    let last = u32::try_from(choices.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let index = usize::try_from(rng.random_range(0..=last)).unwrap_or(0);
    choices.get(index).copied().unwrap_or_default()
}
