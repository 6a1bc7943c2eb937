//! The connections of a server: no more than are allowed, and all of them let go at the end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::connection_io::{ConnectionIo, LingerLimits, linger};
use crate::ending::Ending;
use crate::listen::ConnectionLimits;
use crate::metrics::Metrics;
use crate::problem::Problem;

/// So many that are turned away are waited for until they have seen it; others are closed at once. They have files of the journal's.
const TURNED_AWAY_MAX: usize = 16;
const TURNED_AWAY_LINGER: LingerLimits =
    LingerLimits { bytes_max: 1 << 20, time_max: Duration::from_secs(1) };

pub(crate) struct Connections {
    service: TowerToHyperService<Router>,
    limits: ConnectionLimits,
    /// What is passed over that a client still sends once it was answered.
    linger: LingerLimits,
    room: Arc<Semaphore>,
    room_to_turn_away: Arc<Semaphore>,
    ending: Arc<Ending>,
    /// Each connection has a sender; all of them are gone once nothing is received any more.
    open: (mpsc::Sender<Infallible>, mpsc::Receiver<Infallible>),
    metrics: Arc<Metrics>,
}

impl Connections {
    pub(crate) fn new(
        router: Router,
        limits: ConnectionLimits,
        linger: LingerLimits,
        ending: Arc<Ending>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            service: TowerToHyperService::new(router),
            limits,
            linger,
            room: Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS))),
            room_to_turn_away: Arc::new(Semaphore::new(TURNED_AWAY_MAX)),
            ending,
            open: mpsc::channel(1),
            metrics,
        }
    }

    pub(crate) fn take_in(&self, connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            self.turn_away(connection);
            return;
        };
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_timeout)
            .max_buf_size(self.limits.head_bytes_max.max(8 << 10));
        let (io, rest) = ConnectionIo::new(connection, self.limits.write_timeout);
        let served = builder.serve_connection(TokioIo::new(io), self.service.clone());
        let (metrics, ending) = (Arc::clone(&self.metrics), Arc::clone(&self.ending));
        let (open, linger) = (self.open.0.clone(), self.linger);
        metrics.connections.inc();
        tokio::spawn(async move {
            if let Err(error) = until_the_end(served, &ending).await {
                tracing::debug!(%error, "a connection ended early");
            }
            // Nobody who ends the server waits for what is passed over.
            drop(open);
            rest.linger(linger).await;
            metrics.connections.dec();
            drop(room);
        });
    }

    /// Says that there are too many already.
    fn turn_away(&self, mut connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        self.metrics.refused.get_or_create(&[("status", "503".to_string())]).inc();
        let Ok(room) = Arc::clone(&self.room_to_turn_away).try_acquire_owned() else { return };
        let within = self.limits.head_timeout;
        tokio::spawn(async move {
            if let Ok(Ok(())) = timeout(within, connection.write_all(&too_many())).await {
                linger(connection, TURNED_AWAY_LINGER).await;
            }
            drop(room);
        });
    }

    pub(crate) async fn end(self) {
        let (open, mut closed) = self.open;
        drop(open);
        if timeout(self.limits.end_timeout, closed.recv()).await.is_err() {
            tracing::warn!("connections that did not end are broken off");
        }
    }
}

/// Serves a connection to its end, which it is told when the server ends.
async fn until_the_end<I>(
    served: http1::Connection<I, TowerToHyperService<Router>>,
    ending: &Ending,
) -> hyper::Result<()>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let mut served = std::pin::pin!(served);
    tokio::select! {
        biased;
        result = &mut served => result,
        () = ending.begun() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    }
}

/// The answer to whoever is one too many. No request was read that it would belong to.
fn too_many() -> Vec<u8> {
    let detail = "there are too many connections: come again in a moment";
    let body = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).to_json();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
}
