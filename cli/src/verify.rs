//! `verify`: reads everything and says what is wrong. It repairs nothing.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use strandline_core::{
    Framing, FramingKind, Listing, Pcpj, Proof, Pryj, RecoveryPolicy, Report, SegmentReport, Verdict,
};

use crate::finding::{Finding, unproven};
use crate::outcome::{Ended, Failure};
use crate::table;
use crate::target::Source;

/// Verify a journal: every byte is read, nothing is repaired.
///
/// One line a segment: its records, the row of the verdict table and the offset at which its frames end, and what
/// proves that they were durable. Exit code 0 if it is sound, 1 if not, 2 if it could not be looked at.
///
/// Rows: Z only zeros follow, space reserved by a writer (sound); D, F, G a torn tail, which recording cuts off;
/// A, B, C, V damage, which is refused. core/FORMAT.md says exactly when.
#[derive(Args)]
pub(crate) struct Flags {
    /// A journal's directory, one segment file, or a file of events such as event-journal.bin
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
    /// The journal's name, where the directory holds several
    #[arg(long, value_name = "NAME")]
    journal: Option<String>,
    /// Refuse a bad tail that is not certainly a torn write (row G), as opening with the strict policy does
    #[arg(long)]
    strict: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What `verify` does, checked.
pub(crate) struct Settings {
    source: Source,
    policy: RecoveryPolicy,
    json: bool,
}

impl Settings {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        let source = Source::one(&flags.path, flags.journal.as_deref())?;
        let policy = if flags.strict { RecoveryPolicy::Strict } else { RecoveryPolicy::Standard };
        Ok(Self { source, policy, json: flags.json })
    }
}

/// All that is found.
#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    framing: &'static str,
    segments: Vec<Segment>,
    /// Segment files at and behind the place where a refusal ended the scan, as far as they are not in `segments`.
    not_verified: usize,
    first: Option<u64>,
    last: Option<u64>,
    count: u64,
    unproven: u64,
    verdict: Finding,
}

/// One segment of it.
#[derive(Serialize)]
struct Segment {
    file: String,
    version: u8,
    first: Option<u64>,
    last: Option<u64>,
    count: u64,
    marks: u64,
    bytes: u64,
    file_bytes: u64,
    row: Option<String>,
    /// Where its frames end.
    offset: u64,
    proof: ProofField,
}

/// What proves a segment's records.
#[derive(Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
enum ProofField {
    Successor,
    Mark { offset: u64, durable_end: u64 },
    Nothing,
}

/// Verifies, and prints what it finds.
pub(crate) fn run(settings: &Settings) -> Result<Ended, Failure> {
    match settings.source.kind() {
        FramingKind::Pryj => verify::<Pryj>(settings),
        FramingKind::Pcpj => verify::<Pcpj>(settings),
    }
}

fn verify<F: Framing>(settings: &Settings) -> Result<Ended, Failure> {
    let Settings { source, policy, json } = settings;
    let inspection = source.inspect::<F>(*policy)?;
    let report = &inspection.report;
    // A directory that a writer is at may have grown since.
    let not_verified = match (&report.verdict, source.files()?.listing) {
        (Verdict::Refused(_), Listing::Segments(files)) => files.len().saturating_sub(report.segments.len()),
        _ => 0,
    };
    let count = report.first.until(report.end);
    let document = Document {
        name: source.name(),
        framing: F::LABEL,
        segments: report.segments.iter().map(|segment| Segment::new(source, segment)).collect(),
        not_verified,
        first: (count > 0).then(|| report.first.get()),
        last: (count > 0).then(|| report.end.get() - 1),
        count,
        unproven: report.unproven(),
        verdict: Finding::new(source, &inspection),
    };
    match print(&document, report, *json) {
        // The verdict stands, whoever reads of it.
        Ok(()) | Err(Failure::ReaderGone) => Ok(document.verdict.ended()),
        Err(failure) => Err(failure),
    }
}

fn print(document: &Document<'_>, report: &Report, json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer(&mut out, document)?;
        writeln!(out)?;
    } else {
        print_text(document, report, &mut out)?;
    }
    Ok(out.flush()?)
}

impl Segment {
    fn new(source: &Source, report: &SegmentReport) -> Self {
        let count = report.first.until(report.end);
        Self {
            file: source.file_name(report.id),
            version: report.version,
            first: (count > 0).then(|| report.first.get()),
            last: (count > 0).then(|| report.end.get() - 1),
            count,
            marks: report.marks,
            bytes: report.bytes,
            file_bytes: report.file_bytes,
            row: report.row.map(|row| row.to_string()),
            offset: report.bytes,
            proof: match report.proof {
                Proof::Successor => ProofField::Successor,
                Proof::Mark { offset, durable_end } => {
                    ProofField::Mark { offset, durable_end: durable_end.get() }
                }
                Proof::Nothing => ProofField::Nothing,
            },
        }
    }

    fn cells(&self) -> [String; 7] {
        let proof = match self.proof {
            ProofField::Successor => "next segment".to_string(),
            ProofField::Mark { offset, durable_end } => {
                format!("mark at {offset}: durable before {durable_end}")
            }
            ProofField::Nothing => "nothing".to_string(),
        };
        [
            self.file.clone(),
            self.version.to_string(),
            range(self.first, self.last),
            self.row.clone().unwrap_or_else(|| "-".to_string()),
            self.offset.to_string(),
            self.file_bytes.to_string(),
            proof,
        ]
    }
}

fn print_text(document: &Document<'_>, report: &Report, out: &mut impl Write) -> io::Result<()> {
    let heads = ["segment", "version", "records", "row", "offset", "file", "proof"].map(str::to_string);
    let rows: Vec<_> = std::iter::once(heads).chain(document.segments.iter().map(Segment::cells)).collect();
    if !document.segments.is_empty() {
        table::print(&rows, out)?;
    }
    if document.not_verified > 0 {
        writeln!(out, "not verified: {} more", document.not_verified)?;
    }
    let Document { name, framing, verdict, .. } = document;
    let range = range(document.first, document.last);
    let unproven = unproven(report).map(|unproven| format!("; {unproven}")).unwrap_or_default();
    write!(out, "{}: {name} ({framing}): {} records ({range}){unproven}", verdict.state, document.count)?;
    match &verdict.message {
        Some(message) => writeln!(out, "; {message}"),
        None => writeln!(out),
    }
}

/// `1..329`, both ends included.
pub(crate) fn range(first: Option<u64>, last: Option<u64>) -> String {
    match (first, last) {
        (Some(first), Some(last)) => format!("{first}..{last}"),
        _ => "none".to_string(),
    }
}
