//! A real disk on which a write can be stopped half way, so that a process can be killed in the middle of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use strandline::{Access, Disk, Entry, StdDisk};

/// Bytes of a write that are not written when it stops: less than the last event of it has.
const MISSING: usize = 100;

/// A file system, and whether the next write of events is to stop.
pub(super) struct StoppingDisk {
    disk: StdDisk,
    stops: Arc<AtomicBool>,
    /// Tells how many bytes are written, and of how many.
    tell: fn(usize, usize),
}

impl StoppingDisk {
    pub(super) fn new(disk: StdDisk, stops: Arc<AtomicBool>, tell: fn(usize, usize)) -> Self {
        Self { disk, stops, tell }
    }
}

impl Disk for StoppingDisk {
    type File = <StdDisk as Disk>::File;

    fn write_at(&self, file: &Self::File, offset: u64, data: &[u8]) -> io::Result<usize> {
        // A mark alone is shorter.
        let written = data.len().saturating_sub(MISSING);
        if written < MISSING || !self.stops.swap(false, Ordering::SeqCst) {
            return self.disk.write_at(file, offset, data);
        }
        let written = self.disk.write_at(file, offset, data.get(..written).unwrap_or_default())?;
        (self.tell)(written, data.len());
        loop {
            thread::park();
        }
    }

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        self.disk.create(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Self::File> {
        self.disk.open(name, access)
    }

    fn len(&self, file: &Self::File) -> io::Result<u64> {
        self.disk.len(file)
    }

    fn read_at(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.read_at(file, offset, buffer)
    }

    fn sync(&self, file: &Self::File) -> io::Result<()> {
        self.disk.sync(file)
    }

    fn set_len(&self, file: &Self::File, len: u64) -> io::Result<()> {
        self.disk.set_len(file, len)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }
}
