//! Locks, condition variables, atomics, threads and the clock that waits are measured by, for all that threads
//! of this crate share.
//!
//! They are the standard library's. Under `--cfg strandline_shuttle` they are those of a model checker, which runs
//! the very same code through many interleavings: see `thread_tests` and `io/threads.sh`.

#[cfg(not(strandline_shuttle))]
mod native {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use std::time::Instant;

    pub(crate) mod thread {
        use std::io;
        pub(crate) use std::thread::{JoinHandle, ThreadId, current, yield_now};

        /// Starts a thread with a name.
        pub(crate) fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
            std::thread::Builder::new().name(name).spawn(run)
        }
    }
}
#[cfg(not(strandline_shuttle))]
pub(crate) use native::{Condvar, Instant, Mutex, MutexGuard, atomic, thread};

#[cfg(strandline_shuttle)]
mod model;
#[cfg(strandline_shuttle)]
pub(crate) use model::{Condvar, Instant, Mutex, MutexGuard, atomic, thread};
