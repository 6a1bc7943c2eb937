//! `sub`: events of a server to standard output.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;
use strandline_bus::Gap;
use strandline_bus::client::{Delivered, Follow, Subscriber};

use super::reader_watch::ReaderWatch;
use super::{ServerFlags, runtime};
use crate::outcome::{Ended, Failure};
use crate::terminal::harmless;
use crate::wanted;

/// Follow the events of a server, until Ctrl-C.
///
/// Prints {"sequence":..,"event":{..}} a line, the event as a CloudEvent, and {"gap":{..}} where events are missing. It connects again
/// whenever it has to, and goes on where it was. With --durable the server keeps its place: what was printed is acknowledged.
#[derive(Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    server: ServerFlags,
    /// The name of a durable subscription
    #[arg(long, value_name = "NAME")]
    durable: Option<String>,
    /// Begin behind this event; 0 for what is kept. More than 1,000 missed events are told as a gap
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    #[command(flatten)]
    wanted: wanted::Flags,
    /// End after so many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Event { sequence: u64, event: &'a RawValue },
    Gap { gap: &'a Gap },
}

pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let follow = Follow {
        subscription: flags.durable.clone(),
        last_sequence: flags.after,
        filter: flags.wanted.filter(),
    };
    // Why nothing comes is said where it does not disturb the data.
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN);
    let _ = log.without_time().with_target(false).with_ansi(false).log_internal_errors(false).try_init();
    let subscriber = flags.server.client()?.follow(follow);
    runtime()?.block_on(print(subscriber, flags))
}

async fn print(mut subscriber: Subscriber, flags: &Flags) -> Result<Ended, Failure> {
    let watched = ReaderWatch::of_stdout();
    let failure = |error| flags.server.failure(error);
    let (mut left, mut ended) = (flags.limit.unwrap_or(u64::MAX), Ended::Sound);
    while left > 0 {
        let delivered = tokio::select! {
            biased;
            () = watched.gone() => return Err(Failure::ReaderGone),
            delivered = subscriber.next() => delivered,
        };
        let processed = match delivered.map_err(failure)? {
            Delivered::Event { sequence, data, .. } => {
                left -= 1;
                // Ends of lines stand between the parts of JSON only.
                let data = data.replace(['\n', '\r'], " ");
                let event = serde_json::from_str(&data).map_err(|error| {
                    Failure::problem(anyhow::anyhow!("event {sequence}: its data is no JSON: {error}"))
                })?;
                print_line(&Line::Event { sequence, event })?;
                sequence
            }
            Delivered::Gap(gap) => {
                print_line(&Line::Gap { gap: &gap })?;
                ended = Ended::Problem;
                gap.resume_after
            }
            Delivered::Awaiting { sequence } => sequence,
        };
        subscriber.acknowledge(processed).await.map_err(failure)?;
    }
    Ok(ended)
}

fn print_line(line: &Line<'_>) -> Result<(), Failure> {
    let mut text = serde_json::to_string(line)?;
    let mut out = io::stdout().lock();
    // Programs get it as it was published.
    if out.is_terminal() {
        text = harmless(&text).into_owned();
    }
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
