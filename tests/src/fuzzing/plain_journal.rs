//! A journal judged in the plainest way: whole files in memory, the verdict table as `core/FORMAT.md` has it.

use std::collections::BTreeMap;

use strandline::core::{FramingKind, RecoveryPolicy};

use super::plain::{
    Owned, Plain, PlainMark, Sum, frame, header_len, magic, mark_len, number, shortest_frame,
};

/// Blocks that a torn write leaves whole or zero, in bytes.
const BLOCK: usize = 512;

/// Files by their first sequence number, and what they are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged<'a> {
    pub(super) kind: FramingKind,
    pub(super) policy: RecoveryPolicy,
    /// Whether the one file has no number in its name.
    pub(super) bare: bool,
    pub(super) files: &'a BTreeMap<u64, Vec<u8>>,
}

/// What must be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) verdict: PlainVerdict,
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) proven_end: u64,
    /// Every valid record, those before the logical start included.
    pub(super) records: Vec<Owned>,
}

/// A verdict with the fewest words: a row of the table, or another reason to refuse, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlainVerdict {
    Sound,
    Cut { row: &'static str, segment: u64, offset: u64, bytes: u64 },
    Refused { why: &'static str, segment: u64, offset: u64 },
}

/// A segment up to its first bad byte.
struct Walked {
    version: u8,
    salt: Option<u64>,
    end: u64,
    newest: Option<PlainMark>,
    bad: Option<Bad>,
}

/// The first bad frame.
#[derive(Clone, Copy)]
struct Bad {
    at: usize,
    len: Option<usize>,
    cut_short: bool,
    checksum_right: bool,
    mark_in_version_1: bool,
}

/// A file's beginning.
enum Head {
    Refused(&'static str, usize),
    Short,
    Invalid,
    Valid { version: u8, first: u64, mark: Option<PlainMark>, at: usize },
}

/// Judges a journal.
pub(super) fn judge(judged: Judged<'_>) -> Expected {
    let start = judged.files.keys().next().copied().unwrap_or_default();
    let mut expected = Expected {
        verdict: PlainVerdict::Sound,
        first: start,
        end: start,
        proven_end: start,
        records: Vec::new(),
    };
    let mut before = None;
    for (index, (id, bytes)) in judged.files.iter().enumerate() {
        let next = judged.files.keys().nth(index + 1).copied();
        match segment(judged, &mut expected, &mut before, (*id, bytes), next) {
            PlainVerdict::Sound => {}
            stopped => {
                expected.verdict = stopped;
                break;
            }
        }
    }
    expected
}

/// Judges one segment; anything but sound ends the journal.
fn segment(
    judged: Judged<'_>,
    expected: &mut Expected,
    before: &mut Option<u8>,
    (id, bytes): (u64, &[u8]),
    next: Option<u64>,
) -> PlainVerdict {
    let last = next.is_none();
    let refused = |why, offset: usize| PlainVerdict::Refused { why, segment: id, offset: offset as u64 };
    let (version, first, mark, at) = match head(judged, id, *before, bytes) {
        Head::Refused(why, offset) => return refused(why, offset),
        Head::Short if last => {
            return PlainVerdict::Cut { row: "D", segment: id, offset: 0, bytes: content_end(bytes) as u64 };
        }
        Head::Short => return refused("A", bytes.len()),
        Head::Invalid => return refused("C", header_len(judged.kind)),
        Head::Valid { version, first, mark, at } => (version, first, mark, at),
    };
    if before.is_none() {
        (expected.first, expected.end, expected.proven_end) = (first, first, first);
    }
    *before = Some(version);
    let walked = walk(judged.kind, (version, first, mark, at), bytes, &mut expected.records);
    expected.end = walked.end;
    expected.proven_end =
        if last { walked.newest.map_or(first, |mark| mark.durable_end) } else { walked.end };
    expected.first = expected.first.max(walked.newest.map_or(0, |mark| mark.first));
    if let Some(bad) = walked.bad {
        match row(judged, &walked, bad, bytes, next) {
            PlainVerdict::Cut { row, offset, bytes, .. } => {
                return PlainVerdict::Cut { row, segment: id, offset, bytes };
            }
            PlainVerdict::Refused { why, offset, .. } => {
                return PlainVerdict::Refused { why, segment: id, offset };
            }
            PlainVerdict::Sound => {}
        }
    }
    match next {
        Some(next) if next > walked.end => refused("gap", 0),
        Some(next) if next < walked.end => refused("overlap", 0),
        _ => PlainVerdict::Sound,
    }
}

fn head(judged: Judged<'_>, id: u64, before: Option<u8>, bytes: &[u8]) -> Head {
    let kind = judged.kind;
    if bytes.iter().zip(magic(kind)).any(|(found, wanted)| found != wanted) {
        return Head::Refused("magic", 0);
    }
    if bytes.is_empty() && kind == FramingKind::Pcpj && before != Some(2) {
        let first = if judged.bare { 0 } else { id };
        return Head::Valid { version: 1, first, mark: None, at: 0 };
    }
    let stated = match kind {
        FramingKind::Pryj if bytes.len() >= 6 => number::<2>(bytes, 4),
        FramingKind::Pcpj if bytes.len() >= 5 => u64::from(bytes[4]),
        _ => return Head::Short,
    };
    let version = match stated {
        1 => 1,
        2 => 2,
        _ => return Head::Refused("version", 0),
    };
    let seq_at = if kind == FramingKind::Pryj { 8 } else { 14 };
    let stated_first = if bytes.len() >= seq_at + 8 { number::<8>(bytes, seq_at) } else { 0 };
    let first = if judged.bare { stated_first } else { id };
    if kind == FramingKind::Pryj {
        let wanted = super::plain_encode::header(kind, version, first);
        if let Some(at) = wanted.iter().zip(bytes).position(|(wanted, found)| wanted != found) {
            return Head::Refused("header", at);
        }
    }
    let at = header_len(kind);
    if version == 1 {
        let valid = Head::Valid { version, first, mark: None, at };
        return if bytes.len() < at { Head::Short } else { valid };
    }
    let Some(first_frame) = bytes.get(at..at + mark_len(kind)) else { return Head::Short };
    match frame(kind, version, &mut Sum::default(), first_frame) {
        Plain::Mark(_, mark) if kind == FramingKind::Pcpj && mark.durable_end != first => {
            Head::Refused("header", at)
        }
        Plain::Mark(len, mark)
            if (mark.durable_end, mark.offset) == (first, at as u64) && mark.first <= first =>
        {
            Head::Valid { version, first, mark: Some(mark), at: at + len }
        }
        _ => Head::Invalid,
    }
}

fn walk(
    kind: FramingKind,
    (version, first, mark, mut at): (u8, u64, Option<PlainMark>, usize),
    bytes: &[u8],
    records: &mut Vec<Owned>,
) -> Walked {
    let salt = mark.map(|mark| mark.salt);
    let mut walked = Walked { version, salt, end: first, newest: mark, bad: None };
    let mut sum = Sum::default();
    while at < bytes.len() {
        let frame = frame(kind, version, &mut sum, &bytes[at..]);
        let whole = |len, checksum_right| Bad { len: Some(len), checksum_right, ..Bad::at(at) };
        let bad = match frame {
            Plain::Record(len, record) if record.seq == walked.end && record.seq < u64::MAX => {
                walked.end += 1;
                records.push(record);
                at += len;
                continue;
            }
            Plain::Mark(_, _) if version == 1 => Bad { mark_in_version_1: true, ..Bad::at(at) },
            Plain::Mark(len, mark) if fits(&mark, &walked, at) => {
                if walked.newest.is_none_or(|newest| mark.durable_end >= newest.durable_end) {
                    walked.newest = Some(mark);
                }
                at += len;
                continue;
            }
            Plain::NoLength | Plain::CutShort => {
                let len = super::plain::stated_len(kind, &bytes[at..]).ok();
                Bad { len, cut_short: true, ..Bad::at(at) }
            }
            Plain::Unreadable => Bad::at(at),
            Plain::Record(len, _) | Plain::Mark(len, _) | Plain::Foreign(len) => whole(len, true),
            Plain::Damaged(len) => whole(len, false),
        };
        walked.bad = Some(bad);
        break;
    }
    walked
}

fn fits(mark: &PlainMark, walked: &Walked, at: usize) -> bool {
    walked.salt == Some(mark.salt)
        && mark.offset == at as u64
        && mark.first <= mark.durable_end
        && mark.durable_end <= walked.end
}

/// The first row that matches.
fn row(judged: Judged<'_>, walked: &Walked, bad: Bad, bytes: &[u8], next: Option<u64>) -> PlainVerdict {
    let refused = |why, at: usize| PlainVerdict::Refused { why, segment: 0, offset: at as u64 };
    if bad.mark_in_version_1 {
        return refused("mark in version 1", bad.at);
    }
    let proof = (bad.at..bytes.len()).find(|at| proves(judged.kind, walked, bytes, *at));
    if let (Some(at), 1) = (proof, walked.version) {
        return refused("mark in version 1", at);
    }
    let rest_zero = bytes[bad.at..].iter().all(|byte| *byte == 0);
    let last = next.is_none();
    let torn = is_torn(judged.kind, bad, bytes);
    let cut = |row| {
        let content = content_end(bytes).saturating_sub(bad.at) as u64;
        PlainVerdict::Cut { row, segment: 0, offset: bad.at as u64, bytes: content }
    };
    match () {
        () if rest_zero && (last || next == Some(walked.end)) => PlainVerdict::Sound,
        () if !last => refused("A", bad.at),
        () if proof.is_some() => refused("B", bad.at),
        () if bad.checksum_right => refused("V", bad.at),
        () if torn => cut("F"),
        () if judged.policy == RecoveryPolicy::Strict => refused("G", bad.at),
        () => cut("G"),
    }
}

/// Whether a valid mark here states more than the records before the bad frame.
fn proves(kind: FramingKind, walked: &Walked, bytes: &[u8], at: usize) -> bool {
    let Some(window) = bytes.get(at..at + mark_len(kind)) else { return false };
    // Cheap, for what is asked at every byte.
    let begins = if kind == FramingKind::Pryj { &[0x18, 0, 0, 0x80] } else { magic(kind) };
    if !window.starts_with(begins) {
        return false;
    }
    match frame(kind, 2, &mut Sum::default(), window) {
        Plain::Mark(_, mark) => {
            let stands_here = mark.offset == at as u64 && mark.first <= mark.durable_end;
            let says_more =
                walked.salt.is_none() || (walked.salt == Some(mark.salt) && mark.durable_end > walked.end);
            stands_here && says_more
        }
        _ => false,
    }
}

/// Row F, block by block as the page says it.
fn is_torn(kind: FramingKind, bad: Bad, bytes: &[u8]) -> bool {
    let content = content_end(bytes).max(bad.at);
    let end = bad.len.map_or(content.max(bad.at + shortest_frame(kind)), |len| bad.at + len);
    let mut blocks = (bad.at / BLOCK * BLOCK..end.min(bytes.len())).step_by(BLOCK);
    let is_zero = |block: usize| {
        let held = &bytes[block.max(bad.at)..(block + BLOCK).min(bytes.len())];
        held.iter().all(|byte| *byte == 0)
    };
    bad.cut_short || content < end || blocks.any(is_zero)
}

fn content_end(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1)
}

impl Bad {
    const fn at(at: usize) -> Self {
        Self { at, len: None, cut_short: false, checksum_right: false, mark_in_version_1: false }
    }
}
