//! Cursors: from every place, over every segment, and beyond the end.

use bytes::Bytes;
use strandline_core::{Config, Cursor, EventDraft, Pcpj, Pryj, ReadError, ReadUpTo, Replay, Seq, SyncPolicy};

use crate::world::{World, at, close, drain, open, read_from, scan_all, small};

#[test]
fn reading_is_defined_from_every_sequence_number() {
    let mut world = World::default();
    let config =
        Config { segment_bytes: 2_000, first_seq: Some(Seq::new(80)), tail_bytes_max: 0, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
    for n in 80..200u64 {
        journal.append(at(1), &n.to_le_bytes()).unwrap();
        if n % 7 == 0 {
            drain(&mut journal, &mut world);
        }
    }
    drain(&mut journal, &mut world);
    for from in 0..=200u64 {
        let read = read_from(&world, journal.view(), Seq::new(from), ReadUpTo::Durable, |r| r.seq.get());
        assert_eq!(read, (from.max(80)..200).collect::<Vec<_>>(), "from {from}");
    }
}

#[test]
fn a_place_beyond_the_end_is_told_and_never_read() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), b"x").unwrap();
    drain(&mut journal, &mut world);
    for from in [2, 1_000_001, u64::MAX] {
        let mut cursor = Cursor::<Pryj>::new(Seq::new(from), ReadUpTo::Durable);
        assert!(
            matches!(cursor.poll(journal.view()), Replay::Beyond { end } if end == Seq::new(1)),
            "{from}"
        );
    }
    let mut at_the_end = Cursor::<Pryj>::new(Seq::new(1), ReadUpTo::Durable);
    assert!(matches!(at_the_end.poll(journal.view()), Replay::CaughtUp));
}

#[test]
fn readers_see_only_what_is_durable_unless_they_ask_for_more() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { sync: SyncPolicy::Never, ..small(2) }).unwrap();
    journal.append(at(1), b"x").unwrap();
    drain(&mut journal, &mut world);
    let read = |journal: &_, until| {
        read_from::<Pryj, _>(&World::default(), journal, Seq::ZERO, until, |r| r.payload.to_vec())
    };
    assert_eq!(read(journal.view(), ReadUpTo::Durable), Vec::<Vec<u8>>::new());
    assert_eq!(read(journal.view(), ReadUpTo::Written), [b"x".to_vec()]);
    journal.request_sync();
    drain(&mut journal, &mut world);
    assert_eq!(read(journal.view(), ReadUpTo::Durable), [b"x".to_vec()]);
}

#[test]
fn damage_behind_the_scan_is_an_error_with_a_place() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    for _ in 0..3 {
        journal.append(at(1), b"payload").unwrap();
    }
    close(journal, &mut world);
    let (view, _) = scan_all::<Pryj>(&world);
    let poll = |bytes: &[u8]| {
        let mut cursor = Cursor::<Pryj>::new(Seq::ZERO, ReadUpTo::Durable);
        let Replay::Read(read) = cursor.poll(&view) else { panic!("a read") };
        assert_eq!((read.offset, read.len), (56, 3 * 23 + 40));
        cursor.handle_read(Ok(Bytes::copy_from_slice(bytes)))
    };
    let good = world.last_file()[56..].to_vec();
    assert_eq!(poll(&good), Ok(()));
    let mut flipped = good.clone();
    flipped[23 + 15] ^= 1;
    let segment = strandline_core::SegmentId(Seq::ZERO);
    assert_eq!(poll(&flipped), Err(ReadError::Damaged { segment, offset: 79, expected: Seq::new(1) }));
    assert_eq!(
        poll(&good[..50]),
        Err(ReadError::Shrank { segment, end: 106, expected: Seq::ZERO }),
        "a segment that was cut under a reader"
    );
    let twice = [&good[..23], &good[..23], &good[46..]].concat();
    assert_eq!(poll(&twice), Err(ReadError::Damaged { segment, offset: 79, expected: Seq::new(1) }));
}

#[test]
#[should_panic(expected = "only handled after the cursor asked")]
fn an_answer_that_nobody_asked_for_is_a_programmer_error() {
    let _ = Cursor::<Pryj>::new(Seq::ZERO, ReadUpTo::Durable).handle_read(Ok(Bytes::new()));
}

#[test]
fn a_reader_that_has_seen_no_event_begins_with_the_first_one_and_has_missed_nothing() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, small(2)).unwrap();
    let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" };
    assert_eq!(journal.append(at(1), draft).unwrap().seq, Seq::new(1));
    drain(&mut journal, &mut world);
    let mut cursor = Cursor::<Pcpj>::new(Seq::ZERO, ReadUpTo::Durable);
    assert!(matches!(cursor.poll(journal.view()), Replay::Records(batch) if batch.first() == Seq::new(1)));
}

#[test]
fn a_reader_begins_at_the_record_itself_where_records_are_large() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { tail_bytes_max: 0, ..small(2) }).unwrap();
    for records in [1, 3] {
        for _ in 0..records {
            journal.append(at(1), &[7; 70_000]).unwrap();
        }
        drain(&mut journal, &mut world);
    }
    // Header, first mark, a record, and a mark at either side of the page that it crosses; the next commit says more.
    let second = 16 + 40 + 70_016 + 40 + 40;
    for (seq, offset) in [(0, 56), (1, second), (2, second + 70_016), (3, second + 2 * 70_016)] {
        let mut cursor = Cursor::<Pryj>::new(Seq::new(seq), ReadUpTo::Durable);
        let Replay::Read(read) = cursor.poll(journal.view()) else { panic!("a read of {seq}") };
        assert_eq!(read.offset, offset, "record {seq}");
    }
}
