//! Reading records back, in order, from any place.

use core::marker::PhantomData;

use bytes::Bytes;

use crate::batch::Batch;
use crate::framing::{Frame, Front, front};
use crate::view::SegmentView;
use crate::{Framing, IoFailure, Layout, ReadRequest, SegmentId, Seq, View};

/// How far a cursor reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadUpTo {
    /// Only what is durable: nothing is delivered that can vanish.
    #[default]
    Durable,
    /// Also what the operating system has but a power loss could take.
    Written,
}

/// What a cursor says next.
#[derive(Clone, Debug)]
pub enum Replay<F: Framing> {
    /// The next records.
    Records(Batch<F>),
    /// Read these bytes and hand them to [`Cursor::handle_read`].
    Read(ReadRequest),
    /// Everything was delivered.
    CaughtUp,
    /// Records the cursor had not reached are no longer kept; it goes on at `first`.
    Trimmed {
        /// The first record that is kept.
        first: Seq,
    },
    /// The cursor stands beyond the journal's end: what it has seen is not this journal.
    Beyond {
        /// The journal's end (exclusive).
        end: Seq,
    },
}

/// Why a cursor cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The read failed; polling again asks for the same bytes.
    #[error("segment {segment}, offset {offset}, record {expected}: {failure}")]
    Failed {
        /// The segment.
        segment: SegmentId,
        /// Where the read began.
        offset: u64,
        /// The record that was to be read.
        expected: Seq,
        /// What failed.
        failure: IoFailure,
    },
    /// The file is shorter than the journal left it.
    #[error(
        "segment {segment} ends at offset {end}, before record {expected}: the file was cut by another program; run verify"
    )]
    Shrank {
        /// The segment.
        segment: SegmentId,
        /// Where it ends.
        end: u64,
        /// The record that was to be read.
        expected: Seq,
    },
    /// A frame is not what was written.
    #[error(
        "segment {segment}: damaged at offset {offset}, where record {expected} was expected: run verify"
    )]
    Damaged {
        /// The segment.
        segment: SegmentId,
        /// The first bad byte.
        offset: u64,
        /// The record that was to be read.
        expected: Seq,
    },
}

/// A reader's place in a journal: a plain value owned by the reader, the view only lent.
///
/// Drive it with [`poll`](Self::poll): it delivers batches, and asks for the bytes it has not got.
#[derive(Debug)]
pub struct Cursor<F: Framing> {
    /// The next record to deliver.
    next: Seq,
    until: ReadUpTo,
    /// A known frame start, at or before `next`.
    place: Option<Place>,
    /// The read that was asked for.
    asked: Option<Asked>,
    /// A frame needs at least this many bytes.
    need: usize,
    ready: Option<Batch<F>>,
    framing: PhantomData<fn() -> F>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    segment: SegmentId,
    offset: u64,
    /// The record that comes next there.
    seq: Seq,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    place: Place,
    layout: Layout,
    len: usize,
    /// Bytes of the segment, so that no length is trusted beyond them.
    segment_bytes: u64,
    limit: Seq,
}

impl<F: Framing> Cursor<F> {
    /// A cursor whose first record is `from`, or the journal's first one.
    #[must_use]
    pub const fn new(from: Seq, until: ReadUpTo) -> Self {
        Self { next: from, until, place: None, asked: None, need: 0, ready: None, framing: PhantomData }
    }

    /// Whether it waits for the answer to a read.
    pub(crate) const fn awaits_read(&self) -> bool {
        self.asked.is_some()
    }

    /// The next record that it will deliver.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        self.next
    }

    /// What comes next.
    pub fn poll(&mut self, view: &View<F>) -> Replay<F> {
        self.poll_before(view, Seq::new(u64::MAX))
    }

    /// What comes next, of the records before `end`.
    pub fn poll_before(&mut self, view: &View<F>, end: Seq) -> Replay<F> {
        if let Some(batch) = self.ready.take_if(|batch| batch.first() < end) {
            return self.deliver(batch, end);
        }
        if self.next < view.first() {
            // Where the framing's numbers begin later than the cursor (events begin at 1), nothing was missed.
            let missed = view.first() > F::FIRST_SEQ;
            (self.next, self.place) = (view.first(), None);
            if missed {
                return Replay::Trimmed { first: self.next };
            }
        }
        if self.next > view.written_end() {
            return Replay::Beyond { end: view.written_end() };
        }
        let limit = match self.until {
            ReadUpTo::Durable => view.durable_end(),
            ReadUpTo::Written => view.written_end(),
        };
        if self.next >= limit.min(end) {
            return Replay::CaughtUp;
        }
        if let Some(commit) = view.tail().find(self.next).filter(|commit| commit.end <= limit) {
            let batch = Batch::new(commit.frames.clone(), self.next, commit.end);
            self.place = None;
            return self.deliver(batch, end);
        }
        match view.segment_of(self.next) {
            Some(segment) => Replay::Read(self.ask(segment, limit)),
            None => Replay::CaughtUp,
        }
    }

    /// Goes on with the record that stands here: what lies before it is not delivered.
    pub(crate) fn skip_to(&mut self, seq: Seq, segment: SegmentId, offset: u64) {
        (self.next, self.place) = (seq, Some(Place { segment, offset, seq }));
        (self.ready, self.need) = (None, 0);
    }

    /// Goes on with this record, wherever it stands.
    pub(crate) fn skip_before(&mut self, seq: Seq) {
        if seq > self.next {
            (self.next, self.place, self.ready, self.need) = (seq, None, None, 0);
        }
    }

    fn deliver(&mut self, batch: Batch<F>, end: Seq) -> Replay<F> {
        let batch = batch.before(end);
        if batch.end() < end {
            self.next = batch.end();
        } else {
            // The place lies behind what was delivered.
            (self.next, self.place) = (batch.end(), None);
        }
        Replay::Records(batch)
    }

    /// Takes the bytes of the last request, or the failure of the read.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped. The cursor stays where it is.
    ///
    /// # Panics
    /// If no read was asked for: a programmer error.
    pub fn handle_read(&mut self, answer: Result<Bytes, IoFailure>) -> Result<(), ReadError> {
        let asked = self.asked.take();
        assert!(asked.is_some(), "a read is only handled after the cursor asked for it");
        let Some(asked) = asked else { return Ok(()) };
        let Place { segment, offset, .. } = asked.place;
        let expected = self.next;
        let bytes = answer.map_err(|failure| ReadError::Failed { segment, offset, expected, failure })?;
        if bytes.len() < asked.len {
            return Err(ReadError::Shrank { segment, end: offset + bytes.len() as u64, expected });
        }
        self.take_frames(&asked, &bytes)
    }

    fn ask(&mut self, segment: &SegmentView, limit: Seq) -> ReadRequest {
        let known = self.place.filter(|place| place.segment == segment.id());
        // Without a point, the records begin where the first one was noted: every segment with a
        // record has a point for its first.
        let place = known.or_else(|| {
            let (seq, offset) = segment.seek(self.next)?;
            Some(Place { segment: segment.id(), offset, seq })
        });
        let place = place.unwrap_or(Place { segment: segment.id(), offset: 0, seq: segment.first() });
        let left = usize::try_from(segment.bytes().saturating_sub(place.offset)).unwrap_or(usize::MAX);
        let len = self.need.max(ReadRequest::LEN_MAX).min(left);
        self.asked = Some(Asked {
            place,
            layout: segment.layout(),
            len,
            segment_bytes: segment.bytes(),
            limit: limit.min(segment.end()),
        });
        ReadRequest { segment: segment.id(), offset: place.offset, len }
    }

    /// Verifies whole frames up to the limit and makes a batch of them.
    fn take_frames(&mut self, asked: &Asked, bytes: &Bytes) -> Result<(), ReadError> {
        let mut seq = asked.place.seq;
        let mut position = 0usize;
        let mut start = 0usize;
        while seq < asked.limit {
            let damaged = ReadError::Damaged {
                segment: asked.place.segment,
                offset: asked.place.offset + position as u64,
                expected: seq,
            };
            let rest = bytes.get(position..).unwrap_or_default();
            match front::<F>(asked.layout, rest) {
                Front::Whole { len, frame: Frame::Record(record, _) } if F::seq(record) == seq => {
                    if seq <= self.next {
                        start = position;
                    }
                    seq = seq.next();
                    position += len;
                }
                Front::Whole { len, frame: Frame::Mark(_) } => position += len,
                Front::Whole { .. } | Front::Unreadable => return Err(damaged),
                Front::Incomplete { need } => {
                    let end = asked.place.offset + position as u64 + need as u64;
                    if end > asked.segment_bytes {
                        return Err(damaged);
                    }
                    self.need = if position == 0 { need } else { 0 };
                    break;
                }
            }
        }
        self.place = Some(Place { offset: asked.place.offset + position as u64, seq, ..asked.place });
        if seq > self.next {
            self.need = 0;
            self.ready = Some(Batch::new(bytes.slice(start..position), self.next, seq));
        }
        Ok(())
    }
}
