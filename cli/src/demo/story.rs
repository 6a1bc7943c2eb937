//! The demo's story. Every line is printed after what it says was checked.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use strandline_core::{Framing, Pcpj, Pryj, RecoveryPolicy};

use super::process::Process;
use super::publisher::small_payload;
use super::wire::{Opened, PublisherTells, SubscriberTells};
use crate::outcome::Failure;
use crate::target::Source;
use strandline_bus::Gap;

/// The publisher stops in the middle of a write when so many events of its flood are durable.
const FLOOD_BEFORE_STOP: u64 = 200;
/// The bound of the bus in the last act, and a number of large events of which most do not fit in it.
const TINY: &str = "1048576";
const LARGE_EVENTS: u64 = 60;

type Publisher = Process<PublisherTells>;
type Subscriber = Process<SubscriberTells>;

/// The story while it is told.
pub(super) struct Story<'a> {
    directory: PathBuf,
    /// Where sockets are, and gone at the end.
    root: &'a Path,
    interrupted: Arc<AtomicBool>,
    /// What the publishers said is durable.
    durable: BTreeMap<u64, String>,
    openings: u32,
}

impl<'a> Story<'a> {
    pub(super) const fn new(directory: PathBuf, root: &'a Path, interrupted: Arc<AtomicBool>) -> Self {
        Self { directory, root, interrupted, durable: BTreeMap::new(), openings: 0 }
    }

    /// Tells it; an error says what is missing.
    pub(super) fn tell(mut self) -> Result<(), Failure> {
        let publisher = self.everybody_is_there_and_goes()?;
        self.the_publisher_is_killed(publisher)?;
        self.the_subscriber_misses_nothing()?;
        self.who_stays_away_too_long_is_told()?;
        self.all_is_sound()
    }

    fn everybody_is_there_and_goes(&mut self) -> Result<Publisher, Failure> {
        let (mut publisher, opened) = self.open(None)?;
        check(opened.records == 0, "a new bus that is empty")?;
        say(format_args!("publisher (process {}): holds a new event bus, and its lock", publisher.id()))?;
        let (context, audit) = (self.subscribe("context")?, self.subscribe("audit")?);
        say(format_args!(
            "context (process {}) and audit (process {}): subscribed durably, over a Unix socket",
            context.id(),
            audit.id()
        ))?;
        self.publish(&mut publisher, "publish", 5)?;
        for subscriber in [&context, &audit] {
            self.receive(subscriber, 1, 5)?;
        }
        say(format_args!("publisher: told that events 1 to 5 are durable"))?;
        say(format_args!("context, audit: received 1 to 5 and acknowledged them, durably"))?;
        audit.leave()?;
        has_left(&publisher, "audit")?;
        say(format_args!("audit: leaves, for long"))?;
        context.kill()?;
        has_left(&publisher, "context")?;
        say(format_args!("context: killed with SIGKILL"))?;
        Ok(publisher)
    }

    fn the_publisher_is_killed(&mut self, mut publisher: Publisher) -> Result<(), Failure> {
        self.publish(&mut publisher, "publish", 5)?;
        say(format_args!("publisher: goes on, events 6 to 10 are durable"))?;
        publisher.order("flood")?;
        for _ in 0..FLOOD_BEFORE_STOP {
            self.note(publisher.next("its flood was durable")?)?;
        }
        publisher.order("stop")?;
        let (written, of) = loop {
            match publisher.next("it stopped in a write")? {
                PublisherTells::Stopped(written, of) => break (written, of),
                told => self.note(told)?,
            }
        };
        for told in publisher.kill()? {
            self.note(told)?;
        }
        say(format_args!(
            "publisher: stopped in the middle of a write, with {written} of its {of} bytes done, and killed there with SIGKILL; the last event that it was told is durable is {}",
            self.last_durable()
        ))
    }

    fn the_subscriber_misses_nothing(&mut self) -> Result<(), Failure> {
        let told = self.last_durable();
        let (mut publisher, opened) = self.open(None)?;
        let last = opened.next - 1;
        check(
            last >= told && opened.records == last,
            "events that were told durable, in the reopened journal",
        )?;
        check(opened.is_cut, "a torn tail that was cut")?;
        say(format_args!(
            "publisher (process {}): opens the bus again, finds {last} events, and cuts off half an event ({})",
            publisher.id(),
            opened.verdict
        ))?;
        if last > told {
            say(format_args!(
                "  ({} were written whole when it died, but not told durable; they are kept)",
                last - told
            ))?;
        }
        let context = self.subscribe("context")?;
        self.receive(&context, 6, last)?;
        // What was received is durable, told or not.
        self.durable.extend((told + 1..=last).map(|sequence| (sequence, small_payload(sequence))));
        say(format_args!(
            "context (process {}): reconnects and receives the {} events that it missed, 6 to {last}: none lacks, none comes twice, each byte as it was published",
            context.id(),
            last - 5
        ))?;
        self.publish(&mut publisher, "publish", 1)?;
        self.receive(&context, last + 1, last + 1)?;
        say(format_args!("context: has acknowledged them, and receives event {} live", last + 1))?;
        context.leave()?;
        publisher.leave()?;
        say(format_args!("context, publisher: leave"))
    }

    fn who_stays_away_too_long_is_told(&mut self) -> Result<(), Failure> {
        let (mut publisher, _) = self.open(Some(TINY))?;
        self.publish(&mut publisher, "large", LARGE_EVENTS)?;
        publisher.order("first")?;
        let first = match publisher.next("it said what is kept")? {
            PublisherTells::First(first) => first,
            other => return Err(unexpected(&other)),
        };
        let last = self.last_durable();
        let bytes: usize =
            self.durable.range(last + 1 - LARGE_EVENTS..).map(|(_, payload)| payload.len()).sum();
        check(first > 6, "a bound that drops what audit has not acknowledged")?;
        say(format_args!(
            "publisher (process {}): opens the bus with a bound of 1 MiB and publishes {} kB; events before {first} are dropped, and audit needed them from 6 on",
            publisher.id(),
            bytes / 1_000
        ))?;
        let audit = self.subscribe("audit")?;
        let gap = match audit.next("it was given a gap")? {
            SubscriberTells::Gap(gap) => gap,
            other => return Err(unexpected(&other)),
        };
        let wanted =
            Gap { from: 6, to: last, count: Some(last - 5), reason: "expired".into(), resume_after: last };
        check(gap == wanted, format_args!("the right gap: {gap:?} is not {wanted:?}"))?;
        acknowledged(&audit, last)?;
        say(format_args!(
            "audit (process {}): comes back, and is told that it does not get {} events, 6 to {last}; it acknowledges that",
            audit.id(),
            last - 5
        ))?;
        self.publish(&mut publisher, "publish", 1)?;
        self.receive(&audit, last + 1, last + 1)?;
        say(format_args!("audit: receives event {} live", last + 1))?;
        audit.leave()?;
        publisher.leave()?;
        Ok(())
    }

    fn all_is_sound(&self) -> Result<(), Failure> {
        let (events, records) = Source::bus(&self.directory)?;
        let events = events.as_ref().map(verdict::<Pcpj>).transpose()?;
        let records = records.as_ref().map(verdict::<Pryj>).transpose()?;
        check(events == Some(true) && records == Some(true), "two sound journals at the end")?;
        say(format_args!("both journals are sound, every check held"))
    }

    /// Starts a publisher process, and gives what opening found.
    fn open(&mut self, bytes_max: Option<&str>) -> Result<(Publisher, Opened), Failure> {
        self.openings += 1;
        let (directory, socket) = (self.directory.as_os_str().to_owned(), self.socket());
        let mut arguments = vec![OsStr::new("demo-publisher"), &directory, socket.as_os_str()];
        if let Some(bytes_max) = bytes_max {
            arguments.extend([OsStr::new("--bytes-max"), OsStr::new(bytes_max)]);
        }
        let publisher = Publisher::start("publisher", &arguments, &self.interrupted)?;
        match publisher.next("the bus was open")? {
            PublisherTells::Opened(opened) => Ok((publisher, opened)),
            other => Err(unexpected(&other)),
        }
    }

    /// Each publisher has its own: a killed one leaves its socket behind.
    fn socket(&self) -> PathBuf {
        self.root.join(format!("socket-{}", self.openings))
    }

    fn subscribe(&self, name: &str) -> Result<Subscriber, Failure> {
        let socket = self.socket();
        let arguments = [OsStr::new("demo-subscriber"), socket.as_os_str(), OsStr::new(name)];
        let subscriber = Subscriber::start(name, &arguments, &self.interrupted)?;
        match subscriber.next("it was subscribed")? {
            SubscriberTells::Subscribed => Ok(subscriber),
            other => Err(unexpected(&other)),
        }
    }

    /// Has so many events published, and waits until they are told durable.
    fn publish(&mut self, publisher: &mut Publisher, order: &str, count: u64) -> Result<(), Failure> {
        publisher.order(&format!("{order} {count}"))?;
        for _ in 0..count {
            self.note(publisher.next("what it published was durable")?)?;
        }
        Ok(())
    }

    fn note(&mut self, told: PublisherTells) -> Result<(), Failure> {
        let PublisherTells::Durable(sent) = told else { return Err(unexpected(&told)) };
        let next = self.last_durable() + 1;
        check(sent.sequence == next, format_args!("event {next}: {} was told durable", sent.sequence))?;
        self.durable.insert(sent.sequence, sent.payload);
        Ok(())
    }

    fn last_durable(&self) -> u64 {
        self.durable.last_key_value().map_or(0, |(sequence, _)| *sequence)
    }

    /// Waits until a subscriber has received exactly the events `from` to `to`, and acknowledged them.
    fn receive(&self, subscriber: &Subscriber, from: u64, to: u64) -> Result<(), Failure> {
        let mut next = from;
        while next <= to {
            match subscriber.next("it received everything")? {
                SubscriberTells::Received(sent) => {
                    let told = self.durable.get(&next).cloned();
                    check(
                        sent.sequence == next && sent.payload == told.unwrap_or_else(|| small_payload(next)),
                        format_args!("event {next}: {sent:?} was received"),
                    )?;
                    next += 1;
                }
                SubscriberTells::Acknowledged(_) => {}
                other => return Err(unexpected(&other)),
            }
        }
        acknowledged(subscriber, to)
    }
}

fn acknowledged(subscriber: &Subscriber, last: u64) -> Result<(), Failure> {
    loop {
        match subscriber.next("its acknowledgement was durable")? {
            SubscriberTells::Acknowledged(sequence) if sequence == last => return Ok(()),
            SubscriberTells::Acknowledged(_) => {}
            other => return Err(unexpected(&other)),
        }
    }
}

fn has_left(publisher: &Publisher, subscriber: &str) -> Result<(), Failure> {
    match publisher.next("a subscriber left it")? {
        PublisherTells::Left(name) if name == subscriber => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn verdict<F: Framing>(source: &Source) -> Result<bool, Failure> {
    Ok(source.inspect::<F>(RecoveryPolicy::Standard)?.is_sound())
}

fn check(holds: bool, what: impl fmt::Display) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::problem(anyhow::anyhow!("the demo misses {what}"))) }
}

fn unexpected(message: &impl fmt::Debug) -> Failure {
    Failure::problem(anyhow::anyhow!("the demo did not expect {message:?}"))
}

fn say(line: fmt::Arguments<'_>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
