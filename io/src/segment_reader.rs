//! Reading segments by their identity, with handles of the reader's own.

use std::sync::Arc;

use strandline_core::{IoFailure, IoOperation, JournalName, ReadRequest};

use crate::disk::{Access, Disk};
use crate::failure::failed;
use crate::open_files::OpenFiles;
use crate::transfer::read_full;

/// What is read: a journal's segments, or one file on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All segments of the journal of this name.
    Journal(JournalName),
    /// The one file of this name: a segment without its neighbours, or a headerless `event-journal.bin`.
    File(String),
}

/// Reads on behalf of one reader. Its handles are its own and for reading only, so that readers stand in
/// nobody's way, and go on with a segment that retention has just removed.
pub(crate) struct SegmentReader<D: Disk> {
    disk: Arc<D>,
    target: Target,
    files: OpenFiles<D>,
}

impl<D: Disk> SegmentReader<D> {
    pub(crate) const fn new(disk: Arc<D>, target: Target) -> Self {
        Self { disk, target, files: OpenFiles::new() }
    }

    /// Reads into `buffer` what the request asks for; returns how many bytes there were, fewer than asked only
    /// at the end of the file.
    pub(crate) fn read(&mut self, request: ReadRequest, buffer: &mut [u8]) -> Result<usize, IoFailure> {
        let segment = request.segment;
        let file = match self.files.find(segment, Access::Read) {
            Some(file) => file,
            None => {
                let name = match &self.target {
                    Target::Journal(journal) => &journal.segment_file(segment),
                    Target::File(name) => name,
                };
                let opened = self.files.open(&self.disk, name, segment, Access::Read);
                opened.map_err(failed(IoOperation::Open))?
            }
        };
        let len = request.len.min(buffer.len());
        let (buffer, _) = buffer.split_at_mut(len);
        read_full(&*self.disk, &file, request.offset, buffer).map_err(failed(IoOperation::Read))
    }

    /// Forgets every open file, so that the next read finds what bears its name now.
    pub(crate) fn close_files(&mut self) {
        self.files = OpenFiles::new();
    }
}
