//! The files of one journal, as the directory lists them.

use alloc::vec::Vec;

use crate::{SegmentId, Seq};

/// One segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    /// The segment that its name says it is.
    pub id: SegmentId,
    /// Its length in bytes.
    pub len: u64,
}

/// The files of one journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Its segments, in any order; each number at most once (they are file names).
    Segments(Vec<SegmentFile>),
    /// A single file without a sequence number in its name, such as `event-journal.bin`. It starts at
    /// its first entry's number; reads of it name [`Listing::BARE`].
    Bare {
        /// Its length in bytes.
        len: u64,
    },
}

impl Listing {
    /// The segment that reads of a bare file name.
    pub const BARE: SegmentId = SegmentId(Seq::ZERO);

    /// Bytes of all files together.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Segments(files) => files.iter().fold(0, |sum, file| sum.saturating_add(file.len)),
            Self::Bare { len } => *len,
        }
    }

    /// The files in order of their first sequence number.
    pub(crate) fn into_ordered(self) -> (Vec<SegmentFile>, Naming) {
        match self {
            Self::Segments(mut files) => {
                files.sort_by_key(|file| file.id);
                (files, Naming::Numbered)
            }
            Self::Bare { len } => (Vec::from([SegmentFile { id: Self::BARE, len }]), Naming::Bare),
        }
    }
}

/// Whether a file's name states its first sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Numbered,
    Bare,
}
