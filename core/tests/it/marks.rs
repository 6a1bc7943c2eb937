//! When marks are written, and what they may state.

use strandline_core::{
    Config, Effect, Framing, IoCause, IoFailure, IoOperation, Mark, Monotonic, Output, Pcpj, Proof, Pryj,
    Seq, SyncPolicy,
};

use crate::world::{World, at, close, drain, idle, open, scan_all, small};

/// The marks of the last file, as they stand: (offset, durable end, first).
fn marks<F: Framing>(world: &World) -> Vec<(u64, u64, u64)> {
    let (_, file) = world.files.last_key_value().unwrap();
    let found = file.windows(F::MARK_LEN).enumerate();
    let parsed = found.filter_map(|(at, window)| F::parse_mark(window).map(|mark| (at as u64, mark)));
    parsed
        .filter(|(at, mark)| mark.offset == *at)
        .map(|(at, Mark { durable_end, first, .. })| (at, durable_end.get(), first.get()))
        .collect()
}

#[test]
fn a_commit_begins_with_a_mark_unless_the_last_frame_says_the_same() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    for payload in [&b"aaaa"[..], b"bbbb", b"cccc"] {
        journal.append(at(1), payload).unwrap();
        drain(&mut journal, &mut world);
    }
    // Header 16, first mark 40, record 20, mark, record, mark, record.
    assert_eq!(marks::<Pryj>(&world), [(16, 0, 0), (76, 1, 0), (136, 2, 0)]);
}

#[test]
fn a_commit_that_crosses_a_page_repeats_its_mark() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), &[1; 4_024]).unwrap();
    drain(&mut journal, &mut world);
    assert_eq!(marks::<Pryj>(&world), [(16, 0, 0)], "56 + 4040 = 4096 ends on the page's last byte");
    journal.append(at(1), &[2; 4_096]).unwrap();
    drain(&mut journal, &mut world);
    assert_eq!(marks::<Pryj>(&world), [(16, 0, 0), (4_096, 1, 0), (8_248, 1, 0)]);
    journal.append(at(1), &[3; 10]).unwrap();
    drain(&mut journal, &mut world);
    assert_eq!(marks::<Pryj>(&world).last(), Some(&(8_288, 2, 0)));
}

#[test]
fn an_idle_writer_leaves_one_mark_and_then_rests() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, small(2)).unwrap();
    let draft = strandline_core::EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" };
    journal.append(at(1), draft).unwrap();
    drain(&mut journal, &mut world);
    journal.tick(Monotonic::from_millis(10));
    assert_eq!(journal.next_deadline(), Some(Monotonic::from_millis(60)));
    journal.tick(Monotonic::from_millis(59));
    drain(&mut journal, &mut world);
    assert_eq!(marks::<Pcpj>(&world).len(), 1);
    journal.tick(Monotonic::from_millis(60));
    let before = world.log.len();
    drain(&mut journal, &mut world);
    assert!(matches!(world.log[before..], [Effect::Write { .. }]), "the mark is not synced for its own sake");
    assert_eq!(marks::<Pcpj>(&world).last(), Some(&(96, 2, 1)));
    assert_eq!(journal.next_deadline(), None);
    let before = world.log.len();
    for hour in 1..25 {
        journal.tick(Monotonic::from_millis(hour * 3_600_000));
        drain(&mut journal, &mut world);
    }
    assert_eq!(world.log.len(), before, "an idle day writes nothing");
}

#[test]
fn a_mark_never_states_more_than_a_finished_sync() {
    let mut world = World::default();
    let config = Config { sync: SyncPolicy::Never, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
    for _ in 0..3 {
        journal.append(at(1), b"x").unwrap();
        idle(&mut journal, &mut world);
    }
    assert!(marks::<Pryj>(&world).iter().all(|(_, durable_end, _)| *durable_end == 0));
    journal.request_sync();
    journal.append(at(1), b"y").unwrap();
    drain(&mut journal, &mut world);
    assert_eq!(scan_all::<Pryj>(&world).1.proven_end, Seq::new(3), "what was written before the sync began");
    journal.append(at(1), b"z").unwrap();
    drain(&mut journal, &mut world);
    let (_, report) = scan_all::<Pryj>(&world);
    assert_eq!((report.proven_end, report.end), (Seq::new(3), Seq::new(5)));
}

#[test]
fn a_clean_close_proves_everything_and_a_version_1_file_has_no_marks() {
    for version in [1, 2] {
        let mut world = World::default();
        let (mut journal, _) =
            open::<Pryj>(&mut world, Config { reserve_bytes: 4_096, ..small(version) }).unwrap();
        journal.append(at(1), b"x").unwrap();
        drain(&mut journal, &mut world);
        assert!(world.last_file().len() >= 4_096, "zeros are kept ready");
        close(journal, &mut world);
        let (_, report) = scan_all::<Pryj>(&world);
        let segment = report.segments[0].clone();
        assert_eq!((segment.file_bytes, segment.row), (segment.bytes, None), "exact length");
        match version {
            1 => assert_eq!((segment.proof, report.unproven(), segment.file_bytes), (Proof::Nothing, 1, 33)),
            _ => assert_eq!(
                (segment.proof, report.unproven()),
                (Proof::Mark { offset: 73, durable_end: Seq::new(1) }, 0)
            ),
        }
    }
}

#[test]
fn an_idle_mark_without_space_is_written_over_by_the_next_commit() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), b"x").unwrap();
    drain(&mut journal, &mut world);
    world.last_file().extend_from_slice(&[0x18, 0, 0, 0x80, 1]);
    let no_space = IoFailure::new(IoOperation::Write, IoCause::NoSpace);
    world.fault = Some(Box::new(move |effect| matches!(effect, Effect::Write { .. }).then_some(no_space)));
    assert_eq!(idle(&mut journal, &mut world), []);
    assert_eq!(journal.poison(), None);
    world.fault = None;
    journal.append(at(1), b"y").unwrap();
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Durable { .. }]));
    close(journal, &mut world);
    assert_eq!(marks::<Pryj>(&world), [(16, 0, 0), (73, 1, 0), (130, 2, 0)]);
}

#[test]
fn a_mark_that_fails_for_another_cause_than_space_poisons() {
    for closes in [true, false] {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
        journal.append(at(1), b"x").unwrap();
        drain(&mut journal, &mut world);
        let failure = IoFailure::new(IoOperation::Write, IoCause::Other);
        world.fault = Some(Box::new(move |effect| matches!(effect, Effect::Write { .. }).then_some(failure)));
        if closes {
            journal.close();
        }
        let told = idle(&mut journal, &mut world);
        assert!(matches!(told[..], [Output::Poisoned(poison)] if poison.failure == failure), "{told:?}");
    }
}
