//! A few open files, so that the active segment is not opened again for each write.

use std::io;
use std::sync::Arc;

use strandline_core::SegmentId;

use crate::disk::{Access, Disk};

/// The active segment, the one before it, and what a reader moves through.
const OPEN_FILES_MAX: usize = 4;

/// Open segment files, the most recently used last.
pub(crate) struct OpenFiles<D: Disk> {
    files: Vec<OpenFile<D>>,
}

struct OpenFile<D: Disk> {
    segment: SegmentId,
    access: Access,
    file: Arc<D::File>,
}

impl<D: Disk> OpenFiles<D> {
    pub(crate) const fn new() -> Self {
        Self { files: Vec::new() }
    }

    /// The segment's file, opened with at least this access. The one found open is used, for a write error that
    /// the system noticed late is reported only through handles that were open at that time.
    pub(crate) fn open(
        &mut self,
        disk: &D,
        name: &str,
        segment: SegmentId,
        access: Access,
    ) -> io::Result<Arc<D::File>> {
        if let Some(file) = self.find(segment, access) {
            return Ok(file);
        }
        let file = Arc::new(disk.open(name, access)?);
        self.insert(segment, access, Arc::clone(&file));
        Ok(file)
    }

    /// The segment's file, if it is open with at least this access.
    pub(crate) fn find(&mut self, segment: SegmentId, access: Access) -> Option<Arc<D::File>> {
        let index = self.files.iter().position(|open| {
            open.segment == segment && (open.access == Access::ReadWrite || open.access == access)
        })?;
        // Rotating keeps the order of the others; there are four at most.
        let from_here = self.files.get_mut(index..)?;
        from_here.rotate_left(1);
        from_here.last().map(|open| Arc::clone(&open.file))
    }

    /// Takes in an open file, in place of the one of the same segment.
    pub(crate) fn insert(&mut self, segment: SegmentId, access: Access, file: Arc<D::File>) {
        self.forget(segment);
        if self.files.len() == OPEN_FILES_MAX {
            // Rather one that is only read: see `open` for why a written one should stay.
            let evicted = self.files.iter().position(|open| open.access == Access::Read).unwrap_or(0);
            self.files.remove(evicted);
        }
        self.files.push(OpenFile { segment, access, file });
    }

    pub(crate) fn forget(&mut self, segment: SegmentId) {
        self.files.retain(|open| open.segment != segment);
    }
}
