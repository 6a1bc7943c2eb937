//! The simulated network, as the server listens on it and clients reach it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use strandline_bus::Listener;
use strandline_bus::client::Connect;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::{TcpListener, TcpStream};

/// The server's name on the network.
pub(super) const SERVER: &str = "server";
const PORT: u16 = 7878;

/// Where the server listens.
pub(super) struct Port {
    listener: TcpListener,
    connections: Connections,
}

impl Port {
    pub(super) async fn bind(connections: Connections) -> io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(("0.0.0.0", PORT)).await?, connections })
    }
}

impl Listener for Port {
    type Connection = Connection;

    async fn accept(&mut self) -> io::Result<Connection> {
        self.listener.accept().await.map(|(stream, _)| self.connections.take_in(stream))
    }
}

/// The way to the server.
#[derive(Clone)]
pub(super) struct ToServer {
    pub(super) connections: Connections,
}

impl Connect for ToServer {
    type Connection = Connection;

    async fn connect(&self) -> io::Result<Connection> {
        TcpStream::connect((SERVER, PORT)).await.map(|stream| self.connections.take_in(stream))
    }
}

/// A stream, until its process closes it.
type Stream = Mutex<Option<TcpStream>>;

/// The connections of one process, in the order in which they came.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<Vec<Weak<Stream>>>>);

impl Connections {
    fn take_in(&self, stream: TcpStream) -> Connection {
        let stream = Arc::new(Mutex::new(Some(stream)));
        let mut all = lock(&self.0);
        all.retain(|connection| connection.strong_count() > 0);
        all.push(Arc::downgrade(&stream));
        Connection(stream)
    }

    /// Closes them all, in order. The tasks of a runtime are dropped in an order that hangs on how many there were in the whole
    /// process before, and each connection that is closed with them would say so in that order.
    pub(super) fn close(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        for connection in all.iter().filter_map(Weak::upgrade) {
            lock(&connection).take();
        }
    }
}

/// A connection that its process may close under who uses it.
pub(super) struct Connection(Arc<Stream>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    fn poll<T>(&self, poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut *lock(&self.0) {
            Some(stream) => poll(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(context))
    }
}
