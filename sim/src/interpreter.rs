//! Which disk the effects are performed on: the simulated one, or one that lies, to see that the checks can fail.

use std::io;

use strandline::{Disk, DiskLayer};

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

impl DiskLayer for NeverSyncs {
    type Below = SimDisk;

    fn below(&self) -> &SimDisk {
        &self.0
    }

    fn sync(&self, _: &SimFile) -> io::Result<()> {
        Ok(())
    }
}
