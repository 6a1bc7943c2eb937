//! The two clocks, and the randomness, that the core is handed.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use strandline_core::{Monotonic, Timestamp};

use crate::sync::Instant;

/// Reads the system's clocks. Its monotonic readings count from its own making.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now() }
    }

    /// Milliseconds that passed since the clock was made.
    pub(crate) fn monotonic(self) -> Monotonic {
        Monotonic::from_millis(u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// How long it is until a reading of [`monotonic`](Self::monotonic) reaches this one.
    pub(crate) fn until(self, deadline: Monotonic) -> Duration {
        Duration::from_millis(deadline.as_millis()).saturating_sub(self.origin.elapsed())
    }
}

/// The wall clock's time, negative before 1970.
pub(crate) fn timestamp() -> Timestamp {
    let ms = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    };
    Timestamp::from_millis(ms)
}

/// A number that nobody can foresee. The standard library seeds its hash maps with the operating system's
/// randomness, and it takes no more than that: a salt guards against accidents and imitations, and is no secret.
pub(crate) fn salt_seed() -> u64 {
    RandomState::new().hash_one(SystemTime::now())
}
