//! What waits for room: for as long as only a trim can make some, and no longer.

use strandline_core::{Config, Effect, Journal, Output, Pryj, Seq, Shortage};

use crate::world::{World, answer, at, drain, idle, open, small, take};

/// A journal whose bound of 1,000 bytes is reached, and one more record that waits.
fn full(world: &mut World) -> Box<Journal<Pryj>> {
    let config = Config { segment_bytes: 300, segments_bytes_max: 1_000, waits_for_room: true, ..small(2) };
    let (mut journal, _) = open::<Pryj>(world, config).unwrap();
    for _ in 0..20 {
        journal.append(at(1), &[7; 60]).unwrap();
        drain(&mut journal, world);
        if journal.waits_for_room() {
            return journal;
        }
    }
    panic!("a bound is reached")
}

#[test]
fn what_waits_for_room_is_refused_when_nobody_makes_some() {
    let mut world = World::default();
    let mut journal = full(&mut world);
    let end = journal.view().written_end();
    assert_eq!(drain(&mut journal, &mut world), [], "it waits");
    let (head, record, marks) = (16 + 40, 16 + 60, 3 * 40);
    assert_eq!(journal.room_wanted(), head + record + marks, "in a segment of its own");
    journal.refuse_waiting();
    let commit = journal.last_commit();
    assert_eq!(
        drain(&mut journal, &mut world),
        [Output::Void { from: end, commit, shortage: Shortage::Space }]
    );
    assert!(!journal.waits_for_room());
    assert_eq!(journal.room_wanted(), 0);
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

/// Appends a record of this many bytes and gives whether it became durable. Otherwise there was no room for it.
fn fits(journal: &mut Journal<Pryj>, world: &mut World, len: usize) -> bool {
    let end = journal.append(at(1), &vec![7; len]).unwrap().seq.next();
    match drain(journal, world).last() {
        Some(Output::Durable { end: durable, .. }) if *durable == end => true,
        Some(Output::Void { .. }) => false,
        told => panic!("{told:?}"),
    }
}

/// Header, first mark, a record of 100 bytes.
const FIRST: usize = 16 + 40 + 116;

#[test]
fn a_bound_is_filled_to_the_last_byte_and_not_beyond() {
    // A commit that crosses a page has a mark at either end, and the closing mark comes behind it.
    let fills = 8_192 - FIRST - 40 - 16 - 40 - 40;
    for (len, has_room) in [(fills, true), (fills + 1, false)] {
        let mut world = World::default();
        let config = Config { segments_bytes_max: 8_192, ..small(2) };
        let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
        assert!(fits(&mut journal, &mut world, 100));
        assert_eq!(fits(&mut journal, &mut world, len), has_room, "{len}");
        crate::world::close(journal, &mut world);
        assert_eq!(world.last_file().len() == 8_192, has_room);
    }
}

/// A journal at its bound of 8,192 bytes, with two records and the idle mark behind them.
fn filled(world: &mut World) -> Box<Journal<Pryj>> {
    let config = Config { segments_bytes_max: 8_192, ..small(2) };
    let (mut journal, _) = open::<Pryj>(world, config).unwrap();
    assert!(fits(&mut journal, world, 100));
    assert!(fits(&mut journal, world, 8_192 - FIRST - 40 - 16 - 40 - 40));
    idle(&mut journal, world);
    assert_eq!(world.last_file().len(), 8_192);
    journal
}

#[test]
fn idle_and_closing_marks_that_have_no_room_are_left_out() {
    let mut world = World::default();
    let mut journal = filled(&mut world);
    // The start moves, which a mark would state.
    journal.trim_to(Seq::new(1));
    idle(&mut journal, &mut world);
    assert_eq!(world.last_file().len(), 8_192);
    assert_eq!(journal.next_deadline(), None, "nothing is due again and again");
    crate::world::close(journal, &mut world);
    assert_eq!(world.last_file().len(), 8_192);
}

#[test]
fn the_mark_of_an_opening_has_room_or_is_left_out() {
    for (bound, marks) in [(8_191, 0), (8_192, 1)] {
        let mut world = World::default();
        filled(&mut world);
        world.last_file().truncate(8_192 - 40);
        let config = Config { segments_bytes_max: bound, ..small(2) };
        let (journal, report) = open::<Pryj>(&mut world, config).unwrap();
        assert_eq!((report.end, journal.view().durable_end()), (Seq::new(2), Seq::new(2)));
        assert_eq!(world.last_file().len(), 8_192 - 40 + 40 * marks, "{bound}");
    }
}

#[test]
fn a_new_segment_fits_with_its_head_and_marks_or_not_at_all() {
    let first = 56 + 8_016 + 40;
    let second = 56 + 40 + 1_016 + 40 + 40;
    for (short, has_room) in [(0, true), (1, false)] {
        let mut world = World::default();
        let config = Config { segment_bytes: 8_192, segments_bytes_max: first + second - short, ..small(2) };
        let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
        assert!(fits(&mut journal, &mut world, 8_000));
        assert_eq!(fits(&mut journal, &mut world, 1_000), has_room);
        assert_eq!(world.files.len(), 1 + usize::from(has_room), "not even created");
    }
}

#[test]
fn the_first_segment_is_created_within_the_bound() {
    let mut world = World::default();
    let config = Config { reserve_bytes: 4_096, segments_bytes_max: 1_000, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
    assert_eq!(world.last_file().len(), 1_000);
    assert!(!fits(&mut journal, &mut world, 1_000));
    assert!(fits(&mut journal, &mut world, 800));
}

#[test]
fn what_is_on_its_way_is_no_reason_to_refuse_what_is_behind_it() {
    let mut world = World::default();
    let config = Config { segments_bytes_max: 1_000, waits_for_room: true, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
    journal.append(at(1), &[7; 100]).unwrap();
    let (mut effects, _) = take(&mut journal);
    journal.append(at(1), &[7; 900]).unwrap();
    assert!(!journal.waits_for_room(), "a commit is on its way");
    journal.refuse_waiting();
    answer(&mut journal, &mut world, effects.remove(0));
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Durable { .. }]));
    assert!(journal.waits_for_room());
}

/// A journal of one segment with `FIRST + 116` bytes, opened again within the given bound.
fn reopened(world: &mut World, bound: u64) -> Box<Journal<Pryj>> {
    let (mut journal, _) = open::<Pryj>(world, small(2)).unwrap();
    for _ in 0..2 {
        journal.append(at(1), &[7; 100]).unwrap();
    }
    crate::world::close(journal, world);
    assert_eq!(world.last_file().len(), FIRST + 116 + 40);
    open::<Pryj>(world, Config { segments_bytes_max: bound, ..small(2) }).unwrap().0
}

#[test]
fn a_segment_larger_than_the_bound_is_replaced_once_it_was_given_up_and_not_before() {
    let mut world = World::default();
    let mut journal = reopened(&mut world, 300);
    assert!(!fits(&mut journal, &mut world, 10));
    assert_eq!(world.files.len(), 1, "it holds records that are kept");
    journal.trim_to(Seq::new(2));
    drain(&mut journal, &mut world);
    assert_eq!(world.files.keys().map(|id| id.0).collect::<Vec<_>>(), [Seq::new(2)]);
    assert!(fits(&mut journal, &mut world, 10));
}

#[test]
fn a_record_that_waits_for_a_segment_larger_than_the_bound_rolls_it_once_it_was_given_up() {
    let mut world = World::default();
    let mut journal = reopened(&mut world, 300);
    journal.trim_to(Seq::new(2));
    assert!(fits(&mut journal, &mut world, 10), "it waits for the removal");
    assert_eq!(world.files.keys().map(|id| id.0).collect::<Vec<_>>(), [Seq::new(2)]);
}

#[test]
fn a_segment_that_fills_the_bound_is_not_rolled_beyond_it() {
    let mut world = World::default();
    let bound = u64::try_from(FIRST + 116 + 40).unwrap();
    let mut journal = reopened(&mut world, bound);
    let before = world.log.len();
    journal.trim_to(Seq::new(2));
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Trimmed { .. }]));
    let created = world.log[before..].iter().any(|effect| matches!(effect, Effect::Create { .. }));
    assert!(!created && world.files.len() == 1, "the next one's head has no room");
}
