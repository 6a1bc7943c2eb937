//! The interpreter of the core's effects: which calls to the disk each one is, and in which order.
//!
//! There is only this one. The simulator runs it over its fake disk and crashes it between any two calls,
//! so that the order here is the order that was proved.

use std::sync::{Arc, PoisonError};

use strandline_core::{Effect, IoCause, IoFailure, IoOperation, JournalName, ReadRequest, SegmentId};

use crate::disk::{Access, Disk};
use crate::failure::failed;
use crate::open_files::OpenFiles;
use crate::spare::Spare;
use crate::sync::{Mutex, MutexGuard};
use crate::temporary::{Temporaries, is_temporary_of};
use crate::transfer::{read_full, write_all, write_zeros};

/// Performs the effects of one journal on a disk.
///
/// It may be shared between threads: background effects ([`Effect::is_background`]) run beside the others.
pub struct Performer<D: Disk> {
    pub(crate) disk: Arc<D>,
    pub(crate) journal: JournalName,
    pub(crate) temporaries: Temporaries,
    pub(crate) spare: Mutex<Option<Spare<D>>>,
    files: Mutex<OpenFiles<D>>,
}

impl<D: Disk> Performer<D> {
    /// A performer for the journal of this name.
    #[must_use]
    pub fn new(disk: Arc<D>, journal: JournalName) -> Self {
        Self {
            disk,
            journal,
            temporaries: Temporaries::default(),
            spare: Mutex::new(None),
            files: Mutex::new(OpenFiles::new()),
        }
    }

    /// Performs one effect to its end.
    ///
    /// # Errors
    /// The first failure, with the operation that failed: a failed sync is reported as one even where it
    /// was part of a create. What was half made under a temporary name is removed, best effort.
    ///
    /// # Panics
    /// On [`Effect::Read`], which has bytes as its answer: that is what [`Performer::read`] is for.
    pub fn perform(&self, effect: &Effect) -> Result<(), IoFailure> {
        let result = match effect {
            Effect::Create { segment, head, reserve } => self.create(*segment, head, *reserve),
            Effect::Reserve { segment, from, to } => self.reserve(*segment, *from, *to),
            Effect::Write { segment, offset, data } => self.write(*segment, *offset, data),
            Effect::Sync { segment } => self.sync(*segment),
            Effect::Truncate { segment, len } => self.truncate(*segment, *len),
            Effect::SetAside { segment, offset, len } => self.set_aside(*segment, *offset, *len),
            Effect::Remove { segment } => self.remove(*segment),
            Effect::SyncDirectory => self.sync_directory(),
            Effect::RemoveTemporaries => {
                self.remove_temporaries();
                Ok(())
            }
            Effect::Read(request) => panic!("{request:?} is answered with bytes: call Performer::read"),
        };
        if result.is_err_and(|failure| failure.is_no_space()) {
            // The records come first; the spare was only for speed.
            self.discard_spare();
        }
        result
    }

    /// Reads into `buffer`, which is at least as long as the request asks; returns how many bytes
    /// there were, fewer than asked only at the end of the file.
    ///
    /// # Errors
    /// The failure to open or to read.
    pub fn read(&self, request: ReadRequest, buffer: &mut [u8]) -> Result<usize, IoFailure> {
        let file = self.open(request.segment, Access::Read)?;
        let len = request.len.min(buffer.len());
        let (buffer, _) = buffer.split_at_mut(len);
        read_full(&*self.disk, &file, request.offset, buffer).map_err(failed(IoOperation::Read))
    }

    /// The disk on which it works.
    #[must_use]
    pub const fn disk(&self) -> &Arc<D> {
        &self.disk
    }

    /// The journal whose files it handles.
    #[must_use]
    pub const fn journal(&self) -> &JournalName {
        &self.journal
    }

    /// Closes the files that it has open; they are opened again when needed.
    pub fn close_files(&self) {
        *self.files() = OpenFiles::new();
    }

    pub(crate) fn open(&self, segment: SegmentId, access: Access) -> Result<Arc<D::File>, IoFailure> {
        let mut files = self.files();
        // Naming a file allocates, which the write path need not do for a file that is open.
        match files.find(segment, access) {
            Some(file) => Ok(file),
            None => files
                .open(&self.disk, &self.journal.segment_file(segment), segment, access)
                .map_err(failed(IoOperation::Open)),
        }
    }

    fn create(&self, segment: SegmentId, head: &[u8], reserve: u64) -> Result<(), IoFailure> {
        let target = self.journal.segment_file(segment);
        let (temporary, file, zeros_to) = match self.take_spare() {
            Some(spare) => (spare.name, spare.file, spare.len),
            None => {
                let (name, file) = self.temporaries.create(&*self.disk, &target)?;
                (name, file, 0)
            }
        };
        let placed = self
            .fill_head(&file, head, zeros_to, reserve)
            .and_then(|()| self.disk.rename(&temporary, &target).map_err(failed(IoOperation::Rename)));
        if let Err(failure) = placed {
            self.remove_leftover(&temporary);
            return Err(failure);
        }
        // From here on the file has its name: whatever fails now, it must not be removed.
        self.files().insert(segment, Access::ReadWrite, Arc::new(file));
        self.sync_directory()
    }

    /// Makes the file begin with `head` and read as zeros from there to `reserve`, where it ends; durably.
    /// It reads as zeros up to `zeros_to` already, and ends there. Where there is no space for the zeros, it ends
    /// behind the head: they are for speed, and what is left of the disk is for records.
    fn fill_head(&self, file: &D::File, head: &[u8], zeros_to: u64, reserve: u64) -> Result<(), IoFailure> {
        let disk = &*self.disk;
        let head_end = head.len() as u64;
        let reserve_end = reserve.max(head_end);
        write_all(disk, file, 0, head).map_err(failed(IoOperation::Write))?;
        let zeros_from = zeros_to.max(head_end);
        let zeros = write_zeros(disk, file, zeros_from, reserve_end).map_err(failed(IoOperation::Write));
        let end = match zeros {
            Err(failure) if failure.is_no_space() => head_end,
            zeros => zeros.map(|()| reserve_end)?,
        };
        if end < zeros_to.max(reserve_end) {
            disk.set_len(file, end).map_err(failed(IoOperation::Truncate))?;
        }
        disk.sync(file).map_err(failed(IoOperation::Sync))
    }

    fn reserve(&self, segment: SegmentId, from: u64, to: u64) -> Result<(), IoFailure> {
        let file = self.open(segment, Access::ReadWrite)?;
        write_zeros(&*self.disk, &file, from, to).map_err(failed(IoOperation::Write))
    }

    fn write(&self, segment: SegmentId, offset: u64, data: &[u8]) -> Result<(), IoFailure> {
        let file = self.open(segment, Access::ReadWrite)?;
        write_all(&*self.disk, &file, offset, data).map_err(failed(IoOperation::Write))
    }

    fn sync(&self, segment: SegmentId) -> Result<(), IoFailure> {
        let file = self.open(segment, Access::ReadWrite)?;
        self.disk.sync(&file).map_err(failed(IoOperation::Sync))
    }

    fn truncate(&self, segment: SegmentId, len: u64) -> Result<(), IoFailure> {
        let file = self.open(segment, Access::ReadWrite)?;
        self.disk.set_len(&file, len).map_err(failed(IoOperation::Truncate))
    }

    fn remove(&self, segment: SegmentId) -> Result<(), IoFailure> {
        self.files().forget(segment);
        match self.disk.remove(&self.journal.segment_file(segment)).map_err(failed(IoOperation::Remove)) {
            // Gone is gone, but whether durably so is known only after the sync.
            Err(failure) if failure.cause != IoCause::NotFound => Err(failure),
            _ => self.sync_directory(),
        }
    }

    pub(crate) fn sync_directory(&self) -> Result<(), IoFailure> {
        self.disk.sync_directory().map_err(failed(IoOperation::SyncDirectory))
    }

    /// Best effort: a leftover costs space and nothing else, and is found again at the next open.
    fn remove_temporaries(&self) {
        self.discard_spare();
        for entry in self.disk.list().unwrap_or_default() {
            if entry.is_file && is_temporary_of(&entry.name, &self.journal) {
                self.remove_leftover(&entry.name);
            }
        }
    }

    /// Removes a temporary file, best effort.
    pub(crate) fn remove_leftover(&self, temporary: &str) {
        // An error has nobody to go to: the failure that led here is already on its way.
        let _ = self.disk.remove(temporary);
    }

    fn files(&self) -> MutexGuard<'_, OpenFiles<D>> {
        // Nothing that can panic runs under this lock with the cache half changed.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
