//! Following events across connections.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use strandline_core::Filter;
use tokio::time::{Instant, timeout_at};

use super::backoff::Backoff;
use super::connect::Connect;
use super::error::ClientError;
use super::sse::{Message, Parser};
use super::{ANSWER_BYTES_MAX, Address, Client, in_time, refused};
use crate::gap::Gap;

/// A stream on which nothing is heard for so long, not even a heartbeat, is dead.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// What is to be followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Follow {
    /// The name of a durable subscription; none for one that leaves nothing behind.
    pub subscription: Option<String>,
    /// The last event that was processed, where that is known; 0 for all events.
    pub last_sequence: Option<u64>,
    /// Which events are wanted.
    pub filter: Filter,
}

/// What a subscriber is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// An event.
    Event {
        /// Its number.
        sequence: u64,
        /// Its type.
        event_type: String,
        /// The CloudEvent, in JSON.
        data: String,
    },
    /// Events that are not delivered.
    Gap(Gap),
    /// Nothing more until this is acknowledged: the end of what was missed.
    Awaiting {
        /// What is to be acknowledged.
        sequence: u64,
    },
}

/// A subscriber's end. It connects again by itself, and goes on behind the last event that it gave out.
#[derive(Debug)]
pub struct Subscriber<C = Address> {
    client: Client<C>,
    follow: Follow,
    /// The last event that was given out; at first, the one that was processed.
    last: Option<u64>,
    /// The last event that is to be acknowledged; and, if the server has not taken that yet, when to try again.
    processed: Option<u64>,
    owes: Option<Instant>,
    owing: Backoff,
    /// Whether the server was told where to begin.
    was_told: bool,
    /// Whether it is without a connection, and that was said.
    is_away: bool,
    backoff: Backoff,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    body: Incoming,
    parser: Parser,
    messages: VecDeque<Message>,
    /// When something was heard of it last.
    heard: Instant,
}

#[derive(Deserialize)]
struct Awaiting {
    sequence: u64,
}

impl Follow {
    /// All events from now on.
    #[must_use]
    pub fn live() -> Self {
        Self::default()
    }

    /// A subscription that keeps its place at the server.
    #[must_use]
    pub fn durable(name: &str) -> Self {
        Self { subscription: Some(name.to_string()), ..Self::default() }
    }

    /// The same, from the event after this one.
    #[must_use]
    pub fn after(self, last_sequence: u64) -> Self {
        Self { last_sequence: Some(last_sequence), ..self }
    }

    fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.subscription.iter().map(|name| ("subscription", name)));
        query.extend_pairs(self.filter.event_types().map(|value| ("type", value)));
        query.extend_pairs(self.filter.sources().map(|value| ("source", value)));
        query.extend_pairs(self.filter.domains().map(|value| ("domain", value.to_string())));
        query.finish()
    }
}

impl<C: Connect> Subscriber<C> {
    pub(super) fn new(client: Client<C>, follow: Follow) -> Self {
        let (last, backoff) = (follow.last_sequence, Backoff::new(client.seed));
        let owing = Backoff::new(client.seed ^ 1);
        Self {
            client,
            follow,
            last,
            processed: None,
            owes: None,
            owing,
            was_told: false,
            is_away: false,
            backoff,
            connection: None,
        }
    }

    /// What comes next. Connects, and connects again, as often as it takes.
    ///
    /// # Errors
    /// [`ClientError`] where trying again would not help. Calling it again tries all the same.
    pub async fn next(&mut self) -> Result<Delivered, ClientError> {
        loop {
            match self.receive().await {
                Ok(Some(delivered)) => return Ok(delivered),
                Ok(None) => {}
                Err(error) => {
                    self.connection = None;
                    if !error.is_passing() {
                        return Err(error);
                    }
                    // Once, until something comes again.
                    if !std::mem::replace(&mut self.is_away, true) {
                        tracing::warn!("connecting again: {error}");
                    }
                    self.backoff.pause().await;
                }
            }
        }
    }

    /// Acknowledges everything up to an event. Where the server cannot be reached, or does not know of the subscription or that the event
    /// was delivered, since it was started anew, that is done by [`next`](Self::next): after the next connect, or after a while. Without
    /// a name, nothing is to be told to the server.
    ///
    /// # Errors
    /// [`ClientError`] where trying again would not help.
    pub async fn acknowledge(&mut self, sequence: u64) -> Result<(), ClientError> {
        let Some(name) = &self.follow.subscription else { return Ok(()) };
        self.processed = Some(sequence);
        match self.client.acknowledge(name, sequence).await {
            Ok(()) => {
                self.owing.reset();
                self.owes = None;
            }
            Err(error) if error.is_passing() || error.is_unknown() => {
                self.owes = Some(Instant::now() + self.owing.next());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What the connection gives; nothing where it has to be asked again.
    async fn receive(&mut self) -> Result<Option<Delivered>, ClientError> {
        if self.connection.is_none() {
            self.connection = Some(self.connect().await?);
        }
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let Some(message) = connection.messages.pop_front() else {
            // The server may wait for what it could not be told, on a connection that was whole all the time.
            let due = self.owes.unwrap_or_else(|| connection.heard + SILENCE_MAX);
            let Ok(messages) = timeout_at(due, connection.read()).await else {
                if let Some(processed) = self.owed() {
                    self.acknowledge(processed).await?;
                }
                return Ok(None);
            };
            let messages = messages?;
            if let Some(retry) = connection.parser.retry_ms {
                self.backoff.set_first(Duration::from_millis(retry));
            }
            if !messages.is_empty() {
                self.is_away = false;
                self.backoff.reset();
            }
            connection.messages.extend(messages);
            return Ok(None);
        };
        let delivered = self.understand(message)?;
        let Some(again) = delivered.as_ref().and_then(|delivered| self.had_before(delivered)) else {
            if let Some(Delivered::Event { sequence, .. }) = delivered {
                self.last = Some(sequence);
            }
            return Ok(delivered);
        };
        // What was processed when the last connection broke is acknowledged now.
        if let Some(processed) = self.owed().filter(|processed| *processed <= again) {
            self.acknowledge(processed).await?;
        }
        Ok(None)
    }

    /// What was processed, if the server could not be told.
    fn owed(&self) -> Option<u64> {
        self.processed.filter(|_| self.owes.is_some())
    }

    /// Whether it was given out already, or acknowledged, and was delivered again all the same: up to which event.
    fn had_before(&self, delivered: &Delivered) -> Option<u64> {
        self.follow.subscription.as_ref()?;
        match *delivered {
            Delivered::Event { sequence, .. } => (self.last >= Some(sequence)).then_some(sequence),
            Delivered::Awaiting { sequence } => (self.owed() >= Some(sequence)).then_some(sequence),
            Delivered::Gap(_) => None,
        }
    }

    fn understand(&mut self, message: Message) -> Result<Option<Delivered>, ClientError> {
        let bad = |error: serde_json::Error| ClientError::Answer(error.to_string());
        match (&*message.event, message.id) {
            ("strandline.gap", None) => {
                let gap: Gap = serde_json::from_str(&message.data).map_err(bad)?;
                // After a wiped journal, lower numbers are other events.
                (self.last, self.owes) = (Some(gap.resume_after), None);
                Ok(Some(Delivered::Gap(gap)))
            }
            ("strandline.awaiting", None) => {
                let Awaiting { sequence } = serde_json::from_str(&message.data).map_err(bad)?;
                Ok(Some(Delivered::Awaiting { sequence }))
            }
            ("strandline.ended", None) => Err(ClientError::Ended),
            ("strandline.shutdown", None) => {
                Err(ClientError::Connection(std::io::Error::other("the server ended")))
            }
            ("strandline.live", Some(id)) => {
                // Where it begins, so that it can come again before the first event.
                self.last = self.last.or(id.parse().ok());
                Ok(None)
            }
            (_, Some(id)) => {
                let sequence =
                    id.parse().map_err(|_| ClientError::Answer(format!("`{id}` is no sequence number")))?;
                Ok(Some(Delivered::Event { sequence, event_type: message.event, data: message.data }))
            }
            // What a later server says beside events.
            (_, None) => Ok(None),
        }
    }

    /// What it was given, processed or not: a server whose journal does not reach that far has another one.
    fn seen(&self) -> String {
        let seen = self.last.filter(|_| self.was_told && self.follow.subscription.is_some());
        seen.map(|seen| format!("&seen={seen}")).unwrap_or_default()
    }

    async fn connect(&mut self) -> Result<Connection, ClientError> {
        let path = format!("/v1/events?{}{}", self.follow.query(), self.seen());
        let mut head = self.client.request(Method::GET, &path);
        // To a durable subscription it says what was processed, and not what was given out. Its server knows that, unless it
        // could not be told.
        let is_known = self.follow.subscription.is_some() && self.was_told;
        let processed = if is_known { self.owed() } else { self.last };
        if let Some(processed) = processed {
            head = head.header("last-event-id", processed);
        }
        let response = self.client.send(head, Bytes::new()).await?;
        let content_type =
            response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let media_type = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
        let is_stream = media_type.trim_ascii().eq_ignore_ascii_case(b"text/event-stream");
        let (status, body) = (response.status(), response.into_body());
        if status == StatusCode::OK {
            if !is_stream {
                return Err(ClientError::Answer("it is no stream of events".into()));
            }
            self.was_told = true;
            return Ok(Connection {
                body,
                parser: Parser::default(),
                messages: VecDeque::new(),
                heard: Instant::now(),
            });
        }
        let body = in_time(Limited::new(body, ANSWER_BYTES_MAX).collect()).await?;
        Err(refused(status, &body.map(|body| body.to_bytes()).unwrap_or_default()))
    }
}

impl Connection {
    /// The events of the next bytes.
    async fn read(&mut self) -> Result<Vec<Message>, ClientError> {
        let silent = |_| std::io::Error::new(std::io::ErrorKind::TimedOut, "nothing was heard of it");
        let frame = timeout_at(self.heard + SILENCE_MAX, self.body.frame()).await.map_err(silent)?;
        self.heard = Instant::now();
        match frame {
            Some(frame) => match frame?.into_data() {
                Ok(bytes) => Ok(self.parser.feed(&bytes)?),
                Err(_) => Ok(Vec::new()),
            },
            None => Err(ClientError::Connection(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
}
