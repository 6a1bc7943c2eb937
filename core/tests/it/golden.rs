//! Bytes made by hand, both ways: what `core/FORMAT.md` shows is what is written, and reads back.

use strandline_core::{
    Bounds, Event, EventDraft, Frame, Framing, Mark, Pcpj, Pryj, PryjRecord, Seq, Timestamp,
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const SALT: u64 = 0x1122_3344_5566_7788;

/// Bytes from annotated hex: whatever follows three spaces on a line is a comment.
fn bytes(annotated: &str) -> Vec<u8> {
    let hex = annotated.lines().map(|line| line.trim().split("   ").next().unwrap_or_default());
    let digits: String = hex.collect::<String>().split_whitespace().collect();
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn mark_bytes<F: Framing>(mark: &Mark) -> Vec<u8> {
    let mut out = vec![0; F::MARK_LEN];
    F::encode_mark(mark, NOW, &mut out);
    out
}

fn frame_bytes<F: Framing>(version: u8, seq: u64, draft: F::Draft<'_>) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    F::encode(F::layout(version), Seq::new(seq), NOW, draft, &mut out);
    assert_eq!(F::measure(draft, 100), Ok(out.len()));
    assert_eq!(F::bounds(&out), Bounds::Len(out.len()));
    out.to_vec()
}

#[test]
fn a_pryj_header() {
    let golden = bytes(
        "50 52 59 4a                magic
         02 00                      version 2
         00 00                      reserved
         07 00 00 00 00 00 00 00    first sequence number 7",
    );
    let mut out = bytes::BytesMut::new();
    Pryj::encode_header(2, Seq::new(7), &mut out);
    assert_eq!(out, golden);
    assert_eq!((Pryj::stated_version(&golden), Pryj::stated_first(&golden)), (Some(2), Some(Seq::new(7))));
}

#[test]
fn a_pryj_record() {
    let golden = bytes(
        "02 00 00 00                payload of 2 bytes
         07 00 00 00 00 00 00 00    sequence number 7
         68 69                      hi
         f4 bc e2 a1                CRC",
    );
    assert_eq!(frame_bytes::<Pryj>(2, 7, b"hi"), golden);
    assert_eq!(frame_bytes::<Pryj>(1, 7, b"hi"), golden, "version 1 has the same records");
    let Frame::Record(record, _) = Pryj::check(Pryj::layout(2), &golden) else { panic!("a record") };
    assert_eq!(record, PryjRecord { seq: Seq::new(7), payload: b"hi" });
    let empty = bytes("00 00 00 00  00 00 00 00 00 00 00 00  5d b5 60 2b");
    assert_eq!(frame_bytes::<Pryj>(2, 0, b""), empty);
}

#[test]
fn a_pryj_mark() {
    let golden = bytes(
        "18 00 00 80                a mark
         08 00 00 00 00 00 00 00    durable end 8
         88 77 66 55 44 33 22 11    salt
         4a 00 00 00 00 00 00 00    offset 74
         05 00 00 00 00 00 00 00    first 5
         63 cf f2 f3                CRC",
    );
    let mark = Mark { durable_end: Seq::new(8), salt: SALT, offset: 74, first: Seq::new(5) };
    assert_eq!(mark_bytes::<Pryj>(&mark), golden);
    assert!(matches!(Pryj::check(Pryj::layout(2), &golden), Frame::Mark(read) if read == mark));
    assert_eq!(Pryj::decode(&golden), None, "a mark is no record");
}

#[test]
fn a_pcpj_entry_of_version_2() {
    let golden = bytes(
        "50 43 50 4a                magic
         02                         version 2
         03                         domain 3
         04 00  02 00               type of 4 bytes, source of 2
         07 00 00 00                payload of 7 bytes
         01 00 00 00 00 00 00 00    sequence number 1
         00 68 e5 cf 8b 01 00 00    the timestamp
         74 ee ec 8d                CRC
         74 69 63 6b                tick
         2f 61                      /a
         7b 22 6e 22 3a 31 7d       the payload",
    );
    let draft = EventDraft { domain: 3, event_type: "tick", source: "/a", payload: br#"{"n":1}"# };
    assert_eq!(frame_bytes::<Pcpj>(2, 1, draft), golden);
    let Frame::Record(event, _) = Pcpj::check(Pcpj::layout(2), &golden) else { panic!("an event") };
    let wanted = Event {
        seq: Seq::new(1),
        timestamp: NOW,
        domain: 3,
        event_type: "tick",
        source: "/a",
        payload: br#"{"n":1}"#,
    };
    assert_eq!(event, wanted);
}

#[test]
fn a_pcpj_entry_of_version_1() {
    let golden = bytes(
        "50 43 50 4a                magic
         01                         version 1
         03                         domain 3
         04 00  02 00               type of 4 bytes, source of 2
         07 00 00 00                payload of 7 bytes
         01 00 00 00 00 00 00 00    sequence number 1
         00 68 e5 cf 8b 01 00 00    the timestamp
         7e 3b 4b d4                CRC-32 of the payload alone
         74 69 63 6b                tick
         2f 61                      /a
         7b 22 6e 22 3a 31 7d       the payload",
    );
    let draft = EventDraft { domain: 3, event_type: "tick", source: "/a", payload: br#"{"n":1}"# };
    assert_eq!(frame_bytes::<Pcpj>(1, 1, draft), golden);
    assert!(matches!(Pcpj::check(Pcpj::layout(1), &golden), Frame::Record(e, _) if e.event_type == "tick"));
    assert!(matches!(Pcpj::check(Pcpj::layout(2), &golden), Frame::Damaged), "not in a version 2 segment");
}

#[test]
fn a_pcpj_mark() {
    let golden = bytes(
        "50 43 50 4a                magic
         02                         version 2
         00                         domain 0
         00 00  00 00               no type, no source
         18 00 00 00                payload of 24 bytes
         01 00 00 00 00 00 00 00    durable end 1
         00 68 e5 cf 8b 01 00 00    the timestamp
         fa d3 2f fa                CRC
         88 77 66 55 44 33 22 11    salt
         00 00 00 00 00 00 00 00    offset 0
         01 00 00 00 00 00 00 00    first 1",
    );
    let mark = Mark { durable_end: Seq::new(1), salt: SALT, offset: 0, first: Seq::new(1) };
    assert_eq!(mark_bytes::<Pcpj>(&mark), golden);
    assert!(matches!(Pcpj::check(Pcpj::layout(2), &golden), Frame::Mark(read) if read == mark));
    assert_eq!(Pcpj::decode(&golden), None, "a mark is no event");
}

#[test]
fn no_frame_of_zeros_is_valid() {
    for len in [16, 34, 40, 58, 512] {
        let zeros = vec![0; len];
        assert!(!matches!(Pryj::check(Pryj::layout(2), &zeros[..16]), Frame::Record(..)));
        assert_eq!(Pcpj::bounds(&zeros), Bounds::Unreadable);
    }
}
