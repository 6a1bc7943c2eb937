//! An event bus without a network: one thread publishes, two follow, and one of these comes back after a while.
//!
//! ```sh
//! cargo run --release -p strandline --example in_process -- ./bus
//! ```

use std::thread;

use strandline::bus::{BusSettings, EventBus, EventBusError, Filter, Received, Subscribe};
use strandline::{Directory, EventDraft};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("give the directory of the bus")?;
    let (bus, report) = EventBus::open(&Directory::open(path)?, BusSettings::default())?;
    println!("{} events are there", report.events.records());

    // A diagnostic logger: it leaves nothing behind, and needs no acknowledgement.
    let logger = bus.subscribe(Subscribe::default().filter(Filter::all().source("compositor")))?;
    // It goes on behind what it had acknowledged when it ran last: the end of the bus comes before the last acknowledgement here, so that
    // the last event comes again.
    let context = bus.subscribe(Subscribe::durable("context"))?;
    let followers = [("logger", logger), ("context", context)]
        .map(|(name, subscription)| thread::spawn(move || follow(name, subscription)));

    for window in 1..=3 {
        let payload = format!("{{\"window\":{window}}}");
        let draft = EventDraft {
            domain: 1,
            event_type: "window.opened",
            source: "compositor",
            payload: payload.as_bytes(),
        };
        println!("published {}", bus.publish(draft)?);
    }
    // Everybody is told, and ends.
    bus.close()?;
    for follower in followers {
        follower.join().map_err(|_| "a follower panicked")??;
    }
    Ok(())
}

fn follow(name: &str, mut subscription: strandline::bus::Subscription) -> Result<(), EventBusError> {
    while let Ok(received) = subscription.recv(None) {
        let processed = match received {
            Received::Events(batch) => {
                for event in batch.events() {
                    println!("{name}: {} {}", event.seq, String::from_utf8_lossy(event.payload));
                }
                batch.events().last().map(|event| event.seq)
            }
            Received::Gap(gap) => {
                println!("{name}: {gap}");
                Some(gap.resume_after)
            }
            Received::Awaiting { sequence } => Some(sequence),
            Received::TimedOut | Received::Ended | Received::Closed => break,
        };
        if let Some(sequence) = processed {
            // What cannot be acknowledged any more, since the bus closes, comes again.
            match subscription.acknowledge_soon(sequence) {
                Ok(()) | Err(EventBusError::Closed) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
