//! Keeping a copy of bytes that recovery is about to cut.
//!
//! What looks like a torn write may, once in a while, be damage to something that mattered. The copy costs
//! little and lets somebody look.

use std::sync::Arc;

use strandline_core::{IoCause, IoFailure, IoOperation, ReadRequest, SegmentId};

use crate::disk::{Access, Disk};
use crate::failure::failed;
use crate::perform::Performer;
use crate::temporary::torn_copy;
use crate::transfer::{read_full, write_all};

/// Differing copies of bytes cut at the same place that are kept; only repeated damage makes a second.
const COPIES_MAX: u32 = 1_000;

/// A range of a file.
struct Cut<D: Disk> {
    file: Arc<D::File>,
    offset: u64,
    len: u64,
}

impl<D: Disk> Performer<D> {
    /// Copies bytes of a segment into a file beside it. A crash between the copy and the cut leads
    /// here again, so an identical copy is reused; one that differs is of another cut and stays.
    pub(crate) fn set_aside(&self, segment: SegmentId, offset: u64, len: u64) -> Result<(), IoFailure> {
        let segment_file = self.journal.segment_file(segment);
        let cut = Cut { file: self.open(segment, Access::Read)?, offset, len };
        for k in 0..COPIES_MAX {
            let name = torn_copy(&segment_file, offset, k);
            match self.disk.open(&name, Access::Read).map_err(failed(IoOperation::Open)) {
                Ok(existing) if self.is_copy(&cut, &existing)? => return self.sync_directory(),
                Ok(_) => {}
                Err(failure) if failure.cause == IoCause::NotFound => return self.copy_cut(&cut, &name),
                Err(failure) => return Err(failure),
            }
        }
        Err(IoFailure::new(IoOperation::Open, IoCause::AlreadyExists))
    }

    fn copy_cut(&self, cut: &Cut<D>, name: &str) -> Result<(), IoFailure> {
        let (temporary, copy) = self.temporaries.create(&*self.disk, name)?;
        let placed = self
            .for_each_chunk(cut, |offset, bytes| {
                write_all(&*self.disk, &copy, offset, bytes).map_err(failed(IoOperation::Write))?;
                Ok(true)
            })
            .and_then(|_| self.disk.sync(&copy).map_err(failed(IoOperation::Sync)))
            .and_then(|()| self.disk.rename(&temporary, name).map_err(failed(IoOperation::Rename)));
        if let Err(failure) = placed {
            self.remove_leftover(&temporary);
            return Err(failure);
        }
        self.sync_directory()
    }

    fn is_copy(&self, cut: &Cut<D>, copy: &D::File) -> Result<bool, IoFailure> {
        let reading = IoOperation::Read;
        if self.disk.len(copy).map_err(failed(reading))? != cut.len {
            return Ok(false);
        }
        let mut theirs = Vec::new();
        self.for_each_chunk(cut, |offset, ours| {
            theirs.resize(ours.len(), 0);
            let n = read_full(&*self.disk, copy, offset, &mut theirs).map_err(failed(reading))?;
            Ok(theirs.get(..n) == Some(ours))
        })
    }

    /// Calls `visit` with the cut bytes in order, and their offset within the cut, as long as it returns true.
    fn for_each_chunk(
        &self,
        cut: &Cut<D>,
        mut visit: impl FnMut(u64, &[u8]) -> Result<bool, IoFailure>,
    ) -> Result<bool, IoFailure> {
        let chunk = usize::try_from(cut.len).unwrap_or(usize::MAX).min(ReadRequest::LEN_MAX);
        let mut buffer = vec![0; chunk];
        let mut done = 0;
        while done < cut.len {
            let len = usize::try_from(cut.len - done).unwrap_or(usize::MAX).min(chunk);
            let (piece, _) = buffer.split_at_mut(len);
            let n = read_full(&*self.disk, &cut.file, cut.offset + done, piece)
                .map_err(failed(IoOperation::Read))?;
            if n < len {
                return Err(IoFailure::new(IoOperation::Read, IoCause::EndOfFile));
            }
            if !visit(done, piece)? {
                return Ok(false);
            }
            done += len as u64;
        }
        Ok(true)
    }
}
