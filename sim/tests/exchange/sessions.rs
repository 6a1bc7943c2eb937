//! The workload on a real disk: what happens in it, and that it can be replayed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strandline::session::{
    Checked, Difference, EVENTS, INPUT, ReplayCheckError, Session, SessionSettings, Setup, Side, replay_check,
};
use strandline::{Config, Directory, Disk as _, DiskLayer, StdDisk, config};
use strandline_core::{Engine, Events, Pryj, Seq};
use strandline_sim::exchange::{
    CancelReason, Command, Event, Exchange, ExchangeSetup, Phase, Refusal, SetupError, Workload,
    WorkloadError,
};
use tempfile::TempDir;

use crate::recorded::{self, digest, records, session_in, trade, with_records};

/// How often each kind of event happened.
fn mix(events: &[Vec<u8>]) -> BTreeMap<String, usize> {
    let mut mix = BTreeMap::new();
    for event in events {
        let kind = match Event::decode(event).unwrap() {
            Event::CommandRefused(refused) => format!("refused {:?}", refused.refusal),
            Event::OrderCanceled(canceled) => format!("canceled {:?}", canceled.reason),
            Event::PhaseChanged(changed) => format!("{:?}", changed.phase),
            other => format!("{other:?}").split('(').next().unwrap().to_string(),
        };
        *mix.entry(kind).or_default() += 1;
    }
    mix
}

#[test]
fn fifty_one_thousand_commands_of_four_producers_and_a_clock_replay_to_what_was_recorded() {
    let root = TempDir::new().unwrap();
    let workload = Workload::default();
    assert_eq!((workload.commands, workload.producers), (51_001, 4));
    assert_eq!(trade(workload, root.path()), 51_001);
    let events = records(root.path(), EVENTS);
    let checked = replay_check::<Exchange>(root.path(), |_, _| {}).unwrap();
    let expected = Checked { commands: 51_001, events: events.len() as u64, sha256: digest(&events) };
    assert_eq!(checked, expected);
    assert!((65_000..80_000).contains(&events.len()), "{}", events.len());

    // A workload of which most is refused would prove nothing.
    let mix = mix(&events);
    let at_least = |kind: &str, count| {
        assert!(
            mix.get(kind).is_some_and(|found| *found >= count),
            "{kind} less than {count} times: {mix:?}"
        );
    };
    at_least("OrderAccepted", 25_000);
    at_least("Trade", 10_000);
    at_least("OrderModified", 2_000);
    at_least(&format!("canceled {:?}", CancelReason::Requested), 2_500);
    at_least(&format!("canceled {:?}", CancelReason::Expired), 100);
    at_least(&format!("canceled {:?}", CancelReason::Unfilled), 500);
    at_least(&format!("refused {:?}", Refusal::InstrumentHalted), 50);
    at_least(&format!("refused {:?}", Refusal::MarketClosed), 500);
    for refusal in [
        Refusal::Unreadable,
        Refusal::UnknownInstrument,
        Refusal::PriceOutsideBand,
        Refusal::PriceOffTick,
        Refusal::PriceOfMarketOrder,
        Refusal::QuantityOffLot,
        Refusal::UnknownOrder,
        Refusal::ForeignOrder,
    ] {
        at_least(&format!("refused {refusal:?}"), 20);
    }
    let phases = [format!("{:?}", Phase::Open), format!("{:?}", Phase::Closed)].map(|phase| mix[&phase]);
    assert_eq!(phases, [2, 2], "the course crosses the open, the close, the next open and the next close");
    assert_eq!((mix["Halted"], mix["Resumed"], mix["Settled"]), (1, 1, 6));
}

/// The first difference that a check finds.
fn difference(path: &Path) -> Difference {
    let found = replay_check::<Exchange>(path, |_, _| {}).unwrap_err();
    found.difference().unwrap_or_else(|| panic!("no difference: {found}")).clone()
}

const SMALL: Workload = Workload { commands: 3_000, producers: 2, seed: 7, in_turn: true };

#[test]
fn every_change_of_a_session_is_named_by_its_event() {
    let root = TempDir::new().unwrap();
    trade(SMALL, root.path());
    let events = records(root.path(), EVENTS);
    let changed = |change: fn(&mut Vec<Vec<u8>>)| {
        let mut events = events.clone();
        change(&mut events);
        let copy = with_records(root.path(), EVENTS, &events);
        let Difference { event, recorded, replayed, .. } = difference(copy.path());
        (event.get(), recorded.map(|bytes| bytes.to_vec()), replayed.map(|bytes| bytes.to_vec()))
    };
    let original = |seq: usize| Some(events[seq - 1].clone());
    let mut flipped = events[1_233].clone();
    flipped[9] ^= 4;
    assert_eq!(changed(|events| events[1_233][9] ^= 4), (1_234, Some(flipped), original(1_234)));
    assert_eq!(changed(|events| _ = events.remove(499)), (500, original(501), original(500)));
    assert_eq!(changed(|events| events.insert(99, b"x".to_vec())), (100, Some(b"x".to_vec()), original(100)));
    assert_eq!(changed(|events| events.swap(199, 200)), (200, original(201), original(200)));
    let last = events.len();
    assert_eq!(changed(|events| _ = events.pop()), (last as u64, None, original(last)));
    assert_eq!(changed(|events| events.push(b"x".to_vec())), (last as u64 + 1, Some(b"x".to_vec()), None));
}

#[test]
fn a_configuration_that_drifted_is_named_by_the_first_event_it_changes() {
    let root = TempDir::new().unwrap();
    trade(SMALL, root.path());
    let mut input = records(root.path(), INPUT);
    let mut setup = Workload::setup();
    setup.instruments[0].band = 10;
    let drifted = setup.to_bytes();
    input[0] = Setup { engine: Exchange::ID, setup: &drifted }.encode().to_vec();
    let copy = with_records(root.path(), INPUT, &input);
    let Difference { event, command, recorded, replayed, .. } = difference(copy.path());
    let (recorded, replayed) = (recorded.unwrap(), replayed.unwrap());
    assert!(matches!(Event::decode(&recorded), Ok(Event::OrderAccepted(_))), "{recorded:?}");
    let Ok(Event::CommandRefused(refused)) = Event::decode(&replayed) else { panic!("{replayed:?}") };
    assert_eq!(refused.refusal, Refusal::PriceOutsideBand);
    // It is the first: every event before it is the same in both, and the command is the one that is at fault.
    let Ok(Command::PlaceOrder(order)) =
        Command::decode(&input[usize::try_from(command.unwrap().get()).unwrap()])
    else {
        panic!("{command:?} places an order");
    };
    assert!(order.instrument == 1 && order.price.abs_diff(10_000) > 10, "{order:?}");
    let before = usize::try_from(event.get()).unwrap() - 1;
    assert!(recorded::replayed(&drifted, &input[1..]).starts_with(&records(root.path(), EVENTS)[..before]));
}

#[test]
fn whoever_submits_in_turn_makes_the_same_session_and_goes_on_with_it() {
    let made = |workload: Workload| {
        let root = TempDir::new().unwrap();
        trade(workload, root.path());
        let journals = [INPUT, EVENTS].map(|name| records(root.path(), name));
        (root, journals)
    };
    let (_, expected) = made(SMALL);
    for producers in [1, 3, 16, 20] {
        let (_, found) = made(Workload { producers, ..SMALL });
        assert!(found == expected, "{producers} producers make another session");
    }
    let (_, other) = made(Workload { seed: 8, ..SMALL });
    assert!(other != expected, "another seed makes another session");

    for kept in [0, 1, 17, 1_500, 2_999, 3_000] {
        let root = TempDir::new().unwrap();
        let settings = Config { first_seq: Some(Seq::ZERO), ..config() };
        let directory = Directory::open(root.path()).unwrap();
        let (input, _) = directory.journal::<Pryj>(INPUT, settings).unwrap();
        input.append_all(expected[0][..=kept].iter().map(Vec::as_slice)).unwrap();
        input.close().unwrap();
        drop(directory);
        let directory = Directory::open(root.path()).unwrap();
        let settings = SessionSettings { rebuild_events: true, ..SessionSettings::default() };
        let (session, resumed) = Session::<Exchange>::open(&directory, settings).unwrap();
        assert_eq!(resumed.commands, kept as u64);
        SMALL.run(&session, |_| {}).unwrap();
        session.close().unwrap();
        drop(directory);
        let found = [INPUT, EVENTS].map(|name| records(root.path(), name));
        assert!(found == expected, "a session with {kept} commands goes on otherwise");
    }
}

#[test]
fn a_session_of_another_workload_is_left_alone() {
    let root = TempDir::new().unwrap();
    trade(SMALL, root.path());
    let refused = |workload: Workload| {
        let session = session_in(root.path());
        let error = workload.run(&session, |_| panic!("nothing is submitted")).unwrap_err();
        assert_eq!(session.durable_end(Side::Input).get(), 3_001);
        error
    };
    let free = Workload { in_turn: false, ..SMALL };
    assert!(matches!(refused(free), WorkloadError::NotInTurn { recorded: 3_000 }));
    for other in [Workload { seed: 8, ..SMALL }, Workload { commands: 2_999, ..SMALL }] {
        let error = refused(other);
        assert!(matches!(error, WorkloadError::Foreign { .. }), "{other:?}: {error}");
    }
}

#[test]
fn an_engine_with_another_name_does_not_take_the_session() {
    struct Renamed;
    impl Engine for Renamed {
        const ID: &'static str = "strandline-exchange/2";
        type Error = SetupError;
        fn start(setup: &[u8]) -> Result<Self, SetupError> {
            ExchangeSetup::decode(setup)?;
            Ok(Self)
        }
        fn apply(&mut self, _: Seq, _: &[u8], _: &mut Events) {}
    }
    let root = TempDir::new().unwrap();
    trade(Workload { commands: 100, ..SMALL }, root.path());
    let error: ReplayCheckError<_> = replay_check::<Renamed>(root.path(), |_, _| {}).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("strandline-exchange/1") && text.contains("strandline-exchange/2"), "{text}");
    assert!(error.difference().is_none());
}

/// A disk with room for so many bytes of new writes.
struct FullDisk {
    disk: StdDisk,
    left: Arc<AtomicU64>,
}

impl DiskLayer for FullDisk {
    type Below = StdDisk;

    fn below(&self) -> &StdDisk {
        &self.disk
    }

    fn write_at(&self, file: &File, offset: u64, data: &[u8]) -> io::Result<usize> {
        let len = data.len() as u64;
        let takes = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(len));
        takes.map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        self.disk.write_at(file, offset, data)
    }
}

#[test]
fn a_session_that_found_no_space_is_gone_on_with_as_if_there_had_been_some() {
    let workload = Workload { producers: 4, commands: 600, ..SMALL };
    let undisturbed = TempDir::new().unwrap();
    trade(workload, undisturbed.path());
    let expected = [INPUT, EVENTS].map(|name| records(undisturbed.path(), name));
    let mut broken_off = 0;
    for left in (2_000..100_000).step_by(3_900) {
        let root = TempDir::new().unwrap();
        let left = Arc::new(AtomicU64::new(left));
        let layer = |disk| FullDisk { disk, left: Arc::clone(&left) };
        let directory = Directory::open_through(root.path(), layer).unwrap();
        let small = || Config { reserve_bytes: 0, ..config() };
        let settings = SessionSettings { input: small(), events: small(), ..SessionSettings::default() };
        let setup = Workload::setup().to_bytes();
        let (session, _) = Session::<Exchange, _>::open_or_create(&directory, &setup, settings).unwrap();
        broken_off += u32::from(workload.run(&session, |_| {}).is_err());
        // What is told of the end is told above.
        let _ = session.close();
        drop((session, directory));
        trade(workload, root.path());
        let found = [INPUT, EVENTS].map(|name| records(root.path(), name));
        assert!(found == expected, "{left:?}");
    }
    assert!(broken_off > 10, "{broken_off}");
}
