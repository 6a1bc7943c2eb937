//! `decode`: the messages of a session of the reference exchange as JSON.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, ValueEnum};
use serde::Serialize;
use strandline::OfflineStep;
use strandline::session::{EVENTS, INPUT, Setup};
use strandline_core::{Pryj, ReadUpTo, RecoveryPolicy, Seq};
use strandline_sim::exchange::{Command, Event, ExchangeSetup};

use crate::finding::say_end;
use crate::outcome::{Ended, Failure};
use crate::output::OUTPUT_BUFFER_BYTES;
use crate::target::Source;

/// Print the messages of a session of the reference exchange, as JSON Lines.
///
/// One line a record, with its number: {"seq","message",...}. A record that is no message of the schema is printed as
/// {"seq","unreadable","payload"}, with its bytes in Base64, and the exit code is 1; not for a command, which the exchange
/// has answered with a refusal. Nothing is changed, and a session may be running.
#[derive(Args)]
pub(crate) struct Flags {
    /// The session's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Which of its journals
    #[arg(long, value_enum)]
    journal: SessionJournal,
}

#[derive(Clone, Copy, ValueEnum)]
enum SessionJournal {
    /// The setup and the commands
    Input,
    /// The events
    Events,
}

/// A line of `decode`.
#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    #[serde(flatten)]
    record: Record<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Record<'a> {
    Setup {
        message: &'static str,
        engine: &'a str,
        #[serde(flatten)]
        setup: ExchangeSetup,
    },
    Command(Command<'a>),
    Event(Event<'a>),
    Unreadable {
        unreadable: String,
        payload: String,
    },
}

/// A record that is no message.
type Unreadable = Box<dyn std::error::Error>;

impl<'a> Record<'a> {
    fn read(journal: SessionJournal, seq: Seq, payload: &'a [u8]) -> Self {
        let message = match (journal, seq) {
            (SessionJournal::Input, Seq::ZERO) => Self::setup(payload),
            (SessionJournal::Input, _) => {
                Command::decode(payload).map(Self::Command).map_err(Unreadable::from)
            }
            (SessionJournal::Events, _) => Event::decode(payload).map(Self::Event).map_err(Unreadable::from),
        };
        message.unwrap_or_else(|why| Self::Unreadable {
            unreadable: why.to_string(),
            payload: BASE64_STANDARD.encode(payload),
        })
    }

    fn setup(payload: &'a [u8]) -> Result<Self, Unreadable> {
        let Setup { engine, setup } = Setup::decode(payload)?;
        Ok(Self::Setup { message: "setup", engine, setup: ExchangeSetup::decode(setup)? })
    }
}

pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let name = match flags.journal {
        SessionJournal::Input => INPUT,
        SessionJournal::Events => EVENTS,
    };
    let source = Source::one(&flags.directory, Some(name))?;
    let inspection = source.inspect::<Pryj>(RecoveryPolicy::Standard)?;
    let mut reader = inspection.reader(inspection.report.first, ReadUpTo::Written);
    let mut out = BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, io::stdout().lock());
    let mut is_readable = true;
    loop {
        let batch = match reader.next_batch() {
            Ok(OfflineStep::Records(batch)) => batch,
            Ok(OfflineStep::Trimmed { .. } | OfflineStep::End) => break,
            Err(error) => {
                out.flush()?;
                return Err(Failure::problem(error).context(source.name().to_string()));
            }
        };
        for record in batch.records() {
            let seq = record.seq.get();
            let record = Record::read(flags.journal, record.seq, record.payload);
            // Whatever a producer sends is a command, and is answered.
            let is_command = matches!(flags.journal, SessionJournal::Input) && seq > 0;
            is_readable &= is_command || !matches!(record, Record::Unreadable { .. });
            serde_json::to_writer(&mut out, &Line { seq, record })?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    let ended = say_end(&source, &inspection);
    Ok(if is_readable { ended } else { Ended::Problem })
}
