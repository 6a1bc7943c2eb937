//! PRYJ: opaque records in segments.
//!
//! Header `magic | version u16 | 0 u16 | first u64`; record `length u32 | seq u64 | payload | crc32c`; mark
//! (version 2) `0x8000_0018 | durable_end | salt | offset | first | crc32c`.

use bytes::{BufMut, BytesMut};

use super::fields::{u16_at, u32_at, u64_at};
use super::pcpj::Event;
use super::{Bounds, Checksum, DraftError, Frame, Framing, Layout, Mark};
use crate::config::PAYLOAD_BYTES_MAX;
use crate::{Seq, Timestamp};

/// Bytes of a record beside its payload: length, sequence number, checksum.
const OVERHEAD: usize = 4 + 8 + 4;
const PAYLOAD_AT: usize = 12;
/// The length word of a mark: bit 31, and 24 bytes between the sequence number and the checksum.
const MARK_WORD: u32 = 0x8000_0018;
const MARK_BIT: u32 = 0x8000_0000;

const _: () = assert!(PAYLOAD_BYTES_MAX < MARK_BIT as usize, "a record's length never looks like a mark's");

/// The framing of opaque records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pryj;

/// A record as it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PryjRecord<'a> {
    /// Its sequence number.
    pub seq: Seq,
    /// Its payload, byte for byte as it was appended.
    pub payload: &'a [u8],
}

impl Framing for Pryj {
    type Draft<'a> = &'a [u8];
    type Record<'a> = PryjRecord<'a>;

    const LABEL: &'static str = "PRYJ";
    const MAGIC: [u8; 4] = *b"PRYJ";
    const FIRST_SEQ: Seq = Seq::ZERO;
    const HEADER_LEN: usize = 16;
    const MARK_LEN: usize = 40;
    const FRAME_LEN_MIN: usize = OVERHEAD;
    const PREFIX_LEN: usize = 4;

    fn layout(version: u8) -> Layout {
        Layout { version, checksum: Checksum::Castagnoli }
    }

    fn stated_version(head: &[u8]) -> Option<u16> {
        u16_at(head, 4)
    }

    fn encode_header(version: u8, first: Seq, out: &mut BytesMut) {
        out.put_slice(&Self::MAGIC);
        out.put_u16_le(u16::from(version));
        out.put_u16_le(0);
        out.put_u64_le(first.get());
    }

    fn stated_first(head: &[u8]) -> Option<Seq> {
        u64_at(head, 8).map(Seq::new)
    }

    fn measure(draft: &[u8], payload_bytes_max: usize) -> Result<usize, DraftError> {
        let max = payload_bytes_max.min(PAYLOAD_BYTES_MAX);
        if draft.len() > max {
            return Err(DraftError::PayloadTooLong { len: draft.len(), max });
        }
        Ok(OVERHEAD + draft.len())
    }

    fn encode(_: Layout, seq: Seq, _: Timestamp, draft: &[u8], out: &mut BytesMut) {
        // Measured before, so the length fits; a draft that was not measured would store its limit
        // and fail its own checksum rather than be cut short silently.
        let length = u32::try_from(draft.len()).unwrap_or(u32::MAX);
        let start = out.len();
        let mut head = [0; PAYLOAD_AT];
        {
            let mut fields = head.as_mut_slice();
            fields.put_u32_le(length);
            fields.put_u64_le(seq.get());
        }
        out.put_slice(&head);
        out.put_slice(draft);
        let crc = crc32c::crc32c(out.get(start..).unwrap_or_default());
        out.put_u32_le(crc);
    }

    fn encode_mark(mark: &Mark, _: Timestamp, mut out: &mut [u8]) {
        assert_eq!(out.len(), Self::MARK_LEN, "a mark has a fixed length");
        let mut body = [0u8; Self::MARK_LEN - 4];
        {
            let mut fields = body.as_mut_slice();
            fields.put_u32_le(MARK_WORD);
            fields.put_u64_le(mark.durable_end.get());
            fields.put_u64_le(mark.salt);
            fields.put_u64_le(mark.offset);
            fields.put_u64_le(mark.first.get());
        }
        out.put_slice(&body);
        out.put_u32_le(crc32c::crc32c(&body));
    }

    fn bounds(prefix: &[u8]) -> Bounds {
        let Some(word) = u32_at(prefix, 0) else { return Bounds::Short };
        match usize::try_from(word) {
            _ if word == MARK_WORD => Bounds::Len(Self::MARK_LEN),
            Ok(length) if length <= PAYLOAD_BYTES_MAX => Bounds::Len(OVERHEAD + length),
            _ => Bounds::Unreadable,
        }
    }

    fn check(layout: Layout, frame: &[u8]) -> Frame<'_, Self> {
        let Some((body, crc)) = frame.split_last_chunk::<4>() else { return Frame::Damaged };
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Frame::Damaged;
        }
        match (Self::parse_mark(frame), Self::decode(frame)) {
            (Some(mark), _) => Frame::Mark(mark),
            (None, Some(record)) => Frame::Record(record, layout),
            (None, None) => Frame::Foreign,
        }
    }

    fn decode(frame: &[u8]) -> Option<PryjRecord<'_>> {
        let word = u32_at(frame, 0)?;
        if word & MARK_BIT != 0 {
            return None;
        }
        let payload = frame.get(PAYLOAD_AT..frame.len().checked_sub(4)?)?;
        Some(PryjRecord { seq: Seq::new(u64_at(frame, 4)?), payload })
    }

    fn parse_mark(bytes: &[u8]) -> Option<Mark> {
        if u32_at(bytes, 0)? != MARK_WORD || bytes.len() < Self::MARK_LEN {
            return None;
        }
        Some(Mark {
            durable_end: Seq::new(u64_at(bytes, 4)?),
            salt: u64_at(bytes, 12)?,
            offset: u64_at(bytes, 20)?,
            first: Seq::new(u64_at(bytes, 28)?),
        })
    }

    fn seq(record: PryjRecord<'_>) -> Seq {
        record.seq
    }

    fn as_event<'a>(_: Self::Record<'a>) -> Option<Event<'a>> {
        None
    }
}
