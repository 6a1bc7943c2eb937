//! `replay`: what a subscriber gets that comes back with the last number it has seen.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use strandline::bus::{GapReason, SubscriptionGap};
use strandline::{Inspection, OfflineStep};
use strandline_core::{Filter, Pcpj, ReadUpTo, Seq, Verdict, View};

use crate::finding::say_end;
use crate::outcome::{Ended, Failure};
use crate::output::{Format, print};
use crate::progress::WatchedDisk;
use crate::target::Source;
use crate::terminal::Output;
use crate::wanted;
use strandline_bus::Gap;

/// Print the events of a bus after one that was seen: all of them, or a gap.
///
/// Where it cannot be all of them, no event is printed but one object, {"gap":{"from","to","count","reason",
/// "resume_after"}}, and the exit code is 1. The reasons are too_many: more than --limit were missed; expired:
/// some are no longer kept; beyond_the_end: the journal ends before what was seen, so it was emptied, or restored from a
/// copy. Whoever gets a gap refreshes what it knows from elsewhere, and goes on after "resume_after".
/// Nothing is changed, and a writer may have the bus open.
#[derive(Args)]
pub(crate) struct Flags {
    /// The directory of an event bus
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The last event that was seen; 0 for the beginning
    #[arg(long, value_name = "SEQ")]
    after: u64,
    #[command(flatten)]
    wanted: wanted::Flags,
    /// More events than this are a gap
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: u64,
    /// What is printed of an event
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Jsonl)]
    output: Format,
}

/// What `replay` does, checked.
pub(crate) struct Settings {
    source: Source,
    last: Seq,
    filter: Filter,
    limit: u64,
    format: Format,
}

impl Settings {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        Ok(Self {
            source: Source::events(&flags.directory)?,
            last: Seq::new(flags.after),
            filter: flags.wanted.filter(),
            limit: flags.limit,
            format: flags.output,
        })
    }
}

#[derive(Serialize)]
struct GapLine {
    gap: Gap,
}

/// Prints what was missed.
pub(crate) fn run(settings: &Settings) -> Result<Ended, Failure> {
    let source = &settings.source;
    let inspection = source.inspect_indexed()?;
    let mut out = Output::new(settings.format);
    let view = &inspection.view;
    if settings.last >= view.written_end() && matches!(inspection.report.verdict, Verdict::Refused(_)) {
        // It may be there, behind the damage: that is no journal which ends too early.
        return Ok(say_end(source, &inspection));
    }
    if let Some(gap) = settings.gap(view) {
        serde_json::to_writer(&mut out, &GapLine { gap: gap.into() })?;
        writeln!(out)?;
        out.flush()?;
        say_end(source, &inspection);
        return Ok(Ended::Problem);
    }
    let printed = settings.print(&inspection, &mut out);
    out.flush()?;
    printed?;
    Ok(say_end(source, &inspection))
}

impl Settings {
    /// What stands in the place of the events, if they cannot all be given.
    fn gap(&self, view: &View<Pcpj>) -> Option<SubscriptionGap> {
        let (from, end) = (self.last.next(), view.written_end());
        let to = end.previous();
        let gap = |from, count, reason| Some(SubscriptionGap { from, to, count, reason, resume_after: to });
        if self.last >= end {
            return gap(view.first(), None, GapReason::Beyond);
        }
        if from < view.first() {
            return gap(from, None, GapReason::Expired);
        }
        let count = view.count_matches(&self.filter, from, end);
        if count > self.limit { gap(from, Some(count), GapReason::TooMany) } else { None }
    }

    fn print(&self, inspection: &Inspection<Pcpj, WatchedDisk>, out: &mut impl Write) -> Result<(), Failure> {
        let (view, filter) = (&inspection.view, &self.filter);
        let (from, end) = (self.last.next(), view.written_end());
        let (Some(first), Some(last)) =
            (view.first_match(filter, from, end), view.last_match(filter, from, end))
        else {
            return Ok(());
        };
        let mut reader = inspection.reader(first.seq, ReadUpTo::Written);
        while reader.next_seq() <= last.seq {
            match reader.next_batch() {
                Ok(OfflineStep::Records(batch)) => {
                    for event in batch.records().filter(|event| filter.matches(event)) {
                        print::<Pcpj>(event, self.format, out)?;
                    }
                }
                Ok(OfflineStep::Trimmed { .. } | OfflineStep::End) => break,
                Err(error) => return Err(Failure::problem(error).context(self.source.name().to_string())),
            }
        }
        Ok(())
    }
}
