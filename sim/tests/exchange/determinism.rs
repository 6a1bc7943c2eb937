//! What the events of a session depend on: the setup, the commands and their order, and nothing else.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use strandline::session::{EVENTS, INPUT, Session, SessionSettings, replay_check};
use strandline::{Directory, Events};
use strandline_core::{Engine, Seq};
use strandline_sim::exchange::{Command, Event, Exchange, Instrument, PlaceOrder, Tick, Workload};
use tempfile::TempDir;

use crate::floor::{self, HOUR, buy, sell};
use crate::recorded::{records, replayed, trade};

const SMALL: Workload = Workload { commands: 2_000, producers: 2, seed: 11, in_turn: true };

#[test]
fn the_order_in_which_instruments_are_set_up_changes_nothing() {
    let mut setup = Workload::setup();
    for number in 4..10 {
        setup.instruments.push(Instrument { instrument: number, ..setup.instruments[0].clone() });
    }
    let root = TempDir::new().unwrap();
    trade(SMALL, root.path());
    let commands = &records(root.path(), INPUT)[1..];
    let expected = replayed(&setup.to_bytes(), commands);
    let settled =
        expected.iter().filter(|event| matches!(Event::decode(event), Ok(Event::Settled(_)))).count();
    assert_eq!(settled, 18, "two closes of nine instruments");
    let mut choice = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..10 {
        setup.instruments.shuffle(&mut choice);
        assert!(replayed(&setup.to_bytes(), commands) == expected, "{:?}", setup.instruments);
    }
}

/// The texts of an event or a command.
fn texts(message: &serde_json::Value) -> BTreeSet<String> {
    let is_code = message["message"] == "order_canceled";
    let fields = message.as_object().unwrap().iter();
    let free = fields.filter(|(name, _)| match &***name {
        "trader" | "reference" => true,
        "reason" => !is_code,
        _ => false,
    });
    free.filter_map(|(_, value)| value.as_str().map(str::to_string)).collect()
}

#[test]
fn events_hold_codes_and_no_text_but_what_their_command_brought() {
    let root = TempDir::new().unwrap();
    trade(SMALL, root.path());
    let mut commands = records(root.path(), INPUT);
    let odd = PlaceOrder { trader: "/tmp/x.rs:12 0x7ffe 1.5e-3", reference: "at 0x0 \n", ..buy(1, 1) };
    commands.push(Command::PlaceOrder(odd).to_bytes());
    commands.push(b"\x80/home/me: No such file (os error 2)".to_vec());
    let mut engine = Exchange::start(&Workload::setup().to_bytes()).unwrap();
    let mut refused = 0;
    for (seq, command) in (1..).zip(&commands[1..]) {
        let brought = Command::decode(command).map(|command| texts(&serde_json::to_value(command).unwrap()));
        let brought = brought.unwrap_or_default();
        let mut events = Events::default();
        engine.apply(Seq::new(seq), command, &mut events);
        for event in events.iter().map(|event| Event::decode(event).unwrap()) {
            refused += usize::from(matches!(event, Event::CommandRefused(_)));
            let mut found = texts(&serde_json::to_value(event).unwrap());
            found.remove("");
            assert!(found.is_subset(&brought), "command {seq}: {event:?}");
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn the_order_of_two_who_race_is_that_of_the_input() {
    for round in 0..20 {
        let root = TempDir::new().unwrap();
        let session = session_in_floor(&root);
        session.submit(&Command::Tick(Tick { time: 9 * HOUR }).to_bytes()).unwrap().wait().unwrap();
        let mut orders = [sell(1, 101), sell(1, 100)].map(|order| Command::PlaceOrder(order).to_bytes());
        if round % 2 == 1 {
            orders.reverse();
        }
        let submits = |order: &[u8]| session.submit(order).unwrap().wait().unwrap();
        if round < 2 {
            orders.iter().for_each(|order| drop(submits(order)));
        } else {
            let barrier = Barrier::new(2);
            thread::scope(|scope| {
                for order in &orders {
                    let (barrier, submits) = (&barrier, &submits);
                    scope.spawn(move || {
                        barrier.wait();
                        submits(order);
                    });
                }
            });
        }
        // The answers are also waited for in either order.
        let tickets = [buy(1, 101), buy(1, 101)]
            .map(|order| session.submit(&Command::PlaceOrder(order).to_bytes()).unwrap());
        let [one, other] = tickets;
        let waited = if round % 2 == 0 { [one, other] } else { [other, one] };
        for ticket in waited {
            ticket.wait().unwrap();
        }
        session.close().unwrap();
        drop(session);
        let (input, events) = (records(root.path(), INPUT), records(root.path(), EVENTS));
        let Ok(Command::PlaceOrder(order)) = Command::decode(&input[2]) else {
            panic!("an order was placed")
        };
        assert!(round >= 2 || input[2] == orders[0], "without a race, the first is the first");
        let said: Vec<_> = events.iter().map(|event| floor::words(&Event::decode(event).unwrap())).collect();
        let cheap = if order.price == 100 { 2 } else { 3 };
        assert_eq!(said[4], format!("4 takes 1 of {cheap} at 100, left 0 and 0"));
        assert!(replay_check::<Exchange>(root.path(), |_, _| {}).is_ok());
    }
}

fn session_in_floor(root: &TempDir) -> Session<Exchange> {
    let directory = Directory::open(root.path()).unwrap();
    Session::create_new(&directory, &floor::setup().to_bytes(), SessionSettings::default()).unwrap()
}

/// The sources of the engine, and of nothing else.
const ENGINE: [&str; 8] = [
    include_str!("../../src/exchange/book.rs"),
    include_str!("../../src/exchange/code.rs"),
    include_str!("../../src/exchange/codec.rs"),
    include_str!("../../src/exchange/command.rs"),
    include_str!("../../src/exchange/engine.rs"),
    include_str!("../../src/exchange/event.rs"),
    include_str!("../../src/exchange/market.rs"),
    include_str!("../../src/exchange/setup.rs"),
];

/// All that the engine may name of what is not its own: nothing of it knows a clock, a random number, a network, a file, a thread,
/// an environment, or an order that is not the same everywhere.
const ALLOWED: [&str; 11] = [
    "bytes::BufMut",
    "serde::Serialize",
    "std::collections::BTreeMap",
    "std::collections::BTreeSet",
    "std::ops::RangeInclusive",
    "strandline_core::sbe::",
    "strandline_core::{Engine, Events, Seq}",
    "strandline_core::sbe",
    "strandline_sim::exchange",
    "super::",
    "thiserror::Error",
];

/// Paths of other crates that a source names and may not.
fn foreign_paths(source: &str) -> Vec<&str> {
    let words = source.split(|c: char| !(c.is_alphanumeric() || "_:{}".contains(c)));
    let roots = ["std", "core", "alloc", "bytes", "serde", "thiserror", "rand", "strandline", "tokio"];
    let is_foreign = |word: &&str| {
        let root = word.split("::").next().unwrap_or_default();
        word.contains("::") && (roots.contains(&root) || root.starts_with("strandline"))
    };
    let is_allowed =
        |word: &&str| ALLOWED.iter().any(|allowed| allowed.starts_with(word) || word.starts_with(allowed));
    words.filter(is_foreign).filter(|word| !is_allowed(word)).collect()
}

#[test]
fn the_engine_can_call_for_no_clock_no_randomness_and_nothing_outside() {
    for source in ENGINE {
        assert_eq!(foreign_paths(source), [""; 0]);
        for name in ["f32", "f64", "HashMap", "HashSet", "unsafe", "extern "] {
            assert!(!source.contains(name), "{name}");
        }
    }
    for (planted, path) in [
        ("let now = std::time::SystemTime::now();", "std::time::SystemTime::now"),
        ("use std::collections::HashMap;", "std::collections::HashMap"),
        ("std::fs::read(path)", "std::fs::read"),
        ("use rand::random;", "rand::random"),
        ("use strandline::Directory;", "strandline::Directory"),
    ] {
        assert_eq!(foreign_paths(planted), [path], "{planted}");
    }
}
