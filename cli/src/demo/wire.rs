//! What the demo's processes say to each other: JSON, one object a line.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use strandline_bus::Gap;

/// An event on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) sequence: u64,
    pub(super) payload: String,
}

/// What the publisher tells the story.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PublisherTells {
    /// The bus is open.
    Opened(Opened),
    /// A write has stopped in the middle, with so many bytes written of so many.
    Stopped(usize, usize),
    /// This event is durable.
    Durable(Sent),
    /// This subscriber is not connected any more.
    Left(String),
    /// The first event that is kept.
    First(u64),
}

/// The report of opening the journal of events.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    pub(super) records: u64,
    /// The number that the next event gets.
    pub(super) next: u64,
    pub(super) verdict: String,
    pub(super) is_cut: bool,
}

/// What the publisher sends to a subscriber.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToSubscriber {
    Subscribed,
    Events(Vec<Sent>),
    Gap(Gap),
    /// Nothing more until this is acknowledged.
    Awaiting(u64),
    /// The acknowledgement is durable.
    Acknowledged(u64),
}

/// What a subscriber sends to the publisher.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToPublisher {
    /// The first line: the subscription's name.
    Subscribe(String),
    Acknowledge(u64),
}

/// What a subscriber tells the story.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SubscriberTells {
    Subscribed,
    Received(Sent),
    Gap(Gap),
    Acknowledged(u64),
}

/// Sends one message.
pub(super) fn send(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

/// The next message; nothing at the end. A last line that was cut short, by a kill, is none.
pub(super) fn receive<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}
