//! What the events of a session depend on: the setup, the commands and their order, and nothing else.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use crate::recorded::{records, replayed, session_in, trade};

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
    let mut first = BTreeSet::new();
    // Until both orders were seen; mostly that is soon.
    for round in 0..200 {
        let root = TempDir::new().unwrap();
        let session = session_in_floor(&root);
        session.submit(&Command::Tick(Tick { time: 9 * HOUR }).to_bytes()).unwrap().wait().unwrap();
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            for order in [sell(1, 101), sell(1, 100)] {
                let (session, barrier) = (&session, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    session.submit(&Command::PlaceOrder(order).to_bytes()).unwrap().wait().unwrap();
                });
            }
        });
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
        let said: Vec<_> = events.iter().map(|event| floor::words(&Event::decode(event).unwrap())).collect();
        let cheap = if order.price == 100 { 2 } else { 3 };
        assert_eq!(said[4], format!("4 takes 1 of {cheap} at 100, left 0 and 0"));
        assert!(replay_check::<Exchange>(root.path(), |_, _| {}).is_ok());
        first.insert(order.price);
        if first.len() == 2 && round > 1 {
            break;
        }
    }
    assert!(!first.is_empty());
}

fn session_in_floor(root: &TempDir) -> Session<Exchange> {
    let directory = Directory::open(root.path()).unwrap();
    Session::create_new(&directory, &floor::setup().to_bytes(), SessionSettings::default()).unwrap()
}

/// What an application does in the world when its engine says so, and how often it did.
static MAILS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn only_who_submits_is_answered_so_that_a_replay_does_nothing_in_the_world() {
    let root = TempDir::new().unwrap();
    let session = session_in_floor(&root);
    for command in [Command::Tick(Tick { time: 9 * HOUR }), Command::PlaceOrder(buy(1, 100))] {
        let answer = session.submit(&command.to_bytes()).unwrap().wait().unwrap();
        for _mail in answer.events.iter() {
            MAILS.fetch_add(1, Ordering::Relaxed);
        }
    }
    session.close().unwrap();
    drop(session);
    assert_eq!(MAILS.load(Ordering::Relaxed), 2);
    assert_eq!(replay_check::<Exchange>(root.path(), |_, _| {}).unwrap().events, 2);
    session_in(root.path()).close().unwrap();
    assert_eq!(MAILS.load(Ordering::Relaxed), 2, "checking and resuming answer nobody");
}
