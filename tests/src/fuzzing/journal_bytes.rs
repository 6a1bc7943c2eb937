//! Arbitrary bytes as the files of a journal.
//!
//! The first bytes say how they are looked at and cut into files, and how much of their beginnings is made right; see
//! [`Control`]. Everything behind is the files, as they are.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use strandline::core::{FramingKind, RecoveryPolicy};

use super::agreement::{Look, look};
use super::plain_encode::{Mending, mend};
use super::plain_journal::{Judged, judge};

const FILES_MAX: usize = 6;

/// The first number of the first file.
const FIRSTS: [u64; 8] = [0, 1, 1, 7, 1_000, 1 << 32, u64::MAX - 3, u64::MAX - 1];

/// The first four bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) kind: FramingKind,
    pub(super) look: Look,
    pub(super) mending: Mending,
    pub(super) first: u64,
}

pub(super) fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    if let Ok(control) = Control::read(&mut input)
        && let Ok(files) = cut(control, &mut input)
        && !files.is_empty()
    {
        let _ = look(control.kind, &files, control.look);
    }
}

impl Control {
    /// Every byte has a meaning for every value, so that a fuzzer wastes none.
    pub(super) fn read(input: &mut Unstructured<'_>) -> Result<Self> {
        let [flags, more, frames, first]: [u8; 4] = input.arbitrary()?;
        let bit = |n: u8| flags & (1 << n) != 0;
        let look = Look {
            policy: if bit(1) { RecoveryPolicy::Strict } else { RecoveryPolicy::Standard },
            version: if bit(2) { 1 } else { 2 },
            reserve: bit(3),
            // One in eight.
            bare: more & 7 == 7,
        };
        let version = if bit(4) { 1 } else { 2 };
        // Right more often than not.
        let (head, wrong) = (!(bit(5) && bit(6)), more >> 3 & 7);
        let mending = Mending { version, head, wrong, frames: usize::from(frames) };
        let kind = if bit(0) { FramingKind::Pcpj } else { FramingKind::Pryj };
        Ok(Self { kind, look, mending, first: FIRSTS[usize::from(first) % FIRSTS.len()] })
    }
}

/// Each file is a length, a step from where the one before ends, and its bytes; the last has all that is left.
fn cut(control: Control, input: &mut Unstructured<'_>) -> Result<BTreeMap<u64, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut next = control.first;
    while !input.is_empty() && files.len() < FILES_MAX {
        let len = usize::from(input.arbitrary::<u16>()?);
        let step = i64::from(input.arbitrary::<i8>()?);
        // Most files follow on each other.
        let step = if step.abs() > 8 || files.is_empty() { 0 } else { step };
        let first = next.saturating_add_signed(step).min(u64::MAX - 1);
        let is_last = control.look.bare || len >= input.len() || files.len() + 1 == FILES_MAX;
        let len = if is_last { input.len() } else { len };
        let mut bytes = input.bytes(len)?.to_vec();
        mend(control.kind, control.mending, first, &mut bytes);
        let alone = BTreeMap::from([(if control.look.bare { 0 } else { first }, bytes)]);
        next = judge(Judged {
            kind: control.kind,
            policy: RecoveryPolicy::Standard,
            bare: false,
            files: &alone,
        })
        .end;
        files.extend(alone);
    }
    Ok(files)
}
