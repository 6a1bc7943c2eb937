//! A disk that counts what is read, so that a loop without end, or a search in circles, is a failed assertion.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use strandline::{Access, Disk, Entry};
use strandline_sim::disk::{SimDisk, SimFile};

/// A simulated disk that counts reads.
#[derive(Debug)]
pub struct WatchedDisk {
    disk: SimDisk,
    calls: AtomicU64,
    bytes: AtomicU64,
    calls_max: AtomicU64,
}

impl WatchedDisk {
    /// Counts the reads of this disk.
    #[must_use]
    pub const fn new(disk: SimDisk) -> Self {
        let (calls, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { disk, calls, bytes, calls_max: AtomicU64::new(u64::MAX) }
    }

    /// The disk below.
    #[must_use]
    pub const fn below(&self) -> &SimDisk {
        &self.disk
    }

    /// From here on at most `calls` reads may be made, until [`end`](Self::end).
    pub(super) fn begin(&self, calls: u64) {
        self.calls.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.calls_max.store(calls, Ordering::Relaxed);
    }

    /// The bytes read since the beginning.
    pub(super) fn end(&self) -> u64 {
        self.calls_max.store(u64::MAX, Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Disk for WatchedDisk {
    type File = SimFile;

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<SimFile> {
        self.disk.create(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<SimFile> {
        self.disk.open(name, access)
    }

    fn len(&self, file: &SimFile) -> io::Result<u64> {
        self.disk.len(file)
    }

    fn read_at(&self, file: &SimFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(
            calls < self.calls_max.load(Ordering::Relaxed),
            "{calls} reads are more than files of this size need"
        );
        let read = self.disk.read_at(file, offset, buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, file: &SimFile, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.disk.write_at(file, offset, data)
    }

    fn sync(&self, file: &SimFile) -> io::Result<()> {
        self.disk.sync(file)
    }

    fn set_len(&self, file: &SimFile, len: u64) -> io::Result<()> {
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
