//! `record`: JSON Lines from standard input into an event journal.
//!
//! One thread reads, checks and appends; this one waits for what was appended, in order, and tells what is
//! durable. So commits are shared by whatever arrives while one is under way, and a slow producer
//! gets its answer while the input stays open.

mod acknowledge;
mod ingest;

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;

use acknowledge::Acknowledger;
use clap::Args;
use ingest::{Ingest, Ingested, Stop};
use strandline::{Directory, InspectError, Journal};
use strandline_core::{
    Config, EventDraft, Framing, FramingKind, JournalName, PAYLOAD_BYTES_MAX, Pcpj, Report, SyncPolicy,
    Verdict,
};

use crate::event_lines::Defaults;
use crate::outcome::{Ended, Failure, say};
use crate::{duration, size};

/// Receipts between the two threads. What waits is bounded in bytes by the journal; this bounds its number.
const RECEIPTS_MAX: usize = 4_096;
/// Smaller segments would be mostly files.
const SEGMENT_BYTES_MIN: u64 = 4 * 1024;
/// Zeros kept ready behind the end.
const RESERVE_BYTES: u64 = 4 * 1024 * 1024;

/// Record JSON Lines from standard input.
///
/// Every line is one JSON value, and is stored byte for byte as an event's payload. A CloudEvents 1.0 object
/// gives the event its type and source. Blank lines are ignored. At the end, everything is durable and one
/// line says what was recorded: {"first":..,"last":..,"count":..}.
#[derive(Args)]
pub(crate) struct Flags {
    /// The journal's directory; created if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The journal's name within the directory
    #[arg(long, value_name = "NAME", default_value = "event-journal")]
    journal: String,
    /// Type of events that are no CloudEvents
    #[arg(long = "type", value_name = "TYPE", default_value = "event")]
    event_type: String,
    /// Source of events that are no CloudEvents
    #[arg(long, value_name = "SOURCE", default_value = "stdin")]
    source: String,
    /// Domain of the events
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    domain: u8,
    /// When events are made durable: always, interval=50ms (or another duration), never
    ///
    /// The end of the input makes everything durable in any case.
    #[arg(long, value_name = "POLICY", default_value = "always", value_parser = parse_sync)]
    sync: SyncPolicy,
    /// Size at which a new segment file is begun
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size::parse)]
    segment_size: u64,
    /// Print each event's sequence number on its own line once the event is durable
    #[arg(long)]
    ack: bool,
    /// Go on after a line that cannot be recorded; the exit code is 1 all the same
    #[arg(long)]
    skip_bad: bool,
}

fn parse_sync(text: &str) -> Result<SyncPolicy, String> {
    match (text, text.strip_prefix("interval=")) {
        ("always", _) => Ok(SyncPolicy::Always),
        ("never", _) => Ok(SyncPolicy::Never),
        (_, Some(interval)) => match duration::parse_ms(interval)? {
            0 => Err("an interval of nothing is \"always\"".to_string()),
            ms => Ok(SyncPolicy::Interval { ms }),
        },
        _ => Err("write always, never, or interval=50ms (or another duration)".to_string()),
    }
}

/// What `record` does, checked.
pub(crate) struct Settings {
    directory: PathBuf,
    journal: JournalName,
    config: Config,
    ack: bool,
    defaults: Defaults,
    skip_bad: bool,
}

impl Settings {
    pub(crate) fn check(flags: Flags) -> Result<Self, Failure> {
        let journal = JournalName::parse(&flags.journal).map_err(Failure::cannot_run)?;
        if flags.segment_size < SEGMENT_BYTES_MIN {
            return Err(Failure::cannot_run(anyhow::anyhow!(
                "--segment-size is {} bytes, the least is {SEGMENT_BYTES_MIN}",
                flags.segment_size
            )));
        }
        let Flags { event_type, source, domain, skip_bad, .. } = flags;
        // The journal's own rules, asked before anything is created.
        let draft = EventDraft { domain, event_type: &event_type, source: &source, payload: b"" };
        Pcpj::measure(draft, PAYLOAD_BYTES_MAX).map_err(Failure::cannot_run)?;
        let mut config = strandline::config();
        config.sync = flags.sync;
        config.segment_bytes = flags.segment_size;
        // Most runs are short: a whole segment of zeros would cost more than it saves.
        config.reserve_bytes = RESERVE_BYTES;
        let defaults = Defaults { domain, event_type, source };
        Ok(Self { directory: flags.directory, journal, config, ack: flags.ack, defaults, skip_bad })
    }
}

/// Records until the input ends or fails.
pub(crate) fn run(settings: Settings) -> Result<Ended, Failure> {
    let Settings { directory, journal: name, config, ack, defaults, skip_bad } = settings;
    let journal = open(&directory, &name, config)?;
    let (sender, receipts) = sync_channel(RECEIPTS_MAX);
    let ingest = Ingest::new(journal.clone(), skip_bad, sender);
    let reading = thread::Builder::new()
        .name("stdin".to_string())
        .spawn(move || ingest.run(defaults))
        .map_err(Failure::cannot_run)?;

    let mut acknowledger = Acknowledger::new(journal.clone(), ack);
    let failed = acknowledger.run(receipts);
    // After a failure the other thread may wait for input that never comes; it is not waited for.
    let ingested = match failed {
        None => {
            reading.join().map_err(|_| Failure::problem(anyhow::anyhow!("the reading thread panicked")))?
        }
        Some(_) => Ingested::default(),
    };
    let closed = journal.flush().err().map(Failure::problem);
    acknowledger.print_durable();
    let closed = closed.or(journal.close().err().map(Failure::problem));
    let printed = acknowledger.print_summary();
    match (failed, ingested.stop, closed) {
        (Some(failure), ..) => Err(Failure::problem(failure)),
        (None, Some(Stop::Input(error)), _) => {
            Err(Failure::cannot_run(error).context("standard input cannot be read"))
        }
        (None, Some(Stop::Append { line, error }), _) => {
            Err(Failure::problem(error).context(format!("line {line} was not recorded")))
        }
        (None, _, Some(failure)) => Err(failure),
        (None, None | Some(Stop::BadLine | Stop::NotWanted), None) => {
            if ingested.skipped > 1 {
                say(format_args!("{} lines were not recorded", ingested.skipped));
            }
            // Last, because it says the least of the journal.
            printed?;
            Ok(if ingested.skipped == 0 { Ended::Sound } else { Ended::Problem })
        }
    }
}

/// Opens the journal for writing, and tells what recovery had to do.
fn open(path: &PathBuf, name: &JournalName, config: Config) -> Result<Journal<Pcpj>, Failure> {
    let directory = Directory::open(path)?;
    match strandline::detect(path, name) {
        Ok(Some(FramingKind::Pryj)) => {
            return Err(Failure::cannot_run(anyhow::anyhow!(
                "the journal {name} in {} holds opaque records (PRYJ), not events: name another one with --journal",
                path.display()
            )));
        }
        Ok(_) | Err(InspectError::NoJournal(_)) => {}
        Err(error) => return Err(Failure::from(error).context(path.display().to_string())),
    }
    let (journal, report) = directory
        .journal::<Pcpj>(name.as_str(), config)
        .map_err(|error| Failure::from(error).context(path.display().to_string()))?;
    tell_recovery(name, &report);
    Ok(journal)
}

fn tell_recovery(name: &JournalName, report: &Report) {
    if let Verdict::Cut(cut) = &report.verdict {
        let kept = match report.repair.set_aside {
            true => format!("they are kept in {}.torn-{}", name.segment_file(cut.segment), cut.offset),
            false => "no copy of them was kept".to_string(),
        };
        say(format_args!("journal {name}: recovered: {cut}; {kept}"));
    }
}
