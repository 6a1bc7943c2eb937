//! A subscriber that uses the client of the bus: it processes events, acknowledges them sooner or later, and comes back after a
//! restart with what it knows then.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_bus::client::{Client, Delivered, Follow, Subscriber};
use strandline_core::Filter;
use tokio::time::{Instant, sleep, timeout_at};

use super::ledger::SharedLedger;
use super::link::{Connections, ToServer};
use super::place::Place;
use super::story::FollowerPlan;

/// What a subscriber has on its own disk.
#[derive(Clone)]
pub(super) struct Follower {
    who: usize,
    plan: FollowerPlan,
    ledger: SharedLedger,
    /// The last event that it has processed, or the end of a gap.
    processed: Rc<Cell<u64>>,
    /// The last one that it has tried to acknowledge, and the last that it was told to have acknowledged.
    asked: Rc<Cell<u64>>,
    acknowledged: Rc<Cell<u64>>,
    starts: Rc<Cell<u64>>,
}

impl Follower {
    pub(super) fn new(who: usize, plan: FollowerPlan, ledger: SharedLedger) -> Self {
        let (processed, asked) = (Rc::default(), Rc::default());
        Self { who, plan, ledger, processed, asked, acknowledged: Rc::default(), starts: Rc::default() }
    }

    /// What it does from each of its starts on.
    pub(super) async fn run(self, connections: Connections) -> turmoil::Result {
        self.starts.set(self.starts.get() + 1);
        let seed = self.plan.seed ^ (self.starts.get() << 32);
        let mut choice = ChaCha8Rng::seed_from_u64(seed);
        let client = Client::on(ToServer { connections }, "localhost").with_seed(seed);
        let mut events = client.follow(self.returns(&mut choice));
        // What it has to acknowledge to be given more, it does a little later, and listens meanwhile.
        let mut due = None;
        loop {
            let next = match due {
                Some(at) => timeout_at(at, events.next()).await,
                None => Ok(events.next().await),
            };
            let Ok(next) = next else {
                due = None;
                self.acknowledge(&client, &mut events, &mut choice).await;
                continue;
            };
            match next {
                Ok(delivered) => {
                    if self.take(&client, &mut events, delivered, &mut choice).await {
                        due = Some(Instant::now() + Duration::from_millis(choice.random_range(0..5_000)));
                    }
                }
                Err(error) => {
                    self.ledger.lock().note(format_args!("{} is refused: {error}", self.plan.name));
                    sleep(Duration::from_millis(1_000)).await;
                }
            }
        }
    }

    /// How it comes back.
    fn returns(&self, choice: &mut ChaCha8Rng) -> Follow {
        let mut follow = match &self.plan.subscription {
            Some(name) => Follow::durable(name),
            None => Follow::live(),
        };
        if let Some(source) = self.plan.source {
            follow.filter = Filter::all().source(source);
        }
        let processed = self.processed.get();
        // Without a name only it knows where it was; and nobody else does before it was given something.
        let says = self.plan.subscription.is_none() || processed == 0 || choice.random_bool(0.3);
        let (asked, acknowledged) = (self.asked.get(), self.acknowledged.get());
        self.ledger.lock().expect(self.who, |place| {
            *place = match says {
                true => Place::at(processed),
                false => Place { least: acknowledged, most: asked, owes_gap: place.owes_gap },
            };
        });
        if !says {
            return follow;
        }
        // That is an acknowledgement of everything up to there.
        self.asked.set(self.asked.get().max(processed));
        follow.after(processed)
    }

    /// Processes what it was given; tells whether it is pressed to acknowledge, and has not.
    async fn take(
        &self,
        client: &Client<ToServer>,
        events: &mut Subscriber<ToServer>,
        delivered: Delivered,
        choice: &mut ChaCha8Rng,
    ) -> bool {
        let is_pressed = match delivered {
            Delivered::Event { sequence, data, .. } => {
                self.ledger.lock().event(self.who, sequence, &data);
                self.processed.set(sequence);
                false
            }
            Delivered::Gap(gap) => {
                self.ledger.lock().gap(self.who, &gap);
                // Who leaves nothing behind acknowledges nothing.
                let is_durable = self.plan.subscription.is_some();
                self.ledger.lock().expect(self.who, |place| place.owes_gap &= is_durable);
                self.processed.set(gap.resume_after);
                false
            }
            Delivered::Awaiting { sequence } => {
                self.ledger.lock().awaits(self.who, sequence);
                true
            }
        };
        if self.plan.pause_ms > 0 {
            sleep(Duration::from_millis(choice.random_range(0..2 * self.plan.pause_ms))).await;
        }
        if choice.random_ratio(self.plan.acknowledges.0, 100) {
            self.acknowledge(client, events, choice).await;
            return false;
        }
        is_pressed
    }

    async fn acknowledge(
        &self,
        client: &Client<ToServer>,
        events: &mut Subscriber<ToServer>,
        choice: &mut ChaCha8Rng,
    ) {
        let sequence = self.processed.get();
        self.asked.set(sequence.max(self.asked.get()));
        self.ledger.lock().expect(self.who, |place| place.owes_gap = false);
        // Only this answer says that it is durable.
        if let Some(name) = self.plan.subscription.as_deref().filter(|_| choice.random_bool(0.5))
            && client.acknowledge(name, sequence).await.is_ok()
        {
            return self.acknowledged.set(sequence.max(self.acknowledged.get()));
        }
        if let Err(error) = events.acknowledge(sequence).await {
            self.ledger.lock().note(format_args!("{} cannot acknowledge: {error}", self.plan.name));
        }
    }
}
