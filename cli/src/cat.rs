//! `cat`: prints records, in order.

use std::io::Write;

use clap::Args;
use strandline::OfflineStep;
use strandline_core::{FramingKind, Pcpj, Pryj, ReadUpTo, RecoveryPolicy, Seq};

use crate::finding::say_end;
use crate::outcome::{Ended, Failure, say};
use crate::output::{Printable, print};
use crate::selection::{self, Selection};
use crate::terminal::Output;

/// Print the records of a journal.
///
/// Events are printed as {"sequence","time","domain","type","source","data"}; of a CloudEvent, "data" is its
/// own data, and its other attributes stand in "attributes". Opaque records are printed as {"seq","payload"}
/// in base64, with "payload_utf8" where the payload is text. Everything is verified before it is printed, and a
/// damaged journal is printed up to the damage. Nothing is changed, and a writer may have it open.
#[derive(Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    selection: selection::Flags,
    /// Begin behind this sequence number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Print at most this many records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// What `cat` does, checked.
pub(crate) struct Settings {
    selection: Selection,
    /// The first record that is wanted.
    from: Option<Seq>,
    limit: u64,
}

impl Settings {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        let from = flags.after.map(|after| Seq::new(after).next());
        let limit = flags.limit.unwrap_or(u64::MAX);
        Ok(Self { selection: Selection::check(flags.selection)?, from, limit })
    }
}

/// Prints what is wanted.
pub(crate) fn run(settings: &Settings) -> Result<Ended, Failure> {
    match settings.selection.source.kind() {
        FramingKind::Pryj => cat::<Pryj>(settings),
        FramingKind::Pcpj => cat::<Pcpj>(settings),
    }
}

fn cat<F: Printable>(settings: &Settings) -> Result<Ended, Failure> {
    let Selection { source, filter, format } = &settings.selection;
    let inspection = source.inspect::<F>(RecoveryPolicy::Standard)?;
    let from = settings.from.unwrap_or(inspection.report.first);
    let mut reader = inspection.reader(from, ReadUpTo::Written);
    let mut out = Output::new(*format);
    let mut left = settings.limit;
    while left > 0 {
        match reader.next_batch() {
            Ok(OfflineStep::Records(batch)) => {
                for record in batch.records().filter(|record| F::is_wanted(*record, filter)) {
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    print::<F>(record, *format, &mut out)?;
                }
            }
            Ok(OfflineStep::Trimmed { first }) => {
                say(format_args!(
                    "{}: records {from} to {} are no longer kept",
                    source.name(),
                    first.get() - 1
                ));
            }
            Ok(OfflineStep::End) => break,
            Err(error) => {
                out.flush()?;
                return Err(Failure::problem(error).context(source.name().to_string()));
            }
        }
    }
    out.flush()?;
    let ended = say_end(source, &inspection);
    let end = inspection.report.end;
    if from > end {
        // Whoever asks has seen numbers that this journal never gave out: it is another one, or lost its end.
        say(format_args!("{}: record {from} is asked for, but the journal ends before {end}", source.name()));
        return Ok(Ended::Problem);
    }
    Ok(ended)
}
