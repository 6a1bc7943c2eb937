//! A publisher: sends its events one after the other, each as often as it takes, and knows after a restart which one is next.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_bus::client::{Client, ClientError};
use tokio::time::{sleep, timeout};

use super::ledger::{Sent, SharedLedger};
use super::link::{Connections, ToServer};
use super::shell::now_ms;
use super::story::{PublisherPlan, SOURCES};

/// What a publisher has on its own disk.
#[derive(Clone)]
pub(super) struct Publisher {
    number: usize,
    plan: PublisherPlan,
    ledger: SharedLedger,
    /// The event that it sends, or is to send next.
    next: Rc<Cell<u64>>,
    /// Whether it has sent that one, and does not know what became of it.
    retries: Rc<Cell<bool>>,
    starts: Rc<Cell<u64>>,
}

impl Publisher {
    pub(super) fn new(number: usize, plan: PublisherPlan, ledger: SharedLedger) -> Self {
        Self { number, plan, ledger, next: Rc::default(), retries: Rc::default(), starts: Rc::default() }
    }

    /// What it does from each of its starts on.
    pub(super) async fn run(self, connections: Connections) -> turmoil::Result {
        self.starts.set(self.starts.get() + 1);
        let seed = self.plan.seed ^ (self.starts.get() << 32);
        let mut choice = ChaCha8Rng::seed_from_u64(seed);
        let client = Client::on(ToServer { connections }, "localhost").with_seed(seed);
        while self.retries.get() || now_ms() < self.plan.until_ms {
            self.retries.set(true);
            let event = self.event(self.next.get());
            self.ledger.lock().sends(&event);
            // One that is impatient sends it again while it may be on its way.
            let patience_ms = if choice.random_bool(0.2) { choice.random_range(1..40) } else { 1_000_000 };
            let published = timeout(Duration::from_millis(patience_ms), client.publish(&event.text));
            let Ok(published) = published.await else { continue };
            match published {
                Ok(number) => self.ledger.lock().answered(&event.id, number),
                Err(error) => {
                    self.refused(&event.id, &error);
                    sleep(Duration::from_millis(500)).await;
                    continue;
                }
            }
            // Whoever forgets that it was answered sends an event twice.
            if !choice.random_bool(0.05) {
                self.next.set(self.next.get() + 1);
                self.retries.set(false);
            }
            sleep(Duration::from_millis(choice.random_range(0..2 * self.plan.pause_ms))).await;
        }
        self.ledger.lock().has_published(self.number);
        Ok(())
    }

    /// The event of a number, always the same.
    fn event(&self, number: u64) -> Sent {
        let mut choice = ChaCha8Rng::seed_from_u64(self.plan.seed ^ number);
        let source = SOURCES[choice.random_range(0..SOURCES.len())];
        let id = format!("p{}-{number}", self.number);
        let data = "x".repeat(choice.random_range(0..100));
        let text =
            format!(r#"{{"specversion":"1.0","id":"{id}","source":"{source}","type":"t","data":"{data}"}}"#);
        Sent { id, source, text }
    }

    fn refused(&self, id: &str, error: &ClientError) {
        self.ledger.lock().note(format_args!("{id} has no answer: {error}"));
    }
}
