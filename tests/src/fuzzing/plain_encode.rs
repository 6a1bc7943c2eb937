//! Frames written in the plainest way, so that a journal can be made that the code has not made.

use strandline::core::FramingKind;

use super::plain::{Owned, PlainMark, header_len, magic, stated_len};

/// The header of a file; empty where files have none.
pub(super) fn header(kind: FramingKind, version: u8, first: u64) -> Vec<u8> {
    match kind {
        FramingKind::Pryj => [&magic(kind)[..], &[version, 0, 0, 0], &first.to_le_bytes()].concat(),
        FramingKind::Pcpj => Vec::new(),
    }
}

/// A record.
pub(super) fn record(kind: FramingKind, version: u8, record: &Owned) -> Vec<u8> {
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("no fuzzer makes so much");
    let mut frame = match kind {
        FramingKind::Pryj => {
            let length = len(&record.payload).to_le_bytes();
            [&length[..], &record.seq.to_le_bytes(), &record.payload, &[0; 4]].concat()
        }
        FramingKind::Pcpj => {
            let mut frame = magic(kind).to_vec();
            frame.extend([version, record.domain]);
            frame.extend(&len(record.event_type.as_bytes()).to_le_bytes()[..2]);
            frame.extend(&len(record.source.as_bytes()).to_le_bytes()[..2]);
            frame.extend(len(&record.payload).to_le_bytes());
            frame.extend(record.seq.to_le_bytes());
            frame.extend(record.timestamp.to_le_bytes());
            frame.extend([0; 4]);
            frame.extend(record.event_type.as_bytes());
            frame.extend(record.source.as_bytes());
            frame.extend(&record.payload);
            frame
        }
    };
    seal(kind, &mut frame);
    frame
}

/// A mark.
pub(super) fn mark(kind: FramingKind, mark: &PlainMark) -> Vec<u8> {
    let fields = [mark.salt.to_le_bytes(), mark.offset.to_le_bytes(), mark.first.to_le_bytes()].concat();
    let end = mark.durable_end.to_le_bytes();
    let mut frame = match kind {
        FramingKind::Pryj => [&[0x18, 0, 0, 0x80][..], &end, &fields, &[0; 4]].concat(),
        FramingKind::Pcpj => {
            let head = [&magic(kind)[..], &[2, 0, 0, 0, 0, 0, 24, 0, 0, 0], &end].concat();
            [&head[..], &[0; 12], &fields].concat()
        }
    };
    seal(kind, &mut frame);
    frame
}

/// Makes the checksum of a whole frame right.
pub(super) fn seal(kind: FramingKind, frame: &mut [u8]) {
    let len = frame.len();
    match kind {
        FramingKind::Pryj => {
            let sum = crc32c::crc32c(&frame[..len - 4]);
            frame[len - 4..].copy_from_slice(&sum.to_le_bytes());
        }
        FramingKind::Pcpj => {
            let labels = usize::from(u16::from_le_bytes([frame[6], frame[7]]))
                + usize::from(u16::from_le_bytes([frame[8], frame[9]]));
            let sum = match frame[4] {
                1 => crc32fast::hash(&frame[34 + labels..]),
                _ => crc32c::crc32c(&[&frame[..30], &frame[34..]].concat()),
            };
            frame[30..34].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// How much of a file's beginning is made right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mending {
    pub(super) version: u8,
    /// The header and the first mark.
    pub(super) head: bool,
    /// Which field of the first mark is wrong all the same, although its checksum is right: 1 the start, 2 the end,
    /// 3 the place; for any other number, none.
    pub(super) wrong: u8,
    /// So many frames behind.
    pub(super) frames: usize,
}

impl Mending {
    /// The first mark of a file.
    pub(super) fn first_mark(self, kind: FramingKind, salt: u64, start: u64, first: u64) -> PlainMark {
        let mut mark = PlainMark { durable_end: first, salt, offset: header_len(kind) as u64, first: start };
        match self.wrong {
            1 => mark.first = first + 1,
            2 => mark.durable_end += 1,
            3 => mark.offset += 1,
            _ => {}
        }
        mark
    }
}

/// Makes the beginning of a file right in place, so that a fuzzer need not guess checksums. Lengths and payloads
/// stay its own.
pub(super) fn mend(kind: FramingKind, mending: Mending, first: u64, file: &mut [u8]) {
    let Mending { version, head, frames, .. } = mending;
    let mut begin = Vec::new();
    let salt = 0x5a17;
    if head {
        begin = header(kind, version, first);
        if version == 2 {
            begin.extend(mark(kind, &mending.first_mark(kind, salt, first, first)));
        }
        let held = begin.len().min(file.len());
        file[..held].copy_from_slice(&begin[..held]);
    }
    let (mut at, mut seq) = (begin.len(), first);
    for _ in 0..frames {
        let Some(rest) = file.get_mut(at..) else { return };
        let proof = PlainMark { durable_end: seq, salt, offset: at as u64, first };
        let Some((len, records)) = mend_frame(kind, version, &proof, rest) else { return };
        seq = seq.saturating_add(records);
        at += len;
    }
}

/// Makes one frame right, or the mark that would stand here; gives its length, and how many records it is.
fn mend_frame(kind: FramingKind, version: u8, proof: &PlainMark, rest: &mut [u8]) -> Option<(usize, u64)> {
    let seq = proof.durable_end;
    if rest.len() < 34 {
        return None;
    }
    match kind {
        FramingKind::Pryj => {
            rest[1..4].fill(0);
            rest[4..12].copy_from_slice(&seq.to_le_bytes());
        }
        FramingKind::Pcpj => {
            rest[..4].copy_from_slice(magic(kind));
            rest[4] = version;
            rest[5] = rest[5].max(1);
            rest[6] = (rest[6] & 15).max(1);
            rest[8] &= 15;
            (rest[7], rest[9]) = (0, 0);
            rest[11..14].fill(0);
            rest[14..22].copy_from_slice(&seq.to_le_bytes());
        }
    }
    let len = stated_len(kind, rest).ok()?;
    let frame = rest.get_mut(..len)?;
    if kind == FramingKind::Pcpj {
        let labels = 34 + usize::from(frame[6]) + usize::from(frame[8]);
        frame[34..labels].iter_mut().for_each(|byte| *byte = (*byte & 0x7f).max(1));
    }
    // A frame of the right length becomes a mark.
    let proof = mark(kind, proof);
    if version == 2 && frame.len() == proof.len() {
        frame.copy_from_slice(&proof);
        return Some((len, 0));
    }
    seal(kind, frame);
    Some((len, 1))
}
