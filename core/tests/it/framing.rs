//! What a frame may look like, at the edges: kinds, limits, and the shapes that only look like something.

use strandline_core::{
    Bounds, DraftError, EventDraft, Frame, Framing, FramingKind, LABEL_BYTES_MAX, Listing, Mark,
    PAYLOAD_BYTES_MAX, Pcpj, Pryj, Scan, ScanOptions, ScanStep, SegmentFile, SegmentId, Seq, Verdict,
    verdict::Row,
};

use crate::world::{World, at, close, open, scan_all, small};

const EVENT: EventDraft<'static> = EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" };

#[test]
fn a_file_is_told_by_its_first_four_bytes() {
    assert_eq!(FramingKind::detect(b"PRYJ\x02"), Some(FramingKind::Pryj));
    assert_eq!(FramingKind::detect(b"PCPJ"), Some(FramingKind::Pcpj));
    for neither in [&b""[..], b"PRY", b"PCP", b"PRYK", b"pcpj", b"\0\0\0\0"] {
        assert_eq!(FramingKind::detect(neither), None, "{neither:?}");
    }
    assert_eq!([FramingKind::Pryj, FramingKind::Pcpj].map(FramingKind::label), ["PRYJ", "PCPJ"]);
}

#[test]
fn lengths_are_taken_up_to_the_limit_and_not_beyond() {
    let record = |len: usize| Pryj::bounds(&u32::try_from(len).unwrap().to_le_bytes());
    let event = |len: usize| {
        let head = [&b"PCPJ\x02\x01\x03\0\x02\0"[..], &u32::try_from(len).unwrap().to_le_bytes()];
        Pcpj::bounds(&head.concat())
    };
    assert_eq!(record(PAYLOAD_BYTES_MAX), Bounds::Len(16 + PAYLOAD_BYTES_MAX));
    assert_eq!(event(PAYLOAD_BYTES_MAX), Bounds::Len(34 + 5 + PAYLOAD_BYTES_MAX));
    for beyond in [PAYLOAD_BYTES_MAX + 1, 0x7fff_ffff, 0x8000_0000, 0x8000_0019, 0xffff_ffff] {
        assert_eq!((record(beyond), event(beyond)), (Bounds::Unreadable, Bounds::Unreadable), "{beyond:#x}");
    }
    let longest = "x".repeat(LABEL_BYTES_MAX);
    let draft = EventDraft { domain: 1, event_type: &longest, source: &longest, payload: &[0; 100] };
    assert_eq!(Pcpj::measure(draft, 100), Ok(34 + 2 * LABEL_BYTES_MAX + 100));
    assert_eq!(Pcpj::measure(draft, 99), Err(DraftError::PayloadTooLong { len: 100, max: 99 }));
    assert_eq!(Pryj::measure(&[0; 100], 100), Ok(116));
    assert_eq!(Pryj::measure(&[0; 100], 99), Err(DraftError::PayloadTooLong { len: 100, max: 99 }));
}

fn marks_are_told_from_what_is_none<F: Framing>(shape: usize) {
    let mark = Mark { durable_end: Seq::new(8), salt: 3, offset: 74, first: Seq::new(5) };
    let mut bytes = vec![0; F::MARK_LEN];
    F::encode_mark(&mark, at(1), &mut bytes);
    assert_eq!(F::parse_mark(&bytes[..F::MARK_LEN - 1]), None, "a mark is whole");
    for changed in 0..shape {
        let mut other = bytes.clone();
        other[changed] ^= 0x40;
        assert_eq!(F::parse_mark(&other), None, "byte {changed} belongs to its shape");
    }
    assert_eq!(F::parse_mark(&bytes), Some(mark));
    bytes.extend_from_slice(b"what follows");
    assert_eq!(F::parse_mark(&bytes), Some(mark), "more may follow");
}

#[test]
fn a_mark_is_known_by_its_first_bytes_whatever_follows() {
    marks_are_told_from_what_is_none::<Pryj>(4);
    marks_are_told_from_what_is_none::<Pcpj>(14);
}

/// A version 1 entry with the given checksum.
fn entry(seq: u64, event_type: &str, source: &str, payload: &[u8], crc: u32) -> Vec<u8> {
    let mut bytes = b"PCPJ\x01\x01".to_vec();
    for label in [event_type, source] {
        bytes.extend_from_slice(&u16::try_from(label.len()).unwrap().to_le_bytes());
    }
    bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
    bytes.extend_from_slice(&seq.to_le_bytes());
    bytes.extend_from_slice(&5i64.to_le_bytes());
    bytes.extend_from_slice(&crc.to_le_bytes());
    [&bytes[..], event_type.as_bytes(), source.as_bytes(), payload].concat()
}

fn castagnoli(seq: u64, payload: &[u8]) -> Vec<u8> {
    entry(seq, "t", "s", payload, crc32c::crc32c(payload))
}

/// The end of a file of entries, and the row where one is not sound.
fn judged(entries: &[Vec<u8>]) -> (u64, Option<Row>) {
    let mut world = World::default();
    world.files.insert(SegmentId(Seq::new(1)), entries.concat());
    let (_, report) = scan_all::<Pcpj>(&world);
    let row = match &report.verdict {
        Verdict::Sound => None,
        Verdict::Cut(cut) => Some(cut.row),
        Verdict::Refused(refusal) => refusal.row(),
    };
    (report.end.get(), row)
}

#[test]
fn a_version_1_entry_that_no_writer_made_is_damage_although_its_payload_is_right() {
    let second = |event_type, source| {
        let payload = b"{}";
        judged(&[castagnoli(1, b"1"), entry(2, event_type, source, payload, crc32c::crc32c(payload))])
    };
    assert_eq!(second("t", "s"), (3, None));
    assert_eq!(second("", "s"), (2, Some(Row::G)), "a type is never empty");
    assert_eq!(second("t\0", "s"), (2, Some(Row::G)), "a page of zeros begins in the type");
    assert_eq!(second("t", "s\0"), (2, Some(Row::G)), "a page of zeros begins in the source");
}

#[test]
fn a_payload_that_has_the_same_checksum_either_way_leaves_the_choice_to_the_next() {
    let empty = entry(1, "t", "s", b"", 0);
    assert_eq!(judged(&[empty.clone(), castagnoli(2, b"{}")]), (3, None));
    assert_eq!(judged(&[empty, entry(2, "t", "s", b"{}", crc32fast::hash(b"{}"))]), (3, None));
}

#[test]
fn an_entry_of_another_version_than_its_segments_is_none_of_its_records() {
    let mut later = bytes::BytesMut::new();
    Pcpj::encode(Pcpj::layout(2), Seq::new(2), at(1), EVENT, &mut later);
    assert_eq!(judged(&[castagnoli(1, b"1"), later.to_vec()]), (2, Some(Row::V)), "whole, but of version 2");

    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, small(2)).unwrap();
    journal.append(at(1), EVENT).unwrap();
    close(journal, &mut world);
    let file = world.last_file().clone();
    assert_eq!(judged(&[file.clone(), castagnoli(2, b"1")]), (2, Some(Row::G)), "no checksum of version 2");
    assert!(matches!(Pcpj::check(Pcpj::layout(2), &castagnoli(2, b"1")), Frame::Damaged));
    assert_eq!(judged(&[file]), (2, None));
}

#[test]
fn a_file_without_bytes_is_judged_without_a_read() {
    for listing in [
        Listing::Bare { len: 0 },
        Listing::Segments(vec![SegmentFile { id: SegmentId(Seq::new(1)), len: 0 }]),
    ] {
        let ScanStep::Done(_, report) = Scan::<Pcpj>::start(listing, ScanOptions::default()) else {
            panic!("there is nothing to read")
        };
        assert_eq!((report.records(), report.verdict), (0, Verdict::Sound));
    }
}
