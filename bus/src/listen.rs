//! Connections: taking them in, no more than are allowed, none that dawdles, and letting them go at the end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::ending::Ending;
use crate::metrics::Metrics;
use crate::server::Server;
use crate::shell::Shell;

/// How many connections there may be, and how long they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at most; who comes then is told to come again. Default 10,000.
    pub connections_max: usize,
    /// How long the head of a request may take. Default 10 s.
    pub head_timeout: Duration,
    /// The longest head of a request, in bytes. Default 64 KiB.
    pub head_bytes_max: usize,
    /// How long connections may take to end when the server does. Default 5 s.
    pub end_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_timeout: Duration::from_secs(10),
            head_bytes_max: 64 << 10,
            end_timeout: Duration::from_secs(5),
        }
    }
}

/// Where connections come from: sockets, or a simulated network.
pub trait Listener: Send + 'static {
    /// A connection.
    type Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

impl Listener for TcpListener {
    type Connection = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // An event leaves when it is there.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// A Unix socket that only its owner can open, and that is gone when this is dropped.
#[derive(Debug)]
pub struct OwnSocket {
    listener: UnixListener,
    path: PathBuf,
    identity: (u64, u64),
}

/// Which file it is, whatever its name.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl OwnSocket {
    /// Listens at a path. A socket that an earlier server has left there is replaced; one that somebody listens on is not.
    ///
    /// # Errors
    /// The path is taken, or cannot be made.
    pub fn bind(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
        if let Ok(found) = std::fs::symlink_metadata(path) {
            if !found.file_type().is_socket() || std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "something else is there"));
            }
            std::fs::remove_file(path)?;
        }
        // Nobody knows its name before only its owner can open it.
        let mut new = path.as_os_str().to_os_string();
        new.push(format!(".{}", std::process::id()));
        let listener = UnixListener::bind(&new)?;
        let named = std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600))
            .and_then(|()| std::fs::rename(&new, path))
            .and_then(|()| identity(path));
        match named {
            Ok(identity) => Ok(Self { listener, path: path.to_path_buf(), identity }),
            Err(error) => {
                let _ = std::fs::remove_file(&new);
                Err(error)
            }
        }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Somebody may have put another one in its place.
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Listener for OwnSocket {
    type Connection = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl<S: Shell> Server<S> {
    /// Serves until `end` is over; then tells all streams, and lets the connections go.
    pub async fn serve<L: Listener>(
        &self,
        listener: L,
        limits: ConnectionLimits,
        end: impl Future<Output = ()>,
    ) {
        self.serve_router(self.router(), listener, limits, end).await;
    }

    /// The same for a router of one's own, with this server's [routes](Self::router) in it.
    pub async fn serve_router<L: Listener>(
        &self,
        router: Router,
        mut listener: L,
        limits: ConnectionLimits,
        end: impl Future<Output = ()>,
    ) {
        let ending = Arc::clone(self.ending());
        let connections = Connections::new(router, limits, ending, Arc::clone(self.metrics()));
        let mut end = std::pin::pin!(end);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut end => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(connection) => connections.take_in(connection),
                // Out of files, mostly: those that end make room.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        self.end();
        connections.end().await;
    }
}

struct Connections {
    service: TowerToHyperService<Router>,
    limits: ConnectionLimits,
    room: Arc<Semaphore>,
    ending: Arc<Ending>,
    /// Each connection has a sender; all of them are gone once nothing is received any more.
    open: (mpsc::Sender<Infallible>, mpsc::Receiver<Infallible>),
    metrics: Arc<Metrics>,
}

impl Connections {
    fn new(router: Router, limits: ConnectionLimits, ending: Arc<Ending>, metrics: Arc<Metrics>) -> Self {
        Self {
            service: TowerToHyperService::new(router),
            limits,
            room: Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS))),
            ending,
            open: mpsc::channel(1),
            metrics,
        }
    }

    fn take_in(&self, connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            tokio::spawn(turn_away(connection, self.limits.head_timeout));
            return;
        };
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_timeout)
            .max_buf_size(self.limits.head_bytes_max.max(8 << 10));
        let served = builder.serve_connection(TokioIo::new(connection), self.service.clone());
        let (metrics, ending) = (Arc::clone(&self.metrics), Arc::clone(&self.ending));
        let open = self.open.0.clone();
        metrics.connections.inc();
        tokio::spawn(async move {
            let mut served = std::pin::pin!(served);
            let result = tokio::select! {
                biased;
                result = &mut served => result,
                () = ending.begun() => {
                    served.as_mut().graceful_shutdown();
                    served.await
                }
            };
            if let Err(error) = result {
                tracing::debug!(%error, "a connection ended early");
            }
            metrics.connections.dec();
            drop((room, open));
        });
    }

    async fn end(self) {
        let (open, mut closed) = self.open;
        drop(open);
        if timeout(self.limits.end_timeout, closed.recv()).await.is_err() {
            tracing::warn!("connections that did not end are broken off");
        }
    }
}

/// Says that there are too many already.
async fn turn_away(mut connection: impl AsyncWrite + Unpin, within: Duration) {
    const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let _ = timeout(within, async {
        connection.write_all(ANSWER).await?;
        connection.shutdown().await
    })
    .await;
}
