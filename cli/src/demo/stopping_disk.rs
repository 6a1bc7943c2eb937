//! A real disk on which a write can be stopped half way, so that a process can be killed in the middle of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use strandline::{Disk, DiskLayer, StdDisk};

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

impl DiskLayer for StoppingDisk {
    type Below = StdDisk;

    fn below(&self) -> &StdDisk {
        &self.disk
    }

    fn write_at(&self, file: &<StdDisk as Disk>::File, offset: u64, data: &[u8]) -> io::Result<usize> {
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
}
