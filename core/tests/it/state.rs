//! What a journal tells of itself, at every moment between two answers.

use strandline_core::{
    AppendError, Config, Effect, Framing, IoCause, IoFailure, IoOperation, Journal, Output, Poison, Proof,
    Pryj, SegmentId, Seq, SyncPolicy, Verdict,
};

use crate::world::{World, answer, at, close, drain, open, payloads, scan_all, small, take, take_one};

const LOST: IoFailure = IoFailure::new(IoOperation::Write, IoCause::Other);

fn with_records(world: &mut World, config: Config, records: usize) -> Box<Journal<Pryj>> {
    let (mut journal, _) = open::<Pryj>(world, config).unwrap();
    for _ in 0..records {
        journal.append(at(1), b"payload").unwrap();
        drain(&mut journal, world);
    }
    journal
}

#[test]
fn a_journal_is_idle_only_when_nothing_waits_and_nothing_is_on_its_way() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, small(2), 0);
    assert!(journal.is_idle() && journal.pending_bytes() == 0, "just opened");
    journal.append(at(1), &[1; 60]).unwrap();
    journal.append(at(1), &[1; 4]).unwrap();
    assert!(!journal.is_idle(), "two records wait");
    assert_eq!(journal.pending_bytes(), 76 + 20);
    let write = take_one(&mut journal);
    assert!(!journal.is_idle(), "they are being written");
    assert_eq!(journal.pending_bytes(), 76 + 20, "until they are");
    answer(&mut journal, &mut world, write);
    assert_eq!(journal.pending_bytes(), 0);
    let sync = take_one(&mut journal);
    assert!(!journal.is_idle(), "and made durable");
    answer(&mut journal, &mut world, sync);
    assert!(!journal.is_idle(), "and that is still to be told");
    assert!(matches!(journal.poll_output(), Some(Output::Durable { .. })));
    assert!(journal.is_idle());
    journal.close();
    drain(&mut journal, &mut world);
    assert!(journal.is_idle(), "closed");
}

#[test]
fn a_removal_that_is_on_its_way_is_not_idle() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, Config { segment_bytes: 150, ..small(2) }, 6);
    let second = *world.files.keys().nth(1).unwrap();
    journal.trim_to(second.0);
    let (effects, told) = take(&mut journal);
    assert_eq!(told, [Output::Trimmed { first: second.0 }]);
    assert!(matches!(effects[..], [(_, Effect::Remove { .. })]), "{effects:?}");
    assert!(!journal.is_idle());
    answer(&mut journal, &mut world, effects[0].clone());
    assert!(journal.is_idle());
}

#[test]
fn zeros_that_are_being_made_are_not_idle() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, Config { reserve_bytes: 4_096, ..small(2) }, 0);
    journal.append(at(1), &[1; 3_000]).unwrap();
    let (mut effects, _) = take(&mut journal);
    assert!(matches!(effects[..], [(_, Effect::Reserve { .. }), (_, Effect::Write { .. })]), "{effects:?}");
    answer(&mut journal, &mut world, effects.remove(1));
    let sync = take_one(&mut journal);
    answer(&mut journal, &mut world, sync);
    assert!(matches!(take(&mut journal).1[..], [Output::Durable { .. }]));
    assert!(!journal.is_idle());
    answer(&mut journal, &mut world, effects.remove(0));
    assert!(journal.is_idle());
}

#[test]
fn what_waits_may_fill_its_bound_to_the_last_byte() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, Config { pending_bytes_max: 100, ..small(2) }, 0);
    journal.append(at(1), &[1; 34]).unwrap();
    journal.append(at(1), &[1; 34]).unwrap();
    assert_eq!(journal.append(at(1), b""), Err(AppendError::Full { pending: 100, max: 100 }));
}

#[test]
fn a_poison_from_outside_withdraws_the_effects_that_nobody_has_taken_and_nothing_that_is_told() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, Config { reserve_bytes: 4_096, ..small(2) }, 1);
    assert_eq!(journal.poison(), None);
    journal.append(at(1), &[1; 3_000]).unwrap();
    assert!(matches!(journal.poll_output(), Some(Output::Effect { effect: Effect::Reserve { .. }, .. })));
    journal.trim_to(Seq::new(1));
    journal.poison_now(LOST);
    let poison = Poison { segment: SegmentId(Seq::ZERO), failure: LOST };
    assert_eq!(journal.poison(), Some(&poison));
    let (effects, told) = take(&mut journal);
    assert_eq!(effects, [], "the write that was not taken yet is none any more");
    assert_eq!(told, [Output::Trimmed { first: Seq::new(1) }, Output::Poisoned(poison)]);
    assert_eq!(journal.append(at(1), b"x"), Err(AppendError::Poisoned(poison)));
    journal.poison_now(IoFailure::new(IoOperation::Sync, IoCause::Other));
    assert_eq!(journal.poison(), Some(&poison), "the first failure is the state");
    assert_eq!(take(&mut journal), (vec![], vec![]), "and told once");
}

#[test]
fn nothing_is_given_up_after_a_poison_or_once_a_close_began() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, small(2), 4);
    journal.poison_now(LOST);
    journal.trim_to(Seq::new(3));
    assert_eq!(journal.view().first(), Seq::ZERO);
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Poisoned(_)]));

    let mut world = World::default();
    let mut journal = with_records(&mut world, small(2), 4);
    journal.close();
    journal.trim_to(Seq::new(3));
    assert_eq!(journal.view().first(), Seq::ZERO);
    assert_eq!(drain(&mut journal, &mut world), [Output::Closed]);
}

#[test]
fn nothing_is_due_while_a_commit_is_on_its_way_nor_after_a_poison_or_a_close() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, small(2), 1);
    assert!(journal.next_deadline().is_some(), "an idle mark");
    journal.append(at(1), b"x").unwrap();
    let write = take_one(&mut journal);
    assert_eq!(journal.next_deadline(), None, "the mark waits for the commit");
    answer(&mut journal, &mut world, write);
    drain(&mut journal, &mut world);
    assert!(journal.next_deadline().is_some());

    let interval = Config { sync: SyncPolicy::Interval { ms: 20 }, ..small(2) };
    let mut journal = with_records(&mut World::default(), interval, 1);
    assert!(journal.next_deadline().is_some(), "a sync");
    journal.poison_now(LOST);
    assert_eq!(journal.next_deadline(), None);

    let mut world = World::default();
    let mut journal = with_records(&mut world, Config { segment_bytes: 150, ..small(2) }, 6);
    let failure = IoFailure::new(IoOperation::Remove, IoCause::Denied);
    world.fault = Some(Box::new(move |effect| matches!(effect, Effect::Remove { .. }).then_some(failure)));
    journal.trim_to(Seq::new(3));
    drain(&mut journal, &mut world);
    assert!(journal.next_deadline().is_some(), "a removal that failed is tried again");
    journal.close();
    assert_eq!(drain(&mut journal, &mut world), [Output::Closed]);
    assert_eq!(journal.next_deadline(), None);
}

#[test]
fn a_backup_ends_where_the_durable_bytes_do_and_its_mark_fits_there() {
    let mut world = World::default();
    let mut journal = with_records(&mut world, Config { sync: SyncPolicy::Never, ..small(2) }, 3);
    journal.request_sync();
    drain(&mut journal, &mut world);
    journal.append(at(1), b"not durable").unwrap();
    drain(&mut journal, &mut world);

    let plan = journal.backup_plan();
    let (offset, mark) = plan.mark.clone().unwrap();
    assert_eq!(plan.segments, [(SegmentId(Seq::ZERO), offset)]);
    let durable = usize::try_from(offset).unwrap();
    assert!(durable < world.last_file().len());
    let mut copy = World::default();
    copy.files.insert(SegmentId(Seq::ZERO), [&world.last_file()[..durable], &mark].concat());
    let (_, report) = scan_all::<Pryj>(&copy);
    assert_eq!((&report.verdict, report.end, report.unproven()), (&Verdict::Sound, Seq::new(3), 0));
    assert_eq!(report.segments[0].proof, Proof::Mark { offset, durable_end: plan.end });
}

#[test]
fn every_segment_has_a_salt_of_its_own() {
    let mut world = World::default();
    let journal = with_records(&mut world, Config { segment_bytes: 150, ..small(2) }, 6);
    drop(journal);
    let mark = |file: &Vec<u8>| Pryj::parse_mark(&file[Pryj::HEADER_LEN..]).unwrap();
    let salts: std::collections::BTreeSet<u64> = world.files.values().map(|file| mark(file).salt).collect();
    assert!(salts.len() > 3 && salts.len() == world.files.len(), "{salts:?}");
}

#[test]
fn a_commit_gathers_what_a_segment_holds_beside_its_head_and_marks_and_no_more() {
    let mut world = World::default();
    // 1,000 bytes less header, first mark, and two marks around the commit are 864: four times 216.
    let mut journal = with_records(&mut world, Config { segment_bytes: 1_000, ..small(2) }, 0);
    let mut append = |len| journal.append(at(1), &vec![7; len]).unwrap().commit.get();
    assert_eq!([200, 200, 200, 200, 0].map(&mut append), [1, 1, 1, 1, 2]);
    close(journal, &mut world);
    assert!(world.files.values().all(|file| file.len() <= 1_000));
    assert_eq!(payloads(&world).len(), 5);
}
