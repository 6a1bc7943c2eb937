//! Opening for writing: every step, in order, what each failure leaves, and that nothing is done twice or for nothing.

use strandline_core::{
    Answer, Config, Effect, Framing, IoCause, IoFailure, IoOperation, Mark, Output, Pryj, Recovery,
    RecoveryError, RecoveryStep, Refusal, SegmentId, Seq, SyncPolicy, Verdict,
};

use crate::world::{World, at, close, drain, effects_of, open, payloads, scan_all, small};

const NO_SPACE: IoFailure = IoFailure::new(IoOperation::Write, IoCause::NoSpace);
const BROKEN: IoFailure = IoFailure::new(IoOperation::Write, IoCause::Other);
/// Header and first mark.
const HEAD: u64 = 16 + 40;

/// A journal that was killed after commits of these payload lengths.
fn killed(config: &Config, lens: &[usize]) -> World {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, config.clone()).unwrap();
    for len in lens {
        journal.append(at(1), &vec![7; *len]).unwrap();
        drain(&mut journal, &mut world);
    }
    drop(journal);
    world.log.clear();
    world
}

/// One whose last frame is torn.
fn torn() -> World {
    let mut world = killed(&small(2), &[10, 20, 30]);
    world.last_file().extend_from_slice(b"\x07\0\0\0 torn");
    world
}

/// A copy of its files alone.
fn copy(world: &World) -> World {
    World { files: world.files.clone(), ..World::default() }
}

/// What an opening does to a sound journal. Its last mark is proven by nothing but itself, and so written again.
const SOUND: [&str; 6] = ["sync directory", "read", "remove temporaries", "read", "write", "sync"];

#[test]
fn a_sound_journal_is_neither_cut_nor_marked_again_nor_created() {
    for version in [1, 2] {
        for lens in [&[][..], &[10, 20]] {
            let mut world = World::default();
            let (mut journal, _) = open::<Pryj>(&mut world, small(version)).unwrap();
            for len in lens {
                journal.append(at(1), &vec![7; *len]).unwrap();
            }
            close(journal, &mut world);
            let before = world.log.len();
            let (journal, _) = open::<Pryj>(&mut world, small(version)).unwrap();
            assert_eq!(effects_of(&world, before), SOUND, "version {version}, {lens:?}");
            let before = world.log.len();
            close(journal, &mut world);
            assert_eq!(effects_of(&world, before), [""; 0], "and closed without a step");
        }
    }
}

#[test]
fn a_segment_of_another_version_is_left_alone_until_there_is_a_record_for_the_next() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), b"x").unwrap();
    close(journal, &mut world);
    let (files, before) = (world.files.clone(), world.log.len());
    let (journal, _) = open::<Pryj>(&mut world, small(1)).unwrap();
    assert_eq!(effects_of(&world, before), SOUND);
    close(journal, &mut world);
    assert_eq!(world.files, files);
}

/// What an opening does, and with which words it fails where each of its steps does.
fn fails_at_every_step(broken: &World, steps: &[(&str, &str)]) {
    let mut whole = copy(broken);
    open::<Pryj>(&mut whole, small(2)).unwrap();
    assert_eq!(effects_of(&whole, 0), steps.iter().map(|(effect, _)| *effect).collect::<Vec<_>>());
    for (failing, (effect, words)) in steps.iter().enumerate() {
        let mut world = copy(broken);
        let mut done = 0;
        world.fault = Some(Box::new(move |_| {
            done += 1;
            (done == failing + 1).then_some(BROKEN)
        }));
        let opened = open::<Pryj>(&mut world, small(2)).map(|_| ());
        match (opened, *words) {
            (Ok(()), "") => continue,
            (Err(RecoveryError::Refused { refusal, .. }), "refused") => {
                assert!(matches!(refusal, Refusal::Unreadable { failure: BROKEN, .. }), "{refusal:?}");
            }
            (Err(RecoveryError::Failed { step, failure: BROKEN, .. }), words) => assert_eq!(step, words),
            (opened, words) => panic!("step {failing}, {effect}: {opened:?} and not {words:?}"),
        }
        assert_eq!(world.log.len(), failing + 1, "nothing follows a failed step: {effect}");
    }
}

#[test]
fn a_step_that_fails_ends_the_opening_of_a_torn_journal() {
    let steps = [
        ("sync directory", "sync the directory of"),
        ("read", "refused"),
        ("read", "refused"),
        ("remove temporaries", ""),
        ("set aside", "keep a copy of the torn tail of"),
        ("truncate", "cut"),
        ("sync", "sync"),
        ("read", "read again the unproven end of"),
        ("write", "write again the unproven end of"),
        ("sync", "sync the unproven end of"),
        ("write", "write the mark of"),
        ("sync", "sync the mark of"),
    ];
    fails_at_every_step(&torn(), &steps);
}

#[test]
fn a_step_that_fails_ends_the_opening_over_an_unfinished_segment() {
    let mut world = killed(&Config { segment_bytes: 150, ..small(2) }, &[40, 40]);
    assert_eq!(world.files.len(), 2);
    world.last_file().truncate(20);
    let steps = [
        ("sync directory", "sync the directory of"),
        ("read", "refused"),
        ("read", "refused"),
        ("remove temporaries", ""),
        ("set aside", "keep a copy of the torn tail of"),
        ("remove", "remove the unfinished"),
        ("read", "read again the unproven end of"),
        ("write", "write again the unproven end of"),
        ("sync", "sync the unproven end of"),
        ("write", "write the mark of"),
        ("sync", "sync the mark of"),
    ];
    fails_at_every_step(&world, &steps);

    world.last_file().clear();
    let mut reads = steps.to_vec();
    reads.retain(|(effect, _)| *effect != "set aside");
    reads.remove(2);
    fails_at_every_step(&world, &reads);
}

#[test]
fn a_journal_whose_only_segment_cannot_be_created_is_not_opened() {
    let steps =
        [("sync directory", "sync the directory of"), ("remove temporaries", ""), ("create", "create")];
    fails_at_every_step(&World::default(), &steps);
}

#[test]
fn without_space_for_a_copy_the_tail_is_cut_all_the_same() {
    let mut world = torn();
    world.fault = Some(Box::new(|effect| matches!(effect, Effect::SetAside { .. }).then_some(NO_SPACE)));
    let (journal, report) = open::<Pryj>(&mut world, small(2)).unwrap();
    assert!(report.repair.cut && !report.repair.set_aside);
    assert!(world.set_aside.is_empty());
    close(journal, &mut world);
    assert_eq!(scan_all::<Pryj>(&world).1.verdict, Verdict::Sound);
    assert_eq!(payloads(&world).len(), 3);

    let (_, report) = open::<Pryj>(&mut torn(), small(2)).unwrap();
    assert!(report.repair.cut && report.repair.set_aside);
}

#[test]
fn without_space_for_a_mark_the_journal_opens_without_one_and_goes_on() {
    let mut world = torn();
    let whole = killed(&small(2), &[10, 20, 30]).last_file().clone();
    let end = whole.len() as u64;
    world.fault = Some(Box::new(move |effect| match effect {
        Effect::Write { offset, .. } if *offset == end => Some(NO_SPACE),
        _ => None,
    }));
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    assert_eq!(effects_of(&world, world.log.len() - 3), ["write", "truncate", "sync"]);
    assert_eq!(*world.last_file(), whole, "what came of the mark is gone");
    world.fault = None;
    journal.append(at(1), b"next").unwrap();
    assert!(
        matches!(drain(&mut journal, &mut world)[..], [Output::Durable { end, .. }] if end == Seq::new(4))
    );
    let (_, report) = scan_all::<Pryj>(&world);
    assert_eq!((report.verdict, report.proven_end), (Verdict::Sound, Seq::new(3)));
}

#[test]
fn a_commit_goes_behind_the_mark_that_the_opening_wrote() {
    let mut world = torn();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    let opened = world.last_file().len();
    journal.append(at(1), b"next").unwrap();
    drain(&mut journal, &mut world);
    assert_eq!(world.last_file().len(), opened + 20, "the mark in front of it is there already");
    let (_, report) = scan_all::<Pryj>(&world);
    assert_eq!((report.verdict, report.end), (Verdict::Sound, Seq::new(4)));
}

/// Bytes that an opening of a copy writes again.
fn rewritten(world: &World) -> u64 {
    let mut world = copy(world);
    open::<Pryj>(&mut world, small(2)).unwrap().1.repair.rewritten
}

#[test]
fn only_what_no_mark_proves_is_written_again() {
    let mut world = killed(&small(2), &[10, 20, 30]);
    assert_eq!(
        rewritten(&world),
        40 + 46,
        "the last commit: its mark, which states what was before, and its record"
    );
    let (view, _) = scan_all::<Pryj>(&world);
    let durable = view.segments().next().unwrap().durable_bytes();
    assert_eq!(durable, world.last_file().len() as u64 - 86);

    // The mark is repeated behind the record, where the sparse index knows the file's first record alone.
    let world = killed(&small(2), &[10, 5_000]);
    assert_eq!(rewritten(&world), 40 + 5_016 + 40, "a repeated mark takes nothing back");

    let world = killed(&Config { sync: SyncPolicy::Never, ..small(2) }, &[10, 20]);
    assert_eq!(rewritten(&world), HEAD + 26 + 40 + 36, "nothing is proven, and the head is written too");
}

#[test]
fn a_mark_that_states_less_than_what_is_before_it_proves_no_more_than_it_states() {
    let mut world = killed(&small(2), &[10, 20]);
    let salt = Pryj::parse_mark(&world.last_file()[16..]).unwrap().salt;
    // Two records without a mark between them, and then one that states the first alone.
    world.last_file().truncate(56 + 26);
    let mut record = bytes::BytesMut::new();
    Pryj::encode(Pryj::layout(2), Seq::new(1), at(1), &[7; 20], &mut record);
    world.last_file().extend_from_slice(&record);
    let (offset, mut mark) = (world.last_file().len() as u64, [0; 40]);
    Pryj::encode_mark(&Mark { durable_end: Seq::new(1), salt, offset, first: Seq::ZERO }, at(1), &mut mark);
    world.last_file().extend_from_slice(&mark);
    let (_, report) = scan_all::<Pryj>(&world);
    assert_eq!((&report.verdict, report.end, report.proven_end), (&Verdict::Sound, Seq::new(2), Seq::new(1)));
    assert!(rewritten(&world) >= 36 + 40, "the second record is among what is written again");
    assert_eq!(
        rewritten(&world),
        26 + 36 + 40,
        "from the last point of the index that is not behind the first"
    );
}

#[test]
fn an_unproven_record_that_is_larger_than_a_read_is_written_again() {
    for version in [1, 2] {
        let mut world = killed(&small(version), &[10, 300_000]);
        let end = world.last_file().len();
        // Behind a large record stands its mark once more; without it the record is the last thing in the file.
        world.last_file().truncate(if version == 1 { end } else { end - 40 });
        let kept = world.last_file().clone();
        let (journal, report) = open::<Pryj>(&mut world, small(version)).unwrap();
        assert_eq!((&report.verdict, report.end), (&Verdict::Sound, Seq::new(2)));
        assert!(world.last_file().starts_with(&kept));
        close(journal, &mut world);
        assert_eq!(payloads(&world)[1].1, vec![7; 300_000]);
    }
}

/// Opens files whose bytes are others when they are read for the second time.
fn open_unstable(mut world: World, change: impl Fn(&mut Vec<u8>)) -> Result<(), RecoveryError> {
    let mut step = Recovery::<Pryj>::start(small(2), world.listing());
    for _ in 0..100 {
        let RecoveryStep::Perform(effect, recovery) = step else { return Ok(()) };
        world.perform(&effect).unwrap();
        step = match &effect {
            Effect::RemoveTemporaries => {
                change(world.last_file());
                recovery.resume(Answer::Done)?
            }
            Effect::Read(read) => {
                recovery.resume(Answer::Bytes(world.slice(read.segment, read.offset, read.len)))?
            }
            _ => recovery.resume(Answer::Done)?,
        };
    }
    panic!("an opening comes to an end")
}

#[test]
fn bytes_that_change_between_two_reads_are_named_by_their_place_and_never_marked() {
    let mut world = killed(&small(2), &[10]);
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), &[7; 20]).unwrap();
    journal.append(at(1), &[8; 30]).unwrap();
    drain(&mut journal, &mut world);
    drop(journal);
    let last = world.last_file().len() - 46;
    let unstable = RecoveryError::Unstable { segment: SegmentId(Seq::ZERO), offset: last as u64 };

    assert_eq!(open_unstable(copy(&world), |_| {}), Ok(()));
    let flip = |file: &mut Vec<u8>| file[last + 20] ^= 1;
    assert_eq!(open_unstable(copy(&world), flip), Err(unstable.clone()));
    let longer = |file: &mut Vec<u8>| file[last] += 8;
    assert_eq!(open_unstable(copy(&world), longer), Err(unstable.clone()), "longer than the file was");
    let renumbered = |file: &mut Vec<u8>| {
        file.truncate(last);
        let mut record = bytes::BytesMut::new();
        Pryj::encode(Pryj::layout(2), Seq::new(7), at(1), &[8; 30], &mut record);
        file.extend_from_slice(&record);
    };
    assert_eq!(open_unstable(world, renumbered), Err(unstable), "whole, but another record");
}
