//! `tail`: prints the last records, and follows a writer in another process.

mod follow;

use std::collections::VecDeque;
use std::io::Write;

use clap::Args;
use follow::{Follower, Step};
use strandline::{Inspection, OfflineReader, OfflineStep};
use strandline_core::{
    FramingKind, IoCause, Pcpj, Pryj, ReadError, ReadUpTo, RecoveryPolicy, Report, Seq, Verdict,
};

use crate::finding::say_end;
use crate::outcome::{Ended, Failure, say};
use crate::output::{Filter, Printable, print};
use crate::progress::WatchedDisk;
use crate::selection::{self, Selection};
use crate::terminal::Output;

/// Print the last records of a journal, and follow it.
///
/// The journal is verified first, and nothing of it is changed. With --follow, what another process appends is
/// printed once a mark proves that it is durable; an idle writer leaves a mark within a twentieth of a second.
/// Files of format version 1 have no marks: of them, what is written is printed.
#[derive(Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    selection: selection::Flags,
    /// How many records to begin with
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    lines: usize,
    /// Go on printing what is appended, until interrupted
    #[arg(short, long)]
    follow: bool,
}

/// What `tail` does, checked.
pub(crate) struct Settings {
    selection: Selection,
    lines: usize,
    follow: bool,
}

impl Settings {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        let Flags { selection, lines, follow } = flags;
        Ok(Self { selection: Selection::check(selection)?, lines, follow })
    }
}

/// Prints the end of what is there, and what comes.
pub(crate) fn run(settings: &Settings) -> Result<Ended, Failure> {
    match settings.selection.source.kind() {
        FramingKind::Pryj => tail::<Pryj>(settings),
        FramingKind::Pcpj => tail::<Pcpj>(settings),
    }
}

type Found<F> = Inspection<F, WatchedDisk>;

fn tail<F: Printable>(settings: &Settings) -> Result<Ended, Failure> {
    let Settings { selection, lines, follow } = settings;
    let found = selection.source.inspect::<F>(RecoveryPolicy::Standard)?;
    let until = if *follow { follow_up_to(&found.report) } else { ReadUpTo::Written };
    let end = match until {
        ReadUpTo::Durable => found.report.proven_end,
        ReadUpTo::Written => found.report.end,
    };
    let from = first_of_last(&found, &selection.filter, *lines, until, end)?;
    let mut printer = Printer::<F>::new(selection);
    if let Some(error) = printer.print_all(&mut found.reader(from, until))? {
        return Err(Failure::problem(error).context(selection.source.name().to_string()));
    }
    if !follow || (matches!(found.report.verdict, Verdict::Refused(_)) && !found.in_flight) {
        return Ok(say_end(&selection.source, &found));
    }
    drop(found); // its index is not needed any more
    follow_on(&mut printer, &mut Follower::new(&selection.source, end))
}

/// Version 1 has nothing that proves what is durable.
fn follow_up_to(report: &Report) -> ReadUpTo {
    match report.segments.last() {
        Some(segment) if segment.version == 1 => ReadUpTo::Written,
        _ => ReadUpTo::Durable,
    }
}

/// Where to begin, so that the last `lines` wanted records are printed.
fn first_of_last<F: Printable>(
    found: &Found<F>,
    filter: &Filter,
    lines: usize,
    until: ReadUpTo,
    end: Seq,
) -> Result<Seq, Failure> {
    let first = found.report.first;
    if filter.is_empty() {
        let from = Seq::new(end.get().saturating_sub(lines as u64));
        return Ok(from.max(first));
    }
    // Only the numbers are kept, so that memory is bounded whatever the records hold.
    let mut last = VecDeque::new();
    let mut reader = found.reader(first, until);
    while let OfflineStep::Records(batch) = reader.next_batch().map_err(Failure::problem)? {
        for record in batch.records().filter(|record| F::is_wanted(*record, filter)) {
            last.push_back(F::seq(record));
            if last.len() > lines {
                last.pop_front();
            }
        }
    }
    Ok(last.front().copied().unwrap_or(end))
}

fn follow_on<F: Printable>(
    printer: &mut Printer<'_, F>,
    follower: &mut Follower<'_>,
) -> Result<Ended, Failure> {
    let source = &printer.selection.source;
    loop {
        match follower.step::<F>()? {
            Step::Records(mut reader) => {
                let error = printer.print_all(&mut reader)?;
                follower.printed_up_to(reader.next_seq(), error.is_none());
                match error {
                    // A segment was removed after it was looked at: the next look says from where it goes on.
                    Some(error) if !was_removed(&error) => {
                        return Err(Failure::problem(error).context(source.name().to_string()));
                    }
                    _ => {}
                }
            }
            Step::Trimmed { from, first } => {
                let last = first.get().saturating_sub(1);
                say(format_args!(
                    "{}: records {from} to {last} were removed before they were read",
                    source.name()
                ));
            }
            Step::Torn(message) => say(format_args!("{}: {message}; waiting for a writer", source.name())),
            Step::Nothing => std::thread::sleep(follower.pause()),
            Step::Damaged => {
                let found = source.inspect::<F>(RecoveryPolicy::Standard)?;
                say_end(source, &found);
                return Ok(Ended::Problem);
            }
            Step::Replaced { end } => {
                let reason = match end {
                    Some(end) => format!("ends before record {end} now, which is less than was printed"),
                    None => "has no segment any more".to_string(),
                };
                return Err(Failure::problem(anyhow::anyhow!(
                    "{}: the journal {reason}: it was replaced, cut or removed",
                    source.name()
                )));
            }
        }
    }
}

fn was_removed(error: &ReadError) -> bool {
    matches!(error, ReadError::Failed { failure, .. } if failure.cause == IoCause::NotFound)
}

/// Standard output, with what is wanted on it.
struct Printer<'a, F> {
    selection: &'a Selection,
    out: Output,
    framing: std::marker::PhantomData<F>,
}

impl<'a, F: Printable> Printer<'a, F> {
    fn new(selection: &'a Selection) -> Self {
        let out = Output::new(selection.format);
        Self { selection, out, framing: std::marker::PhantomData }
    }

    /// Prints all that a reader has, and sees to it that it arrives. Gives the error that stopped the reader.
    fn print_all(
        &mut self,
        reader: &mut OfflineReader<F, WatchedDisk>,
    ) -> Result<Option<ReadError>, Failure> {
        let Selection { source, filter, format } = self.selection;
        loop {
            match reader.next_batch() {
                Ok(OfflineStep::Records(batch)) => {
                    for record in batch.records().filter(|record| F::is_wanted(*record, filter)) {
                        print::<F>(record, *format, &mut self.out)?;
                    }
                }
                Ok(OfflineStep::Trimmed { first }) => {
                    say(format_args!("{}: it begins at record {first}", source.name()));
                }
                Ok(OfflineStep::End) => {
                    self.out.flush()?;
                    return Ok(None);
                }
                Err(error) => {
                    self.out.flush()?;
                    return Ok(Some(error));
                }
            }
        }
    }
}
