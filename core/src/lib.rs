//! The sans-IO state machines of Strandline.
#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::panic)]

extern crate alloc;

mod batch;
mod config;
mod cursor;
mod effect;
mod failure;
mod framing;
mod journal;
mod listing;
mod name;
mod recovery;
mod scan;
mod seq;
mod time;
mod view;

pub use batch::{Batch, Records};
pub use config::{Config, LABEL_BYTES_MAX, PAYLOAD_BYTES_MAX, RecoveryPolicy, SyncPolicy};
pub use cursor::{Cursor, ReadError, ReadUpTo, Replay};
pub use effect::{Answer, Completion, Effect, EffectId, ReadRequest};
pub use failure::{IoCause, IoFailure, IoOperation};
pub use framing::{
    Bounds, Checksum, DraftError, Event, EventDraft, Frame, Framing, FramingKind, Layout, Mark, Pcpj, Pryj,
    PryjRecord,
};
pub use journal::{Accepted, AppendError, BackupPlan, Journal, Output, Poison};
pub use listing::{Listing, SegmentFile};
pub use name::{FileKind, InvalidName, JournalName};
pub use recovery::{Recovery, RecoveryError, RecoveryStep};
pub use scan::verdict;
pub use scan::{Cut, Proof, Refusal, Repair, Report, Scan, ScanOptions, ScanStep, SegmentReport, Verdict};
pub use seq::{CommitId, SegmentId, Seq};
pub use time::{Monotonic, Timestamp};
pub use view::{SegmentView, View};
