//! Trimming: a logical start that never moves back, and segments that go oldest first.

use bytes::Bytes;
use strandline_core::{
    Config, Cursor, Effect, IoCause, IoFailure, IoOperation, Journal, Monotonic, Output, Pryj, ReadUpTo,
    Replay, Seq,
};

use crate::world::{
    World, answer, at, close, drain, effects_of, idle, open, read_from, scan_all, small, take,
};

fn filled(world: &mut World, records: u64) -> Box<Journal<Pryj>> {
    let (mut journal, _) = open::<Pryj>(world, Config { segment_bytes: 300, ..small(2) }).unwrap();
    for n in 0..records {
        journal.append(at(1), &n.to_le_bytes()).unwrap();
        drain(&mut journal, world);
    }
    journal
}

fn seqs(world: &World, journal: &Journal<Pryj>, from: u64) -> Vec<u64> {
    read_from(world, journal.view(), Seq::new(from), ReadUpTo::Durable, |r| r.seq.get())
}

#[test]
fn a_start_inside_a_segment_hides_what_lies_before_it_also_after_reopening() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 40);
    journal.trim_to(Seq::new(35));
    assert_eq!(drain(&mut journal, &mut world)[0], Output::Trimmed { first: Seq::new(35) });
    let trimmed =
        |journal: &Journal<Pryj>| Cursor::<Pryj>::new(Seq::new(30), ReadUpTo::Durable).poll(journal.view());
    assert!(matches!(trimmed(&journal), Replay::Trimmed { first } if first == Seq::new(35)));
    close(journal, &mut world);
    let (journal, report) = open::<Pryj>(&mut world, small(2)).unwrap();
    assert_eq!(report.first, Seq::new(35));
    assert!(matches!(trimmed(&journal), Replay::Trimmed { first } if first == Seq::new(35)));
    assert_eq!(seqs(&world, &journal, 30), (35..40).collect::<Vec<_>>());
}

#[test]
fn segments_go_oldest_first_one_at_a_time_and_a_failed_removal_is_retried_first() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 40);
    let before: Vec<_> = world.files.keys().copied().collect();
    assert!(before.len() > 6);
    let stubborn = before[1];
    world.fault = Some(Box::new(move |effect| {
        let fits = matches!(effect, Effect::Remove { segment } if *segment == stubborn);
        fits.then_some(IoFailure::new(IoOperation::Remove, IoCause::Other))
    }));
    journal.trim_to(before[4].0);
    drain(&mut journal, &mut world);
    assert_eq!(
        world.files.keys().copied().collect::<Vec<_>>(),
        before[1..],
        "nothing behind the failed one goes"
    );
    world.fault = None;
    let retry = journal.next_deadline().unwrap();
    journal.tick(Monotonic::from_millis(retry.as_millis() + 1_000));
    drain(&mut journal, &mut world);
    journal.tick(Monotonic::from_millis(retry.as_millis() + 2_000));
    drain(&mut journal, &mut world);
    assert_eq!(world.files.keys().copied().collect::<Vec<_>>(), before[4..]);
}

#[test]
fn numbers_go_on_after_everything_was_trimmed_and_the_process_died() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 10);
    journal.trim_to(Seq::new(10));
    idle(&mut journal, &mut world);
    drop(journal);
    assert_eq!(world.files.len(), 1, "the last segment was rolled, so that its space is free");
    let (mut journal, report) = open::<Pryj>(&mut world, small(2)).unwrap();
    assert_eq!((report.first, report.end), (Seq::new(10), Seq::new(10)));
    assert_eq!(journal.append(at(1), b"x").unwrap().seq, Seq::new(10));
}

#[test]
fn trimming_works_without_any_space() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 40);
    world.fault = Some(Box::new(|effect| {
        let needs_space =
            matches!(effect, Effect::Write { .. } | Effect::Create { .. } | Effect::Reserve { .. });
        needs_space.then_some(IoFailure::new(IoOperation::Write, IoCause::NoSpace))
    }));
    journal.trim_to(Seq::new(40));
    idle(&mut journal, &mut world);
    assert_eq!(world.files.len(), 1);
    close(journal, &mut world);
    assert_eq!(scan_all::<Pryj>(&world).1.end, Seq::new(40));
}

#[test]
fn a_start_never_moves_back_nor_beyond_what_is_durable() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 5);
    journal.append(at(1), b"not yet durable").unwrap();
    journal.trim_to(Seq::new(100));
    assert_eq!(journal.view().first(), Seq::new(5));
    journal.trim_to(Seq::new(2));
    assert_eq!(journal.view().first(), Seq::new(5));
    drain(&mut journal, &mut world);
    assert_eq!(seqs(&world, &journal, 0), [5]);
}

#[test]
fn a_reader_of_a_removed_segment_gets_a_gap_and_goes_on() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 40);
    close(journal, &mut world);
    (journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 300, ..small(2) }).unwrap();
    let mut cursor = Cursor::<Pryj>::new(Seq::ZERO, ReadUpTo::Durable);
    let Replay::Read(_) = cursor.poll(journal.view()) else { panic!("the tail is empty after reopening") };
    journal.trim_to(Seq::new(20));
    drain(&mut journal, &mut world);
    let gone = IoFailure::new(IoOperation::Open, IoCause::NotFound);
    cursor.handle_read(Err(gone)).unwrap_err();
    assert!(matches!(cursor.poll(journal.view()), Replay::Trimmed { first } if first == Seq::new(20)));
    let Replay::Read(read) = cursor.poll(journal.view()) else { panic!("it goes on") };
    let bytes = Bytes::copy_from_slice(world.slice(read.segment, read.offset, read.len));
    cursor.handle_read(Ok(bytes)).unwrap();
    assert!(matches!(cursor.poll(journal.view()), Replay::Records(batch) if batch.first() == Seq::new(20)));
}

#[test]
fn a_removal_whose_directory_sync_fails_poisons() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 40);
    let failure = IoFailure::new(IoOperation::SyncDirectory, IoCause::Other);
    world.fault = Some(Box::new(move |effect| matches!(effect, Effect::Remove { .. }).then_some(failure)));
    journal.trim_to(Seq::new(20));
    assert!(drain(&mut journal, &mut world).iter().any(|told| matches!(told, Output::Poisoned(_))));
}

#[test]
fn a_journal_without_numbers_left_is_trimmed_and_reopened_like_any_other() {
    let mut world = World::default();
    let config = Config { first_seq: Some(Seq::new(u64::MAX - 2)), ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config.clone()).unwrap();
    journal.append(at(1), b"a").unwrap();
    journal.append(at(1), b"b").unwrap();
    drain(&mut journal, &mut world);
    journal.trim_to(Seq::new(u64::MAX));
    idle(&mut journal, &mut world);
    close(journal, &mut world);
    assert_eq!(world.files.len(), 1, "no segment can be named by a number that no record has");
    let (_, report) = open::<Pryj>(&mut world, config).unwrap();
    assert_eq!((report.first, report.end), (Seq::new(u64::MAX), Seq::new(u64::MAX)));
}

#[test]
fn one_segment_is_removed_at_a_time() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 40);
    let before: Vec<_> = world.files.keys().copied().collect();
    journal.trim_to(before[3].0);
    let (mut effects, _) = take(&mut journal);
    for oldest in &before[..3] {
        assert!(
            matches!(effects[..], [(_, Effect::Remove { segment })] if segment == *oldest),
            "{effects:?}"
        );
        assert_eq!(take(&mut journal), (vec![], vec![]), "no other before its answer");
        answer(&mut journal, &mut world, effects.remove(0));
        effects = take(&mut journal).0;
    }
    assert_eq!(effects, []);
}

#[test]
fn a_segment_that_was_given_up_whole_is_rolled_once_and_removed() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 3);
    assert_eq!(world.files.len(), 1);
    let before = world.log.len();
    journal.trim_to(Seq::new(3));
    drain(&mut journal, &mut world);
    assert_eq!(effects_of(&world, before), ["sync", "create", "remove"]);
    assert_eq!(world.files.keys().map(|id| id.0).collect::<Vec<_>>(), [Seq::new(3)]);
}

#[test]
fn a_roll_that_found_no_space_is_not_tried_again_before_something_has_changed() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 3);
    let before = world.log.len();
    let no_space = IoFailure::new(IoOperation::Write, IoCause::NoSpace);
    world.fault = Some(Box::new(move |effect| matches!(effect, Effect::Create { .. }).then_some(no_space)));
    journal.trim_to(Seq::new(3));
    drain(&mut journal, &mut world);
    drain(&mut journal, &mut world);
    assert_eq!(effects_of(&world, before), ["sync", "create"]);
    world.fault = None;
    journal.append(at(1), b"x").unwrap();
    drain(&mut journal, &mut world);
    journal.trim_to(Seq::new(4));
    drain(&mut journal, &mut world);
    assert_eq!(world.files.keys().map(|id| id.0).collect::<Vec<_>>(), [Seq::new(4)], "a commit found space");
}

#[test]
fn a_close_waits_for_the_removals_that_can_be_done() {
    let mut world = World::default();
    let mut journal = filled(&mut world, 40);
    let before: Vec<_> = world.files.keys().copied().collect();
    journal.trim_to(before[2].0);
    let (mut effects, _) = take(&mut journal);
    journal.close();
    for _ in 0..2 {
        assert!(matches!(effects[..], [(_, Effect::Remove { .. })]), "{effects:?}");
        assert_eq!(take(&mut journal), (vec![], vec![]), "neither mark nor end");
        answer(&mut journal, &mut world, effects.remove(0));
        effects = take(&mut journal).0;
    }
    answer(&mut journal, &mut world, effects.remove(0));
    assert_eq!(drain(&mut journal, &mut world), [Output::Closed]);
    assert_eq!(world.files.keys().copied().collect::<Vec<_>>(), before[2..]);
}
