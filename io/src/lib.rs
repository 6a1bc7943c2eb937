mod backup;
mod clock;
mod commit;
mod directory;
pub mod disk;
mod error;
mod failure;
mod housekeeping;
mod inspect;
mod journal;
mod lead;
mod listing;
mod offline;
mod open_files;
mod perform;
mod reader;
mod recover;
mod segment_reader;
mod set_aside;
mod shared;
mod spare;
mod std_disk;
mod temporary;
mod ticket;
mod transfer;

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod perform_tests;
#[cfg(test)]
mod test_disk;

pub use backup::{BackupError, BackupReport};
pub use directory::{AlreadyOpen, Directory, DirectoryError};
pub use disk::{Access, Disk, Entry};
pub use error::{AppendError, FlushError, Poisoned};
pub use failure::io_failure;
pub use inspect::{InspectError, Inspection, detect, detect_file, inspect, inspect_file, inspect_on};
pub use journal::{Journal, OpenError, config};
pub use listing::{JournalFiles, ListingError, ListingWarning, files_of, journals};
pub use offline::{OfflineReader, OfflineStep};
pub use perform::Performer;
pub use reader::{ReadStep, Reader};
pub use recover::recover;
pub use segment_reader::Target;
pub use std_disk::StdDisk;
pub use ticket::Ticket;

/// The state machines underneath; what is needed most is re-exported here.
pub use strandline_core as core;
pub use strandline_core::{
    Batch, Config, Event, EventDraft, Framing, FramingKind, JournalName, Pcpj, Pryj, PryjRecord, ReadUpTo,
    RecoveryPolicy, Report, ScanOptions, Seq, SyncPolicy, Timestamp, Verdict, View,
};
