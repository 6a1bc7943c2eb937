//! PCPJ: self-delimiting event entries.
//!
//! A packed 34-byte header, then type, source and payload. Files have no header of their own; a
//! version 2 file begins with a mark, which is an entry with domain 0.

use bytes::{BufMut, BytesMut};

use super::fields::{i64_at, u16_at, u32_at, u64_at};
use super::{Bounds, Checksum, DraftError, Frame, Framing, Layout, Mark};
use crate::config::{LABEL_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::{Seq, Timestamp};

const HEADER: usize = 34;
const VERSION_AT: usize = 4;
const DOMAIN_AT: usize = 5;
const TYPE_LEN_AT: usize = 6;
const SOURCE_LEN_AT: usize = 8;
const PAYLOAD_LEN_AT: usize = 10;
const SEQ_AT: usize = 14;
const TIMESTAMP_AT: usize = 22;
const CHECKSUM_AT: usize = 30;
/// Domain of the journal's own entries.
const DOMAIN_MARK: u8 = 0;
/// Salt, offset and logical start.
const MARK_PAYLOAD: usize = 24;

/// The framing of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pcpj;

/// An event to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventDraft<'a> {
    /// Event domain, 1 to 255.
    pub domain: u8,
    /// Event type, 1 to 1,024 bytes, no control characters.
    pub event_type: &'a str,
    /// Source, 1 to 1,024 bytes, no control characters.
    pub source: &'a str,
    /// Payload, kept byte for byte.
    pub payload: &'a [u8],
}

/// An event as it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its sequence number.
    pub seq: Seq,
    /// When it was appended.
    pub timestamp: Timestamp,
    /// Its domain.
    pub domain: u8,
    /// Its type.
    pub event_type: &'a str,
    /// Its source.
    pub source: &'a str,
    /// Its payload, byte for byte as it was appended.
    pub payload: &'a [u8],
}

impl Framing for Pcpj {
    type Draft<'a> = EventDraft<'a>;
    type Record<'a> = Event<'a>;

    const LABEL: &'static str = "PCPJ";
    const MAGIC: [u8; 4] = *b"PCPJ";
    // A subscriber that has seen nothing says 0, so that no event can have that number.
    const FIRST_SEQ: Seq = Seq::new(1);
    const HEADER_LEN: usize = 0;
    const MARK_LEN: usize = HEADER + MARK_PAYLOAD;
    const FRAME_LEN_MIN: usize = HEADER;
    const PREFIX_LEN: usize = SEQ_AT;

    fn layout(version: u8) -> Layout {
        let checksum = if version == 1 { Checksum::Undecided } else { Checksum::Castagnoli };
        Layout { version, checksum }
    }

    fn stated_version(head: &[u8]) -> Option<u16> {
        head.get(VERSION_AT).map(|version| u16::from(*version))
    }

    fn encode_header(_: u8, _: Seq, _: &mut BytesMut) {}

    fn stated_first(head: &[u8]) -> Option<Seq> {
        u64_at(head, SEQ_AT).map(Seq::new)
    }

    fn measure(draft: EventDraft<'_>, payload_bytes_max: usize) -> Result<usize, DraftError> {
        let max = payload_bytes_max.min(PAYLOAD_BYTES_MAX);
        if draft.domain == DOMAIN_MARK {
            return Err(DraftError::DomainReserved);
        }
        check_label("type", draft.event_type)?;
        check_label("source", draft.source)?;
        if draft.payload.len() > max {
            return Err(DraftError::PayloadTooLong { len: draft.payload.len(), max });
        }
        Ok(HEADER + draft.event_type.len() + draft.source.len() + draft.payload.len())
    }

    fn encode(layout: Layout, seq: Seq, now: Timestamp, draft: EventDraft<'_>, out: &mut BytesMut) {
        let start = out.len();
        out.put_slice(&Self::MAGIC);
        out.put_u8(layout.version);
        out.put_u8(draft.domain);
        // Measured before, so that every length fits its field.
        out.put_u16_le(u16::try_from(draft.event_type.len()).unwrap_or(u16::MAX));
        out.put_u16_le(u16::try_from(draft.source.len()).unwrap_or(u16::MAX));
        out.put_u32_le(u32::try_from(draft.payload.len()).unwrap_or(u32::MAX));
        out.put_u64_le(seq.get());
        out.put_i64_le(now.as_millis());
        let covered = crc32c::crc32c(out.get(start..).unwrap_or_default());
        let checksum = match (layout.version, layout.checksum) {
            (1, Checksum::Castagnoli) => crc32c::crc32c(draft.payload),
            (1, Checksum::IsoHdlc | Checksum::Undecided) => crc32fast::hash(draft.payload),
            _ => {
                let covered = crc32c::crc32c_append(covered, draft.event_type.as_bytes());
                let covered = crc32c::crc32c_append(covered, draft.source.as_bytes());
                crc32c::crc32c_append(covered, draft.payload)
            }
        };
        out.put_u32_le(checksum);
        out.put_slice(draft.event_type.as_bytes());
        out.put_slice(draft.source.as_bytes());
        out.put_slice(draft.payload);
    }

    fn encode_mark(mark: &Mark, now: Timestamp, mut out: &mut [u8]) {
        assert_eq!(out.len(), Self::MARK_LEN, "a mark has a fixed length");
        let mut header = [0u8; CHECKSUM_AT];
        {
            let mut fields = header.as_mut_slice();
            fields.put_slice(&Self::MAGIC);
            fields.put_u8(2);
            fields.put_u8(DOMAIN_MARK);
            fields.put_u16_le(0);
            fields.put_u16_le(0);
            fields.put_u32_le(MARK_PAYLOAD_LEN);
            fields.put_u64_le(mark.durable_end.get());
            fields.put_i64_le(now.as_millis());
        }
        let mut payload = [0u8; MARK_PAYLOAD];
        {
            let mut fields = payload.as_mut_slice();
            fields.put_u64_le(mark.salt);
            fields.put_u64_le(mark.offset);
            fields.put_u64_le(mark.first.get());
        }
        out.put_slice(&header);
        out.put_u32_le(crc32c::crc32c_append(crc32c::crc32c(&header), &payload));
        out.put_slice(&payload);
    }

    fn bounds(prefix: &[u8]) -> Bounds {
        if prefix.len() < Self::PREFIX_LEN {
            return Bounds::Short;
        }
        match lengths(prefix) {
            Some(lengths) if prefix.starts_with(&Self::MAGIC) && lengths.payload <= PAYLOAD_BYTES_MAX => {
                Bounds::Len(HEADER + lengths.event_type + lengths.source + lengths.payload)
            }
            _ => Bounds::Unreadable,
        }
    }

    fn check(layout: Layout, frame: &[u8]) -> Frame<'_, Self> {
        let version = frame.get(VERSION_AT).copied();
        if layout.version == 1 && version == Some(1) {
            return check_version_1(layout, frame);
        }
        if !crc_of_version_2(frame) {
            return Frame::Damaged;
        }
        // An entry of another version than its segment's is none of this segment's, except that a
        // version 2 mark is named as such wherever it stands.
        match (Self::parse_mark(frame), Self::decode(frame)) {
            (Some(mark), _) => Frame::Mark(mark),
            (None, Some(event)) if version == Some(layout.version) => Frame::Record(event, layout),
            _ => Frame::Foreign,
        }
    }

    fn decode(frame: &[u8]) -> Option<Event<'_>> {
        let lengths = lengths(frame)?;
        let domain = *frame.get(DOMAIN_AT)?;
        if domain == DOMAIN_MARK && frame.get(VERSION_AT) != Some(&1) {
            return None;
        }
        let body = frame.get(HEADER..)?;
        let (event_type, rest) = body.split_at_checked(lengths.event_type)?;
        let (source, payload) = rest.split_at_checked(lengths.source)?;
        Some(Event {
            seq: Seq::new(u64_at(frame, SEQ_AT)?),
            timestamp: Timestamp::from_millis(i64_at(frame, TIMESTAMP_AT)?),
            domain,
            event_type: core::str::from_utf8(event_type).ok()?,
            source: core::str::from_utf8(source).ok()?,
            payload,
        })
    }

    fn parse_mark(bytes: &[u8]) -> Option<Mark> {
        if bytes.len() < Self::MARK_LEN || !bytes.starts_with(&Self::MAGIC) {
            return None;
        }
        let shape = (bytes.get(VERSION_AT)?, bytes.get(DOMAIN_AT)?, lengths(bytes)?);
        if shape != (&2, &DOMAIN_MARK, Lengths { event_type: 0, source: 0, payload: MARK_PAYLOAD }) {
            return None;
        }
        Some(Mark {
            durable_end: Seq::new(u64_at(bytes, SEQ_AT)?),
            salt: u64_at(bytes, HEADER)?,
            offset: u64_at(bytes, HEADER + 8)?,
            first: Seq::new(u64_at(bytes, HEADER + 16)?),
        })
    }

    fn seq(record: Event<'_>) -> Seq {
        record.seq
    }

    fn as_event<'a>(record: Self::Record<'a>) -> Option<Event<'a>> {
        Some(record)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "24, known at compile time")]
const MARK_PAYLOAD_LEN: u32 = MARK_PAYLOAD as u32;

#[derive(PartialEq, Eq)]
struct Lengths {
    event_type: usize,
    source: usize,
    payload: usize,
}

fn lengths(frame: &[u8]) -> Option<Lengths> {
    Some(Lengths {
        event_type: usize::from(u16_at(frame, TYPE_LEN_AT)?),
        source: usize::from(u16_at(frame, SOURCE_LEN_AT)?),
        payload: usize::try_from(u32_at(frame, PAYLOAD_LEN_AT)?).ok()?,
    })
}

fn crc_of_version_2(frame: &[u8]) -> bool {
    let (Some(header), Some(body)) = (frame.get(..CHECKSUM_AT), frame.get(HEADER..)) else { return false };
    u32_at(frame, CHECKSUM_AT) == Some(crc32c::crc32c_append(crc32c::crc32c(header), body))
}

/// Version 1 sums the payload only. So that a tear does not pass, type and source are looked at
/// too: a page that reads as zeros leaves a NUL there.
fn check_version_1(layout: Layout, frame: &[u8]) -> Frame<'_, Pcpj> {
    let Some(event) = Pcpj::decode(frame) else { return Frame::Damaged };
    if event.event_type.is_empty() || event.event_type.contains('\0') || event.source.contains('\0') {
        return Frame::Damaged;
    }
    let stated = u32_at(frame, CHECKSUM_AT);
    let iso = stated == Some(crc32fast::hash(event.payload));
    let castagnoli = stated == Some(crc32c::crc32c(event.payload));
    let checksum = match (layout.checksum, iso, castagnoli) {
        (Checksum::Undecided, true, true) => Checksum::Undecided,
        (Checksum::Undecided | Checksum::IsoHdlc, true, _) => Checksum::IsoHdlc,
        (Checksum::Undecided | Checksum::Castagnoli, _, true) => Checksum::Castagnoli,
        _ => return Frame::Damaged,
    };
    Frame::Record(event, Layout { checksum, ..layout })
}

fn check_label(field: &'static str, text: &str) -> Result<(), DraftError> {
    if text.is_empty() || text.len() > LABEL_BYTES_MAX {
        return Err(DraftError::LabelLength { field, len: text.len(), max: LABEL_BYTES_MAX });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(DraftError::LabelControl { field, at }),
        None => Ok(()),
    }
}
