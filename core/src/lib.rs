//! The sans-IO state machines of Strandline, an event journal that never loses what it told you
//! was durable.
//!
//! Nothing in here opens a file, reads a clock, starts a thread or draws a random number. A state machine is
//! asked what it wants ([`Effect`]s and reads), the caller does it and reports back. The `strandline` crate
//! drives these machines with real files; the simulator drives the same ones and crashes them at every byte.
//!
//! | you want to | begin with |
//! |---|---|
//! | look at a journal without changing it | [`Scan`], which ends with a [`View`] and a [`Report`] |
//! | open one for writing | [`Recovery`], which ends with a [`Journal`] |
//! | append, trim, close | [`Journal`] |
//! | read records back | [`Cursor`] over a [`View`] |
//! | know what a damaged byte means | [`verdict`], the table that decides |
//!
//! All of it is generic over a [`Framing`]: [`Pryj`] for opaque records, [`Pcpj`] for events. The bytes are
//! described in `core/FORMAT.md`.
//!
//! # Invariants
//!
//! The simulator's checks carry the same numbers.
//!
//! - **I1, watermarks.** `first <= durable_end <= written_end <= next`. None moves back, except `next` in a void.
//! - **I2, acknowledged is recovered.** A record that was told durable is there after any crash, unless it was
//!   trimmed. One that was told written is there after a process kill.
//! - **I3, recovered is a prefix of what was submitted**, in order, byte for byte.
//! - **I4, nothing undead.** What was cut or voided never comes back, not after a second crash either.
//! - **I5, numbers never restart.** The next sequence number after a recovery is one past the last recovered
//!   record, also when every record was trimmed; commit ids are never given out twice.
//! - **I6, a second open is clean.** Recovery leaves a journal that the next open has nothing to repair in, and
//!   opening again and again does not grow it.
//! - **I7, the verdict is the table's.** A crash alone is never refused; damage that is proven to be damage is
//!   never cut.
//! - **I8, a refusal changes no byte** of any file.
//! - **I9, readers see only what is durable**, unless they ask for what is written.
//! - **I10, every reader agrees.** Scan, recovery and cursor judge each frame by the same function.
//! - **I11, a mark states only what a finished sync covered**, captured before that sync began.
//! - **I12, order lives here.** An effect is emitted only when everything it depends on is complete, so that what
//!   is outstanding may run in any order: at most one effect of the commit path, one reserve and one removal.
//! - **I13, the first failure is the state.** After a poison nothing is written, cut or synced any more, and it
//!   is set before any waiter is released.
//! - **I14, a void is told only after the cut is durable**; then its numbers are given out again.
//! - **I15, everything is bounded** by a named limit, and no length that was read is trusted for an allocation.
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::panic)]

extern crate alloc;

mod batch;
pub mod bus;
mod config;
mod cursor;
mod effect;
mod engine;
mod failure;
mod filter;
mod framing;
mod journal;
mod listing;
mod name;
mod recovery;
mod retention;
pub mod sbe;
mod scan;
mod seq;
pub mod session;
mod time;
mod view;

pub use batch::{Batch, Records};
pub use config::{Config, LABEL_BYTES_MAX, PAYLOAD_BYTES_MAX, RecoveryPolicy, SyncPolicy};
pub use cursor::{Cursor, ReadError, ReadUpTo, Replay};
pub use effect::{Answer, Completion, Effect, EffectId, ReadRequest};
pub use engine::{Engine, Events};
pub use failure::{IoCause, IoFailure, IoOperation, Shortage};
pub use filter::Filter;
pub use framing::{
    Bounds, Checksum, DraftError, Event, EventDraft, Frame, Framing, FramingKind, Layout, Mark, Pcpj, Pryj,
    PryjRecord,
};
pub use journal::{Accepted, AppendError, BackupPlan, Journal, Output, Poison};
pub use listing::{Listing, SegmentFile};
pub use name::{FileKind, InvalidName, JournalName};
pub use recovery::{Recovery, RecoveryError, RecoveryStep};
pub use retention::{Occupied, Retention};
pub use scan::verdict;
pub use scan::{Cut, Proof, Refusal, Repair, Report, Scan, ScanOptions, ScanStep, SegmentReport, Verdict};
pub use seq::{CommitId, SegmentId, Seq};
pub use time::{Monotonic, Timestamp};
pub use view::{EventPlace, SegmentView, View};
