//! The beginning of a segment file: what must fit before any row of the verdict table is asked.

use bytes::BytesMut;

use super::report::Refusal;
use crate::framing::{Frame, Front, front};
use crate::listing::Naming;
use crate::{Framing, Layout, Mark, SegmentId, Seq};

/// What the beginning of a file says.
pub(super) enum Head {
    /// Shorter than its header and first mark.
    Short {
        /// Its version, if the file reaches that far.
        version: u8,
    },
    /// The header or first mark is there in full length and invalid.
    Invalid {
        /// Its version.
        version: u8,
        /// Where the invalid part begins.
        offset: u64,
    },
    /// All of it fits.
    Valid {
        /// The layout of its frames.
        layout: Layout,
        /// The sequence number of its first record.
        first: Seq,
        /// Its first mark, where it has marks.
        mark: Option<Mark>,
        /// Where its records begin.
        records_at: u64,
    },
}

/// Bytes at the beginning of a file that [`read_head`] may look at.
pub(super) const fn head_len<F: Framing>() -> usize {
    F::HEADER_LEN + F::MARK_LEN
}

/// Judges the beginning of a file. `held` is the file's first [`head_len`] bytes, or all it has.
/// `before` is the layout of the segment before it.
pub(super) fn read_head<F: Framing>(
    held: &[u8],
    id: SegmentId,
    naming: Naming,
    before: Option<Layout>,
) -> Result<Head, Refusal> {
    let magic_len = held.len().min(F::MAGIC.len());
    if !F::MAGIC.starts_with(held.get(..magic_len).unwrap_or_default()) {
        return Err(Refusal::Magic { segment: id, expected: F::LABEL });
    }
    if held.is_empty() && F::HEADER_LEN == 0 && before.is_none_or(|before| !before.has_marks()) {
        // Without a header, nothing is missing: version 1 files are created empty. Behind a segment with
        // marks it would have had one.
        let first = if naming == Naming::Numbered { id.0 } else { Seq::ZERO };
        return Ok(Head::Valid { layout: F::layout(1), first, mark: None, records_at: 0 });
    }
    let Some(stated) = F::stated_version(held) else { return Ok(Head::Short { version: 0 }) };
    let version = match stated {
        1 => 1,
        2 => 2,
        version => return Err(Refusal::UnsupportedVersion { segment: id, version }),
    };
    let layout = F::layout(version);
    let first = match naming {
        Naming::Numbered => id.0,
        Naming::Bare => F::stated_first(held).unwrap_or_default(),
    };
    check_header::<F>(held, version, id, first)?;
    if layout.has_marks() {
        return first_mark::<F>(held, layout, id, first, naming);
    }
    if held.len() < F::HEADER_LEN {
        return Ok(Head::Short { version });
    }
    Ok(Head::Valid { layout, first, mark: None, records_at: F::HEADER_LEN as u64 })
}

/// The header must be, as far as the file holds it, exactly the one that its name asks for.
fn check_header<F: Framing>(held: &[u8], version: u8, id: SegmentId, first: Seq) -> Result<(), Refusal> {
    let mut header = BytesMut::with_capacity(F::HEADER_LEN);
    F::encode_header(version, first, &mut header);
    match header.iter().zip(held).position(|(wanted, found)| wanted != found) {
        Some(offset) => Err(Refusal::HeaderMismatch { segment: id, offset: offset as u64 }),
        None => Ok(()),
    }
}

fn first_mark<F: Framing>(
    held: &[u8],
    layout: Layout,
    id: SegmentId,
    first: Seq,
    naming: Naming,
) -> Result<Head, Refusal> {
    let version = layout.version;
    let Some(bytes) = held.get(F::HEADER_LEN..head_len::<F>()) else { return Ok(Head::Short { version }) };
    let offset = F::HEADER_LEN as u64;
    let Front::Whole { frame: Frame::Mark(mark), .. } = front::<F>(layout, bytes) else {
        return Ok(Head::Invalid { version, offset });
    };
    if F::HEADER_LEN == 0 && naming == Naming::Numbered && mark.durable_end != first {
        return Err(Refusal::HeaderMismatch { segment: id, offset });
    }
    if mark.durable_end != first || mark.offset != offset || mark.first > mark.durable_end {
        return Ok(Head::Invalid { version, offset });
    }
    Ok(Head::Valid { layout, first, mark: Some(mark), records_at: head_len::<F>() as u64 })
}
