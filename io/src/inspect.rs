//! Reading a journal without the writer: offline, or beside a writer in another process. No lock is taken and
//! nothing is written, so that it works on a read-only directory too.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use strandline_core::{
    FileKind, Framing, FramingKind, IoFailure, IoOperation, JournalName, Listing, ReadRequest, Report, Scan,
    ScanOptions, ScanStep, SegmentFile, Verdict, View,
};

use crate::disk::{Disk, Entry};
use crate::failure::{failed, io_failure};
use crate::listing::{ListingError, ListingWarning, files_of};
use crate::segment_reader::{SegmentReader, Target};
use crate::std_disk::StdDisk;

/// A bad end that changes when it is read again is a commit in flight.
pub(crate) const TRIES: usize = 3;
/// Between two tries: longer than a commit takes.
const PAUSE: Duration = Duration::from_millis(20);

/// What an inspection found.
pub struct Inspection<F: Framing, D: Disk = StdDisk> {
    /// The segments and watermarks, for reading on. It ends at the first bad byte.
    pub view: View<F>,
    /// The verdict, and how it came about.
    pub report: Report,
    /// Whether each try found another end: a writer is at work, and what looks torn is its commit in flight.
    pub in_flight: bool,
    /// What was left alone in the directory although it looks as if it were meant for the journal.
    pub warnings: Vec<ListingWarning>,
    pub(crate) disk: Arc<D>,
    pub(crate) target: Target,
}

/// Why there is nothing to inspect. Damage is none of these: it is a verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// The directory or file cannot be opened or read.
    #[error("{path} cannot be read: {failure}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What failed.
        failure: IoFailure,
    },
    /// The path names no file that a journal could be in.
    #[error(
        "{path} is no file that can be inspected: give a journal's directory, a segment, or a file of events"
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path leads to something else than a directory.
    #[error("{path} is no directory: give the one that the journal is in")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory's files cannot be told apart.
    #[error(transparent)]
    Listing(#[from] ListingError),
    /// There is no segment of this name.
    #[error("there is no journal {0} here: check the name, and the directory")]
    NoJournal(JournalName),
}

impl<F: Framing, D: Disk> Inspection<F, D> {
    /// Whether nothing is wrong: the verdict is sound, or what looks wrong is a commit in flight.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.in_flight || self.report.verdict == Verdict::Sound
    }
}

/// Reads and verifies all of a journal.
///
/// A bad end is looked at up to three times, a few hundredths of a second apart, before it is believed.
///
/// # Errors
/// [`InspectError`] if there is no such journal or it cannot be listed. Damage and unreadable segments are no
/// errors here but the [verdict](Report::verdict).
pub fn inspect<F: Framing>(
    path: impl AsRef<Path>,
    journal: &JournalName,
    options: ScanOptions,
) -> Result<Inspection<F>, InspectError> {
    let disk = open_directory(path.as_ref())?;
    inspect_on(Arc::new(disk), Target::Journal(journal.clone()), options)
}

/// Reads and verifies a single file: a segment, without its neighbours, or a file of events without a
/// sequence number in its name, such as `event-journal.bin`.
///
/// # Errors
/// [`InspectError`], as for [`inspect`].
pub fn inspect_file<F: Framing>(
    path: impl AsRef<Path>,
    options: ScanOptions,
) -> Result<Inspection<F>, InspectError> {
    let (disk, target) = open_file(path.as_ref())?;
    inspect_on(Arc::new(disk), target, options)
}

/// Reads and verifies a target on a disk of the caller's, to which nobody writes: a copy, or a journal whose
/// directory's lock the caller holds. So a bad end is believed at once, and nothing is ever
/// [in flight](Inspection::in_flight).
///
/// # Errors
/// [`InspectError`], as for [`inspect`].
pub fn inspect_at_rest<F: Framing, D: Disk>(
    disk: Arc<D>,
    target: Target,
    options: ScanOptions,
) -> Result<Inspection<F, D>, InspectError> {
    inspect_within(disk, target, options, 1)
}

/// Reads and verifies a target on a disk of the caller's.
///
/// # Errors
/// [`InspectError`], as for [`inspect`].
pub fn inspect_on<F: Framing, D: Disk>(
    disk: Arc<D>,
    target: Target,
    options: ScanOptions,
) -> Result<Inspection<F, D>, InspectError> {
    inspect_within(disk, target, options, TRIES)
}

/// The same, with so many looks at most.
pub(crate) fn inspect_within<F: Framing, D: Disk>(
    disk: Arc<D>,
    target: Target,
    options: ScanOptions,
    tries: usize,
) -> Result<Inspection<F, D>, InspectError> {
    let mut looks = Looks::new(disk, target, options);
    let first = looks.next()?;
    looks.settle(first, tries)
}

/// What follows from a first look, which somebody has had at the files as they were listed, while reading them for a
/// purpose of their own. They have no use for warnings.
pub(crate) fn inspect_after<F: Framing, D: Disk>(
    (view, report): (View<F>, Report),
    disk: Arc<D>,
    target: Target,
    options: ScanOptions,
    tries: usize,
) -> Result<Inspection<F, D>, InspectError> {
    let first = Look { view, report, warnings: Vec::new() };
    Looks::new(disk, target, options).settle(first, tries)
}

/// Which framing a journal has, by the first bytes of its first segment; none if they are those of
/// neither, or missing.
///
/// # Errors
/// [`InspectError`] if there is no such journal or it cannot be read.
pub fn detect(path: impl AsRef<Path>, journal: &JournalName) -> Result<Option<FramingKind>, InspectError> {
    let disk = open_directory(path.as_ref())?;
    detect_on(Arc::new(disk), Target::Journal(journal.clone()))
}

/// Which framing a single file has; none if its first bytes are those of neither.
///
/// # Errors
/// [`InspectError`] if it cannot be read.
pub fn detect_file(path: impl AsRef<Path>) -> Result<Option<FramingKind>, InspectError> {
    let (disk, target) = open_file(path.as_ref())?;
    detect_on(Arc::new(disk), target)
}

fn detect_on<D: Disk>(disk: Arc<D>, target: Target) -> Result<Option<FramingKind>, InspectError> {
    let (listing, _) = list(&*disk, &target)?;
    let first = match listing {
        Listing::Segments(files) => files.iter().map(|file| file.id).min(),
        Listing::Bare { .. } => Some(Listing::BARE),
    };
    let Some(segment) = first else { return Ok(None) };
    let mut magic = [0; 4];
    let request = ReadRequest { segment, offset: 0, len: magic.len() };
    let n = SegmentReader::new(disk, target.clone())
        .read(request, &mut magic)
        .map_err(|failure| InspectError::Io { path: target.path(), failure })?;
    Ok(magic.get(..n).and_then(FramingKind::detect))
}

/// One look at all of a journal.
struct Look<F: Framing> {
    view: View<F>,
    report: Report,
    warnings: Vec<ListingWarning>,
}

/// Looks at a journal, one after the other.
struct Looks<D: Disk> {
    disk: Arc<D>,
    target: Target,
    options: ScanOptions,
    reader: SegmentReader<D>,
    /// One buffer for everything: memory does not grow with the journal.
    buffer: Vec<u8>,
}

impl<D: Disk> Looks<D> {
    fn new(disk: Arc<D>, target: Target, options: ScanOptions) -> Self {
        let reader = SegmentReader::new(Arc::clone(&disk), target.clone());
        Self { disk, target, options, reader, buffer: vec![0; ReadRequest::LEN_MAX] }
    }

    /// Looks again at what is not sound, until two looks agree or there were so many.
    fn settle<F: Framing>(mut self, first: Look<F>, tries: usize) -> Result<Inspection<F, D>, InspectError> {
        let mut found = first;
        let mut in_flight = false;
        for _ in 1..tries {
            if found.report.verdict == Verdict::Sound {
                in_flight = false;
                break;
            }
            std::thread::sleep(PAUSE);
            self.reader.close_files();
            let again = self.next()?;
            in_flight = again.report.verdict != found.report.verdict;
            found = again;
            if !in_flight {
                break; // twice the same: that is the verdict
            }
        }
        in_flight &= found.report.verdict != Verdict::Sound;
        let Look { view, report, warnings } = found;
        Ok(Inspection { view, report, in_flight, warnings, disk: self.disk, target: self.target })
    }

    fn next<F: Framing>(&mut self) -> Result<Look<F>, InspectError> {
        let (listing, warnings) = list(&*self.disk, &self.target)?;
        let mut step = Scan::<F>::start(listing, self.options);
        loop {
            step = match step {
                ScanStep::Read(request, scan) => match self.reader.read(request, &mut self.buffer) {
                    Ok(n) => scan.resume(Ok(self.buffer.get(..n).unwrap_or_default())),
                    Err(failure) => scan.resume(Err(failure)),
                },
                ScanStep::Done(view, report) => {
                    return Ok(Look { view: *view, report: *report, warnings });
                }
            };
        }
    }
}

/// The target's files.
pub(crate) fn list<D: Disk>(
    disk: &D,
    target: &Target,
) -> Result<(Listing, Vec<ListingWarning>), InspectError> {
    match target {
        Target::Journal(journal) => {
            let files = files_of(disk, journal)?;
            match &files.listing {
                Listing::Segments(segments) if segments.is_empty() => {
                    Err(InspectError::NoJournal(journal.clone()))
                }
                _ => Ok((files.listing, files.warnings)),
            }
        }
        Target::File(name) => {
            let entries = disk.list().map_err(failed(IoOperation::List)).map_err(ListingError::Io)?;
            let entry = entries.into_iter().find(|entry| entry.is_file && entry.name == *name);
            let Entry { len, .. } = entry.ok_or_else(|| InspectError::NotAFile { path: target.path() })?;
            let listing = match FileKind::of(name) {
                FileKind::Segment { segment, .. } => {
                    Listing::Segments(vec![SegmentFile { id: segment, len }])
                }
                FileKind::NearSegment | FileKind::Other => Listing::Bare { len },
            };
            Ok((listing, Vec::new()))
        }
    }
}

pub(crate) fn open_directory(path: &Path) -> Result<StdDisk, InspectError> {
    StdDisk::open(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotADirectory {
            return InspectError::NotADirectory { path: path.to_path_buf() };
        }
        let failure = io_failure(IoOperation::Open, &error);
        InspectError::Io { path: path.to_path_buf(), failure }
    })
}

/// A file is read through its directory, as segments are.
fn open_file(path: &Path) -> Result<(StdDisk, Target), InspectError> {
    let not_a_file = || InspectError::NotAFile { path: path.to_path_buf() };
    let path = std::path::absolute(path).map_err(|_| not_a_file())?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(not_a_file)?;
    let directory = path.parent().ok_or_else(not_a_file)?;
    Ok((open_directory(directory)?, Target::File(name.to_string())))
}

impl Target {
    /// What to call it in a message.
    fn path(&self) -> PathBuf {
        match self {
            Self::Journal(journal) => PathBuf::from(journal.as_str()),
            Self::File(name) => PathBuf::from(name),
        }
    }
}

impl<F: Framing, D: Disk> fmt::Debug for Inspection<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Inspection");
        out.field("target", &self.target).field("report", &self.report).field("in_flight", &self.in_flight);
        out.finish_non_exhaustive()
    }
}
