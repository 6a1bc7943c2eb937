//! Poison and void.

use strandline_core::{
    AppendError, CommitId, Config, Effect, IoCause, IoFailure, IoOperation, Output, Poison, Pryj, Seq,
    Shortage, SyncPolicy,
};

use crate::world::{World, at, close, drain, effects_of, open, payloads, small};

const NO_SPACE: IoFailure = IoFailure::new(IoOperation::Write, IoCause::NoSpace);
const NO_FILE: IoFailure = IoFailure::new(IoOperation::Open, IoCause::TooManyFiles);

fn failing(operation: IoOperation, cause: IoCause, fits: fn(&Effect) -> bool) -> Option<crate::world::Fault> {
    let failure = IoFailure::new(operation, cause);
    Some(Box::new(move |effect| fits(effect).then_some(failure)))
}

#[test]
fn a_failed_sync_poisons_whatever_its_cause_and_is_never_retried() {
    for cause in [IoCause::Other, IoCause::NoSpace] {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
        world.fault = failing(IoOperation::Sync, cause, |e| matches!(e, Effect::Sync { .. }));
        journal.append(at(1), b"x").unwrap();
        journal.append(at(1), b"y").unwrap();
        let told = drain(&mut journal, &mut world);
        let poison = Poison {
            segment: strandline_core::SegmentId(Seq::ZERO),
            failure: IoFailure::new(IoOperation::Sync, cause),
        };
        assert_eq!(told, [Output::Poisoned(poison)], "told once");
        world.fault = None;
        let before = world.log.len();
        assert_eq!(journal.append(at(1), b"z"), Err(AppendError::Poisoned(poison)));
        journal.close();
        journal.request_sync();
        journal.trim_to(Seq::new(1));
        assert_eq!(drain(&mut journal, &mut world), []);
        assert_eq!(world.log.len(), before, "nothing more is written, cut or synced");
        assert_eq!(journal.view().durable_end(), Seq::ZERO);
    }
}

#[test]
fn a_failed_write_poisons_unless_it_is_lack_of_space() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    world.fault = failing(IoOperation::Write, IoCause::Other, |e| matches!(e, Effect::Write { .. }));
    journal.append(at(1), b"x").unwrap();
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Poisoned(_)]));
}

#[test]
fn without_space_the_file_is_cut_back_before_the_void_is_told() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { commit_bytes_max: 30, ..small(2) }).unwrap();
    journal.append(at(1), b"kept").unwrap();
    drain(&mut journal, &mut world);
    let good = world.last_file().clone();
    for payload in [b"lost 1", b"lost 2", b"lost 3"] {
        journal.append(at(1), payload).unwrap();
    }
    let last = journal.last_commit();
    world.fault = Some(Box::new(|effect| matches!(effect, Effect::Write { .. }).then_some(NO_SPACE)));
    world.last_file().extend_from_slice(b"thirty bytes of a short write");
    let before = world.log.len();
    assert_eq!(
        drain(&mut journal, &mut world),
        [Output::Void { from: Seq::new(1), commit: last, shortage: Shortage::Space }]
    );
    assert_eq!(effects_of(&world, before), ["write", "truncate", "sync"]);
    assert_eq!(*world.last_file(), good);
    assert_eq!(journal.view().bytes(), good.len() as u64, "the size told is the file's");

    world.fault = None;
    let again = journal.append(at(1), b"again").unwrap();
    assert_eq!(again.seq, Seq::new(1), "the number is given out again");
    assert!(again.commit > last, "the commit is not");
    assert_eq!(drain(&mut journal, &mut world), [Output::Durable { end: Seq::new(2), commit: again.commit }]);
    assert_eq!(payloads(&world), [(0, b"kept".to_vec()), (1, b"again".to_vec())]);
}

#[test]
fn a_void_whose_cut_or_sync_fails_poisons() {
    for failing_step in [0, 1] {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
        journal.append(at(1), b"x").unwrap();
        world.fault = Some(Box::new(move |effect| match effect {
            Effect::Write { .. } => Some(NO_SPACE),
            Effect::Truncate { .. } if failing_step == 0 => {
                Some(IoFailure::new(IoOperation::Truncate, IoCause::Other))
            }
            Effect::Sync { .. } if failing_step == 1 => {
                Some(IoFailure::new(IoOperation::Sync, IoCause::NoSpace))
            }
            _ => None,
        }));
        assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Poisoned(_)]), "no void is told");
    }
}

#[test]
fn a_segment_that_finds_no_space_voids_what_waits_and_is_tried_again() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 200, ..small(2) }).unwrap();
    journal.append(at(1), &[1; 60]).unwrap();
    drain(&mut journal, &mut world);
    world.fault = Some(Box::new(|effect| matches!(effect, Effect::Create { .. }).then_some(NO_SPACE)));
    journal.append(at(1), &[2; 60]).unwrap();
    assert_eq!(
        drain(&mut journal, &mut world),
        [Output::Void { from: Seq::new(1), commit: CommitId::new(2), shortage: Shortage::Space }]
    );
    world.fault = None;
    assert_eq!(journal.append(at(1), &[3; 60]).unwrap().seq, Seq::new(1));
    drain(&mut journal, &mut world);
    assert_eq!(world.files.len(), 2);
    assert_eq!(payloads(&world), [(0, vec![1; 60]), (1, vec![3; 60])]);
}

/// A segment is reopened full, so that its file has to be opened for the first step of the next one.
#[test]
fn what_finds_no_file_is_void_at_every_step_and_nothing_is_cut() {
    type Fits = fn(&Effect) -> bool;
    let steps: [(u64, Fits); 3] = [
        (200, |effect| matches!(effect, Effect::Sync { .. })),
        (200, |effect| matches!(effect, Effect::Create { .. })),
        (1 << 20, |effect| matches!(effect, Effect::Write { .. })),
    ];
    for (segment_bytes, fits) in steps {
        let mut world = World::default();
        let config = Config { segment_bytes, ..small(2) };
        let (mut journal, _) = open::<Pryj>(&mut world, config.clone()).unwrap();
        journal.append(at(1), &[1; 60]).unwrap();
        drain(&mut journal, &mut world);
        close(journal, &mut world);
        let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
        let before = world.last_file().clone();
        world.fault = Some(Box::new(move |effect| fits(effect).then_some(NO_FILE)));
        for _ in 0..2 {
            let commit = journal.append(at(1), &[2; 60]).unwrap().commit;
            let void = Output::Void { from: Seq::new(1), commit, shortage: Shortage::Files };
            assert_eq!(drain(&mut journal, &mut world), [void]);
        }
        assert_eq!((world.files.len(), world.last_file().clone()), (1, before), "nothing was written");
        world.fault = None;
        assert_eq!(journal.append(at(1), &[3; 60]).unwrap().seq, Seq::new(1));
        drain(&mut journal, &mut world);
        close(journal, &mut world);
        assert_eq!(payloads(&world), [(0, vec![1; 60]), (1, vec![3; 60])]);
    }
}

#[test]
fn a_close_that_finds_no_file_for_its_mark_leaves_it_out() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), &[1; 60]).unwrap();
    drain(&mut journal, &mut world);
    close(journal, &mut world);
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    // What the mark would state.
    journal.trim_to(Seq::new(1));
    let before = world.last_file().clone();
    world.fault = Some(Box::new(|effect| {
        matches!(effect, Effect::Write { .. } | Effect::Sync { .. } | Effect::Create { .. })
            .then_some(NO_FILE)
    }));
    close(journal, &mut world);
    assert_eq!(*world.last_file(), before);
}

#[test]
fn a_sync_of_what_was_written_is_final_also_where_it_finds_no_file() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    world.fault = failing(IoOperation::Open, IoCause::TooManyFiles, |e| matches!(e, Effect::Sync { .. }));
    journal.append(at(1), b"x").unwrap();
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Poisoned(_)]));
}

#[test]
fn a_failed_directory_sync_while_rolling_poisons() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 200, ..small(2) }).unwrap();
    journal.append(at(1), &[1; 60]).unwrap();
    drain(&mut journal, &mut world);
    world.fault = failing(IoOperation::SyncDirectory, IoCause::Other, |e| matches!(e, Effect::Create { .. }));
    journal.append(at(1), &[2; 60]).unwrap();
    let told = drain(&mut journal, &mut world);
    assert!(
        matches!(told[..], [Output::Poisoned(_)]),
        "nothing is acknowledged in the new segment: {told:?}"
    );
    assert_eq!(journal.view().durable_end(), Seq::new(1));
}

#[test]
fn a_reserve_without_space_only_makes_writes_grow_the_file() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { reserve_bytes: 4_096, ..small(2) }).unwrap();
    world.fault = Some(Box::new(|effect| matches!(effect, Effect::Reserve { .. }).then_some(NO_SPACE)));
    for _ in 0..100 {
        journal.append(at(1), &[7; 100]).unwrap();
        assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Durable { .. }]));
    }
    assert_eq!(payloads(&world).len(), 100);
}

#[test]
fn a_sync_that_was_asked_for_is_told_although_what_it_waited_for_is_void() {
    for kept in [0, 1] {
        let mut world = World::default();
        let config = Config { sync: SyncPolicy::Never, ..small(2) };
        let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
        for _ in 0..kept {
            journal.append(at(1), b"kept").unwrap();
            drain(&mut journal, &mut world);
        }
        world.fault = Some(Box::new(|effect| matches!(effect, Effect::Write { .. }).then_some(NO_SPACE)));
        journal.append(at(1), b"lost").unwrap();
        journal.request_sync();
        let told = drain(&mut journal, &mut world);
        let (end, lost) = (Seq::new(kept), CommitId::new(kept + 1));
        let void = told.iter().position(|output| {
            *output == Output::Void { from: end, commit: lost, shortage: Shortage::Space }
        });
        let behind = &told[void.expect("a void") + 1..];
        assert_eq!(behind, [Output::Durable { end, commit: CommitId::new(kept) }], "{told:?}");
        assert!(journal.is_idle(), "and nothing waits any more");
    }
}
