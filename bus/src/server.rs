//! The routes: what each request does, and what it is answered.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use strandline::AppendError;
use strandline::bus::BusReport;
use strandline_core::{ReadError, Seq};

use crate::body::{Bodies, Read};
use crate::ending::Ending;
use crate::frame::Frames;
use crate::guard::{self, Guard};
use crate::intake::{self, Intake};
use crate::measured::DiskMeasures;
use crate::metrics::Metrics;
use crate::page;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::publish::{Published, Receipt};
use crate::shell::{Shell, blocking};
use crate::shortage::Shortage;
use crate::status::SubscriptionDocument;
use crate::stream::{self, Streams, Wanted};

/// What a server takes.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The longest body, in bytes. Default 17 MiB: an event of 16 MiB, and what stands around it.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being read or published at once; who comes then is told to come again. Default 256 MiB.
    pub bodies_bytes_max: usize,
    /// How long a body may take to arrive. Default 30 s.
    pub body_timeout: Duration,
    /// Who may talk to it.
    pub guard: Guard,
    /// What is told of the disk below the bus, if its [`MeasuredDisk`](crate::MeasuredDisk) has it.
    pub disk: Option<DiskMeasures>,
    /// What opening the bus found, of which the metrics tell what was cut.
    pub opened: Option<BusReport>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            body_bytes_max: 17 << 20,
            bodies_bytes_max: 256 << 20,
            body_timeout: Duration::from_secs(30),
            guard: Guard::default(),
            disk: None,
            opened: None,
        }
    }
}

/// A bus and its routes.
#[derive(Debug)]
pub struct Server<S> {
    shared: Arc<Shared<S>>,
}

#[derive(Debug)]
struct Shared<S> {
    shell: S,
    published: Arc<Published>,
    streams: Streams,
    settings: ServerSettings,
    bodies: Bodies,
    shortage: Shortage,
}

/// Bodies that are longer than this, in bytes, are parsed where nobody else waits meanwhile.
const PARSED_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// What became of a request to publish, before anything is durable.
struct HandedOver {
    receipts: Vec<Receipt>,
    /// Why the event behind those was not accepted.
    refused: Option<AppendError>,
    /// How many events there are in all.
    of: usize,
    is_batch: bool,
}

impl<S: Shell> Server<S> {
    /// A server of this bus. Reads what the bus keeps, to know what was published.
    ///
    /// # Errors
    /// [`ReadError`] if it cannot be read.
    pub async fn new(shell: S, settings: ServerSettings) -> Result<Self, ReadError> {
        let published = Published::read_back(&shell).await?;
        let streams = Streams {
            frames: Arc::new(Frames::default()),
            metrics: Arc::new(Metrics::new(&settings)),
            ending: Arc::new(Ending::default()),
        };
        let bodies = Bodies::new(&settings);
        Ok(Self {
            shared: Arc::new(Shared {
                shell,
                published,
                streams,
                settings,
                bodies,
                shortage: Shortage::default(),
            }),
        })
    }

    /// The routes, to be served, or mounted in a server of one's own. Streams go on until [`end`](Self::end): a server that waits for its
    /// connections waits for them, unless that is called first. The page works at the root only.
    pub fn router(&self) -> Router {
        let shared = Arc::clone(&self.shared);
        let guard = Arc::new(shared.settings.guard.clone());
        let client = middleware::from_fn_with_state(Arc::clone(&guard), guard::check_client);
        let host = middleware::from_fn_with_state(guard, guard::check_host);
        let count = middleware::from_fn_with_state(Arc::clone(&shared.streams.metrics), count_refusals);
        Router::new()
            .route("/v1/events", get(listen::<S>).head(would_listen).post(publish::<S>))
            .route("/v1/subscriptions", get(subscriptions::<S>))
            .route("/v1/subscriptions/{name}", delete(remove::<S>))
            .route("/v1/subscriptions/{name}/ack", post(acknowledge::<S>))
            .route("/v1/journal", get(journal::<S>))
            .route("/readyz", get(ready::<S>))
            .route("/metrics", get(metrics::<S>))
            .method_not_allowed_fallback(Problem::not_allowed)
            .layer(client)
            .merge(page::routes())
            .layer(host)
            .route("/healthz", get(|| async { "ok\n" }).fallback(Problem::not_allowed))
            .fallback(|uri: Uri| async move {
                Problem::new(
                    StatusCode::NOT_FOUND,
                    format!("there is nothing at {}: see /v1/events", uri.path()),
                )
            })
            .layer(count)
            .with_state(shared)
    }

    /// Tells all streams that the server ends. They end then.
    pub fn end(&self) {
        self.ending().begin();
    }

    pub(crate) fn ending(&self) -> &Arc<Ending> {
        &self.shared.streams.ending
    }

    pub(crate) fn body_bytes_max(&self) -> usize {
        self.shared.settings.body_bytes_max
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.streams.metrics
    }
}

type Shares<S> = State<Arc<Shared<S>>>;

async fn count_refusals(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: middleware::Next,
) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        metrics.refused.get_or_create(&[("status", status.as_u16().to_string())]).inc();
    }
    response
}

/// The numbers of what was published, in order.
#[derive(Serialize)]
struct PublishedDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequences: Option<Vec<u64>>,
}

async fn publish<S: Shell>(
    State(shared): Shares<S>,
    headers: HeaderMap,
    uri: Uri,
    body: Body,
) -> Result<Response, Problem> {
    let body = shared.bodies.read(&headers, body).await?;
    let (is_long, of_all) = (body.bytes.len() > PARSED_AT_ONCE_BYTES_MAX, Arc::clone(&shared));
    let hands_over = move || of_all.hand_over(&headers, uri.query(), &body);
    let handed_over = if is_long { blocking(hands_over).await } else { hands_over() };
    let HandedOver { receipts, refused, of, is_batch } = handed_over?;
    let mut sequences = Vec::with_capacity(receipts.len());
    let (mut are_new, mut failed) = (0, None);
    for receipt in receipts {
        match receipt.wait().await {
            Ok((seq, is_new)) => {
                sequences.push(seq.get());
                are_new += u64::from(is_new);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    // What was lost says why; what was refused for it does not know.
    let failed = failed.or(refused);
    shared.shortage.note(failed, are_new);
    let metrics = &shared.streams.metrics;
    metrics.published.inc_by(are_new);
    metrics.repeated.inc_by(sequences.len() as u64 - are_new);
    if let Some(error) = failed {
        return Err(not_all(error, &sequences, of));
    }
    let status = if are_new > 0 { StatusCode::CREATED } else { StatusCode::OK };
    let document = match sequences.first() {
        Some(first) if !is_batch => PublishedDocument { sequence: Some(*first), sequences: None },
        _ => PublishedDocument { sequence: None, sequences: Some(sequences) },
    };
    Ok((status, Json(document)).into_response())
}

/// Some of a batch may be durable.
fn not_all(error: AppendError, sequences: &[u64], of: usize) -> Problem {
    let problem = Problem::from(error);
    if of == 1 {
        return problem;
    }
    let detail = format!(
        "{}; {} of {of} events of the batch are durable: {sequences:?}. Send the batch again: what is there is not published twice",
        problem.detail,
        sequences.len()
    );
    Problem { detail, ..problem }
}

async fn listen<S: Shell>(
    State(shared): Shares<S>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let wanted = Wanted::read(&headers, uri.query())?;
    stream::answer(&shared.shell, shared.streams.clone(), wanted).await
}

/// Says what `GET` would answer, and subscribes nobody.
async fn would_listen(headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    Wanted::read(&headers, uri.query())?;
    let stream = HeaderValue::from_static("text/event-stream");
    Ok(([(CONTENT_TYPE, stream)], Body::empty()).into_response())
}

/// A subscription's name in a path.
type Name = Result<Path<String>, PathRejection>;

fn of(name: Name) -> Result<String, Problem> {
    let no_name = |_| Problem::bad("the name in the path is no percent-encoded UTF-8: encode it so");
    name.map(|Path(name)| name).map_err(no_name)
}

/// What is acknowledged.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Acknowledgement {
    sequence: u64,
}

async fn acknowledge<S: Shell>(
    State(shared): Shares<S>,
    name: Name,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    let body = shared.bodies.read(&headers, body).await?;
    let Acknowledgement { sequence } = serde_json::from_slice(&body.bytes)
        .map_err(|error| Problem::bad(format!("the body is not {{\"sequence\": N}}: {error}")))?;
    shared.shell.acknowledge(&of(name)?, Seq::new(sequence)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove<S: Shell>(State(shared): Shares<S>, name: Name) -> Result<StatusCode, Problem> {
    shared.shell.remove(&of(name)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn subscriptions<S: Shell>(State(shared): Shares<S>) -> Json<SubscriptionDocument> {
    Json(SubscriptionDocument::new(shared.shell.subscriptions()))
}

async fn journal<S: Shell>(State(shared): Shares<S>) -> Response {
    Json(shared.shell.journal()).into_response()
}

/// Whether events can be published.
async fn ready<S: Shell>(State(shared): Shares<S>) -> Result<&'static str, Problem> {
    let ends = shared.streams.ending.has_begun().then(|| "the server ends".to_string());
    match ends
        .or_else(|| shared.shell.stopped())
        .or_else(|| shared.shortage.now().map(|short| short.to_string()))
    {
        None => Ok("ready\n"),
        Some(why) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}

async fn metrics<S: Shell>(State(shared): Shares<S>, uri: Uri) -> Result<Response, Problem> {
    Parameters::parse(uri.query(), &[])?;
    let text = shared.streams.metrics.to_text(&shared.shell);
    let mut response = text.into_response();
    let text_format = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text_format);
    Ok(response)
}

impl<S: Shell> Shared<S> {
    /// Understands a body, and hands its events over.
    fn hand_over(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &Read,
    ) -> Result<HandedOver, Problem> {
        let (events, is_batch) = match intake::read(headers, query, &body.bytes)? {
            Intake::One(event) => (vec![event], false),
            Intake::Batch(events) => (events, true),
        };
        let (receipts, refused) = self.published.publish(&self.shell, &events);
        Ok(HandedOver { receipts, refused, of: events.len(), is_batch })
    }
}
