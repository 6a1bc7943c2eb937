//! `pub`: JSON Lines from standard input to a server.

use std::io::{self, BufRead, Write};

use clap::Args;
use serde::Serialize;
use strandline_bus::Envelope;
use strandline_bus::client::ClientError;
use strandline_core::PAYLOAD_BYTES_MAX;

use super::{ServerFlags, runtime};
use crate::event_lines::{Content, Defaults, EventLine, EventLines};
use crate::lines::Lines;
use crate::outcome::{Ended, Failure, say};

/// Publish JSON Lines from standard input to a server.
///
/// Every line is one JSON value. A CloudEvents 1.0 object is published as it is; anything else becomes the data of a
/// CloudEvent. Each event is durable before the next is sent, and one whose answer was lost is sent again and published once.
/// At the end one line says what was published: {"first":..,"last":..,"count":..}. Where it stops before, standard error says how many
/// events were, and which line is the first that was not.
#[derive(Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    server: ServerFlags,
    /// Type of events that are no CloudEvents
    #[arg(long = "type", value_name = "TYPE", default_value = "event")]
    event_type: String,
    /// Source of events that are no CloudEvents
    #[arg(long, value_name = "SOURCE", default_value = "stdin")]
    source: String,
    /// Print each event's sequence number on its own line
    #[arg(long)]
    ack: bool,
}

/// What was published.
#[derive(Default, Serialize)]
struct Summary {
    first: Option<u64>,
    last: Option<u64>,
    count: u64,
}

/// Why it stopped, and at which line.
struct Stopped {
    line: u64,
    failure: Failure,
    /// No answer says so: the line may have been published.
    is_open: bool,
}

pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let client = flags.server.client()?;
    let runtime = runtime()?;
    let defaults = Defaults { domain: 1, event_type: flags.event_type.clone(), source: flags.source.clone() };
    let mut lines = EventLines::new(Lines::new(io::stdin().lock(), PAYLOAD_BYTES_MAX), defaults);
    let mut out = io::stdout().lock();
    let mut summary = Summary::default();
    // Different in every run: what another run has published is another event.
    let run = format!("{:016x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), ()));
    let publish = |event: &str| runtime.block_on(client.publish(event));
    if let Err(stopped) = publish_all(flags, &mut lines, &run, &mut summary, publish, &mut out) {
        say(summary.until(&stopped));
        return Err(stopped.failure);
    }
    serde_json::to_writer(&mut out, &summary)?;
    writeln!(out)?;
    Ok(out.flush()?).map(|()| Ended::Sound)
}

/// Publishes line by line, as far as it goes.
fn publish_all(
    flags: &Flags,
    lines: &mut EventLines<impl BufRead>,
    run: &str,
    summary: &mut Summary,
    publish: impl Fn(&str) -> Result<u64, ClientError>,
    out: &mut impl Write,
) -> Result<(), Stopped> {
    let mut number = 0;
    loop {
        number += 1;
        let stopped = |failure, is_open| Stopped { line: number, failure, is_open };
        let line = match lines.next_line().map_err(|error| stopped(Failure::cannot_run(error), false))? {
            None => return Ok(()),
            Some(Ok(Content::Blank)) => continue,
            Some(Ok(Content::Event(line))) => line,
            Some(Err(bad)) => return Err(stopped(Failure::problem(bad), false)),
        };
        let event = cloud_event(&line, run).map_err(|failure| stopped(failure, false))?;
        let sequence = publish(&event).map_err(|error| {
            let is_open = is_open(&error);
            stopped(flags.server.failure(error), is_open)
        })?;
        summary.first.get_or_insert(sequence);
        (summary.last, summary.count) = (Some(sequence), summary.count + 1);
        if flags.ack {
            let printed = writeln!(out, "{sequence}").and_then(|()| out.flush());
            printed.map_err(|error| Stopped { line: number + 1, failure: error.into(), is_open: false })?;
        }
    }
}

/// Whether it may have been published all the same: only a server of the bus that says no, or that there is no space, is believed.
fn is_open(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { status, .. } => status.is_server_error() && status.as_u16() != 507,
        ClientError::Connection(_) | ClientError::Http(_) | ClientError::Answer(_) => true,
        ClientError::Address { .. } | ClientError::Ended => false,
    }
}

impl Summary {
    /// What was published of an input that was not published to its end.
    fn until(&self, stopped: &Stopped) -> String {
        let numbers = match (self.first, self.last) {
            (Some(first), Some(last)) => format!(", the first as {first}, the last as {last}"),
            _ => String::new(),
        };
        let outcome = if stopped.is_open {
            "may have been: there is no answer that says"
        } else {
            "is the first that was not"
        };
        format!("{} events were published{numbers}; line {} {outcome}", self.count, stopped.line)
    }
}

fn cloud_event(line: &EventLine<'_>, run: &str) -> Result<String, Failure> {
    let draft = line.draft();
    if line.is_cloud_event() {
        return Ok(std::str::from_utf8(draft.payload).map_err(Failure::cannot_run)?.to_string());
    }
    let id = format!("{run}-{}", line.line());
    Ok(Envelope::new(id, draft.event_type, draft.source, draft.payload).to_json())
}
