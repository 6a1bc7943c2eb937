//! A disk that is another one but for a few calls: one that counts, fails, waits or slows down.

use std::io;

use crate::disk::{Access, Disk, Entry};

/// A layer over another disk. Each call goes to the disk below unless the layer has a way of its own, and the whole is
/// a [`Disk`]:
///
/// ```
/// use std::io;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use strandline::{Disk, DiskLayer, StdDisk};
///
/// struct Counting {
///     disk: StdDisk,
///     syncs: AtomicU64,
/// }
///
/// impl DiskLayer for Counting {
///     type Below = StdDisk;
///
///     fn below(&self) -> &StdDisk {
///         &self.disk
///     }
///
///     fn sync(&self, file: &<StdDisk as Disk>::File) -> io::Result<()> {
///         self.syncs.fetch_add(1, Ordering::Relaxed);
///         self.disk.sync(file)
///     }
/// }
/// ```
///
/// Errors and promises are those of the [`Disk`] call of the same name.
#[allow(missing_docs, reason = "the calls of `Disk`, under the same names")]
pub trait DiskLayer: Send + Sync + 'static {
    /// The disk below.
    type Below: Disk;

    /// The disk below.
    fn below(&self) -> &Self::Below;

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.below().list()
    }

    fn create(&self, name: &str) -> io::Result<<Self::Below as Disk>::File> {
        self.below().create(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<<Self::Below as Disk>::File> {
        self.below().open(name, access)
    }

    fn len(&self, file: &<Self::Below as Disk>::File) -> io::Result<u64> {
        self.below().len(file)
    }

    fn read_at(
        &self,
        file: &<Self::Below as Disk>::File,
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        self.below().read_at(file, offset, buffer)
    }

    fn write_at(&self, file: &<Self::Below as Disk>::File, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.below().write_at(file, offset, data)
    }

    fn sync(&self, file: &<Self::Below as Disk>::File) -> io::Result<()> {
        self.below().sync(file)
    }

    fn set_len(&self, file: &<Self::Below as Disk>::File, len: u64) -> io::Result<()> {
        self.below().set_len(file, len)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.below().rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.below().remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.below().sync_directory()
    }
}

impl<L: DiskLayer> Disk for L {
    type File = <L::Below as Disk>::File;

    fn list(&self) -> io::Result<Vec<Entry>> {
        DiskLayer::list(self)
    }

    fn create(&self, name: &str) -> io::Result<Self::File> {
        DiskLayer::create(self, name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Self::File> {
        DiskLayer::open(self, name, access)
    }

    fn len(&self, file: &Self::File) -> io::Result<u64> {
        DiskLayer::len(self, file)
    }

    fn read_at(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        DiskLayer::read_at(self, file, offset, buffer)
    }

    fn write_at(&self, file: &Self::File, offset: u64, data: &[u8]) -> io::Result<usize> {
        DiskLayer::write_at(self, file, offset, data)
    }

    fn sync(&self, file: &Self::File) -> io::Result<()> {
        DiskLayer::sync(self, file)
    }

    fn set_len(&self, file: &Self::File, len: u64) -> io::Result<()> {
        DiskLayer::set_len(self, file, len)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        DiskLayer::rename(self, from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        DiskLayer::remove(self, name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        DiskLayer::sync_directory(self)
    }
}
