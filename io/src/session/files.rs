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
    input: Files<D>,
    events: Files<D>,
}

struct Files<D: Disk> {
    segments: SegmentReader<D>,
    /// Filled in turn: what was read last, such as the newest command, may still be in use.
    buffers: [ReadBuffer; 2],
}

impl<D: Disk> SessionFiles<D> {
    pub(super) fn new(disk: &Arc<D>, input: Target, events: Target) -> Self {
        let files = |target| Files {
            segments: SegmentReader::new(Arc::clone(disk), target),
            buffers: [ReadBuffer::default(), ReadBuffer::default()],
        };
        Self { input: files(input), events: files(events) }
    }

    /// What a playback asks for.
    pub(super) fn read(&mut self, side: Side, request: ReadRequest) -> Result<Bytes, IoFailure> {
        let Files { segments, buffers } = match side {
            Side::Input => &mut self.input,
            Side::Events => &mut self.events,
        };
        buffers.swap(0, 1);
        let [buffer, _] = buffers;
        buffer.fill(request.len, |buffer| segments.read(request, buffer))
    }
}
