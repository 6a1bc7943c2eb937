//! Whether somebody still reads standard output, while there is nothing to write.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Watches whether the reader of a pipe goes away: `sub ... | head -1` ends with `head`, and not with the next event.
pub(super) struct ReaderWatch(Option<Sender>);

impl ReaderWatch {
    /// Watches standard output. What is no pipe, as a file, has no reader that could go away.
    pub(super) fn of_stdout() -> Self {
        let output = io::stdout().as_fd().try_clone_to_owned();
        Self::of(output)
    }

    fn of(output: io::Result<OwnedFd>) -> Self {
        // Unchecked: nothing is set on the output, which whoever else has it would see. It is asked about, and nothing is written.
        Self(output.and_then(Sender::from_owned_fd_unchecked).ok())
    }

    /// Waits until nobody reads any more.
    pub(super) async fn gone(&self) {
        if let Some(output) = &self.0
            && output.ready(Interest::ERROR).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_reader_that_goes_away_is_noticed_and_a_file_has_none() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let (reads, writes) = io::pipe().unwrap();
            let watched = ReaderWatch::of(Ok(writes.into()));
            let mut gone = std::pin::pin!(watched.gone());
            tokio::task::yield_now().await;
            assert!(gone.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            drop(reads);
            gone.await;
            let file = ReaderWatch::of(Ok(tempfile::tempfile().unwrap().into()));
            assert!(file.0.is_none());
        });
    }
}
