//! `stat`: what is in a directory, journal by journal.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use strandline::{Inspection, OfflineStep};
use strandline_core::{FramingKind, Pcpj, Pryj, ReadUpTo, RecoveryPolicy, Report, Seq, Timestamp};

use crate::finding::Finding;
use crate::outcome::{Ended, Failure};
use crate::output::{Printable, rfc3339};
use crate::progress::WatchedDisk;
use crate::table;
use crate::target::Source;
use crate::verify::range;

/// Describe the journals of a directory.
///
/// Every journal is verified on the way. Exit code 0 if all are sound, 1 if one is not.
#[derive(Args)]
pub(crate) struct Flags {
    /// A directory of journals, one segment file, or a file of events such as event-journal.bin
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// Only the journal of this name
    #[arg(long, value_name = "NAME")]
    journal: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What `stat` does, checked.
pub(crate) struct Settings {
    sources: Vec<Source>,
    json: bool,
}

impl Settings {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        let sources = Source::all(&flags.path, flags.journal.as_deref())?;
        Ok(Self { sources, json: flags.json })
    }
}

/// All that is found.
#[derive(Serialize)]
struct Document {
    journals: Vec<Description>,
}

/// One journal.
#[derive(Serialize)]
struct Description {
    name: String,
    framing: &'static str,
    /// The format versions of its segments.
    versions: BTreeSet<u8>,
    segments: usize,
    /// Valid frames and headers.
    bytes: u64,
    /// Segment files with their reserved space.
    file_bytes: u64,
    /// Spares, leftovers of interrupted creates, copies of cut bytes.
    other_bytes: u64,
    first: Option<u64>,
    last: Option<u64>,
    count: u64,
    /// The number that the next record gets.
    next: u64,
    /// Times of the first and the last record, where the framing has them.
    first_time: Option<String>,
    last_time: Option<String>,
    marks: u64,
    unproven: u64,
    verdict: Finding,
}

/// Prints what is there.
pub(crate) fn run(settings: &Settings) -> Result<Ended, Failure> {
    let journals: Vec<_> = settings.sources.iter().map(describe_any).collect::<Result<_, _>>()?;
    let is_sound = journals.iter().all(|journal| journal.verdict.ended() == Ended::Sound);
    let mut out = io::stdout().lock();
    if settings.json {
        serde_json::to_writer(&mut out, &Document { journals })?;
        writeln!(out)?;
    } else {
        for (at, journal) in journals.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            journal.print(&mut out)?;
        }
    }
    out.flush()?;
    Ok(if is_sound { Ended::Sound } else { Ended::Problem })
}

fn describe_any(source: &Source) -> Result<Description, Failure> {
    match source.kind() {
        FramingKind::Pryj => describe::<Pryj>(source),
        FramingKind::Pcpj => describe::<Pcpj>(source),
    }
}

fn describe<F: Printable>(source: &Source) -> Result<Description, Failure> {
    let other_bytes = source.files()?.other_bytes;
    let found = source.inspect::<F>(RecoveryPolicy::Standard)?;
    let Report { segments, first, end, .. } = &found.report;
    let count = first.until(*end);
    let last = end.previous();
    let (first_time, last_time) = match count {
        0 => (None, None),
        _ => (time_of(&found, *first)?, time_of(&found, last)?),
    };
    Ok(Description {
        name: source.name().to_string(),
        framing: F::LABEL,
        versions: segments.iter().map(|segment| segment.version).collect(),
        segments: segments.len(),
        bytes: segments.iter().map(|segment| segment.bytes).sum(),
        file_bytes: segments.iter().map(|segment| segment.file_bytes).sum(),
        other_bytes,
        first: (count > 0).then(|| first.get()),
        last: (count > 0).then(|| last.get()),
        count,
        next: end.get(),
        first_time: first_time.and_then(rfc3339),
        last_time: last_time.and_then(rfc3339),
        marks: segments.iter().map(|segment| segment.marks).sum(),
        unproven: found.report.unproven(),
        verdict: Finding::new(source, &found),
    })
}

fn time_of<F: Printable>(found: &Inspection<F, WatchedDisk>, seq: Seq) -> Result<Option<Timestamp>, Failure> {
    match found.reader(seq, ReadUpTo::Written).next_batch().map_err(Failure::problem)? {
        OfflineStep::Records(batch) => Ok(batch.records().next().and_then(F::timestamp)),
        OfflineStep::Trimmed { .. } | OfflineStep::End => Ok(None),
    }
}

impl Description {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let versions: Vec<_> = self.versions.iter().map(|version| format!(", version {version}")).collect();
        let mut rows = vec![
            ["journal".to_string(), self.name.clone()],
            ["framing".to_string(), format!("{}{}", self.framing, versions.concat())],
            ["segments".to_string(), self.segments.to_string()],
            [
                "bytes".to_string(),
                format!("{} valid, {} in files, {} beside", self.bytes, self.file_bytes, self.other_bytes),
            ],
            ["records".to_string(), format!("{} ({})", self.count, range(self.first, self.last))],
            ["next".to_string(), self.next.to_string()],
        ];
        if let (Some(first), Some(last)) = (&self.first_time, &self.last_time) {
            rows.push(["time".to_string(), format!("{first} to {last}")]);
        }
        rows.push(["marks".to_string(), self.marks.to_string()]);
        rows.push(["unproven".to_string(), self.unproven.to_string()]);
        let message = self.verdict.message.as_ref().map(|message| format!(": {message}"));
        rows.push(["verdict".to_string(), format!("{}{}", self.verdict.state, message.unwrap_or_default())]);
        table::print(&rows, out)
    }
}
