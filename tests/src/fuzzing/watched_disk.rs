//! A disk that counts what is read, so that a loop without end, or a search in circles, is a failed assertion.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use strandline::{Disk, DiskLayer};
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

impl DiskLayer for WatchedDisk {
    type Below = SimDisk;

    fn below(&self) -> &SimDisk {
        &self.disk
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
}
