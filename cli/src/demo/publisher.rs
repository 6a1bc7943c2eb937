//! The demo's publisher process: it holds the directory and the bus, publishes what it is ordered to, and serves
//! subscribers in other processes over a Unix socket.

use std::io::{self, BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Args;
use strandline::bus::{self, AckRequest, BusSettings, Received, Retention, Subscribe};
use strandline::{Directory, EventDraft, StdDisk};
use strandline_core::{Seq, Verdict};

use super::stopping_disk::StoppingDisk;
use super::wire::{Opened, PublisherTells, Sent, ToPublisher, ToSubscriber, receive, send};
use crate::outcome::{Ended, Failure};

type EventBus = bus::EventBus<StoppingDisk>;
type Subscription = bus::Subscription<StoppingDisk>;

/// Events that are published and not waited for yet.
const IN_FLIGHT_MAX: usize = 64;
/// Between two looks whether a subscriber is still there.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Args)]
pub(crate) struct Flags {
    directory: PathBuf,
    socket: PathBuf,
    #[arg(long)]
    bytes_max: Option<u64>,
}

/// Publishes and serves until standard input ends.
pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let disk = StdDisk::create(&flags.directory).map_err(Failure::cannot_run)?;
    let _lock = disk.try_lock().map_err(Failure::cannot_run)?;
    let stops = Arc::new(AtomicBool::new(false));
    let directory = Directory::on(StoppingDisk::new(disk, Arc::clone(&stops), stopped));
    let mut settings = BusSettings { may_drop_at_open: true, ..BusSettings::default() };
    if let Some(bytes_max) = flags.bytes_max {
        settings.bus.retention = Retention { bytes_max, compact_above: bytes_max, ..Retention::default() };
    }
    let (bus, report) = EventBus::open(&directory, settings)?;
    let listener = UnixListener::bind(&flags.socket)
        .map_err(|error| Failure::cannot_run(error).context(flags.socket.display().to_string()))?;
    let serving = bus.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bus = serving.clone();
            thread::spawn(move || serve(&bus, stream));
        }
    });
    let events = &report.events;
    tell(&PublisherTells::Opened(Opened {
        records: events.records(),
        next: bus.events().next_seq().get(),
        verdict: events.verdict.to_string(),
        is_cut: matches!(events.verdict, Verdict::Cut(_)),
    }))?;
    for order in io::stdin().lock().lines() {
        obey(&bus, &stops, &order.map_err(Failure::problem)?)?;
    }
    bus.close().map_err(Failure::problem)?;
    Ok(Ended::Sound)
}

fn obey(bus: &EventBus, stops: &AtomicBool, order: &str) -> Result<(), Failure> {
    match order.split_once(' ').unwrap_or((order, "")) {
        ("publish", count) => publish(bus, count.parse().map_err(Failure::problem)?, SMALL),
        ("large", count) => publish(bus, count.parse().map_err(Failure::problem)?, LARGE),
        ("flood", _) => {
            let bus = bus.clone();
            thread::spawn(move || publish(&bus, u64::MAX, SMALL));
            Ok(())
        }
        ("stop", _) => {
            stops.store(true, Ordering::SeqCst);
            Ok(())
        }
        ("first", _) => tell(&PublisherTells::First(bus.events().first().get())),
        _ => Err(Failure::cannot_run(anyhow::anyhow!("no order: {order:?}"))),
    }
}

/// Repetitions of a text: about 200 bytes, and about 50 kB.
const SMALL: usize = 12;
const LARGE: usize = 3_000;

/// The payload of the event that gets this number.
fn payload(sequence: u64, size: usize) -> String {
    format!("{{\"n\":{sequence},\"tide\":\"{}\"}}", format!("high water {sequence}. ").repeat(size))
}

/// The payload of an ordinary event, for whoever has to check it.
pub(super) fn small_payload(sequence: u64) -> String {
    payload(sequence, SMALL)
}

/// Publishes events as fast as it can, and tells of each one that is durable.
fn publish(bus: &EventBus, count: u64, size: usize) -> Result<(), Failure> {
    let (sender, tickets) = sync_channel(IN_FLIGHT_MAX);
    let telling = thread::spawn(move || {
        for (sent, ticket) in tickets {
            let ticket: strandline::Ticket<_, _> = ticket;
            ticket.wait().map_err(Failure::problem)?;
            tell(&PublisherTells::Durable(sent))?;
        }
        Ok(())
    });
    for _ in 0..count {
        let sequence = bus.events().next_seq().get();
        let payload = payload(sequence, size);
        let draft =
            EventDraft { domain: 1, event_type: "tide", source: "/demo", payload: payload.as_bytes() };
        let ticket = bus.publish_nowait(draft).map_err(Failure::problem)?;
        let sequence = ticket.seq().get();
        if sender.send((Sent { sequence, payload }, ticket)).is_err() {
            break;
        }
    }
    drop(sender);
    telling.join().unwrap_or_else(|_| Err(Failure::problem(anyhow::anyhow!("the telling thread panicked"))))
}

/// A write has stopped, and goes on no more.
fn stopped(written: usize, of: usize) {
    // Without a story there is nobody to tell, and nobody to go on for.
    let _ = tell(&PublisherTells::Stopped(written, of));
}

fn tell(message: &PublisherTells) -> Result<(), Failure> {
    Ok(send(&mut io::stdout().lock(), message)?)
}

/// Serves one subscriber until it goes. Whatever fails on the way ends the connection, and the story notices.
fn serve(bus: &EventBus, stream: UnixStream) -> Option<()> {
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let Ok(Some(ToPublisher::Subscribe(name))) = receive(&mut input) else { return None };
    let subscription = bus.subscribe(Subscribe::durable(&name)).ok()?;
    let out = Arc::new(Mutex::new(stream));
    answer(&out, &ToSubscriber::Subscribed).ok()?;
    let is_gone = Arc::new(AtomicBool::new(false));
    let (id, acknowledging) = (subscription.id(), bus.clone());
    let (answers, gone) = (Arc::clone(&out), Arc::clone(&is_gone));
    thread::spawn(move || {
        while let Ok(Some(ToPublisher::Acknowledge(sequence))) = receive(&mut input) {
            let ack = AckRequest { subscription_id: id, sequence: Seq::new(sequence) };
            let acknowledged = acknowledging.acknowledge(ack);
            if acknowledged.is_err() || answer(&answers, &ToSubscriber::Acknowledged(sequence)).is_err() {
                break;
            }
        }
        gone.store(true, Ordering::SeqCst);
    });
    deliver(subscription, &out, &is_gone);
    // By now it is disconnected.
    tell(&PublisherTells::Left(name)).ok()
}

fn deliver(mut subscription: Subscription, out: &Mutex<UnixStream>, is_gone: &AtomicBool) {
    while !is_gone.load(Ordering::SeqCst) {
        let message = match subscription.recv(Some(LOOK)) {
            Ok(Received::Events(batch)) => {
                let sent = batch.events().map(|event| Sent {
                    sequence: event.seq.get(),
                    payload: String::from_utf8_lossy(event.payload).into_owned(),
                });
                ToSubscriber::Events(sent.collect())
            }
            Ok(Received::Gap(gap)) => ToSubscriber::Gap(gap.into()),
            Ok(Received::Awaiting { sequence }) => ToSubscriber::Awaiting(sequence.get()),
            Ok(Received::TimedOut) => continue,
            Ok(Received::Ended | Received::Closed) | Err(_) => return,
        };
        if answer(out, &message).is_err() {
            return;
        }
    }
}

fn answer(out: &Mutex<UnixStream>, message: &ToSubscriber) -> io::Result<()> {
    send(&mut *out.lock().unwrap_or_else(PoisonError::into_inner), message)
}
