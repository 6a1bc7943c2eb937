//! Reading either journal of a session, on behalf of one playback.

use std::sync::Arc;

use bytes::Bytes;
use strandline_core::session::Side;
use strandline_core::{IoFailure, ReadRequest};

use crate::disk::Disk;
use crate::reader::ReadBuffer;
use crate::segment_reader::{SegmentReader, Target};

/// The files of both journals.
pub(super) struct SessionFiles<D: Disk> {
    input: (SegmentReader<D>, ReadBuffer),
    events: (SegmentReader<D>, ReadBuffer),
}

impl<D: Disk> SessionFiles<D> {
    pub(super) fn new(disk: &Arc<D>, input: Target, events: Target) -> Self {
        let files = |target| (SegmentReader::new(Arc::clone(disk), target), ReadBuffer::default());
        Self { input: files(input), events: files(events) }
    }

    /// What a playback asks for.
    pub(super) fn read(&mut self, side: Side, request: ReadRequest) -> Result<Bytes, IoFailure> {
        let (files, buffer) = match side {
            Side::Input => &mut self.input,
            Side::Events => &mut self.events,
        };
        buffer.fill(request.len, |buffer| files.read(request, buffer))
    }
}
