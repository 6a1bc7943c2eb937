//! Readers of an open journal: they follow its end, and take nothing from the writer but a look at its view.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use strandline_core::{
    Batch, Cursor, Framing, IoCause, IoFailure, ReadError, ReadRequest, ReadUpTo, Replay, Seq,
};

use crate::disk::Disk;
use crate::segment_reader::{SegmentReader, Target};
use crate::shared::{Shared, State};
use crate::std_disk::StdDisk;
use crate::sync::{Instant, MutexGuard};

/// Reads an open journal from some record on, and follows its end.
///
/// Make one with [`Journal::reader`](crate::Journal::reader). The newest commits come from memory, older ones
/// from the files, through handles of the reader's own. It holds no lock while it reads or waits.
///
/// ```
/// use std::time::Duration;
/// use strandline::{Directory, Pryj, ReadStep, ReadUpTo, Seq, config};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let root = tempfile::tempdir()?;
/// let (journal, _) = Directory::open(root.path())?.journal::<Pryj>("log", config())?;
/// journal.append(b"first")?;
/// let mut reader = journal.reader(Seq::new(0), ReadUpTo::Durable);
/// let ReadStep::Records(batch) = reader.next_batch(None)? else { panic!("there is a record") };
/// assert_eq!(batch.records().next().map(|record| record.payload), Some(&b"first"[..]));
/// let nothing_new = reader.next_batch(Some(Duration::from_millis(1)))?;
/// assert!(matches!(nothing_new, ReadStep::TimedOut));
/// # Ok(())
/// # }
/// ```
pub struct Reader<F: Framing, D: Disk = StdDisk> {
    shared: Arc<Shared<F, D>>,
    cursor: Cursor<F>,
    files: SegmentReader<D>,
    buffer: ReadBuffer,
}

/// What a reader has to say.
#[derive(Clone, Debug)]
pub enum ReadStep<F: Framing> {
    /// The next records.
    Records(Batch<F>),
    /// Records that the reader had not reached are no longer kept; it goes on at `first`.
    Trimmed {
        /// The first record that is kept.
        first: Seq,
    },
    /// The reader stands beyond the journal's end: what its owner has seen is not this journal.
    Beyond {
        /// The journal's end (exclusive).
        end: Seq,
    },
    /// Nothing new came in time.
    TimedOut,
    /// Everything was delivered, and nothing will follow: the journal is closed, or stopped.
    Closed,
}

impl<F: Framing, D: Disk> Reader<F, D> {
    pub(crate) fn new(shared: Arc<Shared<F, D>>, from: Seq, until: ReadUpTo) -> Self {
        let target = Target::Journal(shared.performer.journal().clone());
        let files = SegmentReader::new(Arc::clone(shared.performer.disk()), target);
        Self { shared, cursor: Cursor::new(from, until), files, buffer: ReadBuffer::default() }
    }

    /// The next records, as many as are at hand; blocks until there are some, at most for `timeout`.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped. The reader stays where it is.
    pub fn next_batch(&mut self, timeout: Option<Duration>) -> Result<ReadStep<F>, ReadError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        loop {
            match self.cursor.poll(state.view()) {
                Replay::Read(request) => {
                    drop(state);
                    let read = self.read(request);
                    state = shared.lock();
                    self.unless_trimmed(read, &state)?;
                }
                Replay::CaughtUp if state.is_over() => return Ok(ReadStep::Closed),
                Replay::CaughtUp => match shared.wait_for_progress(state, deadline) {
                    Some(again) => state = again,
                    None => return Ok(ReadStep::TimedOut),
                },
                Replay::Records(batch) => return Ok(ReadStep::Records(batch)),
                Replay::Trimmed { first } => return Ok(ReadStep::Trimmed { first }),
                Replay::Beyond { end } => return Ok(ReadStep::Beyond { end }),
            }
        }
    }

    /// The same for a task: [`Poll::Pending`] in place of waiting. The files are read on the calling
    /// thread; what is new comes from memory.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped. The reader stays where it is.
    pub fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Result<ReadStep<F>, ReadError>> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        loop {
            let step = match self.cursor.poll(state.view()) {
                Replay::Read(request) => {
                    drop(state);
                    let read = self.read(request);
                    state = shared.lock();
                    if let Err(error) = self.unless_trimmed(read, &state) {
                        return Poll::Ready(Err(error));
                    }
                    continue;
                }
                Replay::CaughtUp if state.is_over() => ReadStep::Closed,
                Replay::CaughtUp => {
                    state.register_reader(context.waker());
                    return Poll::Pending;
                }
                Replay::Records(batch) => ReadStep::Records(batch),
                Replay::Trimmed { first } => ReadStep::Trimmed { first },
                Replay::Beyond { end } => ReadStep::Beyond { end },
            };
            return Poll::Ready(Ok(step));
        }
    }

    /// The next record that it will deliver.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        self.cursor.next_seq()
    }

    /// Retention can remove a segment after the reader was sent to it. That is no failure: what is to be said
    /// of it, the next look at the view says.
    fn unless_trimmed(&self, read: Result<(), ReadError>, state: &State<F>) -> Result<(), ReadError> {
        match read {
            Err(ReadError::Failed { failure, .. })
                if failure.cause == IoCause::NotFound && state.view().first() > self.cursor.next_seq() =>
            {
                Ok(())
            }
            read => read,
        }
    }

    fn read(&mut self, request: ReadRequest) -> Result<(), ReadError> {
        let files = &mut self.files;
        let answer = self.buffer.fill(request.len, |buffer| files.read(request, buffer));
        self.cursor.handle_read(answer)
    }
}

impl<F: Framing, D: Disk> Shared<F, D> {
    /// Waits until readers have something new to look at; nothing once the deadline has passed.
    pub(crate) fn wait_for_progress<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<F>>,
        deadline: Option<Instant>,
    ) -> Option<MutexGuard<'a, State<F>>> {
        let left = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            Some(left) if left.is_zero() => return None,
            left => left,
        };
        state.waiting_readers += 1;
        // Woken too early, the caller looks again and comes back.
        let mut state = match left {
            Some(left) => self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            None => self.progress.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.waiting_readers -= 1;
        Some(state)
    }
}

/// A buffer for reads that is used again once nobody holds a batch from it.
#[derive(Default)]
pub(crate) struct ReadBuffer {
    last: Bytes,
}

impl ReadBuffer {
    /// Has `read` fill a buffer of `len` bytes; gives the bytes that it says it filled.
    pub(crate) fn fill(
        &mut self,
        len: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, IoFailure>,
    ) -> Result<Bytes, IoFailure> {
        let mut buffer = match std::mem::take(&mut self.last).try_into_mut() {
            Ok(buffer) if buffer.len() >= len => buffer,
            // In use, or too small for an oversized frame.
            _ => BytesMut::zeroed(len.max(ReadRequest::LEN_MAX)),
        };
        let n = read(buffer.get_mut(..len).unwrap_or_default())?;
        let whole = buffer.freeze();
        let filled = whole.slice(..n.min(len));
        // A frame of 16 MiB shall not stay in memory once it is read.
        if whole.len() == ReadRequest::LEN_MAX {
            self.last = whole;
        }
        Ok(filled)
    }
}

impl<F: Framing, D: Disk> fmt::Debug for Reader<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}
