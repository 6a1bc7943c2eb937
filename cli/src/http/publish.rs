//! `pub`: JSON Lines from standard input to a server.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use strandline_bus::Envelope;
use strandline_core::PAYLOAD_BYTES_MAX;

use super::{ServerFlags, runtime};
use crate::event_lines::{Content, Defaults, EventLine, EventLines};
use crate::lines::Lines;
use crate::outcome::{Ended, Failure};

/// Publish JSON Lines from standard input to a server.
///
/// Every line is one JSON value. A CloudEvents 1.0 object is published as it is; anything else becomes the data of a
/// CloudEvent. Each event is durable before the next is sent, and one whose answer was lost is sent again and published once.
/// At the end one line says what was published: {"first":..,"last":..,"count":..}.
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

pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let client = flags.server.client()?;
    let runtime = runtime()?;
    let defaults = Defaults { domain: 1, event_type: flags.event_type.clone(), source: flags.source.clone() };
    let mut lines = EventLines::new(Lines::new(io::stdin().lock(), PAYLOAD_BYTES_MAX), defaults);
    let mut out = io::stdout().lock();
    let mut summary = Summary::default();
    // Different in every run: what another run has published is another event.
    let run = format!("{:016x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), ()));
    loop {
        let line = match lines.next_line().map_err(Failure::cannot_run)? {
            None => break,
            Some(Ok(Content::Blank)) => continue,
            Some(Ok(Content::Event(line))) => line,
            Some(Err(bad)) => return Err(Failure::problem(bad)),
        };
        let event = cloud_event(&line, &run)?;
        let sequence =
            runtime.block_on(client.publish(&event)).map_err(|error| flags.server.failure(error))?;
        summary.first.get_or_insert(sequence);
        (summary.last, summary.count) = (Some(sequence), summary.count + 1);
        if flags.ack {
            writeln!(out, "{sequence}")?;
            out.flush()?;
        }
    }
    serde_json::to_writer(&mut out, &summary)?;
    writeln!(out)?;
    Ok(out.flush()?).map(|()| Ended::Sound)
}

fn cloud_event(line: &EventLine<'_>, run: &str) -> Result<String, Failure> {
    let draft = line.draft();
    if line.is_cloud_event() {
        return Ok(std::str::from_utf8(draft.payload).map_err(Failure::cannot_run)?.to_string());
    }
    let id = format!("{run}-{}", line.line());
    Ok(Envelope::new(id, draft.event_type, draft.source, draft.payload).to_json())
}
