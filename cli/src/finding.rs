//! What an inspection found, in the words and fields that all reading commands share.

use serde::Serialize;
use strandline::{Disk, Inspection};
use strandline_core::{Framing, Refusal, Report, Verdict};

use crate::outcome::{Ended, say};
use crate::target::Source;

/// The verdict on a journal, for `--json`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// `sound`, `in flight`, `torn` or `refused`.
    pub(crate) state: &'static str,
    /// The row of the verdict table, where it decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<String>,
    /// The file with the first bad byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The first bad byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl Finding {
    pub(crate) fn new<F: Framing, D: Disk>(source: &Source, inspection: &Inspection<F, D>) -> Self {
        let plain = |state| Self { state, row: None, file: None, offset: None, message: None };
        match &inspection.report.verdict {
            Verdict::Sound => plain("sound"),
            _ if inspection.in_flight => plain("in flight"),
            Verdict::Cut(cut) => Self {
                state: "torn",
                row: Some(cut.row.to_string()),
                file: Some(source.file_name(cut.segment)),
                offset: Some(cut.offset),
                message: Some(cut.to_string()),
            },
            Verdict::Refused(refusal) => Self {
                state: "refused",
                row: refusal.row().map(|row| row.to_string()),
                file: Some(source.file_name(refusal.segment())),
                offset: offset(refusal),
                message: Some(refusal.to_string()),
            },
        }
    }

    /// How a command ends that found this.
    pub(crate) const fn ended(&self) -> Ended {
        if self.message.is_none() { Ended::Sound } else { Ended::Problem }
    }
}

const fn offset(refusal: &Refusal) -> Option<u64> {
    match refusal {
        Refusal::HeaderMismatch { offset, .. }
        | Refusal::MarkInVersion1 { offset, .. }
        | Refusal::Damaged { offset, .. }
        | Refusal::Unreadable { offset, .. } => Some(*offset),
        Refusal::Magic { .. }
        | Refusal::UnsupportedVersion { .. }
        | Refusal::Gap { .. }
        | Refusal::Overlap { .. }
        | Refusal::Shrank { .. } => None,
    }
}

/// Says on standard error where reading ended and why, and how far what was read is proven.
pub(crate) fn say_end<F: Framing, D: Disk>(source: &Source, inspection: &Inspection<F, D>) -> Ended {
    let report = &inspection.report;
    // A refusal names the mark that proves them; then nothing is said of a mark that is missing.
    let refused = matches!(report.verdict, Verdict::Refused(_));
    if let Some(unproven) = unproven(report).filter(|_| !refused) {
        say(format_args!("{}: {unproven}", source.name()));
    }
    let finding = Finding::new(source, inspection);
    if let Some(message) = &finding.message {
        say(format_args!("{}: stopped before record {}: {message}", source.name(), report.end));
    }
    finding.ended()
}

/// How many records are not proven to be durable, and why; nothing if all are.
pub(crate) fn unproven(report: &Report) -> Option<String> {
    let count = report.unproven();
    let last = report.segments.last()?;
    match (count, last.version) {
        (0, _) => None,
        (_, 1) => Some(format!("{count} {} proven durable: format version 1 has no marks", not(count))),
        _ => Some(format!(
            "{count} {} proven durable yet: no mark stands behind {}",
            not(count),
            if count == 1 { "it" } else { "them" }
        )),
    }
}

const fn not(count: u64) -> &'static str {
    if count == 1 { "record is not" } else { "records are not" }
}
