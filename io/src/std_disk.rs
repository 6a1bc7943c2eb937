//! The real disk: one directory of the operating system's file system.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::disk::{Access, Disk, Entry};

/// Events can be private: nobody but the owner reads them, whatever the umask says.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// A directory of the operating system's file system.
///
/// It keeps its own handle on the directory, which serves for syncing its entries and for the lock, so that
/// there is no lock file that somebody could delete. Files are created with mode 0600, directories with 0700,
/// even under a umask that would leave less. Symbolic links are followed when files are opened and listed.
#[derive(Debug)]
pub struct StdDisk {
    /// Absolute, so that a later change of the working directory does not move us.
    path: PathBuf,
    directory: File,
}

impl StdDisk {
    /// Opens the directory, which is created if it is missing, with what is missing above it. The entry
    /// of every directory on the way that was created, and of the last one in any case, is durable.
    ///
    /// # Errors
    /// `NotADirectory` if something else is in its place, or whatever the file system reports.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let existed = path.is_dir();
        if !existed {
            create_missing(&path)?;
        }
        // Who created it may have been killed before it synced the entry, so an existing one is synced as well;
        // a parent that we may not open is its owner's business.
        match sync_parent(&path) {
            Err(error) if !(existed && error.kind() == ErrorKind::PermissionDenied) => return Err(error),
            _ => {}
        }
        Self::open(path)
    }

    /// Opens an existing directory. Changes nothing, so that reading works in a directory without write
    /// permission.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, or whatever else the file system reports.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        // Looked at before it is opened: to open a FIFO in its place would block.
        if !fs::metadata(&path)?.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        let directory = File::open(&path)?;
        Ok(Self { path, directory })
    }

    /// Takes the exclusive lock on the directory. It is held until the lock is dropped or the process ends.
    ///
    /// # Errors
    /// `WouldBlock` if another handle, in this process or another one, holds it.
    pub fn try_lock(&self) -> io::Result<DirectoryLock> {
        let directory = self.directory.try_clone()?;
        match directory.try_lock() {
            Ok(()) => Ok(DirectoryLock { directory }),
            Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether somebody holds the lock. Others who ask are not in the way of each other; a writer that opens at this very
    /// moment tries again.
    ///
    /// # Errors
    /// The system does not say.
    pub fn is_locked(&self) -> io::Result<bool> {
        match self.directory.try_clone()?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The directory's absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if the path no longer leads to the directory that we hold, and have locked: it was moved away, and
    /// maybe another put in its place. Files are opened by path, so this would split the journal in two.
    fn check_not_replaced(&self) -> io::Result<()> {
        let held = self.directory.metadata()?;
        let found = fs::metadata(&self.path)?;
        if (held.dev(), held.ino()) == (found.dev(), found.ino()) {
            Ok(())
        } else {
            Err(io::Error::other("the directory was replaced by another one while it was open"))
        }
    }
}

/// The exclusive lock on a directory, held until this is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    /// Shares the disk's handle, to which the lock belongs.
    directory: File,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Said explicitly, because closing this copy of the handle would leave the lock to the other ones. If it
        // fails, the lock ends with the disk.
        let _ = self.directory.unlock();
    }
}

impl Disk for StdDisk {
    type File = File;

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            match fs::metadata(entry.path()) {
                Ok(metadata) => {
                    let is_file = metadata.is_file();
                    entries.push(Entry { name, len: if is_file { metadata.len() } else { 0 }, is_file });
                }
                // A link whose target cannot be seen is listed as a file: if it is a segment, then to open
                // it fails, and that must be told; to leave it out would make a shorter journal. It has the
                // link's own length, because an empty file might be taken for what it is without a look.
                Err(_) if is_link(&entry) => {
                    let len = entry.metadata()?.len().max(1);
                    entries.push(Entry { name, len, is_file: true });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {} // removed meanwhile
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        self.check_not_replaced()?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(self.path.join(name))?;
        // The umask may have taken bits away, with 0777 all of them; the next open would then fail.
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        Ok(file)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<File> {
        OpenOptions::new().read(true).write(access == Access::ReadWrite).open(self.path.join(name))
    }

    fn len(&self, file: &File) -> io::Result<u64> {
        Ok(file.metadata()?.len())
    }

    fn read_at(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    fn write_at(&self, file: &File, offset: u64, data: &[u8]) -> io::Result<usize> {
        file.write_at(data, offset)
    }

    /// `fdatasync`, which covers the length as well; only times are left out.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// Creates the directory and what is missing above it, from the top down, each synced into its parent.
fn create_missing(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_missing(parent)?;
    }
    match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?,
        // Another process was faster, which is as good.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(ErrorKind::NotADirectory.into());
        }
        Err(error) => return Err(error),
    }
    sync_parent(path)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

fn is_link(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn creates_what_is_missing_for_the_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let disk = StdDisk::create(&path).unwrap();
        disk.create("file").unwrap();
        assert_eq!(mode(&root.path().join("a")), 0o700);
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("file")), 0o600);
        assert_eq!(disk.create("file").unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(StdDisk::create(&path).is_ok(), "an existing directory is taken as it is");
    }

    #[test]
    fn something_else_in_its_place_is_told() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "").unwrap();
        assert_eq!(StdDisk::create(&path).unwrap_err().kind(), ErrorKind::NotADirectory);
        assert_eq!(StdDisk::open(&path).unwrap_err().kind(), ErrorKind::NotADirectory);
        assert_eq!(StdDisk::create(path.join("below")).unwrap_err().kind(), ErrorKind::NotADirectory);
        assert_eq!(StdDisk::open(root.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn lists_files_and_follows_links() {
        let root = tempfile::tempdir().unwrap();
        let disk = StdDisk::open(root.path()).unwrap();
        fs::write(root.path().join("file"), "12345").unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        symlink("file", root.path().join("link")).unwrap();
        symlink("nowhere", root.path().join("dangling")).unwrap();
        let mut entries = disk.list().unwrap();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let entry = |name: &str, len, is_file| Entry { name: name.into(), len, is_file };
        assert_eq!(
            entries,
            [
                entry("dangling", 7, true),
                entry("file", 5, true),
                entry("folder", 0, false),
                entry("link", 5, true)
            ]
        );
    }

    #[test]
    fn the_lock_is_exclusive_and_ends_with_its_holder() {
        let root = tempfile::tempdir().unwrap();
        let first = StdDisk::open(root.path()).unwrap();
        let second = StdDisk::open(root.path()).unwrap();
        let lock = first.try_lock().unwrap();
        assert_eq!(second.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(lock);
        let lock = wait_for_lock(&second);
        assert_eq!(first.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(second);
        assert!(first.try_lock().is_err(), "the lock keeps the handle");
        drop(lock);
        drop(wait_for_lock(&first));
    }

    /// A process that another test is just starting may hold a copy of the handle for a moment.
    fn wait_for_lock(disk: &StdDisk) -> DirectoryLock {
        loop {
            match disk.try_lock() {
                Ok(lock) => return lock,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }

    #[test]
    fn nothing_is_created_in_a_directory_that_took_its_place() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        let disk = StdDisk::create(&path).unwrap();
        fs::rename(&path, root.path().join("moved")).unwrap();
        assert_eq!(disk.create("file").unwrap_err().kind(), ErrorKind::NotFound);
        fs::create_dir(&path).unwrap();
        let error = disk.create("file").unwrap_err();
        assert!(error.to_string().contains("replaced"), "{error}");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    /// The umask belongs to the process, so this runs in another one: this very test, called by a shell.
    #[test]
    fn no_umask_takes_the_owner_out() {
        const CHILD: &str = "STRANDLINE_UMASK_TEST";
        if let Ok(root) = std::env::var(CHILD) {
            StdDisk::create(Path::new(&root).join("journal")).unwrap().create("file").unwrap();
            return;
        }
        for umask in ["0777", "0000"] {
            let root = tempfile::tempdir().unwrap();
            let status = std::process::Command::new("sh")
                .args(["-c", &format!("umask {umask}; exec \"$0\" --exact \"$1\"")])
                .arg(std::env::current_exe().unwrap())
                .arg("std_disk::tests::no_umask_takes_the_owner_out")
                .env(CHILD, root.path())
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "umask {umask}");
            assert_eq!(mode(&root.path().join("journal")), 0o700, "umask {umask}");
            assert_eq!(mode(&root.path().join("journal/file")), 0o600, "umask {umask}");
        }
    }
}
