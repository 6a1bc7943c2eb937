//! The same under the model checker `shuttle`: one thread runs at a time, and each call here is a place where
//! another one may go on.
//!
//! What the checker does not have by itself, and how it is stood for here:
//!
//! - **Timeouts.** A wait of less than [`SHORT`] may time out at any moment, before or after a notification; the
//!   clock then stands at its end. A longer one never times out, as if the clock stood still: a thread that goes on
//!   only because such a wait ended was forgotten, and is reported as a deadlock.
//! - **Spurious wake-ups**, which the standard library allows: one wait in [`SPURIOUS_ONE_IN`] may have one.
//! - **The clock** is a number that moves on now and then when it is looked at, and with timeouts.
//! - **Panics** of a thread that a test injects end that thread and no more; any other panic fails the test.
//!
//! Atomics are sequentially consistent, whatever ordering the code asks for.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LockResult, PoisonError};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};

/// Waits below this may time out.
const SHORT: Duration = Duration::from_secs(1);
const SPURIOUS_ONE_IN: u32 = 16;
/// How many times others may run before a wait times out.
const TURNS_MAX: u32 = 12;

thread_local! {
    /// Microseconds. All threads of one model run on one thread of the system.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// A reading of the model's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        let step = if thread_rng().gen_ratio(1, 4) { thread_rng().gen_range(0..2_000) } else { 0 };
        NOW.set(NOW.get() + step);
        Self(Duration::from_micros(NOW.get()))
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }

    pub(crate) fn checked_add(self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }

    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A condition variable with timeouts and spurious wake-ups.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    inner: Arc<shuttle::sync::Condvar>,
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn notify_one(&self) {
        self.inner.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.inner.notify_all();
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let alarm = thread_rng().gen_ratio(1, SPURIOUS_ONE_IN).then(|| self.wake_later(Duration::ZERO));
        let guard = self.inner.wait(guard);
        drop(alarm);
        guard
    }

    pub(crate) fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// May time out without saying so: nobody asks.
    pub(crate) fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let alarm = (timeout < SHORT).then(|| self.wake_later(timeout));
        let guard = self.inner.wait(guard).unwrap_or_else(PoisonError::into_inner);
        drop(alarm);
        Ok((guard, ()))
    }

    pub(crate) fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let end = Duration::from_micros(NOW.get()).saturating_add(timeout);
        while condition(&mut guard) && Duration::from_micros(NOW.get()) < end {
            guard = self.wait_timeout(guard, timeout)?.0;
        }
        Ok((guard, ()))
    }

    /// Wakes who waits after others have run for a while, when the clock has moved on by `timeout`. It goes on
    /// doing so until the caller drops the alarm: the first time, the caller may not have begun to wait.
    fn wake_later(&self, timeout: Duration) -> Alarm {
        let condvar = Arc::clone(&self.inner);
        let turns = thread_rng().gen_range(0..TURNS_MAX);
        let end = NOW.get() + u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
        let alarm = Alarm(Arc::new(AtomicBool::new(true)));
        let is_set = Arc::clone(&alarm.0);
        shuttle::thread::spawn(move || {
            for _ in 0..turns {
                shuttle::thread::yield_now();
            }
            while is_set.load(Ordering::SeqCst) {
                NOW.set(NOW.get().max(end));
                condvar.notify_all();
                shuttle::thread::yield_now();
            }
        });
        alarm
    }
}

/// Somebody wakes the one who holds this.
struct Alarm(Arc<AtomicBool>);

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

pub(crate) mod thread {
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    pub(crate) use shuttle::thread::{JoinHandle, ThreadId, current, yield_now};

    /// What a panic carries that a test wants; it ends its thread and not the test.
    pub(crate) struct Injected;

    /// Starts a thread with a name.
    pub(crate) fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
        shuttle::thread::Builder::new().name(name).spawn(move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(run))
                && !panic.is::<Injected>()
            {
                resume_unwind(panic);
            }
        })
    }
}
