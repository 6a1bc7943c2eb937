//! Segments: when one is sealed, what is done before the next is created, and records at the edges.

use bytes::BytesMut;
use strandline_core::{
    Config, Effect, EventDraft, Framing, Mark, Pcpj, Pryj, SegmentId, Seq, SyncPolicy, Verdict,
};

use crate::world::{World, at, close, drain, effects_of, open, payloads, scan_all, small};

#[test]
fn the_old_segment_is_synced_and_cut_before_the_next_is_created_under_every_policy() {
    for sync in [SyncPolicy::Always, SyncPolicy::Interval { ms: 1_000_000 }, SyncPolicy::Never] {
        let mut world = World::default();
        let config = Config { sync, segment_bytes: 300, reserve_bytes: 100, ..small(2) };
        let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
        journal.tick(strandline_core::Monotonic::from_millis(1));
        journal.append(at(1), &[1; 100]).unwrap();
        drain(&mut journal, &mut world);
        let before = world.log.len();
        journal.append(at(1), &[2; 100]).unwrap();
        drain(&mut journal, &mut world);
        let mut done = effects_of(&world, before);
        done.retain(|effect| *effect != "reserve");
        assert_eq!(done[..5], ["sync", "truncate", "sync", "create", "write"], "{sync:?}");
        let (_, report) = scan_all::<Pryj>(&world);
        assert_eq!(report.segments[0].bytes, report.segments[0].file_bytes);
        assert!(report.proven_end >= Seq::new(1), "a sealed segment is proven by its successor");
    }
}

#[test]
fn a_segment_is_not_sealed_before_it_has_a_record_and_a_large_record_gets_its_own() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 200, ..small(2) }).unwrap();
    for len in [1_000usize, 10, 10, 5_000, 10] {
        journal.append(at(1), &vec![7; len]).unwrap();
        drain(&mut journal, &mut world);
    }
    let firsts: Vec<u64> = world.files.keys().map(|id| id.0.get()).collect();
    assert_eq!(firsts, [0, 1, 3, 4]);
    assert_eq!(payloads(&world).len(), 5);
}

#[test]
fn a_commit_larger_than_a_segment_is_split_and_all_of_it_is_there() {
    let mut world = World::default();
    let config = Config { segment_bytes: 64 << 10, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
    for n in 0..100u64 {
        journal.append(at(1), &[u8::try_from(n).unwrap(); 1_024]).unwrap();
    }
    drain(&mut journal, &mut world);
    assert!(world.files.len() >= 2);
    assert!(world.files.values().all(|file| file.len() <= 64 << 10));
    let read = payloads(&world);
    assert_eq!(read.len(), 100);
    assert!(read.iter().all(|(seq, payload)| payload == &vec![u8::try_from(*seq).unwrap(); 1_024]));
}

#[test]
fn records_that_end_at_the_limit_and_beside_it_are_all_read_once() {
    for limit in 260..330u64 {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: limit, ..small(2) }).unwrap();
        for n in 0..40u64 {
            journal.append(at(1), &vec![1; usize::try_from(n * 7 % 50).unwrap()]).unwrap();
            if n % 3 == 0 {
                drain(&mut journal, &mut world);
            }
        }
        close(journal, &mut world);
        assert!(world.files.values().all(|file| file.len() as u64 <= limit + 40), "{limit}");
        let seqs: Vec<u64> = payloads(&world).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!(seqs, (0..40).collect::<Vec<_>>(), "{limit}");
    }
}

#[test]
fn payloads_around_every_power_that_matters_come_back() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 64 << 20, ..small(2) }).unwrap();
    let lens: Vec<usize> = [4_096usize, 65_536, 262_144, 1 << 20, 16 << 20]
        .iter()
        .flat_map(|len| [len - 1, *len, len + 1])
        .chain([0, 1, 262_100, 262_128])
        .filter(|len| *len <= 16 << 20)
        .collect();
    for len in &lens {
        journal.append(at(1), &vec![u8::try_from(len % 251).unwrap(); *len]).unwrap();
        drain(&mut journal, &mut world);
    }
    let read = payloads(&world);
    assert_eq!(read.iter().map(|(_, p)| p.len()).collect::<Vec<_>>(), lens);
    assert!(read.iter().all(|(_, p)| p.iter().all(|b| usize::from(*b) == p.len() % 251)));
    let (_, report) = open::<Pryj>(&mut world, small(2)).unwrap();
    assert_eq!(report.verdict, Verdict::Sound);
}

#[test]
fn a_writer_changes_the_version_by_starting_a_new_segment() {
    for (old, new) in [(1, 2), (2, 1)] {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, small(old)).unwrap();
        journal.append(at(1), b"old").unwrap();
        close(journal, &mut world);
        let (mut journal, _) =
            open::<Pryj>(&mut world, Config { commit_bytes_max: 1, ..small(new) }).unwrap();
        journal.append(at(1), b"new").unwrap();
        journal.append(at(1), b"newer").unwrap();
        close(journal, &mut world);
        let (_, report) = scan_all::<Pryj>(&world);
        assert_eq!(report.verdict, Verdict::Sound);
        let versions: Vec<u8> = report.segments.iter().map(|s| s.version).collect();
        assert_eq!(versions, [old, new]);
        assert_eq!(payloads(&world).len(), 3);
    }
}

#[test]
fn an_empty_segment_is_replaced_by_one_of_the_version_that_is_asked_for() {
    for (old, new) in [(1, 2), (2, 1)] {
        let mut world = World::default();
        let (journal, _) = open::<Pryj>(&mut world, small(old)).unwrap();
        close(journal, &mut world);
        let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 150, ..small(new) }).unwrap();
        for _ in 0..3 {
            journal.append(at(1), &[1; 30]).unwrap();
            drain(&mut journal, &mut world);
        }
        close(journal, &mut world);
        let (_, report) = scan_all::<Pryj>(&world);
        assert_eq!((report.verdict, report.end), (Verdict::Sound, Seq::new(3)));
        assert!(report.segments.len() > 1 && report.segments.iter().all(|s| s.version == new));
    }
}

/// An empty version 1 file behind a segment with marks is a torn creation. Opening once left one there, which the
/// next look reported as a torn tail although nothing had happened.
#[test]
fn an_empty_segment_of_events_is_not_replaced_by_one_that_looks_torn() {
    let event = EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" };
    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, small(2)).unwrap();
    journal.append(at(1), event).unwrap();
    close(journal, &mut world);
    let mut head = vec![0; Pcpj::MARK_LEN];
    let mark = Mark { durable_end: Seq::new(2), salt: 9, offset: 0, first: Seq::new(1) };
    Pcpj::encode_mark(&mark, at(1), &mut head);
    world.files.insert(SegmentId(Seq::new(2)), head);

    let (mut journal, report) = open::<Pcpj>(&mut world, small(1)).unwrap();
    assert_eq!(report.verdict, Verdict::Sound);
    assert_eq!(scan_all::<Pcpj>(&world).1.verdict, Verdict::Sound, "a second open is clean");
    journal.append(at(2), event).unwrap();
    close(journal, &mut world);
    let (_, report) = scan_all::<Pcpj>(&world);
    assert_eq!((report.verdict, report.end), (Verdict::Sound, Seq::new(3)));
    let versions: Vec<u8> = report.segments.iter().map(|segment| segment.version).collect();
    assert_eq!(versions, [2, 2], "the version changes with the next segment");
}

/// The marks of the last segment may be all that says what was trimmed: a segment without marks in its place brought
/// trimmed records back.
#[test]
fn an_empty_segment_that_states_the_start_is_not_replaced_by_one_without_marks() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(1)).unwrap();
    journal.append(at(1), b"trimmed").unwrap();
    close(journal, &mut world);
    let mut file = BytesMut::new();
    Pryj::encode_header(2, Seq::new(1), &mut file);
    let mut head = [0; Pryj::MARK_LEN];
    let mark = Mark { durable_end: Seq::new(1), salt: 9, offset: 16, first: Seq::new(1) };
    Pryj::encode_mark(&mark, at(1), &mut head);
    world.files.insert(SegmentId(Seq::new(1)), [&file[..], &head].concat());

    let (mut journal, report) = open::<Pryj>(&mut world, small(1)).unwrap();
    assert_eq!((report.first, report.end), (Seq::new(1), Seq::new(1)));
    // A crash before what was trimmed is removed.
    assert_eq!(scan_all::<Pryj>(&world).1.first, Seq::new(1));
    journal.append(at(2), b"kept").unwrap();
    close(journal, &mut world);
    let (_, report) = scan_all::<Pryj>(&world);
    assert_eq!((report.first, report.end), (Seq::new(1), Seq::new(2)));
}

#[test]
fn opening_and_closing_without_appends_does_not_grow_anything() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), b"x").unwrap();
    drain(&mut journal, &mut world);
    drop(journal);
    let (journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    drop(journal);
    let files = world.files.clone();
    for round in 0..600 {
        let (journal, report) = open::<Pryj>(&mut world, small(2)).unwrap();
        assert_eq!(report.verdict, Verdict::Sound);
        match round % 2 {
            0 => close(journal, &mut world),
            _ => drop(journal),
        }
        assert_eq!(world.files, files);
    }
    assert!(!world.log.iter().any(|effect| matches!(effect, Effect::Remove { .. })));
}

#[test]
fn a_file_without_header_and_mark_appears_with_its_first_commit_at_once() {
    let mut world = World::default();
    let config = Config { reserve_bytes: 4_096, segment_bytes: 200, ..small(1) };
    let (mut journal, _) = open::<Pcpj>(&mut world, config).unwrap();
    assert_eq!(world.last_file().len(), 0, "no zeros where the first entry belongs");
    let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload: &[b'1'; 100] };
    for _ in 0..3 {
        let before = world.log.len();
        journal.append(at(1), draft).unwrap();
        drain(&mut journal, &mut world);
        let mut done = effects_of(&world, before);
        done.retain(|effect| matches!(*effect, "create" | "write"));
        assert_eq!(done.last(), Some(&"create"), "every segment has one event here");
        assert!(world.last_file().starts_with(b"PCPJ"));
    }
    assert_eq!(world.files.len(), 3);
}

#[test]
fn a_commit_that_fills_its_segment_to_the_last_byte_stays_in_it() {
    // Header, first mark and a record of 100 bytes; then a commit that crosses a page, with a mark at either end.
    let fills = 8_192 - (16 + 40 + 116) - 40 - 16 - 40;
    for (len, files) in [(fills, 1), (fills + 1, 2)] {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 8_192, ..small(2) }).unwrap();
        for len in [100, len] {
            journal.append(at(1), &vec![7; len]).unwrap();
            drain(&mut journal, &mut world);
        }
        assert_eq!(world.files.len(), files, "{len}");
        if files == 1 {
            assert_eq!(world.last_file().len(), 8_192);
        }
    }
}

#[test]
fn a_file_of_exact_length_is_sealed_by_one_sync() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 150, ..small(2) }).unwrap();
    journal.append(at(1), &[7; 40]).unwrap();
    drain(&mut journal, &mut world);
    let before = world.log.len();
    journal.append(at(1), &[7; 40]).unwrap();
    drain(&mut journal, &mut world);
    assert_eq!(effects_of(&world, before), ["sync", "create", "write", "sync"]);
}
