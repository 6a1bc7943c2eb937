//! Reading the records of an inspected journal.

use std::sync::Arc;

use strandline_core::{Batch, Cursor, Framing, ReadError, ReadUpTo, Replay, Seq, View};

use crate::disk::Disk;
use crate::inspect::Inspection;
use crate::reader::ReadBuffer;
use crate::segment_reader::SegmentReader;
use crate::std_disk::StdDisk;

/// Reads what an [`Inspection`] found, in order. It ends where the inspected journal ended.
///
/// ```
/// use strandline::{Directory, JournalName, OfflineStep, Pryj, ReadUpTo, ScanOptions, Seq, config, inspect};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let root = tempfile::tempdir()?;
/// let (journal, _) = Directory::open(root.path())?.journal::<Pryj>("log", config())?;
/// journal.append(b"first")?;
///
/// // In this process or another one, beside the writer or without it: no lock is taken.
/// let found = inspect::<Pryj>(root.path(), &JournalName::parse("log")?, ScanOptions::default())?;
/// assert!(found.is_sound());
/// let mut reader = found.reader(Seq::new(0), ReadUpTo::Written);
/// let mut count = 0;
/// while let OfflineStep::Records(batch) = reader.next_batch()? {
///     count += batch.len();
/// }
/// assert_eq!(count, 1);
/// # Ok(())
/// # }
/// ```
pub struct OfflineReader<F: Framing, D: Disk = StdDisk> {
    view: View<F>,
    cursor: Cursor<F>,
    files: SegmentReader<D>,
    buffer: ReadBuffer,
}

/// What an offline reader has to say.
#[derive(Clone, Debug)]
pub enum OfflineStep<F: Framing> {
    /// The next records.
    Records(Batch<F>),
    /// The journal begins behind where the reader was to begin; it goes on at `first`.
    Trimmed {
        /// The first record that is kept.
        first: Seq,
    },
    /// Everything was delivered.
    End,
}

impl<F: Framing, D: Disk> Inspection<F, D> {
    /// A reader whose first record is `from`. [`ReadUpTo::Written`] reads all valid records,
    /// [`ReadUpTo::Durable`] those that a mark or a later segment proves.
    #[must_use]
    pub fn reader(&self, from: Seq, until: ReadUpTo) -> OfflineReader<F, D> {
        OfflineReader {
            view: self.view.clone(),
            cursor: Cursor::new(from, until),
            files: SegmentReader::new(Arc::clone(&self.disk), self.target.clone()),
            buffer: ReadBuffer::default(),
        }
    }
}

impl<F: Framing, D: Disk> OfflineReader<F, D> {
    /// The next records, as many as one read gives.
    ///
    /// # Errors
    /// [`ReadError`] says where reading stopped: a file changed since it was inspected, or was removed.
    pub fn next_batch(&mut self) -> Result<OfflineStep<F>, ReadError> {
        loop {
            match self.cursor.poll(&self.view) {
                Replay::Read(request) => {
                    let files = &mut self.files;
                    let answer = self.buffer.fill(request.len, |buffer| files.read(request, buffer));
                    self.cursor.handle_read(answer)?;
                }
                Replay::Records(batch) => return Ok(OfflineStep::Records(batch)),
                Replay::Trimmed { first } => return Ok(OfflineStep::Trimmed { first }),
                Replay::CaughtUp | Replay::Beyond { .. } => return Ok(OfflineStep::End),
            }
        }
    }

    /// The next record that it will deliver.
    #[must_use]
    pub const fn next_seq(&self) -> Seq {
        self.cursor.next_seq()
    }
}
