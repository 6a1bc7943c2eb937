//! What waits for room: for as long as only a trim can make some, and no longer.

use strandline_core::{Config, Effect, Journal, Output, Pryj, Seq};

use crate::world::{World, answer, at, drain, open, small, take};

/// A journal whose bound of 1,000 bytes is reached, and one more record that waits.
fn full(world: &mut World) -> Box<Journal<Pryj>> {
    let config = Config { segment_bytes: 300, segments_bytes_max: 1_000, waits_for_room: true, ..small(2) };
    let (mut journal, _) = open::<Pryj>(world, config).unwrap();
    while !journal.waits_for_room() {
        journal.append(at(1), &[7; 60]).unwrap();
        drain(&mut journal, world);
    }
    journal
}

#[test]
fn what_waits_for_room_is_refused_when_nobody_makes_some() {
    let mut world = World::default();
    let mut journal = full(&mut world);
    let end = journal.view().written_end();
    assert_eq!(drain(&mut journal, &mut world), [], "it waits");
    journal.refuse_waiting();
    let commit = journal.last_commit();
    assert_eq!(drain(&mut journal, &mut world), [Output::Void { from: end, commit }]);
    assert!(!journal.waits_for_room());
    journal.refuse_waiting();
    assert_eq!(drain(&mut journal, &mut world), [], "nothing waits");
}

#[test]
fn a_removal_that_is_due_or_on_its_way_is_waited_for_and_nothing_is_refused() {
    let mut world = World::default();
    let mut journal = full(&mut world);
    let end = journal.view().written_end();
    let second = journal.view().segments().nth(1).unwrap().first();
    journal.trim_to(second);
    assert!(!journal.waits_for_room(), "a removal is due");
    journal.refuse_waiting();
    let (mut effects, told) = take(&mut journal);
    assert_eq!(told, [Output::Trimmed { first: second }]);
    assert!(matches!(effects[..], [(_, Effect::Remove { .. })]), "{effects:?}");
    assert!(!journal.waits_for_room(), "it is on its way");
    journal.refuse_waiting();
    answer(&mut journal, &mut world, effects.remove(0));
    let told = drain(&mut journal, &mut world);
    assert!(matches!(told[..], [Output::Durable { end: now, .. }] if now == end.next()), "{told:?}");
}

#[test]
fn a_poisoned_journal_waits_for_nothing() {
    let mut world = World::default();
    let mut journal = full(&mut world);
    let failure =
        strandline_core::IoFailure::new(strandline_core::IoOperation::Write, strandline_core::IoCause::Other);
    journal.poison_now(failure);
    assert!(!journal.waits_for_room());
    assert_eq!(journal.view().first(), Seq::ZERO);
}
