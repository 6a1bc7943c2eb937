//! stub
mod directory;
pub mod disk;
mod failure;
mod listing;
mod open_files;
mod perform;
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
pub use listing::{JournalFiles, ListingError, ListingWarning, files_of, journals};
pub use perform::Performer;
pub use std_disk::StdDisk;
