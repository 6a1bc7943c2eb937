//! stub
mod directory;
pub mod disk;
mod failure;
mod inspect;
mod listing;
mod open_files;
mod perform;
mod segment_reader;
mod set_aside;
mod spare;
mod std_disk;
mod temporary;
mod transfer;

#[cfg(test)]
mod perform_tests;
#[cfg(test)]
mod test_disk;

pub use directory::{AlreadyOpen, Directory, DirectoryError};
pub use disk::{Access, Disk, Entry};
pub use failure::io_failure;
pub use inspect::{InspectError, Inspection, detect, detect_file, inspect, inspect_file, inspect_on};
pub use listing::{JournalFiles, ListingError, ListingWarning, files_of, journals};
pub use perform::Performer;
pub use segment_reader::Target;
pub use std_disk::StdDisk;
