//! Frames read in the plainest way, from `core/FORMAT.md` and not from the code: a second opinion.

use strandline::core::FramingKind;

/// A record or event, with all that it says. Opaque records leave the fields of events empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owned {
    /// Sequence number.
    pub seq: u64,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
    /// Event domain.
    pub domain: u8,
    /// Event type.
    pub event_type: String,
    /// Event source.
    pub source: String,
    /// Payload.
    pub payload: Vec<u8>,
}

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainMark {
    pub(super) durable_end: u64,
    pub(super) salt: u64,
    pub(super) offset: u64,
    pub(super) first: u64,
}

/// Which checksum the entries of a version 1 event file have, as far as was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sum {
    #[default]
    Undecided,
    Crc32c,
    Iso,
}

/// What stands at the front of some bytes, which go on to the end of their file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// The file ends before the frame's length can be read.
    NoLength,
    /// No frame begins like this.
    Unreadable,
    /// The file ends inside the frame.
    CutShort,
    Record(usize, Owned),
    Mark(usize, PlainMark),
    /// Whole, the checksum right, but of no known kind.
    Foreign(usize),
    /// Whole, but the checksum is wrong.
    Damaged(usize),
}

const PAYLOAD_MAX: usize = 16 << 20;
const MARK_WORD: u32 = 0x8000_0018;

pub(super) fn header_len(kind: FramingKind) -> usize {
    if kind == FramingKind::Pryj { 16 } else { 0 }
}

pub(super) fn mark_len(kind: FramingKind) -> usize {
    if kind == FramingKind::Pryj { 40 } else { 58 }
}

pub(super) fn shortest_frame(kind: FramingKind) -> usize {
    if kind == FramingKind::Pryj { 16 } else { 34 }
}

pub(super) fn magic(kind: FramingKind) -> &'static [u8; 4] {
    if kind == FramingKind::Pryj { b"PRYJ" } else { b"PCPJ" }
}

pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let field: [u8; N] = bytes[at..at + N].try_into().expect("as long as asked for");
    field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::try_from(number::<4>(bytes, at)).unwrap_or_default()
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// The length of the frame that begins here, if these bytes reach far enough and begin like one.
pub(super) fn stated_len(kind: FramingKind, bytes: &[u8]) -> Result<usize, Plain> {
    match kind {
        FramingKind::Pryj if bytes.len() < 4 => Err(Plain::NoLength),
        FramingKind::Pryj => match word(bytes, 0) {
            MARK_WORD => Ok(40),
            length if size(u64::from(length)) <= PAYLOAD_MAX => Ok(16 + size(u64::from(length))),
            _ => Err(Plain::Unreadable),
        },
        FramingKind::Pcpj if bytes.len() < 14 => Err(Plain::NoLength),
        FramingKind::Pcpj => {
            let payload = size(number::<4>(bytes, 10));
            if !bytes.starts_with(b"PCPJ") || payload > PAYLOAD_MAX {
                return Err(Plain::Unreadable);
            }
            Ok(34 + size(number::<2>(bytes, 6)) + size(number::<2>(bytes, 8)) + payload)
        }
    }
}

/// Reads the frame at the front. `sum` is what the file's entries have told of their checksum.
pub(super) fn frame(kind: FramingKind, version: u8, sum: &mut Sum, bytes: &[u8]) -> Plain {
    let len = match stated_len(kind, bytes) {
        Ok(len) => len,
        Err(plain) => return plain,
    };
    match (bytes.get(..len), kind) {
        (None, _) => Plain::CutShort,
        (Some(frame), FramingKind::Pryj) => pryj(frame),
        (Some(frame), FramingKind::Pcpj) => pcpj(version, sum, frame),
    }
}

fn pryj(frame: &[u8]) -> Plain {
    let len = frame.len();
    if crc32c::crc32c(&frame[..len - 4]) != word(frame, len - 4) {
        return Plain::Damaged(len);
    }
    let seq = number::<8>(frame, 4);
    if word(frame, 0) == MARK_WORD {
        let (salt, offset) = (number::<8>(frame, 12), number::<8>(frame, 20));
        return Plain::Mark(len, PlainMark { durable_end: seq, salt, offset, first: number::<8>(frame, 28) });
    }
    Plain::Record(len, Owned { seq, payload: frame[12..len - 4].to_vec(), ..Owned::default() })
}

fn pcpj(version: u8, sum: &mut Sum, frame: &[u8]) -> Plain {
    let len = frame.len();
    if version == 1 && frame[4] == 1 {
        return match event(frame) {
            Some(event) if is_version_1(sum, frame, &event) => Plain::Record(len, event),
            _ => Plain::Damaged(len),
        };
    }
    let covered = [&frame[..30], &frame[34..]].concat();
    if crc32c::crc32c(&covered) != word(frame, 30) {
        return Plain::Damaged(len);
    }
    if frame[4] == 2 && frame[5] == 0 && frame[6..14] == [0, 0, 0, 0, 24, 0, 0, 0] {
        let (salt, offset, first) = (number::<8>(frame, 34), number::<8>(frame, 42), number::<8>(frame, 50));
        return Plain::Mark(len, PlainMark { durable_end: number::<8>(frame, 14), salt, offset, first });
    }
    match event(frame) {
        Some(event) if frame[4] == version && event.domain != 0 => Plain::Record(len, event),
        _ => Plain::Foreign(len),
    }
}

fn event(frame: &[u8]) -> Option<Owned> {
    let source_at = 34 + size(number::<2>(frame, 6));
    let payload_at = source_at + size(number::<2>(frame, 8));
    Some(Owned {
        seq: number::<8>(frame, 14),
        timestamp: number::<8>(frame, 22).cast_signed(),
        domain: frame[5],
        event_type: String::from_utf8(frame[34..source_at].to_vec()).ok()?,
        source: String::from_utf8(frame[source_at..payload_at].to_vec()).ok()?,
        payload: frame[payload_at..].to_vec(),
    })
}

/// Version 1 sums the payload alone, with a checksum that the first entry decides which can.
fn is_version_1(sum: &mut Sum, frame: &[u8], event: &Owned) -> bool {
    if event.event_type.is_empty() || event.event_type.contains('\0') || event.source.contains('\0') {
        return false;
    }
    let stated = word(frame, 30);
    let iso = stated == crc32fast::hash(&event.payload);
    let castagnoli = stated == crc32c::crc32c(&event.payload);
    if *sum == Sum::Undecided {
        *sum = match (iso, castagnoli) {
            (true, true) => return true,
            (true, false) => Sum::Iso,
            (false, true) => Sum::Crc32c,
            (false, false) => return false,
        };
    }
    if *sum == Sum::Iso { iso } else { castagnoli }
}
