//! A client of the bus: publishes each event once, and follows events without missing one unknowingly, whatever becomes of
//! connection and server in between.

mod backoff;
mod connect;
mod error;
mod sse;
mod subscriber;

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Method, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::time::timeout;

use backoff::Backoff;
pub use connect::{Address, Connect, Stream};
pub use error::ClientError;
pub use subscriber::{Delivered, Follow, Subscriber};

/// Answers other than streams are shorter than this, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// An answer takes no longer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// So often a request is sent again that was not answered.
const TRIES_MAX: u32 = 8;

/// A client of one server. Cloning gives another one.
///
/// ```no_run
/// use strandline_bus::client::{Client, Delivered, Follow};
///
/// # async fn follow() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new("http://127.0.0.1:7878")?;
/// client.publish(r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed"}"#).await?;
///
/// let mut events = client.follow(Follow::durable("billing"));
/// loop {
///     match events.next().await? {
///         Delivered::Event { sequence, data, .. } => {
///             println!("{sequence} {data}");
///             events.acknowledge(sequence).await?;
///         }
///         Delivered::Gap(gap) => {
///             // What was missed cannot be had: refresh what is known from elsewhere.
///             events.acknowledge(gap.resume_after).await?;
///         }
///         Delivered::Awaiting { sequence } => events.acknowledge(sequence).await?,
///     }
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client<C = Address> {
    connect: C,
    host: String,
    /// What stands before the paths of the bus, where it is mounted in another server.
    base: String,
    token: Option<Box<str>>,
    /// Begins the randomness of pauses, so that many clients do not come at once.
    seed: u64,
}

/// The answer to a publish.
#[derive(Deserialize)]
struct Published {
    sequence: u64,
}

#[derive(Deserialize)]
struct Detail {
    detail: String,
}

impl Client {
    /// A client of the server at `http://HOST:PORT`, or `http://HOST:PORT/PATH` where the bus is mounted under a path.
    ///
    /// # Errors
    /// [`ClientError::Address`].
    pub fn new(address: &str) -> Result<Self, ClientError> {
        let bad = || ClientError::Address { address: address.to_string() };
        let uri: Uri = address.parse().map_err(|_| bad())?;
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(bad()) };
        if uri.query().is_some() || address.contains('#') {
            return Err(bad());
        }
        let name = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_string();
        let port = match uri.port() {
            // A port that is none is not taken for another one.
            Some(port) => port.as_str().parse().map_err(|_| bad())?,
            None if authority.as_str().len() > uri.host().unwrap_or_default().len() => {
                return Err(bad());
            }
            None => 80,
        };
        let base = uri.path().trim_end_matches('/').to_string();
        Ok(Self { base, ..Self::on(Address::Tcp(name, port), authority.as_str()) })
    }

    /// A client of the server behind a Unix socket.
    #[must_use]
    pub fn unix(path: impl Into<std::path::PathBuf>) -> Self {
        Self::on(Address::Unix(path.into()), "localhost")
    }
}

impl<C: Connect> Client<C> {
    /// A client of the server that `connect` reaches, which is called `host` there.
    pub fn on(connect: C, host: &str) -> Self {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), host);
        Self { connect, host: host.to_string(), base: String::new(), token: None, seed }
    }

    /// The same, with this token.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// The same, whose pauses are those of this seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Publishes a CloudEvent in JSON, and waits until it is durable; gives its sequence number. Where the answer is lost, the event is
    /// sent again, and published once all the same: source and id tell it from others.
    ///
    /// # Errors
    /// [`ClientError`]. After [`Connection`](ClientError::Connection) or [`Http`](ClientError::Http) it may have been published.
    pub async fn publish(&self, event: &str) -> Result<u64, ClientError> {
        let mut backoff = Backoff::new(self.seed);
        for tried in 1.. {
            let body = Bytes::copy_from_slice(event.as_bytes());
            let head = self.request(Method::POST, "/v1/events");
            let head = head.header(CONTENT_TYPE, "application/cloudevents+json");
            match self.answer(head, body).await {
                Ok(answer) => {
                    let published: Published = serde_json::from_slice(&answer)
                        .map_err(|error| ClientError::Answer(error.to_string()))?;
                    return Ok(published.sequence);
                }
                Err(error) if error.is_passing() && tried < TRIES_MAX => backoff.pause().await,
                Err(error) => return Err(error),
            }
        }
        Err(ClientError::Ended)
    }

    /// Acknowledges for a durable subscription; durable when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn acknowledge(&self, subscription: &str, sequence: u64) -> Result<(), ClientError> {
        let name: String = form_urlencoded::byte_serialize(subscription.as_bytes()).collect();
        // A plus is a space in forms only.
        let path = format!("/v1/subscriptions/{}/ack", name.replace('+', "%20"));
        let body = Bytes::from(format!("{{\"sequence\":{sequence}}}"));
        let head = self.request(Method::POST, &path).header(CONTENT_TYPE, "application/json");
        self.answer(head, body).await.map(drop)
    }

    /// Follows events. The connection is made with the first [`next`](Subscriber::next).
    #[must_use]
    pub fn follow(&self, follow: Follow) -> Subscriber<C> {
        Subscriber::new(self.clone(), follow)
    }

    /// The head of a request for what stands at a path of the bus.
    fn request(&self, method: Method, path: &str) -> axum::http::request::Builder {
        Request::builder().method(method).uri(format!("{}{path}", self.base))
    }

    /// A request whose answer is short.
    async fn answer(&self, head: axum::http::request::Builder, body: Bytes) -> Result<Bytes, ClientError> {
        let response = self.send(head, body).await?;
        let status = response.status();
        let body = in_time(Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect()).await?;
        let body = body.map_err(|error| ClientError::Connection(std::io::Error::other(error)))?.to_bytes();
        if status.is_success() { Ok(body) } else { Err(refused(status, &body)) }
    }

    /// Sends a request on a connection of its own.
    async fn send(
        &self,
        mut head: axum::http::request::Builder,
        body: Bytes,
    ) -> Result<Response<Incoming>, ClientError> {
        let connection = in_time(self.connect.connect()).await??;
        let (mut sender, connection) = in_time(http1::handshake(TokioIo::new(connection))).await??;
        // It ends with the answer's body.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
        });
        head = head.header(HOST, &self.host);
        if let Some(token) = &self.token {
            head = head.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = head.body(Body::from(body)).map_err(|error| ClientError::Answer(error.to_string()))?;
        Ok(in_time(sender.send_request(request)).await??)
    }
}

/// A server that says nothing for so long is as good as away.
async fn in_time<T>(answer: impl Future<Output = T>) -> Result<T, ClientError> {
    let silent = |_| std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer");
    Ok(timeout(ANSWER_TIMEOUT, answer).await.map_err(silent)?)
}

fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    let detail = serde_json::from_slice::<Detail>(body).map(|document| document.detail);
    let detail = detail.unwrap_or_else(|_| String::from_utf8_lossy(body).chars().take(200).collect());
    ClientError::Refused { status, detail }
}
