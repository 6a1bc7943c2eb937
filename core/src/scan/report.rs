//! What a scan found, in words for people and in fields for programs.

use alloc::vec::Vec;

use super::verdict::Row;
use crate::{IoFailure, Mark, SegmentId, Seq};

/// What a scan found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every segment that was looked at, in order; the last one may be where the scan stopped.
    pub segments: Vec<SegmentReport>,
    /// The journal's logical start: the first sequence number that is kept.
    pub first: Seq,
    /// One past the last valid record.
    pub end: Seq,
    /// Every record before this is proven to have been durable, by a mark or by a later segment.
    pub proven_end: Seq,
    /// The verdict on the whole.
    pub verdict: Verdict,
    /// What recovery did about it; nothing after a scan alone.
    pub repair: Repair,
    /// What recovery needs to know of the last segment.
    pub(crate) last: Option<LastSegment>,
}

impl Report {
    /// How many records are kept.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.first.until(self.end)
    }

    /// Records at the end that no mark proves yet. They are valid, but a power loss before the
    /// next mark could have taken them.
    #[must_use]
    pub const fn unproven(&self) -> u64 {
        self.proven_end.until(self.end)
    }
}

/// One segment of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// Which segment.
    pub id: SegmentId,
    /// Its format version; 0 if the file is too short to tell.
    pub version: u8,
    /// Its first sequence number.
    pub first: Seq,
    /// One past its last valid record.
    pub end: Seq,
    /// Valid marks in it.
    pub marks: u64,
    /// Bytes of valid frames, header included.
    pub bytes: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// What proves its records.
    pub proof: Proof,
    /// The verdict's row, where its frames end before the file does.
    pub row: Option<Row>,
}

/// What proves that a segment's records were durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The next segment exists, and it is only created after this one was synced.
    Successor,
    /// The newest mark, at this offset, which states this end.
    Mark {
        /// The mark's position in the file.
        offset: u64,
        /// Every record before this is proven.
        durable_end: Seq,
    },
    /// Nothing: version 1 has no marks.
    Nothing,
}

/// The verdict on a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every frame is valid up to the end.
    Sound,
    /// The tail is torn; opening for writing cuts it.
    Cut(Cut),
    /// The journal is damaged, or not one that this version can judge; opening it changes nothing.
    Refused(Refusal),
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sound => f.write_str("sound"),
            Self::Cut(cut) => write!(f, "torn: {cut}"),
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
        }
    }
}

/// A torn tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment with the tail.
    pub segment: SegmentId,
    /// The first bad byte, where the file is cut.
    pub offset: u64,
    /// Bytes cut, reserved zeros at the end not counted.
    pub bytes: u64,
    /// The first sequence number that is lost, if a record was there at all.
    pub first_lost: Seq,
    /// The row of the verdict table.
    pub row: Row,
}

impl core::fmt::Display for Cut {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "segment {}: {} bytes from offset {} on are a torn tail (row {}: {}); the first sequence number lost is {}",
            self.segment,
            self.bytes,
            self.offset,
            self.row,
            self.row.rule().meaning,
            self.first_lost
        )
    }
}

/// What recovery changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The tail was cut.
    pub cut: bool,
    /// The cut bytes were kept beside the segment. False also where there was no space for them.
    pub set_aside: bool,
    /// Bytes at the end that were written and synced again, because no mark proves them.
    pub rewritten: u64,
}

/// Why a journal is refused. Opening it changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The file does not begin like a segment.
    #[error(
        "segment {segment}: the file does not begin with {expected}, so it is no segment of this journal: move it away, or name another journal"
    )]
    Magic {
        /// The file.
        segment: SegmentId,
        /// The magic of the journal's framing.
        expected: &'static str,
    },
    /// Its version is newer than this program, or none at all.
    #[error(
        "segment {segment}: format version {version} is not supported by this program (1 and 2 are): use a newer one"
    )]
    UnsupportedVersion {
        /// The file.
        segment: SegmentId,
        /// The version it states.
        version: u16,
    },
    /// Header and file name do not fit each other, or a reserved byte is set.
    #[error(
        "segment {segment}: the header does not fit the file's name at byte {offset}: restore the file's name or its first bytes"
    )]
    HeaderMismatch {
        /// The file.
        segment: SegmentId,
        /// The first byte that differs.
        offset: u64,
    },
    /// Sequence numbers are missing between two segments.
    #[error("records {missing} to {} are missing: segment {segment} ends before {missing}, the next file is {next}: restore the missing segment", next.0.previous())]
    Gap {
        /// The segment before the gap.
        segment: SegmentId,
        /// The first missing sequence number.
        missing: Seq,
        /// The segment behind the gap.
        next: SegmentId,
    },
    /// Two segments hold the same sequence numbers.
    #[error(
        "segments {segment} and {next} overlap: the first one goes on to {end} (exclusive): move the file that does not belong here away"
    )]
    Overlap {
        /// The first of the two.
        segment: SegmentId,
        /// Where it ends.
        end: Seq,
        /// The other.
        next: SegmentId,
    },
    /// A mark stands in a version 1 file, which has none.
    #[error(
        "segment {segment}: a valid mark at offset {offset} in a version 1 file: its version was damaged, restore it from a copy"
    )]
    MarkInVersion1 {
        /// The file.
        segment: SegmentId,
        /// Where the mark stands.
        offset: u64,
    },
    /// A bad frame, judged by the verdict table.
    #[error("segment {segment}: damaged at offset {offset}, where record {expected} was expected (row {row}: {}){}", row.rule().meaning, Proven(*proof))]
    Damaged {
        /// The segment.
        segment: SegmentId,
        /// The first bad byte.
        offset: u64,
        /// The sequence number expected there.
        expected: Seq,
        /// The row of the verdict table.
        row: Row,
        /// The mark that proves it, for row B.
        proof: Option<Mark>,
    },
    /// A read failed. A read error is never evidence of a tear.
    #[error("segment {segment}: offset {offset}: {failure}: check the disk and try again")]
    Unreadable {
        /// The segment.
        segment: SegmentId,
        /// Where the read began.
        offset: u64,
        /// What failed.
        failure: IoFailure,
    },
    /// The file became shorter while it was read.
    #[error(
        "segment {segment}: the file shrank to {len} bytes while it was read: another program changes it; try again"
    )]
    Shrank {
        /// The segment.
        segment: SegmentId,
        /// Its length now, as far as was read.
        len: u64,
    },
}

impl Refusal {
    /// The segment that it is about.
    #[must_use]
    pub const fn segment(&self) -> SegmentId {
        match self {
            Self::Magic { segment, .. }
            | Self::UnsupportedVersion { segment, .. }
            | Self::HeaderMismatch { segment, .. }
            | Self::Gap { segment, .. }
            | Self::Overlap { segment, .. }
            | Self::MarkInVersion1 { segment, .. }
            | Self::Damaged { segment, .. }
            | Self::Unreadable { segment, .. }
            | Self::Shrank { segment, .. } => *segment,
        }
    }

    /// The row of the verdict table, where the table decided.
    #[must_use]
    pub const fn row(&self) -> Option<Row> {
        match self {
            Self::Damaged { row, .. } => Some(*row),
            _ => None,
        }
    }
}

/// The proving mark, for a message.
struct Proven(Option<Mark>);

impl core::fmt::Display for Proven {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(mark) => write!(
                f,
                "; the mark at offset {} states that every record before {} was durable. Restore the segment from a copy; \
                 if this directory is a raw copy of one that a writer held open, copy it again with `Journal::backup`",
                mark.offset, mark.durable_end
            ),
            None => f.write_str(". Restore the segment from a copy"),
        }
    }
}

/// What recovery needs to know of the last segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastSegment {
    /// Its salt, where it has marks.
    pub(crate) salt: Option<u64>,
    /// Its last frame, if that is a mark.
    pub(crate) last_mark: Option<Mark>,
    /// From here on nothing is proven: the end of the last record that a mark covers, or 0.
    pub(crate) proven_bytes: u64,
    /// Length of the file.
    pub(crate) file_bytes: u64,
}
