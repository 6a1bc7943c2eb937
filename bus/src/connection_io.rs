//! A connection's bytes: a write that makes no progress fails, and what is left of the connection is given back at the end.

use std::future::Future as _;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

/// A connection as HTTP is spoken over it.
#[derive(Debug)]
pub(crate) struct ConnectionIo<C> {
    /// None only while it is dropped.
    connection: Option<C>,
    write_timeout: Duration,
    /// Runs while a write waits for the other side.
    waits: Option<Pin<Box<Sleep>>>,
    /// The other side sends nothing more, or the connection broke.
    is_over: bool,
    rest: Rest<C>,
}

/// Where a connection is once nobody speaks HTTP over it any more.
#[derive(Debug)]
pub(crate) struct Rest<C>(Arc<Mutex<Option<C>>>);

impl<C> ConnectionIo<C> {
    /// The connection, and where it will be.
    pub(crate) fn new(connection: C, write_timeout: Duration) -> (Self, Rest<C>) {
        let rest = Arc::new(Mutex::new(None));
        let io = Self {
            connection: Some(connection),
            write_timeout,
            waits: None,
            is_over: false,
            rest: Rest(Arc::clone(&rest)),
        };
        (io, Rest(rest))
    }

    /// Fails where nothing could be written for too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waits = None;
            return polled;
        }
        let write_timeout = self.write_timeout;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(write_timeout)));
        ready!(waits.as_mut().poll(context));
        self.is_over = true;
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, "the other side takes nothing any more")))
    }
}

fn gone() -> io::Error {
    ErrorKind::NotConnected.into()
}

impl<C: AsyncRead + Unpin> AsyncRead for ConnectionIo<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Some(connection) = &mut self.connection else { return Poll::Ready(Err(gone())) };
        let read = ready!(Pin::new(connection).poll_read(context, buffer));
        self.is_over |= read.is_err() || buffer.filled().len() == before;
        Poll::Ready(read)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for ConnectionIo<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Err(gone())) };
        let written = Pin::new(connection).poll_write(context, data);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Err(gone())) };
        let written = Pin::new(connection).poll_write_vectored(context, data);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Err(gone())) };
        // What is flushed at once says nothing of a write that waits.
        match Pin::new(connection).poll_flush(context) {
            Poll::Pending => self.in_time(context, Poll::Pending),
            flushed => flushed,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Err(gone())) };
        let shut = Pin::new(connection).poll_shutdown(context);
        self.in_time(context, shut)
    }
}

impl<C> Drop for ConnectionIo<C> {
    fn drop(&mut self) {
        if !self.is_over {
            *self.rest.0.lock().unwrap_or_else(PoisonError::into_inner) = self.connection.take();
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> Rest<C> {
    /// Lets go of the connection so that the other side sees the answer: see [`linger`].
    pub(crate) async fn linger(self, limits: LingerLimits) {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = left {
            linger(connection, limits).await;
        }
    }
}

/// For so long it is waited for what the other side still sends.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// How much is passed over of what the other side still sends, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LingerLimits {
    pub(crate) bytes_max: usize,
    pub(crate) time_max: Duration,
}

/// Says that nothing more comes, and passes over what the other side still sends. To close a connection with bytes
/// that were not read resets it, and the other side may then lose the answer, if it has not read that while it was sending.
pub(crate) async fn linger(mut connection: impl AsyncRead + AsyncWrite + Unpin, limits: LingerLimits) {
    let reads = async {
        connection.shutdown().await?;
        let mut buffer = [0; 4 << 10];
        let mut left = limits.bytes_max;
        while left > 0 {
            match timeout(SILENCE_MAX, connection.read(&mut buffer)).await?? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        io::Result::Ok(())
    };
    // However it ends, it is closed.
    let _ = timeout(limits.time_max, reads).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const LIMITS: LingerLimits = LingerLimits { bytes_max: 1 << 20, time_max: Duration::from_secs(10) };

    fn in_no_time<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(test)
    }

    #[test]
    fn a_write_fails_once_nothing_was_taken_for_too_long() {
        in_no_time(async {
            let (near, mut far) = duplex(8);
            let (mut io, rest) = ConnectionIo::new(near, PATIENCE);
            let began = Instant::now();
            // Whoever takes something every now and then is slow, and there.
            let slow = async {
                for _ in 0..3 {
                    sleep(PATIENCE / 4 * 3).await;
                    far.read_exact(&mut [0; 8]).await.unwrap();
                }
            };
            let (written, ()) = tokio::join!(io.write_all(&[7; 32]), slow);
            written.unwrap();
            assert_eq!(began.elapsed(), PATIENCE / 4 * 9);
            let error = io.write_all(b"never taken").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert_eq!(began.elapsed(), PATIENCE / 4 * 9 + PATIENCE);
            drop(io);
            let began = Instant::now();
            rest.linger(LIMITS).await;
            assert_eq!(began.elapsed(), Duration::ZERO, "there is nobody to wait for");
        });
    }

    #[test]
    fn what_is_still_sent_is_passed_over_up_to_a_bound() {
        for (sent, bytes_max, is_taken) in [(100_000, 1 << 20, true), (100_000, 10_000, false)] {
            in_no_time(async move {
                let (near, mut far) = duplex(1_000);
                let (mut io, rest) = ConnectionIo::new(near, PATIENCE);
                io.write_all(b"answer").await.unwrap();
                drop(io);
                let sends = async {
                    let taken = far.write_all(&vec![7; sent]).await;
                    assert_eq!(taken.is_ok(), is_taken, "{bytes_max}");
                    let mut answer = String::new();
                    far.read_to_string(&mut answer).await.unwrap();
                    assert_eq!(answer, "answer");
                };
                tokio::join!(rest.linger(LingerLimits { bytes_max, ..LIMITS }), sends);
            });
        }
    }

    #[test]
    fn who_sends_nothing_and_stays_is_waited_for_a_moment() {
        in_no_time(async {
            let (near, _far) = duplex(1_000);
            let began = Instant::now();
            linger(near, LIMITS).await;
            assert_eq!(began.elapsed(), SILENCE_MAX);
            let (near, mut far) = duplex(1_000);
            let began = Instant::now();
            let trickles = async {
                while far.write_all(b"x").await.is_ok() {
                    sleep(SILENCE_MAX / 2).await;
                }
            };
            tokio::join!(linger(near, LIMITS), trickles);
            assert_eq!(began.elapsed(), LIMITS.time_max);
        });
    }
}
