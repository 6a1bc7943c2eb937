//! Journals made of pieces: whole records and marks, right ones and wrong ones, zeros, rot and tears, in any order.
//!
//! Where arbitrary bytes seldom get behind the first frame, every input here is a journal that something happened to.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use strandline::core::FramingKind;

use super::agreement::look;
use super::journal_bytes::Control;
use super::plain::{Owned, PlainMark};
use super::plain_encode::{Mending, header, mark, record};

const PIECES_MAX: usize = 200;
const FILES_MAX: usize = 8;
/// Enough for a few reads.
const BYTES_MAX: usize = 600 << 10;

/// One thing that happens to the file that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A record with a payload of this many bytes, each this one.
    Record(u8, u8),
    /// The mark that belongs here; it states so many records fewer than there are.
    Mark(u8),
    /// So many zeros.
    Zeros(u8),
    /// Two bytes as they are.
    Raw([u8; 2]),
    /// This bit, counted from the end of the file in eighths of bytes, is flipped.
    Flip(u16),
    /// The last so many bytes are cut off.
    Cut(u8),
    /// The next file begins, so many numbers further on than it should. The other byte decides whether it has the
    /// other version, and whether its first mark is wrong.
    NextFile(i8, u8),
    /// A record whose number is wrong by so much.
    WrongNumber(i8),
    /// A record whose last byte is wrong.
    WrongChecksum(u8),
    /// A mark of which one field differs by so much: the salt, the place, the end or the start.
    WrongMark(u8, i8),
    /// A record with a payload of so many bytes.
    Large(usize),
    /// So many zeros.
    ManyZeros(usize),
    /// Zeros over bytes that were written: so far from the end, so many.
    Hole(u16, u8),
    /// A record whose payload is a mark that would be right where it stands.
    Imitation(u8),
    /// A copy of bytes written before: so far from the end, so many.
    Copy(u16, u8),
    /// The block of 512 bytes that the last byte is in becomes zero.
    LoseBlock,
}

pub(super) fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let Ok(control) = Control::read(&mut input) else { return };
    let mut building = Building::new(control);
    let mut pieces = 0;
    while !input.is_empty() && pieces < PIECES_MAX {
        let Ok(piece) = Piece::read(&mut input) else { break };
        building.add(piece);
        pieces += 1;
    }
    let files = building.finish(control.look.bare);
    let _ = look(control.kind, &files, control.look);
}

impl Piece {
    /// Every piece is three bytes, so that a fuzzer can leave out, insert and repeat pieces.
    fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        let [what, a, b]: [u8; 3] = input.arbitrary()?;
        let (signed, both) = (b.cast_signed(), u16::from_le_bytes([a, b]));
        // Seldom more than what one read gives.
        let large = usize::from(a) * if b == u8::MAX { 4_096 } else { 16 };
        Ok(match what % 20 {
            0..=3 => Self::Record(a, b),
            4 | 5 => Self::Mark(if b < 128 { 0 } else { a }),
            6 => Self::Zeros(a),
            7 => Self::Raw([a, b]),
            8 => Self::Flip(both),
            9 => Self::Cut(a),
            10 => Self::NextFile(signed, a),
            11 => Self::WrongNumber(signed),
            12 => Self::WrongChecksum(a),
            13 => Self::WrongMark(a, signed),
            14 => Self::Large(large),
            15 => Self::ManyZeros(large),
            16 => Self::Hole(u16::from(a) * 4, b),
            17 => Self::Imitation(a),
            18 => Self::Copy(u16::from(a) * 4, b),
            _ => Self::LoseBlock,
        })
    }
}

/// A journal in the making.
struct Building {
    kind: FramingKind,
    version: u8,
    salt: u64,
    /// The number of the first file, where every mark says that the journal starts.
    start: u64,
    first: u64,
    next: u64,
    file: Vec<u8>,
    done: BTreeMap<u64, Vec<u8>>,
    total: usize,
}

impl Building {
    fn new(Control { kind, mending, first, .. }: Control) -> Self {
        let (file, done, version) = (Vec::new(), BTreeMap::new(), mending.version);
        let mut building =
            Self { kind, version, salt: 1, start: first, first, next: first, file, done, total: 0 };
        building.begin(mending);
        building
    }

    fn begin(&mut self, mending: Mending) {
        self.file = header(self.kind, self.version, self.first);
        if self.version == 2 {
            let mark = mending.first_mark(self.kind, self.salt, self.start, self.first);
            self.push_mark(&mark);
        }
    }

    fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Record(len, byte) => self.push_record(vec![byte; usize::from(len)]),
            Piece::Large(len) => self.push_record(vec![b'L'; len]),
            Piece::Mark(fewer) => {
                let end = self.next.saturating_sub(u64::from(fewer)).max(self.start);
                let mark = PlainMark { durable_end: end, ..self.mark() };
                self.push_mark(&mark);
            }
            Piece::Zeros(count) => self.push(&vec![0; usize::from(count)]),
            Piece::ManyZeros(count) => self.push(&vec![0; count]),
            Piece::NextFile(step, other) => self.next_file(step, other),
            Piece::Raw(bytes) => self.push(&bytes),
            Piece::WrongNumber(step) => self.push_wrong_number(step.into()),
            Piece::WrongChecksum(len) => {
                self.push_record(vec![b'w'; usize::from(len)]);
                self.file.last_mut().into_iter().for_each(|last| *last ^= 0x10);
            }
            Piece::WrongMark(field, step) => self.push_wrong_mark(field, step.into()),
            Piece::Imitation(ahead) => self.push_imitation(ahead.into()),
            Piece::Flip(_) | Piece::Cut(_) | Piece::Hole(..) | Piece::Copy(..) | Piece::LoseBlock => {
                self.damage(piece);
            }
        }
    }

    /// Does to the file what no writer does.
    fn damage(&mut self, piece: Piece) {
        let len = self.file.len();
        let part = |back: u16, count: u8| {
            let from = len.saturating_sub(usize::from(back));
            from..(from + usize::from(count)).min(len)
        };
        match piece {
            Piece::Flip(bit) => {
                let at = len.checked_sub(usize::from(bit) / 8 + 1);
                if let Some(byte) = at.and_then(|at| self.file.get_mut(at)) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Piece::Cut(count) => self.file.truncate(len.saturating_sub(usize::from(count))),
            Piece::Hole(back, count) => self.file[part(back, count)].fill(0),
            Piece::Copy(back, count) => {
                let copy = self.file[part(back, count)].to_vec();
                self.push(&copy);
            }
            Piece::LoseBlock => self.file[len.saturating_sub(1) / 512 * 512..].fill(0),
            _ => {}
        }
    }

    fn push_wrong_number(&mut self, step: i64) {
        let seq = self.next.saturating_add_signed(step);
        let wrong = Owned { seq, ..self.record(b"wrong".to_vec()) };
        self.push(&record(self.kind, self.version, &wrong));
    }

    fn push_wrong_mark(&mut self, field: u8, step: i64) {
        let mut mark = self.mark();
        let value = match field % 4 {
            0 => &mut mark.salt,
            1 => &mut mark.offset,
            2 => &mut mark.durable_end,
            _ => &mut mark.first,
        };
        *value = value.wrapping_add_signed(step);
        self.push_mark(&mark);
    }

    fn push_imitation(&mut self, ahead: u64) {
        let payload_at = if self.kind == FramingKind::Pryj { 12 } else { 34 + 5 };
        let offset = (self.file.len() + payload_at) as u64;
        let durable_end = self.next.saturating_add(ahead);
        self.push_record(mark(self.kind, &PlainMark { durable_end, offset, ..self.mark() }));
    }

    fn finish(mut self, only_one: bool) -> BTreeMap<u64, Vec<u8>> {
        if only_one {
            return BTreeMap::from([(0, self.file)]);
        }
        self.done.insert(self.first, self.file);
        self.done
    }

    fn next_file(&mut self, step: i8, other: u8) {
        if self.done.len() + 1 >= FILES_MAX {
            return;
        }
        let step = if step.unsigned_abs() > 4 { 0 } else { i64::from(step) };
        let first = self.next.saturating_add_signed(step).min(u64::MAX - 1);
        self.done.insert(self.first, std::mem::take(&mut self.file));
        (self.first, self.next) = (first, first);
        // Most segments have the version of the one before.
        self.version = if other % 8 == 1 { 3 - self.version } else { self.version };
        self.salt += 1;
        self.start = self.start.min(first);
        let wrong = if other < 192 { 0 } else { other >> 4 & 3 };
        self.begin(Mending { version: self.version, head: true, wrong, frames: 0 });
    }

    fn mark(&self) -> PlainMark {
        let offset = self.file.len() as u64;
        PlainMark { durable_end: self.next, salt: self.salt, offset, first: self.start }
    }

    fn record(&self, payload: Vec<u8>) -> Owned {
        let (event_type, source) = ("tick".to_owned(), "/".to_owned());
        Owned { seq: self.next, timestamp: 1_000, domain: 3, event_type, source, payload }
    }

    fn push_record(&mut self, payload: Vec<u8>) {
        let frame = record(self.kind, self.version, &self.record(payload));
        self.push(&frame);
        self.next = self.next.saturating_add(1);
    }

    fn push_mark(&mut self, stated: &PlainMark) {
        let frame = mark(self.kind, stated);
        self.push(&frame);
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.total + bytes.len() <= BYTES_MAX {
            self.total += bytes.len();
            self.file.extend(bytes);
        }
    }
}
