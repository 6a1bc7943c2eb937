//! A copy of a journal that is being written: up to what is durable, and no further.
//!
//! Copying the files by hand while a writer is at work can catch a mark that promises bytes the copy has not got,
//! which is then rightly refused as damage. This call copies bytes that will not change any more, and
//! writes its own mark behind them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strandline_core::{
    BackupPlan, Framing, IoCause, IoFailure, IoOperation, JournalName, Listing, ReadRequest, SegmentId, Seq,
};

use crate::directory::lock;
use crate::disk::Disk;
use crate::error::Poisoned;
use crate::failure::failed;
use crate::listing::{ListingError, files_of};
use crate::segment_reader::{SegmentReader, Target};
use crate::shared::Shared;
use crate::std_disk::StdDisk;
use crate::temporary::Temporaries;
use crate::transfer::write_all;

/// What a backup copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Segment files written.
    pub segments: usize,
    /// Bytes written.
    pub bytes: u64,
    /// The copy's records end here (exclusive).
    pub end: Seq,
}

/// Why a backup failed. Half a copy is removed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The destination cannot be opened or created.
    #[error("the backup's directory {path} cannot be opened: {source}")]
    Destination {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The destination's files cannot be told apart.
    #[error("the backup's directory: {0}")]
    Listing(#[from] ListingError),
    /// There is such a journal already; a mixture of two copies would be no copy.
    #[error("the backup's directory {path} holds a journal {journal} already: choose another directory")]
    Occupied {
        /// The directory.
        path: PathBuf,
        /// The journal.
        journal: JournalName,
    },
    /// Somebody writes there: another backup into the same directory, or the owner of journals in it.
    #[error("the backup's directory {path} is open for writing already: wait, or choose another directory")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A segment cannot be read or its copy not be written.
    #[error("segment {segment} cannot be copied: {failure}; mend the cause and try again")]
    Copy {
        /// The segment.
        segment: SegmentId,
        /// What failed.
        failure: IoFailure,
    },
    /// The copies could not be given their names durably.
    #[error("the copied segments could not be named: {0}; remove the incomplete copy and try again")]
    Name(IoFailure),
    /// A thread panicked in the middle of a commit, so that what is durable is not known.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
}

pub(crate) fn backup<F: Framing, D: Disk>(
    shared: &Shared<F, D>,
    destination: &Path,
) -> Result<BackupReport, BackupError> {
    let journal = shared.performer.journal();
    let path = || destination.to_path_buf();
    let disk =
        StdDisk::create(destination).map_err(|source| BackupError::Destination { path: path(), source })?;
    let check_vacant = || match files_of(&disk, journal)?.listing == Listing::Segments(Vec::new()) {
        true => Ok(()),
        false => Err(BackupError::Occupied { path: path(), journal: journal.clone() }),
    };
    // Of the journal's own directory, which it keeps locked, this says more than that it is.
    check_vacant()?;
    // Two copies at once, of different lengths, would become one that has a hole.
    let _lock = lock(&disk).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => BackupError::Locked { path: path() },
        _ => BackupError::Destination { path: path(), source },
    })?;
    check_vacant()?;
    let mut copy = Copy {
        from: SegmentReader::new(Arc::clone(shared.performer.disk()), Target::Journal(journal.clone())),
        to: &disk,
        journal,
        temporaries: Temporaries::default(),
        buffer: vec![0; ReadRequest::LEN_MAX],
        unnamed: Vec::new(),
    };
    loop {
        let plan = shared.lock().core()?.backup_plan();
        match copy.run(&plan) {
            // Retention was faster than the copy: what is gone now is not part of the journal any more.
            Err(BackupError::Copy { segment, failure })
                if failure.cause == IoCause::NotFound && shared.lock().view().first() > segment.0 => {}
            result => return result,
        }
    }
}

/// A copy in progress.
struct Copy<'a, D: Disk> {
    from: SegmentReader<D>,
    to: &'a StdDisk,
    journal: &'a JournalName,
    temporaries: Temporaries,
    buffer: Vec<u8>,
    /// What was copied and has only its temporary name yet: that and the final one.
    unnamed: Vec<(String, String)>,
}

impl<D: Disk> Copy<'_, D> {
    fn run(&mut self, plan: &BackupPlan) -> Result<BackupReport, BackupError> {
        let mut bytes = 0;
        for (index, (segment, len)) in plan.segments.iter().enumerate() {
            let is_last = index + 1 == plan.segments.len();
            let mark = plan.mark.as_ref().filter(|_| is_last).map(|(offset, mark)| (*offset, &mark[..]));
            match self.segment(*segment, *len, mark) {
                Ok(written) => bytes += written,
                Err(failure) => {
                    self.remove_copies();
                    return Err(BackupError::Copy { segment: *segment, failure });
                }
            }
        }
        self.name_copies().map_err(BackupError::Name)?;
        Ok(BackupReport { segments: plan.segments.len(), bytes, end: plan.end })
    }

    /// Copies the first `len` bytes of a segment, and the mark behind them; gives the bytes written.
    fn segment(
        &mut self,
        segment: SegmentId,
        len: u64,
        mark: Option<(u64, &[u8])>,
    ) -> Result<u64, IoFailure> {
        let name = self.journal.segment_file(segment);
        let (temporary, file) = self.temporaries.create(self.to, &name)?;
        self.unnamed.push((temporary, name));
        let writing = failed(IoOperation::Write);
        let mut done = 0;
        while done < len {
            let wanted = usize::try_from(len - done).unwrap_or(usize::MAX).min(self.buffer.len());
            let request = ReadRequest { segment, offset: done, len: wanted };
            let n = self.from.read(request, &mut self.buffer)?;
            if n < wanted {
                return Err(IoFailure::new(IoOperation::Read, IoCause::EndOfFile));
            }
            write_all(self.to, &file, done, &self.buffer[..n]).map_err(&writing)?;
            done += n as u64;
        }
        if let Some((offset, mark)) = mark {
            write_all(self.to, &file, offset, mark).map_err(&writing)?;
            done = done.max(offset + mark.len() as u64);
        }
        self.to.sync(&file).map_err(failed(IoOperation::Sync))?;
        Ok(done)
    }

    /// Gives the copies their names once all of them are whole: half a copy would look like a shorter
    /// journal. The last one first, so that only a copy with its end is ever seen.
    fn name_copies(&mut self) -> Result<(), IoFailure> {
        while let Some((temporary, name)) = self.unnamed.pop() {
            self.to.rename(&temporary, &name).map_err(failed(IoOperation::Rename))?;
        }
        self.to.sync_directory().map_err(failed(IoOperation::SyncDirectory))
    }

    /// Best effort, as the failure that leads here is what matters.
    fn remove_copies(&mut self) {
        for (temporary, _) in self.unnamed.drain(..) {
            let _ = self.to.remove(&temporary);
        }
        self.from.close_files();
    }
}
