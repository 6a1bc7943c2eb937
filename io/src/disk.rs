//! The seam between the journal and a file system: one directory, and the few operations on it
//! that the journal's promises rest on.
//!
//! [`StdDisk`](crate::StdDisk) is the real one. The simulator has another, and one conformance test body
//! runs on both, so that what is proved on the simulated disk holds for the real one.

use std::io;

/// One directory of files. All operations may be called from several threads at once.
///
/// The contract that matters after a crash: bytes written are lost unless [`sync`](Disk::sync) of
/// that file returned after the write; a create, rename or removal is lost unless
/// [`sync_directory`](Disk::sync_directory) returned after it.
pub trait Disk: Send + Sync + 'static {
    /// An open file.
    type File: Send + Sync;

    /// Every entry of the directory, in no particular order.
    ///
    /// # Errors
    /// Whatever the file system reports.
    fn list(&self) -> io::Result<Vec<Entry>>;

    /// Creates a file for reading and writing; fails with `AlreadyExists` if the name is taken.
    ///
    /// # Errors
    /// Whatever the file system reports.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// `NotFound`, or whatever else the file system reports.
    fn open(&self, name: &str, access: Access) -> io::Result<Self::File>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// Whatever the file system reports.
    fn len(&self, file: &Self::File) -> io::Result<u64>;

    /// Reads at an offset; may return fewer bytes than asked, and 0 only at the end of the file.
    ///
    /// # Errors
    /// Whatever the file system reports; `Interrupted` may be retried.
    fn read_at(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at an offset; may write fewer bytes than given.
    ///
    /// # Errors
    /// Whatever the file system reports; `Interrupted` may be retried.
    fn write_at(&self, file: &Self::File, offset: u64, data: &[u8]) -> io::Result<usize>;

    /// Makes the file's contents and length durable.
    ///
    /// # Errors
    /// After a failure the state of the file on the disk is unknown; never retry.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Sets the file's length; new bytes read as zeros.
    ///
    /// # Errors
    /// Whatever the file system reports.
    fn set_len(&self, file: &Self::File, len: u64) -> io::Result<()>;

    /// Renames a file; an existing target is replaced.
    ///
    /// # Errors
    /// Whatever the file system reports.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound`, or whatever else the file system reports.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes every earlier create, rename and removal in the directory durable.
    ///
    /// # Errors
    /// After a failure the state of the directory on the disk is unknown; never retry.
    fn sync_directory(&self) -> io::Result<()>;
}

/// An entry of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name. Entries whose name is not UTF-8 are none of ours and are not listed.
    pub name: String,
    /// Its length in bytes; 0 for what is not a regular file.
    pub len: u64,
    /// Whether it is a regular file (symbolic links are followed).
    pub is_file: bool,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading only.
    Read,
    /// For reading and writing.
    ReadWrite,
}
