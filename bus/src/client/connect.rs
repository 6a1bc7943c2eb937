//! How a client reaches its server.

use std::future::Future;
use std::io;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Makes connections to one server: over a network, or a simulated one.
pub trait Connect: Clone + Send + Sync + 'static {
    /// A connection.
    type Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// A new connection.
    fn connect(&self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

/// A server on a network, or behind a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a port.
    Tcp(String, u16),
    /// A socket's path.
    Unix(PathBuf),
}

/// What a connection reads and writes.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Connect for Address {
    type Connection = Box<dyn Stream>;

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp(host, port) => {
                let stream = TcpStream::connect((&**host, *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
            Self::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        }
    }
}
