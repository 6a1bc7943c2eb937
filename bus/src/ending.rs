//! Telling everything that goes on that the server ends.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether the server ends. Those who wait for it are woken in the order in which they began to, so that a run over a simulated
/// network is the same each time; a channel that is watched would wake them in any.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    has_begun: AtomicBool,
    begins: Notify,
}

impl Ending {
    /// Tells everybody, now and later.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
        self.begins.notify_waiters();
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Waits until it begins.
    pub(crate) async fn begun(&self) {
        // It is woken from here on, whether it waits already or not.
        let begins = self.begins.notified();
        if !self.has_begun() {
            begins.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn whoever_waits_before_and_whoever_comes_after_is_told() {
        let ending = Ending::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut before = pin!(ending.begun());
        assert!(before.as_mut().poll(&mut context).is_pending());
        ending.begin();
        assert!(before.as_mut().poll(&mut context).is_ready());
        assert!(pin!(ending.begun()).poll(&mut context).is_ready());
    }
}
