//! What a server was short of when something was last published.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use strandline::AppendError;
use tokio::time::Instant;

/// So long after something was short, it is not taken for granted that it still is. Who keeps events away from a server that is not
/// ready would else never hear that it is again.
const COUNTS_FOR: Duration = Duration::from_secs(10);

/// Why the last event could not be recorded, if it is because of something that passes, and until when that counts.
#[derive(Debug, Default)]
pub(crate) struct Shortage(Mutex<Option<(Instant, AppendError)>>);

impl Shortage {
    /// Notes what became of a publish: an event that is recorded ends it.
    pub(crate) fn note(&self, failed: Option<AppendError>, are_new: u64) {
        let found = match failed {
            Some(error @ (AppendError::NoSpace | AppendError::TooManyFiles)) => {
                Some((Instant::now() + COUNTS_FOR, error))
            }
            _ if are_new > 0 => None,
            _ => return,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// What there is too little of now, as far as is known.
    pub(crate) fn now(&self) -> Option<AppendError> {
        let found = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.filter(|(until, _)| Instant::now() < *until).map(|(_, error)| error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_an_event_that_is_recorded_or_after_a_while() {
        let shortage = Shortage::default();
        assert_eq!(shortage.now(), None);
        shortage.note(Some(AppendError::NoSpace), 0);
        shortage.note(None, 0);
        assert_eq!(shortage.now(), Some(AppendError::NoSpace), "nothing new was recorded");
        shortage.note(None, 1);
        assert_eq!(shortage.now(), None);
        shortage.note(Some(AppendError::TooManyFiles), 3);
        assert_eq!(shortage.now(), Some(AppendError::TooManyFiles));
        tokio::time::advance(COUNTS_FOR).await;
        assert_eq!(shortage.now(), None, "it is worth another try");
        shortage.note(Some(AppendError::Closed), 0);
        assert_eq!(shortage.now(), None, "that does not pass");
    }
}
