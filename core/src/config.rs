//! How a journal is opened, and every limit it keeps, each with its unit last.

use crate::{Seq, Timestamp};

/// The longest payload of a record or event: 16 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest event type and the longest source that is written: 1,024 bytes.
pub const LABEL_BYTES_MAX: usize = 1024;

/// When an append is acknowledged, and what that is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Acknowledged when durable. Survives power loss.
    #[default]
    Always,
    /// Acknowledged when the operating system has it; synced at this interval. Survives a process
    /// kill; a power loss can take the last interval.
    Interval {
        /// Milliseconds between syncs.
        ms: u64,
    },
    /// Acknowledged when the operating system has it; synced only when a segment is sealed, on
    /// request and at close. Survives a process kill; a power loss can take everything since.
    Never,
}

/// How recovery judges damage that cannot be proven to be damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryPolicy {
    /// Cut an unproven bad tail (verdict rows F and G).
    #[default]
    Standard,
    /// Cut only what is certainly a torn write (row F); refuse row G.
    Strict,
}

/// The settings of a journal. Start from [`Config::new`] (in the `strandline` crate, from its `config()`, which
/// draws the seed) and change what differs.
///
/// ```
/// use strandline_core::{Config, SyncPolicy, Timestamp};
/// let config = Config { sync: SyncPolicy::Interval { ms: 50 }, ..Config::new(42, Timestamp::from_millis(0)) };
/// assert_eq!(config.segment_bytes, 64 * 1024 * 1024);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Format version of new segments: 1 or 2 (with marks). Default 2.
    pub version: u8,
    /// The first sequence number of a journal that does not exist yet; without one, the framing's own: 0 for
    /// records, 1 for events.
    pub first_seq: Option<Seq>,
    /// When an append is acknowledged. Default [`SyncPolicy::Always`].
    pub sync: SyncPolicy,
    /// How a damaged tail is judged. Default [`RecoveryPolicy::Standard`].
    pub recovery: RecoveryPolicy,
    /// A segment is sealed before it grows beyond this, in bytes; a larger record gets one of its
    /// own. Default 64 MiB.
    pub segment_bytes: u64,
    /// A new segment is created with zeros up to this length, since overwriting them syncs faster than growing a
    /// file. Behind them, and in a reopened segment, zeros are kept ready in steps of at most 4 MiB.
    /// 0 turns both off, which suits bulk loads. Default: a whole segment of 64 MiB.
    pub reserve_bytes: u64,
    /// The longest payload that is accepted, in bytes. Default and maximum 16 MiB.
    pub payload_bytes_max: usize,
    /// A commit gathers at most this many bytes, unless a single record is larger. Default 1 MiB.
    pub commit_bytes_max: usize,
    /// Bytes accepted but not yet acknowledged; beyond, append refuses. Default 32 MiB.
    pub pending_bytes_max: usize,
    /// Bytes of the newest commits kept in memory for readers that follow the end. Default 1 MiB.
    pub tail_bytes_max: usize,
    /// An idle writer leaves a mark within this many milliseconds. Default 50.
    pub idle_mark_ms: u64,
    /// A failed removal of an old segment is retried after this many milliseconds. Default 1,000.
    pub removal_retry_ms: u64,
    /// Whether events are indexed in memory by source, type and domain: 16 bytes for each. A bus needs it. Default
    /// no.
    pub index_events: bool,
    /// The files of all segments, reserved zeros included, stay within this many bytes: what would make them larger
    /// is refused as on a full disk, and goes on once old segments are removed. A mark that has no room is left out.
    /// Default: no limit.
    pub segments_bytes_max: u64,
    /// What does not fit into that waits for a trim rather than being refused, until
    /// [`Journal::refuse_waiting`](crate::Journal::refuse_waiting). Default no.
    pub waits_for_room: bool,
    /// Seed for the salts that tell marks from payloads that imitate them. Take it from the operating system's
    /// randomness (a simulation takes it from its own seed).
    pub salt_seed: u64,
    /// The time of opening, for the marks written before the first append.
    pub opened_at: Timestamp,
    /// Aligned block size that a torn write leaves whole or zero. 512; only simulations use another.
    pub block_bytes: u64,
}

impl Config {
    /// The default settings, with the given seed for salts and time of opening.
    #[must_use]
    pub const fn new(salt_seed: u64, opened_at: Timestamp) -> Self {
        Self {
            version: 2,
            first_seq: None,
            sync: SyncPolicy::Always,
            recovery: RecoveryPolicy::Standard,
            segment_bytes: 64 * 1024 * 1024,
            reserve_bytes: 64 * 1024 * 1024,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            commit_bytes_max: 1024 * 1024,
            pending_bytes_max: 32 * 1024 * 1024,
            tail_bytes_max: 1024 * 1024,
            idle_mark_ms: 50,
            removal_retry_ms: 1_000,
            index_events: false,
            segments_bytes_max: u64::MAX,
            waits_for_room: false,
            salt_seed,
            opened_at,
            block_bytes: BLOCK_BYTES,
        }
    }
}

/// The aligned block that real disks write whole or not at all.
pub(crate) const BLOCK_BYTES: u64 = 512;
