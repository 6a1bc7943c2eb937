//! Names: of journals, of their segment files, and of what lies beside them.

use alloc::{
    format,
    string::{String, ToString},
};
use core::fmt;

use crate::{SegmentId, Seq};

/// Digits of the first sequence number in a segment's file name.
const SEQ_DIGITS: usize = 20;
const SUFFIX: &str = ".seg";

/// The name of a journal within its directory: `[a-z0-9][a-z0-9._-]{0,63}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalName(String);

/// A name that no journal can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no journal name: use 1 to 64 of a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit"
)]
pub struct InvalidName(pub String);

impl JournalName {
    /// Longest name, in bytes.
    pub const LEN_MAX: usize = 64;

    /// Parses a name.
    ///
    /// # Errors
    /// [`InvalidName`] for anything that does not match the pattern above.
    pub fn parse(name: &str) -> Result<Self, InvalidName> {
        let valid_start = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let valid_rest = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'));
        if valid_start && valid_rest && name.len() <= Self::LEN_MAX {
            Ok(Self(name.to_string()))
        } else {
            Err(InvalidName(name.to_string()))
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The file name of one of its segments: `{name}-{first_seq:020}.seg`.
    ///
    /// ```
    /// use strandline_core::{JournalName, SegmentId, Seq};
    /// let name = JournalName::parse("events").unwrap();
    /// assert_eq!(name.segment_file(SegmentId(Seq::new(7))), "events-00000000000000000007.seg");
    /// ```
    #[must_use]
    pub fn segment_file(&self, segment: SegmentId) -> String {
        format!("{}-{segment}{SUFFIX}", self.0)
    }
}

impl fmt::Display for JournalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the name of a file in the directory says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A segment of the journal of this name.
    Segment {
        /// The journal it belongs to.
        journal: JournalName,
        /// Which segment it is.
        segment: SegmentId,
    },
    /// It ends like a segment file but its name is not exact (wrong number of digits, a number
    /// beyond the last sequence).
    NearSegment,
    /// Nothing of ours.
    Other,
}

impl FileKind {
    /// Classifies a file by its name alone.
    #[must_use]
    pub fn of(file: &str) -> Self {
        let Some(stem) = file.strip_suffix(SUFFIX) else { return Self::Other };
        let Some((name, digits)) = stem.rsplit_once('-') else { return Self::Other };
        let exact = digits.len() == SEQ_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
        match (JournalName::parse(name), digits.parse::<u64>()) {
            (Ok(journal), Ok(first)) if exact && first < u64::MAX => {
                Self::Segment { journal, segment: SegmentId(Seq::new(first)) }
            }
            _ => Self::NearSegment,
        }
    }

    /// Whether `file` looks as if it were meant as a segment of `journal`, but is not one, nor one
    /// of another journal: `{journal}-*.seg`. Such a file makes the set of segments doubtful.
    #[must_use]
    pub fn is_doubtful(file: &str, journal: &JournalName) -> bool {
        let looks_like = file
            .strip_prefix(journal.as_str())
            .is_some_and(|rest| rest.starts_with('-') && rest.ends_with(SUFFIX));
        looks_like && matches!(Self::of(file), Self::NearSegment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_the_pattern_are_refused() {
        for bad in ["", "-a", ".a", "A", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert_eq!(JournalName::parse(bad), Err(InvalidName(bad.to_string())), "{bad:?}");
        }
        for good in ["a", "0", "event-journal", "a.b_c-d", &"x".repeat(64)] {
            assert!(JournalName::parse(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn a_segment_name_is_exactly_twenty_digits() {
        let of = FileKind::of;
        let journal = JournalName::parse("events").unwrap();
        assert_eq!(
            of("events-00000000000000000012.seg"),
            FileKind::Segment { journal: journal.clone(), segment: SegmentId(Seq::new(12)) }
        );
        assert_eq!(of("events-12.seg"), FileKind::NearSegment);
        assert_eq!(of("events-18446744073709551615.seg"), FileKind::NearSegment, "no record has this number");
        assert_eq!(of("events-99999999999999999999.seg"), FileKind::NearSegment);
        assert_eq!(of("events-00000000000000000012.seg.torn-40"), FileKind::Other);
        assert!(FileKind::is_doubtful("events-12.seg", &journal));
        assert!(FileKind::is_doubtful("events-.seg", &journal));
        assert!(!FileKind::is_doubtful("events-more-00000000000000000001.seg", &journal), "another journal");
        assert!(!FileKind::is_doubtful("event-12.seg", &journal));
    }
}
