//! Which journal or file is meant, and how it is inspected.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use strandline::bus::{EVENT_JOURNAL, SUBSCRIPTIONS};
use strandline::{
    Disk, InspectError, Inspection, JournalFiles, StdDisk, Target, detect, detect_file, files_of, inspect_on,
    io_failure, journals,
};
use strandline_core::{
    FileKind, Framing, FramingKind, IoOperation, JournalName, Listing, Pcpj, RecoveryPolicy, ScanOptions,
    SegmentFile, SegmentId, Verdict,
};

use crate::outcome::{Failure, is_denied, say};
use crate::progress::WatchedDisk;

/// A journal or a single file, to be read only.
pub(crate) struct Source {
    path: PathBuf,
    disk: Arc<WatchedDisk>,
    target: Target,
    kind: FramingKind,
}

/// What stands at a path.
enum Place {
    Directory(Vec<JournalName>),
    File,
}

impl Source {
    /// The one journal or file that is meant. With several journals in a directory, one must be named.
    pub(crate) fn one(path: &Path, journal: Option<&str>) -> Result<Self, Failure> {
        let mut sources = Self::all(path, journal)?;
        match (sources.pop(), sources.is_empty()) {
            (Some(source), true) => Ok(source),
            (last, _) => {
                let names: Vec<_> = sources.iter().chain(&last).map(Self::name).collect();
                Err(Failure::cannot_run(anyhow::anyhow!(
                    "{} holds several journals: {}; name one with --journal",
                    path.display(),
                    names.join(", ")
                )))
            }
        }
    }

    /// The file, the journal that is named, or every journal of the directory.
    pub(crate) fn all(path: &Path, journal: Option<&str>) -> Result<Vec<Self>, Failure> {
        let names = match (look(path)?, journal) {
            (Place::File, None) => return Ok(vec![Self::file(path)?]),
            (Place::File, Some(_)) => {
                return Err(Failure::cannot_run(anyhow::anyhow!(
                    "{} is a file: --journal goes with a directory",
                    path.display()
                )));
            }
            (Place::Directory(_), Some(name)) => vec![JournalName::parse(name).map_err(Failure::cannot_run)?],
            (Place::Directory(names), None) => names,
        };
        if names.is_empty() {
            return Err(Failure::cannot_run(anyhow::anyhow!(
                "there is no journal in {}: it holds no segment file",
                path.display()
            )));
        }
        names.into_iter().map(|name| Self::journal(path, name)).collect()
    }

    /// The events of an event bus.
    pub(crate) fn events(directory: &Path) -> Result<Self, Failure> {
        let name = JournalName::parse(EVENT_JOURNAL).map_err(Failure::cannot_run)?;
        Self::of_bus(directory, name.clone(), FramingKind::Pcpj)?
            .ok_or_else(|| at(directory, InspectError::NoJournal(name)))
    }

    /// Both journals of an event bus, as far as they are there: the events, and what is known of subscriptions.
    pub(crate) fn bus(directory: &Path) -> Result<(Option<Self>, Option<Self>), Failure> {
        let [events, records] = [EVENT_JOURNAL, SUBSCRIPTIONS].map(JournalName::parse);
        let (events, records) = (events.map_err(Failure::cannot_run)?, records.map_err(Failure::cannot_run)?);
        let events = Self::of_bus(directory, events, FramingKind::Pcpj)?;
        Ok((events, Self::of_bus(directory, records, FramingKind::Pryj)?))
    }

    fn of_bus(directory: &Path, name: JournalName, kind: FramingKind) -> Result<Option<Self>, Failure> {
        if directory.is_file() {
            return Err(Failure::cannot_run(anyhow::anyhow!(
                "{} is a file: give the directory of an event bus",
                directory.display()
            )));
        }
        match detect(directory, &name) {
            Ok(Some(found)) if found != kind => Err(Failure::cannot_run(anyhow::anyhow!(
                "the journal {name} in {} is none of an event bus: it has another framing",
                directory.display()
            ))),
            Ok(_) => Self::new(directory, directory, Target::Journal(name), Some(kind)).map(Some),
            Err(InspectError::NoJournal(_)) => Ok(None),
            Err(error) => Err(at(directory, error)),
        }
    }

    fn journal(path: &Path, name: JournalName) -> Result<Self, Failure> {
        let kind = detect(path, &name).map_err(|error| at(path, error))?;
        Self::new(path, path, Target::Journal(name), kind)
    }

    fn file(path: &Path) -> Result<Self, Failure> {
        let kind = detect_file(path).map_err(|error| at(path, error))?;
        let absolute = std::path::absolute(path).map_err(Failure::cannot_run)?;
        let (Some(directory), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(at(path, InspectError::NotAFile { path: path.to_path_buf() }));
        };
        // That the name is text was found out when its framing was detected.
        let name = name.to_string_lossy().into_owned();
        Self::new(path, directory, Target::File(name), kind)
    }

    /// A file that begins like neither framing is inspected as events: the scan then says what is wrong.
    fn new(
        path: &Path,
        directory: &Path,
        target: Target,
        kind: Option<FramingKind>,
    ) -> Result<Self, Failure> {
        let disk = StdDisk::open(directory).map_err(|error| {
            let failure = io_failure(IoOperation::Open, &error);
            Failure::from(InspectError::Io { path: directory.to_path_buf(), failure })
        })?;
        let (path, disk) = (path.to_path_buf(), Arc::new(WatchedDisk::new(disk)));
        Ok(Self { path, disk, target, kind: kind.unwrap_or(FramingKind::Pcpj) })
    }

    /// Its framing.
    pub(crate) const fn kind(&self) -> FramingKind {
        self.kind
    }

    /// What to call it: the journal's name, or the file's.
    pub(crate) fn name(&self) -> &str {
        match &self.target {
            Target::Journal(name) => name.as_str(),
            Target::File(name) => name,
        }
    }

    /// The name of the file that holds a segment.
    pub(crate) fn file_name(&self, segment: SegmentId) -> String {
        match &self.target {
            Target::Journal(name) => name.segment_file(segment),
            Target::File(name) => name.clone(),
        }
    }

    /// Its disk, for looks at single places.
    pub(crate) fn disk(&self) -> &WatchedDisk {
        &self.disk
    }

    /// Its files, in order, and what lies beside them.
    pub(crate) fn files(&self) -> Result<JournalFiles, Failure> {
        let mut files = match &self.target {
            Target::Journal(name) => {
                files_of(&*self.disk, name).map_err(|error| at(&self.path, error.into()))?
            }
            Target::File(name) => {
                let listing = self.single_file(name)?;
                JournalFiles { listing, warnings: Vec::new(), other_bytes: 0 }
            }
        };
        if let Listing::Segments(segments) = &mut files.listing {
            segments.sort_by_key(|segment| segment.id);
        }
        Ok(files)
    }

    /// Reads and verifies all of it.
    pub(crate) fn inspect<F: Framing>(
        &self,
        policy: RecoveryPolicy,
    ) -> Result<Inspection<F, WatchedDisk>, Failure> {
        self.inspect_with(ScanOptions { policy, ..ScanOptions::default() })
    }

    /// The same, with an index of its events.
    pub(crate) fn inspect_indexed(&self) -> Result<Inspection<Pcpj, WatchedDisk>, Failure> {
        self.inspect_with(ScanOptions { index_events: true, ..ScanOptions::default() })
    }

    fn inspect_with<F: Framing>(&self, options: ScanOptions) -> Result<Inspection<F, WatchedDisk>, Failure> {
        let bytes = match self.files()?.listing {
            Listing::Segments(segments) => segments.iter().map(|segment| segment.len).sum(),
            Listing::Bare { len } => len,
        };
        self.disk.begin(bytes);
        let inspected = inspect_on::<F, _>(Arc::clone(&self.disk), self.target.clone(), options);
        self.disk.end();
        let inspection = inspected.map_err(|error| at(&self.path, error))?;
        for warning in &inspection.warnings {
            say(format_args!("{}: {warning}", self.path.display()));
        }
        match &inspection.report.verdict {
            Verdict::Refused(refusal) if is_denied(refusal) => {
                Err(Failure::cannot_run(*refusal).context(self.path.display().to_string()))
            }
            _ => Ok(inspection),
        }
    }

    /// Reads and verifies one of its segments, without its neighbours. Nothing if it is not there any more.
    pub(crate) fn inspect_segment<F: Framing>(
        &self,
        segment: SegmentId,
    ) -> Result<Option<Inspection<F, WatchedDisk>>, Failure> {
        let file = Target::File(self.file_name(segment));
        match inspect_on::<F, _>(Arc::clone(&self.disk), file, ScanOptions::default()) {
            Ok(inspection) => Ok(Some(inspection)),
            Err(InspectError::NotAFile { .. }) => Ok(None),
            Err(error) => Err(at(&self.path, error)),
        }
    }

    fn single_file(&self, name: &str) -> Result<Listing, Failure> {
        let entries = self.disk.list().map_err(|error| {
            let failure = io_failure(IoOperation::List, &error);
            at(&self.path, InspectError::Io { path: self.path.clone(), failure })
        })?;
        let entry = entries.into_iter().find(|entry| entry.name == name && entry.is_file);
        let Some(entry) = entry else {
            return Err(at(&self.path, InspectError::NotAFile { path: self.path.clone() }));
        };
        Ok(match FileKind::of(name) {
            FileKind::Segment { segment, .. } => {
                Listing::Segments(vec![SegmentFile { id: segment, len: entry.len }])
            }
            FileKind::NearSegment | FileKind::Other => Listing::Bare { len: entry.len },
        })
    }
}

fn look(path: &Path) -> Result<Place, Failure> {
    let unreadable = |operation: IoOperation| {
        move |error: std::io::Error| {
            let failure = io_failure(operation, &error);
            Failure::from(InspectError::Io { path: path.to_path_buf(), failure })
        }
    };
    let metadata = std::fs::metadata(path).map_err(unreadable(IoOperation::Open))?;
    if !metadata.is_dir() {
        return Ok(Place::File);
    }
    let disk = StdDisk::open(path).map_err(unreadable(IoOperation::Open))?;
    let names = journals(&disk).map_err(|error| at(path, error.into()))?;
    Ok(Place::Directory(names))
}

fn at(path: &Path, error: InspectError) -> Failure {
    Failure::from(error).context(path.display().to_string())
}
