//! An embeddable, crash-safe event journal that never loses what it told you was durable.
//!
//! ```
//! use strandline::{Directory, Pryj, ReadStep, ReadUpTo, Seq, config};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! # let path = root.path();
//! let directory = Directory::open(path)?;
//! let (journal, report) = directory.journal::<Pryj>("commands", config())?;
//! assert_eq!(report.end, Seq::new(0));
//!
//! // Blocks until the record is on stable storage. Threads that append at the same time share the sync.
//! let seq = journal.append(b"buy 100")?;
//!
//! // A reader remembers the last number it has seen, and misses nothing.
//! let mut reader = journal.reader(seq, ReadUpTo::Durable);
//! if let ReadStep::Records(batch) = reader.next_batch(None)? {
//!     assert!(batch.records().map(|record| record.payload).eq([b"buy 100"]));
//! }
//! journal.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | write | [`Directory::open`], [`Directory::journal`], [`Journal::append`], [`Journal::append_all`], [`Journal::append_nowait`] and its [`Ticket`] |
//! | make durable, give up old records, close | [`Journal::flush`], [`Journal::trim_to`], [`Journal::close`] |
//! | change settings | [`config`] and the fields of [`Config`] |
//! | follow in the same process | [`Journal::reader`] |
//! | read offline, or beside a writer in another process | [`inspect()`], [`inspect_file`], [`inspect_at_rest`], [`Inspection::reader`] |
//! | copy a journal that is being written | [`Journal::backup`] |
//!
//! The decisions are taken in [`core`](mod@core), which knows no file, thread or clock. This crate
//! performs them: [`Performer`] turns the core's effects into calls to a [`Disk`], and the callers of a
//! [`Journal`] take turns in leading its commits.
//!
//! # What the sync policies promise
//!
//! | [`SyncPolicy`] | acknowledged when | a process kill can take | a power loss can take |
//! |---|---|---|---|
//! | `Always` (default) | durable | nothing acknowledged | nothing acknowledged |
//! | `Interval { ms }` | written | nothing acknowledged | what the last interval wrote |
//! | `Never` | written | nothing acknowledged | everything since the last flush, sealed segment or close |
//!
//! Readers are given only what is durable, under every policy, unless they ask for
//! [`ReadUpTo::Written`]. Linux is what is tested; macOS and Windows are not.

mod append_all;
mod backup;
pub mod bus;
mod clock;
mod commit;
mod commit_counts;
mod directory;
pub mod disk;
mod disk_layer;
mod error;
mod failure;
mod housekeeping;
mod inspect;
mod journal;
mod lead;
mod listing;
mod news;
mod offline;
mod open_files;
mod perform;
mod reader;
mod recover;
mod segment_reader;
pub mod session;
mod set_aside;
mod shared;
mod spare;
mod std_disk;
mod sync;
mod temporary;
mod ticket;
mod transfer;

#[cfg(test)]
mod inspect_tests;
#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod perform_tests;
#[cfg(test)]
mod test_disk;
#[cfg(all(test, strandline_shuttle))]
mod thread_tests;

pub use append_all::AppendAllError;
pub use backup::{BackupError, BackupReport};
pub use commit_counts::CommitCounts;
pub use directory::{AlreadyOpen, Directory, DirectoryError};
pub use disk::{Access, Disk, Entry};
pub use disk_layer::DiskLayer;
pub use error::{AppendError, FlushError, Poisoned};
pub use failure::io_failure;
pub use inspect::{
    InspectError, Inspection, detect, detect_file, inspect, inspect_at_rest, inspect_file, inspect_on,
};
pub use journal::{Journal, OpenError, config};
pub use listing::{JournalFiles, ListingError, ListingWarning, files_of, journals};
pub use offline::{OfflineReader, OfflineStep};
pub use perform::Performer;
pub use reader::{ReadStep, Reader};
pub use recover::recover;
pub use segment_reader::Target;
pub use std_disk::{DirectoryLock, StdDisk};
// The core's vocabulary, so that a program needs only this crate.
pub use strandline_core::{
    Batch, Config, Cut, DraftError, Engine, Event, EventDraft, Events, Framing, FramingKind, InvalidName,
    IoCause, IoFailure, IoOperation, JournalName, Listing, Pcpj, Poison, Proof, Pryj, PryjRecord, ReadError,
    ReadUpTo, RecoveryError, RecoveryPolicy, Refusal, Repair, Report, ScanOptions, SegmentId, SegmentReport,
    SegmentView, Seq, Shortage, SyncPolicy, Timestamp, Verdict, View,
};
pub use ticket::Ticket;

/// The state machines underneath; what is needed most is re-exported here.
pub use strandline_core as core;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
