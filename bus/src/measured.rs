//! A disk whose writes and syncs are measured.

use std::io;
use std::time::Instant;

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use strandline::{Disk, DiskLayer};

/// How long syncs took, and how much was written at once: a commit is one write and one sync.
#[derive(Clone, Debug)]
pub struct DiskMeasures {
    sync_seconds: Histogram,
    write_bytes: Histogram,
}

/// A disk, measured.
#[derive(Debug)]
pub struct MeasuredDisk<D> {
    disk: D,
    measures: DiskMeasures,
}

impl Default for DiskMeasures {
    fn default() -> Self {
        Self {
            // From 16 microseconds to half a second.
            sync_seconds: Histogram::new(exponential_buckets(16e-6, 2.0, 16)),
            // From 64 bytes to 16 MiB.
            write_bytes: Histogram::new(exponential_buckets(64.0, 4.0, 10)),
        }
    }
}

impl DiskMeasures {
    /// The disk, whose writes and syncs are counted here from now on.
    #[must_use]
    pub fn of<D: Disk>(&self, disk: D) -> MeasuredDisk<D> {
        MeasuredDisk { disk, measures: self.clone() }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("sync_seconds", "How long syncs of files took", self.sync_seconds.clone());
        registry.register("write_bytes", "How much was written at once", self.write_bytes.clone());
    }
}

impl<D: Disk> DiskLayer for MeasuredDisk<D> {
    type Below = D;

    fn below(&self) -> &D {
        &self.disk
    }

    fn write_at(&self, file: &D::File, offset: u64, data: &[u8]) -> io::Result<usize> {
        let written = self.disk.write_at(file, offset, data)?;
        #[allow(clippy::cast_precision_loss, reason = "a length is far below 2^52")]
        self.measures.write_bytes.observe(written as f64);
        Ok(written)
    }

    fn sync(&self, file: &D::File) -> io::Result<()> {
        let begun = Instant::now();
        let synced = self.disk.sync(file);
        self.measures.sync_seconds.observe(begun.elapsed().as_secs_f64());
        synced
    }
}
