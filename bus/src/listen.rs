//! Listening: where connections come from, and what bounds them.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::sleep;

use crate::connection_io::LingerLimits;
use crate::connections::Connections;
use crate::outage::Outage;
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
    /// How long a client may take nothing of what is written to it. Default 60 s.
    pub write_timeout: Duration,
    /// How long connections may take to end when the server does. Default 5 s.
    pub end_timeout: Duration,
}

/// For so long a connection is kept whose client still sends what nobody wants.
const LINGER_TIME_MAX: Duration = Duration::from_secs(10);

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_timeout: Duration::from_secs(10),
            head_bytes_max: 64 << 10,
            write_timeout: Duration::from_secs(60),
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
        let metrics = Arc::clone(self.metrics());
        // A body that is refused is longer than the longest.
        let bytes_max = self.body_bytes_max().saturating_mul(2);
        let linger = LingerLimits { bytes_max, time_max: LINGER_TIME_MAX };
        let connections = Connections::new(router, limits, linger, ending, metrics);
        let (mut end, mut outage) = (std::pin::pin!(end), Outage::default());
        // Nothing is accepted before.
        let mut pause = Duration::ZERO;
        loop {
            let accepts = async {
                if !pause.is_zero() {
                    sleep(pause).await;
                }
                listener.accept().await
            };
            let accepted = tokio::select! {
                biased;
                () = &mut end => break,
                accepted = accepts => accepted,
            };
            pause = match accepted {
                Ok(connection) => {
                    connections.take_in(connection);
                    outage.accepted()
                }
                Err(error) => outage.failed(&error),
            };
        }
        drop(listener);
        self.end();
        connections.end().await;
    }
}
