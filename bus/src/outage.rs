//! Connections that cannot be accepted: out of files, mostly, and those that end make room.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::time::Instant;

const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// An outage that comes again within this time goes on.
const CALM: Duration = Duration::from_secs(60);

/// A time in which connections cannot be accepted. It is told of once.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    pause: Duration,
    failed: Option<Instant>,
}

impl Outage {
    /// Notes a failure, and tells of it if it is news; gives how long to pause.
    pub(crate) fn failed(&mut self, error: &io::Error) -> Duration {
        if is_of_one_connection(error) {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let last = self.failed.replace(now);
        if last.is_none_or(|last| now.duration_since(last) > CALM) {
            tracing::warn!(%error, "connections cannot be accepted for now: close some, or raise the limit of open files (ulimit -n)");
        }
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, PAUSE_MAX);
        self.pause
    }

    /// Notes that a connection was accepted, which is no reason to pause.
    pub(crate) fn accepted(&mut self) -> Duration {
        self.pause = Duration::ZERO;
        self.pause
    }
}

/// Whoever wanted to connect is gone; the next one has nothing to do with it.
fn is_of_one_connection(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_begin_anew() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let (mut outage, too_many) = (Outage::default(), io::Error::from_raw_os_error(24));
            let pauses: Vec<_> = (0..9).map(|_| outage.failed(&too_many).as_millis()).collect();
            assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
            assert_eq!(outage.accepted(), Duration::ZERO);
            assert_eq!(outage.failed(&too_many), PAUSE_FIRST);
            assert_eq!(outage.failed(&ErrorKind::ConnectionAborted.into()), Duration::ZERO);
        });
    }
}
