//! `serve`: an event bus over HTTP.

use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use strandline::bus::{BusOpenError, BusSettings, EventBus, Retention};
use strandline::{Directory, StdDisk};
use strandline_bus::{
    ConnectionLimits, DiskMeasures, Guard, MeasuredDisk, OwnSocket, Server, ServerSettings,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::token;
use crate::outcome::{Ended, Failure, say};
use crate::size;

/// Serve an event bus over HTTP: publish with POST, follow with server-sent events.
///
/// Prints the address once it listens. Ends on SIGTERM or Ctrl-C: streams are told, what was published is committed, and
/// the journals are closed. A directory has one server, or one other process that holds its bus.
#[derive(Args)]
pub(crate) struct Flags {
    /// The directory of the bus; created if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where to listen; another address than this machine's own needs --token-file
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// Listen on a Unix socket instead, which only its owner can open
    #[arg(long, value_name = "PATH", conflicts_with = "listen")]
    unix: Option<PathBuf>,
    /// A file with a token that every client has to show: its first line, 16 visible ASCII characters at least
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Connections at most
    #[arg(long, value_name = "N", default_value_t = ConnectionLimits::default().connections_max, value_parser = at_least_one)]
    max_connections: usize,
    /// Keep the directory within this size
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_size: Option<u64>,
}

/// Files that are kept for other things than connections.
const FILES_OF_ITS_OWN: usize = 64;

pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let guard =
        Guard { token: flags.token_file.as_deref().map(token).transpose()?, any_host: flags.unix.is_some() };
    let is_local = flags.unix.is_some() || is_loopback(flags.listen.ip());
    if !is_local && guard.token.is_none() {
        return Err(Failure::cannot_run(anyhow::anyhow!(
            "{} can be reached from other machines: give clients a token (--token-file), or listen on 127.0.0.1",
            flags.listen
        )));
    }
    let is_terminal = io::stderr().is_terminal();
    let _ = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(is_terminal)
        .log_internal_errors(false)
        .try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
        Failure::cannot_run(anyhow::Error::new(error).context("no threads to serve with"))
    })?;
    let settings = settings(flags)?;
    // What cannot be listened on leaves no directory behind. A socket in that directory has to wait for it.
    let waits = flags.unix.as_deref().and_then(Path::parent).is_some_and(|beside| !is_there(beside));
    let listening = if waits { None } else { Some(runtime.block_on(listen(flags))?) };
    let measures = DiskMeasures::default();
    let directory = Directory::open_through(&flags.directory, |disk| measures.of(disk))?;
    let (bus, report) = EventBus::open(&directory, settings).map_err(not_opened)?;
    if let strandline_core::Verdict::Cut(cut) = &report.events.verdict {
        say(format_args!("{}: {cut}", flags.directory.display()));
    }
    let settings =
        ServerSettings { guard, disk: Some(measures), opened: Some(report), ..ServerSettings::default() };
    let served = runtime.block_on(async {
        let listening = match listening {
            Some(listening) => listening,
            None => listen(flags).await?,
        };
        serve(&bus, settings, listening, flags).await
    });
    // What was accepted becomes durable also where serving failed.
    let closed = bus.close();
    served?;
    closed.map_err(Failure::problem)?;
    Ok(Ended::Sound)
}

fn settings(flags: &Flags) -> Result<BusSettings, Failure> {
    let Some(bytes_max) = flags.max_size else { return Ok(BusSettings::default()) };
    let compact_above = bytes_max / 5 * 4;
    let settings =
        BusSettings::with_retention(Retention { bytes_max, compact_above, ..Retention::default() });
    match settings.occupied_beside(0) {
        Ok(_) => Ok(settings),
        Err(too_small) => Err(not_opened(too_small)),
    }
}

/// Why the bus was not opened, and which flag may help.
fn not_opened(error: BusOpenError) -> Failure {
    let is_of_size = matches!(error, BusOpenError::TooSmall { .. } | BusOpenError::WouldDrop { .. });
    let failure = Failure::from(error);
    if is_of_size { failure.context("--max-size") } else { failure }
}

/// Where clients connect.
enum Listening {
    Tcp(TcpListener),
    Unix(OwnSocket),
}

async fn listen(flags: &Flags) -> Result<Listening, Failure> {
    let not_there = |place: String| {
        move |error| {
            Failure::cannot_run(anyhow::Error::new(error).context(format!("cannot listen on {place}")))
        }
    };
    match &flags.unix {
        Some(path) => {
            OwnSocket::bind(path).map(Listening::Unix).map_err(not_there(path.display().to_string()))
        }
        None => {
            let bound = TcpListener::bind(flags.listen).await;
            bound.map(Listening::Tcp).map_err(not_there(flags.listen.to_string()))
        }
    }
}

/// Whether there is something at this path; the empty one is where we are.
fn is_there(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.exists()
}

/// A server that takes no connection serves nobody.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "expected a number from 1 on".to_string())
}

async fn serve(
    bus: &EventBus<MeasuredDisk<StdDisk>>,
    settings: ServerSettings,
    listening: Listening,
    flags: &Flags,
) -> Result<(), Failure> {
    let connections_max = flags.max_connections.min(connections_at_most());
    let limits = ConnectionLimits { connections_max, ..ConnectionLimits::default() };
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    let [Ok(terminate), Ok(interrupt)] = signals else {
        return Err(Failure::cannot_run(anyhow::anyhow!("signals cannot be waited for")));
    };
    let end = either(terminate, interrupt);
    let server = Server::new(bus.clone(), settings).await.map_err(Failure::problem)?;
    match listening {
        Listening::Unix(listener) => {
            let path = flags.unix.as_deref().unwrap_or(Path::new(""));
            told(format_args!("listening on {}", path.display()))?;
            server.serve(listener, limits, end).await;
        }
        Listening::Tcp(listener) => {
            let address = listener.local_addr().unwrap_or(flags.listen);
            told(format_args!("listening on http://{address}"))?;
            server.serve(listener, limits, end).await;
        }
    }
    Ok(())
}

async fn either(mut one: Signal, mut other: Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

fn told(line: std::fmt::Arguments<'_>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Connections that leave files for the journals: without one for the next segment, events are refused.
fn connections_at_most() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    soft.map_or(usize::MAX, |files| files - FILES_OF_ITS_OWN.min(files / 2))
}

fn is_loopback(address: IpAddr) -> bool {
    address.is_loopback()
}
