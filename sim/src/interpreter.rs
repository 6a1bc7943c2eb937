//! Which disk the effects are performed on: the simulated one, or one that lies, to see that the checks can fail.

use std::io;

use strandline::{Access, Disk, Entry};

use crate::disk::{SimDisk, SimFile};

/// A disk that is a [`SimDisk`] underneath.
pub(crate) trait Interpreter: Disk {
    /// The interpreter of effects that works on this disk.
    fn over(disk: SimDisk) -> Self;
}

impl Interpreter for SimDisk {
    fn over(disk: SimDisk) -> Self {
        disk
    }
}

/// The canary: a disk whose syncs of files report success and do nothing. A proof that finds no fault with
/// it proves nothing.
pub(crate) struct NeverSyncs(SimDisk);

impl Interpreter for NeverSyncs {
    fn over(disk: SimDisk) -> Self {
        Self(disk)
    }
}

impl Disk for NeverSyncs {
    type File = SimFile;

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.0.list()
    }

    fn create(&self, name: &str) -> io::Result<SimFile> {
        self.0.create(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<SimFile> {
        self.0.open(name, access)
    }

    fn len(&self, file: &SimFile) -> io::Result<u64> {
        self.0.len(file)
    }

    fn read_at(&self, file: &SimFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(file, offset, buffer)
    }

    fn write_at(&self, file: &SimFile, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.0.write_at(file, offset, data)
    }

    fn sync(&self, _: &SimFile) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, file: &SimFile, len: u64) -> io::Result<()> {
        self.0.set_len(file, len)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
}
