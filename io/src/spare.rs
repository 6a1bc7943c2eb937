//! A segment file prepared in advance: filled with zeros and synced while nobody waits for it.
//!
//! Filling takes most of the time of a create (132 ms for 64 MiB where it was measured), and a commit
//! waits for a create. With a spare it is one small write, one sync and one rename.

use std::sync::PoisonError;

use strandline_core::{IoFailure, IoOperation};

use crate::disk::Disk;
use crate::failure::failed;
use crate::perform::Performer;
use crate::sync::MutexGuard;
use crate::temporary::spare_target;
use crate::transfer::write_zeros;

/// A file of zeros under a temporary name.
pub(crate) struct Spare<D: Disk> {
    pub(crate) name: String,
    pub(crate) file: D::File,
    /// Its length in bytes.
    pub(crate) len: u64,
}

impl<D: Disk> Performer<D> {
    /// Prepares a file of `len` zero bytes for the next create, unless there is one. Takes as long as
    /// writing and syncing it takes; not for a thread for which a commit waits.
    ///
    /// # Errors
    /// The failure, which harms nothing: the next create then makes its own file.
    pub fn prepare_spare(&self, len: u64) -> Result<(), IoFailure> {
        if self.spare().is_some() {
            return Ok(());
        }
        let disk = &*self.disk;
        let (name, file) = self.temporaries.create(disk, &spare_target(&self.journal))?;
        let filled = write_zeros(disk, &file, 0, len)
            .map_err(failed(IoOperation::Write))
            .and_then(|()| disk.sync(&file).map_err(failed(IoOperation::Sync)));
        if let Err(failure) = filled {
            self.remove_leftover(&name);
            return Err(failure);
        }
        // The lock was not held meanwhile, so that a create did not wait; somebody else may have been faster.
        let superfluous = match &mut *self.spare() {
            Some(_) => Some(name),
            empty => {
                *empty = Some(Spare { name, file, len });
                None
            }
        };
        if let Some(name) = superfluous {
            self.remove_leftover(&name);
        }
        Ok(())
    }

    /// Bytes that the spare file takes; 0 if there is none.
    #[must_use]
    pub fn spare_bytes(&self) -> u64 {
        self.spare().as_ref().map_or(0, |spare| spare.len)
    }

    /// Removes the spare file, if there is one. Best effort.
    pub fn discard_spare(&self) {
        if let Some(spare) = self.take_spare() {
            self.remove_leftover(&spare.name);
        }
    }

    pub(crate) fn take_spare(&self) -> Option<Spare<D>> {
        self.spare().take()
    }

    fn spare(&self) -> MutexGuard<'_, Option<Spare<D>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
