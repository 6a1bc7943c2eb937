//! Damaged files: the verdict, what is cut, what is refused, and that a refusal changes nothing.

use strandline_core::{
    Config, Effect, EventDraft, Framing, Mark, Pcpj, Pryj, RecoveryError, RecoveryPolicy, Refusal,
    ScanOptions, SegmentId, Seq, Timestamp, Verdict, verdict::Row,
};

use crate::world::{World, at, close, drain, idle, open, payloads, scan, scan_all, small};

fn committed(config: &Config, batches: &[usize]) -> World {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, config.clone()).unwrap();
    let mut n = 0u64;
    for batch in batches {
        for _ in 0..*batch {
            journal.append(at(1), format!("record {n} {}", "x".repeat(40)).as_bytes()).unwrap();
            n += 1;
        }
        drain(&mut journal, &mut world);
    }
    world
}

/// What a scan says: the end, and the row where there is one.
fn says<F: Framing>(world: &World) -> (Seq, Option<Row>, &'static str) {
    let (_, report) = scan_all::<F>(world);
    match report.verdict {
        Verdict::Sound => (report.end, None, "sound"),
        Verdict::Cut(cut) => (report.end, Some(cut.row), "cut"),
        Verdict::Refused(refusal) => (report.end, refusal.row(), "refused"),
    }
}

#[test]
fn a_cut_at_every_byte_of_the_last_commit_recovers_to_the_commit_before() {
    for version in [1, 2] {
        let whole = committed(&small(version), &[2, 3]);
        let file = whole.files.values().next().unwrap().clone();
        let before = committed(&small(version), &[2]).files.values().next().unwrap().len();
        for len in before..file.len() {
            let mut world = World::default();
            world.files.insert(SegmentId(Seq::ZERO), file[..len].to_vec());
            let (journal, report) = open::<Pryj>(&mut world, small(version)).unwrap();
            drop(journal);
            assert!(report.end >= Seq::new(2) && report.end < Seq::new(5), "{len}");
            if let Verdict::Cut(cut) = report.verdict {
                assert_eq!((cut.row, cut.first_lost), (Row::F, report.end));
                let (from, to) = (cut.offset, cut.offset + cut.bytes);
                let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
                assert!(file[to..len].iter().all(|byte| *byte == 0), "every cut byte but zeros is reported");
                assert_eq!(world.set_aside[&(cut.segment, cut.offset)][..], file[from..to]);
            }
            let end = report.end;
            let (mut journal, report) = open::<Pryj>(&mut world, small(version)).unwrap();
            assert_eq!((report.verdict, report.end), (Verdict::Sound, end), "the second open is clean");
            assert_eq!(journal.append(at(1), b"next").unwrap().seq, end, "the number is given out again");
            close(journal, &mut world);
            assert_eq!(payloads(&world).len() as u64, end.get() + 1);
        }
    }
}

#[test]
fn every_flipped_bit_is_refused_where_a_mark_proves_it_and_loses_nothing_proven_elsewhere() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { segment_bytes: 400, ..small(2) }).unwrap();
    for n in 0..10u64 {
        journal.append(at(1), &n.to_le_bytes()).unwrap();
        drain(&mut journal, &mut world);
    }
    idle(&mut journal, &mut world);
    drop(journal);
    let files = world.files.clone();
    let proven = scan_all::<Pryj>(&world).1.proven_end;
    assert_eq!(proven, Seq::new(10));
    let mut refused = 0;
    for (id, bytes) in &files {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = World { files: files.clone(), ..World::default() };
            damaged.files.get_mut(id).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let (_, report) = scan_all::<Pryj>(&damaged);
            let before = damaged.files.clone();
            let opened = open::<Pryj>(&mut damaged, small(2));
            match (&report.verdict, opened) {
                (Verdict::Refused(seen), Err(RecoveryError::Refused { refusal, .. })) => {
                    assert_eq!(*seen, refusal, "open and scan agree");
                    assert_eq!(damaged.files, before, "a refusal changes nothing");
                    assert!(damaged.log.iter().all(|e| matches!(e, Effect::SyncDirectory | Effect::Read(_))));
                    refused += 1;
                }
                (Verdict::Cut(cut), Ok((_, report))) => {
                    // The last mark alone is unproven: losing it loses no record.
                    assert_eq!(
                        (report.end, report.verdict.clone()),
                        (proven, Verdict::Cut(*cut)),
                        "bit {bit} of {id}"
                    );
                }
                (seen, opened) => panic!("bit {bit} of {id}: {seen:?}, {:?}", opened.map(|_| ())),
            }
        }
    }
    let bits: usize = files.values().map(|bytes| bytes.len() * 8).sum();
    assert_eq!(refused, bits - 40 * 8, "every bit but those of the last mark");
}

#[test]
fn zeros_behind_the_last_frame_are_a_clean_end() {
    for zeros in [1usize, 15, 512, 4_096, 1 << 20] {
        let mut world = committed(&small(2), &[2, 2]);
        let exact = world.last_file().clone();
        world.last_file().extend(std::iter::repeat_n(0, zeros));
        let (_, report) = scan_all::<Pryj>(&world);
        assert_eq!(
            (report.verdict, report.segments[0].row, report.end.get()),
            (Verdict::Sound, Some(Row::Z), 4)
        );
        let (journal, report) = open::<Pryj>(&mut world, small(2)).unwrap();
        assert!(!report.repair.set_aside, "zeros are not worth a copy");
        close(journal, &mut world);
        assert_eq!(world.last_file()[..exact.len()], exact);
        assert_eq!(world.last_file().len(), exact.len() + 40, "the zeros are gone, a mark states the end");
    }
}

#[test]
fn a_page_that_reads_as_zeros_is_a_torn_write() {
    let mut world = committed(&small(2), &[3]);
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    for _ in 0..20 {
        journal.append(at(1), &[7; 1_024]).unwrap();
    }
    drain(&mut journal, &mut world);
    drop(journal);
    world.last_file()[4_096..8_192].fill(0);
    let (end, row, verdict) = says::<Pryj>(&world);
    assert_eq!((row, verdict), (Some(Row::F), "cut"));
    assert!(end >= Seq::new(3));
    drop(open::<Pryj>(&mut world, small(2)).unwrap());
    assert_eq!(says::<Pryj>(&world), (end, None, "sound"));
}

#[test]
fn a_flip_in_an_earlier_commit_of_the_last_segment_is_refused_with_its_place() {
    let mut world = committed(&small(2), &[1; 100]);
    // Header and first mark 56; a record of 8..9 digits has 16 + 49 bytes, each with a mark before it but the first.
    let offset = 56 + 65 + 9 * 105;
    world.last_file()[offset + 40 + 20] ^= 4;
    let (_, report) = scan_all::<Pryj>(&world);
    let Verdict::Refused(Refusal::Damaged { segment, expected, row, proof, .. }) = report.verdict else {
        panic!("{:?}", report.verdict)
    };
    assert_eq!((segment, expected, row), (SegmentId(Seq::ZERO), Seq::new(10), Row::B));
    assert!(proof.unwrap().durable_end > Seq::new(10));
    let message = report_message(&world);
    assert!(message.contains("damaged at offset") && message.contains("backup"), "{message}");
}

fn report_message(world: &World) -> String {
    match scan_all::<Pryj>(world).1.verdict {
        Verdict::Refused(refusal) => refusal.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_unproven_bad_frame_is_cut_and_under_the_strict_policy_refused() {
    let mut world = committed(&small(2), &[2, 1]);
    let len = world.last_file().len();
    world.last_file()[len - 20] ^= 1;
    assert_eq!(says::<Pryj>(&world), (Seq::new(2), Some(Row::G), "cut"));
    let strict = ScanOptions { policy: RecoveryPolicy::Strict, ..ScanOptions::default() };
    let (_, report) = scan::<Pryj>(&world, world.listing(), strict);
    assert!(matches!(report.verdict, Verdict::Refused(r) if r.row() == Some(Row::G)));
    let before = world.files.clone();
    open::<Pryj>(&mut world, Config { recovery: RecoveryPolicy::Strict, ..small(2) }).unwrap_err();
    assert_eq!(world.files, before);
}

#[test]
fn a_frame_that_is_whole_but_does_not_belong_here_is_refused() {
    let mut world = committed(&small(2), &[2, 1]);
    let file = world.last_file().clone();
    let record = file[56..56 + 65].to_vec();
    world.last_file().extend_from_slice(&record);
    assert_eq!(says::<Pryj>(&world), (Seq::new(3), Some(Row::V), "refused"));
    let mark = file[16..56].to_vec();
    *world.last_file() = [file, mark].concat();
    assert_eq!(says::<Pryj>(&world), (Seq::new(3), Some(Row::V), "refused"), "a mark at another's position");
}

#[test]
fn lengths_from_the_disk_are_never_trusted() {
    for length in [u32::MAX, 0x8000_0001, 0x7fff_ffff, 0x0100_0001, 16 << 20, 1 << 20] {
        let mut world = committed(&small(2), &[2, 2]);
        let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
        journal.append(at(1), b"after").unwrap();
        drain(&mut journal, &mut world);
        drop(journal);
        let first_record = 56;
        world.last_file()[first_record..first_record + 4].copy_from_slice(&length.to_le_bytes());
        assert_eq!(says::<Pryj>(&world), (Seq::ZERO, Some(Row::B), "refused"), "{length:#x}");
    }
}

#[test]
fn a_short_last_segment_was_never_created_and_the_number_is_kept() {
    for len in [0usize, 1, 15, 16, 40, 55] {
        let mut world = committed(&Config { segment_bytes: 200, ..small(2) }, &[1, 1, 1]);
        let last = *world.files.last_key_value().unwrap().0;
        world.last_file().truncate(len);
        let end = last.0;
        assert_eq!(says::<Pryj>(&world), (end, Some(Row::D), "cut"), "{len}");
        let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
        assert!(!world.files.contains_key(&last));
        assert_eq!(journal.append(at(1), b"x").unwrap().seq, end);
        close(journal, &mut world);

        let mut only = World::default();
        only.files.insert(SegmentId(Seq::new(77)), Vec::new());
        let (mut journal, _) = open::<Pryj>(&mut only, small(2)).unwrap();
        assert_eq!(journal.append(at(1), b"x").unwrap().seq, Seq::new(77), "the name keeps the next number");
    }
}

#[test]
fn a_damaged_head_or_an_unknown_version_is_refused() {
    let world = committed(&small(2), &[2]);
    let file = world.files.values().next().unwrap().clone();
    for bit in 0..56 * 8 {
        let mut damaged = World::default();
        let mut bytes = file.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damaged.files.insert(SegmentId(Seq::ZERO), bytes);
        assert_eq!(says::<Pryj>(&damaged).2, "refused", "bit {bit}");
    }
    for version in [0u8, 3, 255] {
        let mut newer = World::default();
        let mut bytes = file.clone();
        bytes[4] = version;
        newer.files.insert(SegmentId(Seq::ZERO), bytes);
        let refusal = Refusal::UnsupportedVersion { segment: SegmentId(Seq::ZERO), version: version.into() };
        assert_eq!(scan_all::<Pryj>(&newer).1.verdict, Verdict::Refused(refusal));
    }
    let mut renamed = World::default();
    renamed.files.insert(SegmentId(Seq::new(1)), file);
    assert_eq!(says::<Pryj>(&renamed).2, "refused");
}

#[test]
fn gaps_overlaps_and_cut_predecessors_are_refused_by_name() {
    let world = committed(&Config { segment_bytes: 250, ..small(2) }, &[1; 8]);
    let ids: Vec<SegmentId> = world.files.keys().copied().collect();
    assert!(ids.len() >= 4);
    let verdict = |files| scan_all::<Pryj>(&World { files, ..World::default() }).1.verdict;

    let mut missing = world.files.clone();
    missing.remove(&ids[1]);
    assert_eq!(
        verdict(missing),
        Verdict::Refused(Refusal::Gap { segment: ids[0], missing: ids[1].0, next: ids[2] })
    );

    let mut cut = world.files.clone();
    let len = cut[&ids[1]].len();
    cut.get_mut(&ids[1]).unwrap().truncate(len - 30);
    assert!(
        matches!(verdict(cut), Verdict::Refused(Refusal::Damaged { segment, row: Row::A, .. }) if segment == ids[1])
    );

    let mut empty = world.files.clone();
    empty.insert(ids[1], Vec::new());
    assert!(
        matches!(verdict(empty), Verdict::Refused(Refusal::Damaged { segment, row: Row::A, .. }) if segment == ids[1])
    );

    let mut overlap = world.files.clone();
    let more = committed(&small(2), &[3]).files.into_values().next().unwrap();
    overlap.insert(ids[0], more);
    assert_eq!(
        verdict(overlap),
        Verdict::Refused(Refusal::Overlap { segment: ids[0], end: Seq::new(3), next: ids[1] })
    );

    let mut unsealed = world.files;
    unsealed.get_mut(&ids[1]).unwrap().extend_from_slice(&[0; 3_000]);
    assert_eq!(verdict(unsealed), Verdict::Sound, "a lost seal is forgiven");
}

#[test]
fn a_version_1_file_with_marks_is_refused() {
    let mut world = committed(&small(2), &[2]);
    world.last_file()[4] = 1;
    assert!(matches!(
        scan_all::<Pryj>(&world).1.verdict,
        Verdict::Refused(Refusal::MarkInVersion1 { offset: 16, .. })
    ));
}

/// The refusal once named the place that the mark was written for, which may lie behind the end of the file.
#[test]
fn a_mark_in_a_version_1_file_is_named_by_where_it_stands() {
    let mut file = b"PRYJ\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let mut mark = [0; Pryj::MARK_LEN];
    let written_for = Mark { durable_end: Seq::ZERO, salt: 1, offset: 4_096, first: Seq::ZERO };
    Pryj::encode_mark(&written_for, Timestamp::from_millis(0), &mut mark);
    file.extend_from_slice(&mark);
    let mut world = World::default();
    world.files.insert(SegmentId(Seq::ZERO), file);
    assert!(matches!(
        scan_all::<Pryj>(&world).1.verdict,
        Verdict::Refused(Refusal::MarkInVersion1 { offset: 16, .. })
    ));
}

#[test]
fn events_of_version_1_are_read_with_either_checksum_but_not_with_both() {
    let entry = |seq: u64, payload: &[u8], crc: u32| {
        let mut bytes = b"PCPJ\x01\x01\x01\0\x01\0".to_vec();
        bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&seq.to_le_bytes());
        bytes.extend_from_slice(&5i64.to_le_bytes());
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(b"ts");
        bytes.extend_from_slice(payload);
        bytes
    };
    let iso = |seq, payload: &[u8]| entry(seq, payload, crc32fast::hash(payload));
    let castagnoli = |seq, payload: &[u8]| entry(seq, payload, crc32c::crc32c(payload));
    let file = |entries: &[Vec<u8>]| {
        let mut world = World::default();
        world.files.insert(SegmentId(Seq::new(1)), entries.concat());
        world
    };
    assert_eq!(
        says::<Pcpj>(&file(&[iso(1, b""), iso(2, b"{}"), iso(3, b"[]")])),
        (Seq::new(4), None, "sound")
    );
    assert_eq!(
        says::<Pcpj>(&file(&[castagnoli(1, b"1"), castagnoli(2, b"{}")])),
        (Seq::new(3), None, "sound")
    );
    assert_eq!(
        says::<Pcpj>(&file(&[castagnoli(1, b"1"), iso(2, b"{}"), iso(3, b"{}")])),
        (Seq::new(2), Some(Row::G), "cut"),
        "the first entry that tells them apart fixes the checksum"
    );
    let mut castagnoli_file = file(&[castagnoli(1, b"1")]);
    let (mut journal, _) = open::<Pcpj>(&mut castagnoli_file, small(1)).unwrap();
    journal.append(at(1), EventDraft { domain: 1, event_type: "t", source: "s", payload: b"2" }).unwrap();
    close(journal, &mut castagnoli_file);
    assert_eq!(
        says::<Pcpj>(&castagnoli_file),
        (Seq::new(3), None, "sound"),
        "appended with the file's checksum"
    );
}

#[test]
fn a_bare_file_starts_at_its_first_entry() {
    let mut world = World::default();
    let config = Config { first_seq: Some(Seq::new(41)), ..small(1) };
    let (mut journal, _) = open::<Pcpj>(&mut world, config).unwrap();
    for _ in 0..3 {
        journal
            .append(at(1), EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" })
            .unwrap();
    }
    close(journal, &mut world);
    let bytes = world.files.into_values().next().unwrap();
    let len = bytes.len() as u64;
    let bare = World { files: [(strandline_core::Listing::BARE, bytes)].into(), ..World::default() };
    let (view, report) = scan::<Pcpj>(&bare, strandline_core::Listing::Bare { len }, ScanOptions::default());
    assert_eq!((report.verdict, report.first, report.end), (Verdict::Sound, Seq::new(41), Seq::new(44)));
    assert_eq!(view.first(), Seq::new(41));
}

#[test]
fn a_write_that_stopped_in_the_first_bytes_of_a_frame_is_torn_also_under_the_strict_policy() {
    let strict = ScanOptions { policy: RecoveryPolicy::Strict, ..ScanOptions::default() };
    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, small(2)).unwrap();
    let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" };
    journal.append(at(1), draft).unwrap();
    drain(&mut journal, &mut world);
    let start = world.last_file().len();
    for written in 1..14 {
        let mut torn = World { files: world.files.clone(), ..World::default() };
        torn.last_file().extend_from_slice(&b"PCPJ\x02\x01\x07\0\x07\0\x07\0\0\0"[..written]);
        torn.last_file().extend_from_slice(&[0; 300]);
        let (_, report) = scan::<Pcpj>(&torn, torn.listing(), strict);
        let Verdict::Cut(cut) = report.verdict else { panic!("{written}: {:?}", report.verdict) };
        assert_eq!((cut.row, cut.offset), (Row::F, start as u64), "{written}");
    }
}

#[test]
fn an_event_file_that_was_emptied_behind_one_with_marks_is_not_taken_for_a_new_one() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, Config { segment_bytes: 200, ..small(2) }).unwrap();
    let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" };
    for _ in 0..5 {
        journal.append(at(1), draft).unwrap();
        drain(&mut journal, &mut world);
    }
    let last = world.files.last_key_value().unwrap().0.0;
    assert!(last > Seq::new(1));
    world.last_file().clear();
    assert_eq!(says::<Pcpj>(&world), (last, Some(Row::D), "cut"));
}
