//! Frames, decoded one at a time.

use bytes::BytesMut;
use strandline::core::{
    Bounds, Checksum, EventDraft, Frame, Framing, FramingKind, Layout, PAYLOAD_BYTES_MAX, Pcpj, Pryj,
    Timestamp,
};

use super::agreement::Known;
use super::plain::{Owned, Plain, PlainMark, Sum, frame as plain_frame};
use super::plain_encode::seal;

pub(super) fn run(bytes: &[u8]) {
    let Some((control, bytes)) = bytes.split_first() else { return };
    let version = 1 + (control >> 1 & 1);
    match control & 1 {
        0 => decode::<Pryj>(version, control & 4 != 0, bytes),
        _ => decode::<Pcpj>(version, control & 4 != 0, bytes),
    }
}

/// Decodes the bytes as they are or, so that a fuzzer gets behind the checksum, with a right one.
fn decode<F: Writable>(version: u8, sealed: bool, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if let (true, Bounds::Len(len)) = (sealed, F::bounds(&bytes))
        && let Some(frame) = bytes.get_mut(..len)
    {
        seal(F::KIND, frame);
    }
    glance::<F>(&bytes);
    let Bounds::Len(len) = F::bounds(&bytes) else {
        let plain = plain_frame(F::KIND, version, &mut Sum::default(), &bytes);
        assert!(matches!(plain, Plain::NoLength | Plain::Unreadable), "{plain:?}");
        return;
    };
    assert!(len >= F::FRAME_LEN_MIN, "a frame of {len} bytes would be walked over for ever");
    assert!(len <= PAYLOAD_BYTES_MAX + F::FRAME_LEN_MIN + 2 * usize::from(u16::MAX), "bounded: {len}");
    let layout = F::layout(version);
    let Some(held) = bytes.get(..len) else {
        let plain = plain_frame(F::KIND, version, &mut Sum::default(), &bytes);
        assert_eq!(plain, Plain::CutShort);
        return;
    };
    let found = F::check(layout, held);
    let plain = plain_frame(F::KIND, version, &mut Sum::default(), held);
    match (found, plain) {
        (Frame::Record(record, layout), Plain::Record(_, wanted)) => {
            assert_eq!(F::own(record), wanted);
            assert_eq!(F::own(F::decode(held).expect("it was decoded before")), wanted);
            encodes_back::<F>(layout, &wanted, held);
            truncations_do_not_decode::<F>(layout, held);
        }
        (Frame::Mark(mark), Plain::Mark(_, wanted)) => {
            let (durable_end, first) = (mark.durable_end.get(), mark.first.get());
            assert_eq!(PlainMark { durable_end, salt: mark.salt, offset: mark.offset, first }, wanted);
            assert_eq!(F::parse_mark(held), Some(mark));
            assert!(F::decode(held).is_none(), "a mark is no record");
            let mut again = vec![0; F::MARK_LEN];
            F::encode_mark(&mark, F::stamp(held), &mut again);
            assert_eq!(again, held);
            truncations_do_not_decode::<F>(layout, held);
        }
        (Frame::Foreign, Plain::Foreign(_)) => truncations_do_not_decode::<F>(layout, held),
        (Frame::Damaged, Plain::Damaged(_)) => {}
        (found, plain) => panic!("{found:?} where {plain:?} was to be found"),
    }
}

/// Whatever can be asked of any bytes has an answer.
fn glance<F: Known>(bytes: &[u8]) {
    let _ = (F::decode(bytes), F::parse_mark(bytes), FramingKind::detect(bytes));
    let _ = (F::stated_version(bytes), F::stated_first(bytes));
    for version in [1, 2] {
        let _ = F::check(F::layout(version), bytes);
    }
}

fn encodes_back<F: Writable>(layout: Layout, record: &Owned, held: &[u8]) {
    let mut again = BytesMut::new();
    if F::write(layout, record, &mut again) {
        // An empty payload is summed to the same by both checksums of version 1.
        assert_eq!(again, held, "what decodes encodes to the same bytes");
    }
}

/// No part of a frame is a frame: neither with its own bounds, nor where the file ends early.
fn truncations_do_not_decode<F: Known>(layout: Layout, held: &[u8]) {
    // Each cut costs a checksum: of long frames, the ends and a few places between.
    let step = (held.len() / 64).max(1);
    let edges = held.len().saturating_sub(40);
    for cut in (0..edges).step_by(step).chain(edges..held.len()) {
        let part = &held[..cut];
        match F::bounds(part) {
            Bounds::Short => {}
            Bounds::Len(len) => assert!(len > cut, "its bounds do not fit into {cut} bytes"),
            Bounds::Unreadable => panic!("{cut} bytes of a frame begin like none"),
        }
        let plain = plain_frame(F::KIND, layout.version, &mut Sum::default(), part);
        assert!(matches!(plain, Plain::NoLength | Plain::CutShort), "{plain:?}");
    }
}

/// A framing whose records can be written again as they were read.
trait Writable: Known {
    /// When the frame says that it was written.
    fn stamp(frame: &[u8]) -> Timestamp;
    /// Encodes the record, if a draft of it can be made: what is only read may have no type.
    fn write(layout: Layout, record: &Owned, out: &mut BytesMut) -> bool;
}

impl Writable for Pryj {
    fn stamp(_: &[u8]) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn write(layout: Layout, record: &Owned, out: &mut BytesMut) -> bool {
        let measured = Self::measure(&record.payload, PAYLOAD_BYTES_MAX).expect("it was read");
        Self::encode(layout, record.seq.into(), Self::stamp(&[]), &record.payload, out);
        assert_eq!(out.len(), measured);
        true
    }
}

impl Writable for Pcpj {
    fn stamp(frame: &[u8]) -> Timestamp {
        Timestamp::from_millis(super::plain::number::<8>(frame, 22).cast_signed())
    }

    fn write(layout: Layout, record: &Owned, out: &mut BytesMut) -> bool {
        let Owned { domain, event_type, source, payload, .. } = record;
        let draft = EventDraft { domain: *domain, event_type, source, payload };
        let measured = Self::measure(draft, PAYLOAD_BYTES_MAX);
        Self::encode(layout, record.seq.into(), Timestamp::from_millis(record.timestamp), draft, out);
        assert!(measured.is_err() || measured == Ok(out.len()));
        // Of version 1, an undecided sum is written as what the page says it is written as.
        layout.version == 2 || layout.checksum != Checksum::Undecided || payload.is_empty()
    }
}
