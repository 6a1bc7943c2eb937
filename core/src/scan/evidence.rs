//! What lies behind the first bad byte: one linear pass over the rest of the file.

use crate::framing::{Front, front};
use crate::{Framing, Layout, Mark, SegmentId, Seq};

use super::verdict::Evidence;

/// Zeros to compare with, as long as the largest block.
static ZEROS: [u8; 4096] = [0; 4096];

/// The bad frame, as the walk met it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BadFrame {
    /// The first bad byte.
    pub(super) offset: u64,
    /// Its length, where its bounds can be read and the file has them.
    pub(super) len: Option<u64>,
    /// The file ends inside the frame.
    pub(super) cut_short: bool,
    /// Its checksum is right.
    pub(super) checksum_right: bool,
}

/// What the search for proof looks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) segment: SegmentId,
    pub(super) layout: Layout,
    /// The segment's salt; without one, any mark at its own position counts.
    pub(super) salt: Option<u64>,
    /// Only a mark that states more than this proves anything.
    pub(super) expected: Seq,
}

/// The pass over the rest of the file.
///
/// Bytes come in order, but consecutive pieces may overlap: a mark that a piece cuts in two is seen
/// whole in the next one.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) bad: BadFrame,
    wanted: Wanted,
    file_bytes: u64,
    block_bytes: u64,
    /// Bytes before this were looked at for zeros.
    zeros_to: u64,
    /// Positions before this were looked at for marks.
    marks_to: u64,
    last_non_zero: Option<u64>,
    first_zero_block: Option<u64>,
    block_is_zero: bool,
    proof: Option<Mark>,
}

impl Search {
    pub(super) fn new(bad: BadFrame, wanted: Wanted, file_bytes: u64, block_bytes: u64) -> Self {
        Self {
            bad,
            wanted,
            file_bytes,
            block_bytes: block_bytes.max(1),
            zeros_to: bad.offset,
            marks_to: bad.offset,
            last_non_zero: None,
            first_zero_block: None,
            block_is_zero: true,
            proof: None,
        }
    }

    pub(super) const fn segment(&self) -> SegmentId {
        self.wanted.segment
    }

    pub(super) const fn proof(&self) -> Option<Mark> {
        self.proof
    }

    /// Where the next piece shall begin; nothing once the end of the file was seen.
    pub(super) fn wants(&self) -> Option<u64> {
        (self.zeros_to < self.file_bytes).then_some(self.marks_to)
    }

    /// Looks at one more piece, which begins at `base`.
    pub(super) fn feed<F: Framing>(&mut self, piece: &[u8], base: u64) {
        self.look_for_zeros(piece, base);
        self.look_for_marks::<F>(piece, base);
    }

    /// The bytes that hold something, counted from the first bad one.
    pub(super) fn bytes_with_content(&self) -> u64 {
        self.last_non_zero.map_or(0, |last| last + 1 - self.bad.offset)
    }

    /// The facts, once the whole rest was seen.
    pub(super) fn evidence<F: Framing>(&self, last: bool, meets_successor: bool) -> Evidence {
        Evidence {
            last,
            short: false,
            head_invalid: false,
            rest_zero: self.last_non_zero.is_none(),
            meets_successor,
            proven_beyond: self.proof.is_some(),
            checksum_right: self.bad.checksum_right,
            torn: self.is_torn::<F>(),
        }
    }

    /// Row F: the file ends inside the frame, its last bytes are zeros to the end of the file, or a
    /// block that it touches was never written. A frame whose bounds cannot be read extends to the
    /// last byte that is not zero, but is no shorter than the shortest frame.
    fn is_torn<F: Framing>(&self) -> bool {
        let content_end = self.bad.offset + self.bytes_with_content();
        let shortest = content_end.max(self.bad.offset.saturating_add(F::FRAME_LEN_MIN as u64));
        let frame_end = self.bad.len.map_or(shortest, |len| self.bad.offset.saturating_add(len));
        self.bad.cut_short
            || content_end < frame_end
            || self.first_zero_block.is_some_and(|start| start < frame_end)
    }

    fn look_for_zeros(&mut self, piece: &[u8], base: u64) {
        let skip = usize::try_from(self.zeros_to.saturating_sub(base)).unwrap_or(usize::MAX);
        let mut rest = piece.get(skip..).unwrap_or_default();
        while !rest.is_empty() {
            let block_end = (self.zeros_to / self.block_bytes + 1).saturating_mul(self.block_bytes);
            let in_block = usize::try_from(block_end - self.zeros_to).unwrap_or(usize::MAX);
            let (part, behind) = rest.split_at_checked(in_block).unwrap_or((rest, &[]));
            if !is_zero(part) {
                let within = part.iter().rposition(|byte| *byte != 0).unwrap_or(0);
                self.last_non_zero = Some(self.zeros_to + within as u64);
                self.block_is_zero = false;
            }
            self.zeros_to += part.len() as u64;
            // A last block that the file does not fill needs no look: zeros to the end of the file inside a frame
            // are torn by themselves.
            if self.zeros_to == block_end {
                if self.block_is_zero && self.first_zero_block.is_none() {
                    self.first_zero_block = Some((block_end - self.block_bytes).max(self.bad.offset));
                }
                self.block_is_zero = true;
            }
            rest = behind;
        }
    }

    fn look_for_marks<F: Framing>(&mut self, piece: &[u8], base: u64) {
        // Each piece begins where the search for marks wants to go on.
        let windows = piece.windows(F::MARK_LEN);
        self.marks_to = base + windows.len() as u64;
        if self.proof.is_some() || is_zero(piece) {
            return;
        }
        let mut positions = (base..).zip(windows);
        let proof = positions.find(|(at, window)| self.is_proof::<F>(window, *at));
        self.proof = proof.and_then(|(_, window)| F::parse_mark(window));
    }

    /// The cheap tests come first, so that hostile bytes cannot make the search slow.
    fn is_proof<F: Framing>(&self, window: &[u8], at: u64) -> bool {
        let Some(mark) = F::parse_mark(window) else { return false };
        let fits = mark.offset == at
            && self.wanted.salt.is_none_or(|salt| salt == mark.salt)
            && mark.first <= mark.durable_end
            && (mark.durable_end > self.wanted.expected || self.wanted.salt.is_none());
        fits && matches!(
            front::<F>(self.wanted.layout, window),
            Front::Whole { frame: crate::framing::Frame::Mark(_), .. }
        )
    }
}

/// Whether all bytes are zero, compared a page at a time.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|chunk| ZEROS.starts_with(chunk))
}
