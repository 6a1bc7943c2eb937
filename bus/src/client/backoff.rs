//! Pauses between tries: twice as long each time, and not the same for everybody.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::sleep;

/// The shortest pause, whatever a server asks for.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long to wait before the next try.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    pause: Duration,
    choice: ChaCha8Rng,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        let first = Duration::from_millis(100);
        Self { first, pause: first, choice: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// What the server asks for goes before.
    pub(super) fn set_first(&mut self, first: Duration) {
        self.first = first.clamp(PAUSE_MIN, PAUSE_MAX);
    }

    /// A try went well.
    pub(super) fn reset(&mut self) {
        self.pause = self.first;
    }

    pub(super) async fn pause(&mut self) {
        let pause = self.next();
        sleep(pause).await;
    }

    /// Between half of the pause and all of it.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.pause.mul_f64(self.choice.random_range(0.5..=1.0));
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::new(1);
        backoff.set_first(Duration::from_millis(400));
        backoff.reset();
        let mut longest = Duration::from_millis(400);
        for _ in 0..10 {
            let pause = backoff.next();
            assert!(pause <= longest && pause >= longest / 2, "{pause:?} of {longest:?}");
            longest = (longest * 2).min(PAUSE_MAX);
        }
        backoff.reset();
        assert!(backoff.next() <= Duration::from_millis(400));
        let others: Vec<_> = (2..6).map(|seed| Backoff::new(seed).next()).collect();
        assert!(others.windows(2).any(|two| two[0] != two[1]), "{others:?}");
    }
}
