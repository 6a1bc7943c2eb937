//! A directory of journals, locked for this process.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use strandline_core::JournalName;

use crate::disk::Disk;
use crate::listing::{ListingError, journals};
use crate::std_disk::{DirectoryLock, StdDisk};
use crate::sync::{Mutex, MutexGuard};

const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// So often where nobody has the lock, and somebody asks about it.
const ASKED_TRIES: u32 = 500;

/// A directory of journals. While it, or any journal opened in it, exists, no other process can open it for
/// writing. Reading needs no lock: see [`inspect`](crate::inspect).
///
/// Cloning gives another handle on the same directory.
pub struct Directory<D: Disk = StdDisk> {
    shared: Arc<Shared<D>>,
}

struct Shared<D: Disk> {
    disk: Arc<D>,
    open: Mutex<BTreeSet<JournalName>>,
    /// Ends with the last handle and the last open journal; a closed one that is still read keeps only the disk.
    _lock: Option<DirectoryLock>,
}

/// Why a directory was not opened.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Somebody else has it open.
    #[error(
        "{path} is open for writing already, in this process or another one; close it there first \
         (reading, inspecting and following need no lock)"
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// There is something in its place that is no directory.
    #[error("{path} is no directory; choose another path, or move away what is there")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// It may not be opened or created.
    #[error("{path} may not be opened: {source}; check the permissions of it and of what is above it")]
    Denied {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else.
    #[error("{path} cannot be opened: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The journal of this name is open already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal {0} is open already; clone its handle instead, or close it first")]
pub struct AlreadyOpen(pub JournalName);

impl Directory {
    /// Opens a directory for writing. It is created if it is missing, with mode 0700.
    ///
    /// The lock is the operating system's, on the directory itself: no lock file is left behind or can be
    /// deleted, and it ends with the process, however that ends.
    ///
    /// # Errors
    /// [`DirectoryError`]; within a few hundredths of a second if somebody else holds the lock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DirectoryError> {
        Self::open_through(path, |disk| disk)
    }
}

/// Takes the lock, with a little patience: where a process is just being started, the child has a copy of every
/// handle until it executes its program, and so keeps a lock alive that was given up a moment ago.
pub(crate) fn lock(disk: &StdDisk) -> io::Result<DirectoryLock> {
    let (mut tries, mut asked) = (LOCK_TRIES, ASKED_TRIES);
    loop {
        match disk.try_lock() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // Whoever only asks whether somebody holds it is gone in a moment.
                let left = if disk.is_locked()? { &mut tries } else { &mut asked };
                *left = left.checked_sub(1).ok_or(error)?;
                std::thread::sleep(LOCK_PAUSE);
            }
            result => return result,
        }
    }
}

impl<D: Disk> Directory<D> {
    /// The same as [`open`](Directory::open), through a [layer](crate::DiskLayer) over the file system.
    ///
    /// # Errors
    /// The same.
    pub fn open_through(
        path: impl AsRef<Path>,
        layer: impl FnOnce(StdDisk) -> D,
    ) -> Result<Self, DirectoryError> {
        let path = path.as_ref();
        let disk = StdDisk::create(path).map_err(|error| DirectoryError::new(path, error))?;
        let lock = lock(&disk).map_err(|error| DirectoryError::new(path, error))?;
        Ok(Self::with_lock(layer(disk), Some(lock)))
    }

    /// A directory on a disk of the caller's. Nothing is locked: the caller sees to it that there is one
    /// writer.
    #[must_use]
    pub fn on(disk: D) -> Self {
        Self::with_lock(disk, None)
    }

    fn with_lock(disk: D, lock: Option<DirectoryLock>) -> Self {
        Self { shared: Arc::new(Shared { disk: Arc::new(disk), open: Mutex::default(), _lock: lock }) }
    }

    /// The names of the journals that exist in it, in order.
    ///
    /// # Errors
    /// [`ListingError::Io`] if it cannot be listed.
    pub fn journals(&self) -> Result<Vec<JournalName>, ListingError> {
        journals(&*self.shared.disk)
    }

    /// The disk that it is on.
    #[must_use]
    pub fn disk(&self) -> &Arc<D> {
        &self.shared.disk
    }

    /// Claims a name; given back when the lease is dropped.
    pub(crate) fn lease(&self, journal: &JournalName) -> Result<Lease<D>, AlreadyOpen> {
        if self.shared.open().insert(journal.clone()) {
            Ok(Lease { directory: Arc::clone(&self.shared), journal: journal.clone() })
        } else {
            Err(AlreadyOpen(journal.clone()))
        }
    }
}

impl DirectoryError {
    fn new(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            ErrorKind::WouldBlock => Self::Locked { path },
            ErrorKind::NotADirectory => Self::NotADirectory { path },
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::Denied { path, source },
            _ => Self::Io { path, source },
        }
    }
}

impl<D: Disk> Shared<D> {
    fn open(&self) -> MutexGuard<'_, BTreeSet<JournalName>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Disk> fmt::Debug for Directory<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("open", &*self.shared.open()).finish_non_exhaustive()
    }
}

impl<D: Disk> Clone for Directory<D> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

/// The right to write one journal. It keeps the directory, and with it the lock.
pub(crate) struct Lease<D: Disk> {
    directory: Arc<Shared<D>>,
    journal: JournalName,
}

impl<D: Disk> Drop for Lease<D> {
    fn drop(&mut self) {
        self.directory.open().remove(&self.journal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;
    use strandline_core::{Pryj, Seq};

    #[test]
    fn a_second_open_is_refused_until_the_first_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        let first = Directory::open(&path).unwrap();
        let error = Directory::open(&path).err().unwrap();
        assert!(matches!(&error, DirectoryError::Locked { path: locked } if *locked == path), "{error}");
        let lease = first.lease(&JournalName::parse("a").unwrap()).unwrap();
        drop(first);
        assert!(Directory::open(&path).is_err(), "an open journal keeps the directory");
        drop(lease);
        assert!(Directory::open(&path).is_ok());
    }

    /// The lock holds against another process too. The other one is this very test, started again.
    #[test]
    fn another_process_is_refused() {
        const CHILD: &str = "STRANDLINE_LOCK_TEST";
        if let Ok(path) = std::env::var(CHILD) {
            assert!(matches!(Directory::open(path), Err(DirectoryError::Locked { .. })));
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let _held = Directory::open(root.path()).unwrap();
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "directory::tests::another_process_is_refused"])
            .env(CHILD, root.path())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0, "there is no lock file");
    }

    #[test]
    fn each_name_is_open_at_most_once() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path()).unwrap();
        let (a, b) = (JournalName::parse("a").unwrap(), JournalName::parse("b").unwrap());
        let lease = directory.lease(&a).unwrap();
        assert_eq!(directory.lease(&a).err(), Some(AlreadyOpen(a.clone())));
        assert!(directory.lease(&b).is_ok());
        drop(lease);
        assert!(directory.lease(&a).is_ok());
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        std::fs::write(&path, "").unwrap();
        let error = Directory::open(&path).err().unwrap();
        assert!(matches!(error, DirectoryError::NotADirectory { .. }), "{error}");
        assert!(error.to_string().contains("file is no directory"), "{error}");
        let denied = DirectoryError::new(&path, ErrorKind::PermissionDenied.into());
        assert!(matches!(denied, DirectoryError::Denied { .. }), "{denied}");
    }

    #[test]
    fn a_closed_journal_that_is_still_read_keeps_no_lock() {
        let root = tempfile::tempdir().unwrap();
        let open = || {
            Directory::open(root.path())?
                .journal::<Pryj>("a", crate::config())
                .map_err(Box::<dyn Error>::from)
        };
        let (first, _) = open().unwrap();
        assert!(open().is_err());
        first.append(b"one").unwrap();
        first.close().unwrap();
        let (second, _) = open().unwrap();
        assert_eq!(second.append(b"two").unwrap(), Seq::new(1));
        assert_eq!(first.durable_end(), Seq::new(1));
    }
}
