//! A stream of server-sent events: what a subscriber is given, as long as somebody listens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use strandline::bus::{Received, Subscribe};
use strandline_core::Seq;
use tokio::time::{Instant, timeout_at};

use crate::ending::Ending;
use crate::frame::{Frames, Notice, joined};
use crate::headers;
use crate::metrics::Metrics;
use crate::parameters::{Parameters, sequence};
use crate::problem::Problem;
use crate::shell::{Shell, Subscriber};

/// So often a stream on which nothing happens says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After so many milliseconds a client whose connection broke comes again.
const RETRY_MS: u32 = 1_000;
const KNOWN: &[&str] = &["last_sequence", "source", "type", "domain", "subscription", "ack", "seen"];

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) subscribe: Subscribe,
    /// What is handed to the connection counts as processed.
    acknowledges: bool,
    /// The last event that a durable subscriber was given, processed or not.
    seen: Option<Seq>,
}

impl Wanted {
    /// Where it begins: the header `Last-Event-ID`, which a client sets that comes again, goes before the query.
    pub(crate) fn read(headers: &HeaderMap, query: Option<&str>) -> Result<Self, Problem> {
        let parameters = Parameters::parse(query, KNOWN)?;
        let header = headers::one(headers, "Last-Event-ID")?;
        let last_sequence = match (header, parameters.one("last_sequence")?) {
            (Some(value), _) => Some(sequence("Last-Event-ID", value)?),
            (None, Some(value)) => Some(sequence("last_sequence", value)?),
            (None, None) => None,
        };
        let name = parameters.one("subscription")?;
        let acknowledges = match parameters.one("ack")? {
            None => name.is_none(),
            Some("auto") => true,
            Some(other) => {
                return Err(Problem::bad(format!(
                    "`ack={other}` is not known: use ack=auto, or leave it out"
                )));
            }
        };
        let seen = parameters.one("seen")?.map(|value| sequence("seen", value)).transpose()?;
        let subscribe = Subscribe { name: name.map(Into::into), filter: parameters.filter()?, last_sequence };
        Ok(Self { subscribe, acknowledges, seen })
    }

    /// A subscriber that was given more than there is follows another journal than it did, and is told so; one whose subscription was
    /// removed goes on behind what it was given.
    fn compare<S: Shell>(&mut self, shell: &S) {
        let Some((seen, name)) = self.seen.zip(self.subscribe.name.as_deref()) else { return };
        let is_lost = self.subscribe.last_sequence.is_none() && !shell.knows(name);
        if seen > shell.last() || is_lost {
            self.subscribe.last_sequence = Some(seen);
        }
    }
}

/// What every stream of a server shares.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    pub(crate) frames: Arc<Frames>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ending: Arc<Ending>,
}

/// One stream.
struct EventStream<U> {
    subscriber: U,
    streams: Streams,
    acknowledges: bool,
    /// To be acknowledged once the connection asks for more.
    handed_over: Option<Seq>,
    heartbeat: Instant,
    is_over: bool,
}

/// Subscribes, and answers with the stream.
pub(crate) async fn answer<S: Shell>(
    shell: &S,
    streams: Streams,
    mut wanted: Wanted,
) -> Result<Response, Problem> {
    wanted.compare(shell);
    let Wanted { mut subscribe, acknowledges, .. } = wanted;
    let mut greeting = format!("retry: {RETRY_MS}\n\n").into_bytes();
    if subscribe.name.is_none() && subscribe.last_sequence.is_none() {
        // It begins where it is told to begin, whatever is published until it does.
        let last = shell.last();
        subscribe.last_sequence = Some(last);
        greeting.extend(Notice::Live(last).frame());
    }
    let subscriber = shell.subscribe(subscribe).await?;
    streams.metrics.streams.inc();
    let stream = EventStream {
        subscriber,
        streams,
        acknowledges,
        handed_over: None,
        heartbeat: Instant::now() + HEARTBEAT,
        is_over: false,
    };
    let frames = stream::unfold((Some(Bytes::from(greeting)), stream), |(greeting, mut stream)| async move {
        let frame = match greeting {
            Some(greeting) => greeting,
            None => stream.next().await?,
        };
        Some((Ok::<_, Infallible>(frame), (None, stream)))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that collect answers would keep events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

impl<U: Subscriber> EventStream<U> {
    /// The next bytes; nothing at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        // The connection took what it was given before.
        if let Some(sequence) = self.handed_over.take() {
            self.acknowledge(sequence);
        }
        loop {
            let ending = Arc::clone(&self.streams.ending);
            let received = tokio::select! {
                biased;
                () = ending.begun() => return self.end(&Notice::Shutdown),
                received = timeout_at(self.heartbeat, self.subscriber.recv()) => received,
            };
            let now = Instant::now();
            let Ok(received) = received else {
                self.heartbeat = now + HEARTBEAT;
                return Some(Bytes::from_static(b":\n\n"));
            };
            if let Some(bytes) = self.told(received) {
                self.heartbeat = now + HEARTBEAT;
                return Some(bytes);
            }
        }
    }

    fn told(&mut self, received: Result<Received, strandline_core::ReadError>) -> Option<Bytes> {
        match received {
            Ok(Received::Events(batch)) => {
                let frames: Vec<_> = batch.events().map(|event| self.streams.frames.of(&event)).collect();
                self.streams.metrics.delivered.inc_by(frames.len() as u64);
                self.handed_over = batch.events().last().map(|event| event.seq);
                Some(joined(frames))
            }
            Ok(Received::Gap(gap)) => {
                self.streams.metrics.gaps.inc();
                self.handed_over = Some(gap.resume_after);
                Some(Notice::Gap(gap).frame())
            }
            Ok(Received::Awaiting { sequence }) if self.acknowledges => {
                self.acknowledge(sequence);
                None
            }
            Ok(Received::Awaiting { sequence }) => Some(Notice::Awaiting(sequence).frame()),
            Ok(Received::TimedOut) => None,
            Ok(Received::Ended) => self.end(&Notice::TakenOver),
            Ok(Received::Closed) => self.end(&Notice::Shutdown),
            Err(error) => {
                tracing::error!(%error, "a stream ends: its events cannot be read");
                self.end(&Notice::Shutdown)
            }
        }
    }

    /// Where nobody else does it.
    fn acknowledge(&self, sequence: Seq) {
        if !self.acknowledges {
            return;
        }
        if let Err(error) = self.subscriber.acknowledge_soon(sequence) {
            tracing::debug!(%error, "an acknowledgement was not taken");
        }
    }

    fn end(&mut self, notice: &Notice) -> Option<Bytes> {
        self.is_over = true;
        Some(notice.frame())
    }
}

impl<U> Drop for EventStream<U> {
    fn drop(&mut self) {
        self.streams.metrics.streams.dec();
    }
}
