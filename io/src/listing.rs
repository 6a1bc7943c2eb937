//! Which files of a directory make up a journal.
//!
//! Strict where a mistake would lose records, lenient where it would not: a file that was meant as a segment
//! but is not named like one makes the set doubtful and is refused; what belongs to others is left alone.

use std::fmt;

use strandline_core::{FileKind, IoFailure, IoOperation, JournalName, Listing, SegmentFile};

use crate::disk::{Disk, Entry};
use crate::failure::failed;
use crate::temporary::{is_temporary_of, is_torn_copy_of};

/// One journal's files, as found in its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFiles {
    /// Its segments; empty if the journal does not exist yet.
    pub listing: Listing,
    /// What was left alone although it looks as if it were meant for this journal.
    pub warnings: Vec<ListingWarning>,
    /// Bytes of what lies beside the segments and is the journal's own: spares, leftovers of interrupted
    /// creates, copies of cut bytes.
    pub other_bytes: u64,
}

/// An entry of the directory that was ignored, but that somebody may want to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListingWarning {
    /// A directory, socket or the like that is named as a segment.
    NotAFile {
        /// Its name.
        name: String,
    },
    /// A file whose name begins like a segment's and goes on differently, such as a copy made by hand.
    Unknown {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for ListingWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFile { name } => write!(f, "{name:?} is named like a segment but is no file; ignored"),
            Self::Unknown { name } => write!(f, "{name:?} is no file of the journal; ignored"),
        }
    }
}

/// Why a directory's files cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// The directory could not be read.
    #[error("the directory cannot be listed: {0}; check its permissions")]
    Io(#[from] IoFailure),
    /// What bears the name of one of the journal's segments is no file. A journal that is written would replace it, or fail
    /// to, once it comes to that number.
    #[error(
        "{name:?} has the name of a segment of the journal {journal} and is no file: move it out of the directory"
    )]
    InTheWay {
        /// The journal.
        journal: JournalName,
        /// Its name.
        name: String,
    },
    /// A file that looks like a segment of the journal, under a name that no segment has.
    #[error(
        "{file:?} looks like a segment of the journal {journal} but has no segment's name ({journal}-, 20 digits, .seg); \
         rename it if it is one, or move it out of the directory"
    )]
    Doubtful {
        /// The journal that it may belong to.
        journal: JournalName,
        /// Its name.
        file: String,
    },
}

/// The names of the journals that have a segment in the directory, in order.
///
/// # Errors
/// [`ListingError::Io`] if the directory cannot be listed.
pub fn journals<D: Disk>(disk: &D) -> Result<Vec<JournalName>, ListingError> {
    let mut names: Vec<_> = entries(disk)?
        .into_iter()
        .filter(|entry| entry.is_file)
        .filter_map(|entry| match FileKind::of(&entry.name) {
            FileKind::Segment { journal, .. } => Some(journal),
            FileKind::NearSegment | FileKind::Other => None,
        })
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// The files of a journal that is to be written.
///
/// # Errors
/// [`ListingError`], [`ListingError::InTheWay`] among them.
pub(crate) fn files_to_write<D: Disk>(disk: &D, journal: &JournalName) -> Result<JournalFiles, ListingError> {
    let files = files_of(disk, journal)?;
    let is_segments = |name: &String| matches!(FileKind::of(name), FileKind::Segment { .. });
    for warning in &files.warnings {
        if let ListingWarning::NotAFile { name } = warning
            && is_segments(name)
        {
            return Err(ListingError::InTheWay { journal: journal.clone(), name: name.clone() });
        }
    }
    Ok(files)
}

/// The files of one journal.
///
/// # Errors
/// [`ListingError`]: the directory cannot be listed, or holds a file of which it is doubtful whether it
/// is a segment of this journal.
pub fn files_of<D: Disk>(disk: &D, journal: &JournalName) -> Result<JournalFiles, ListingError> {
    let mut segments = Vec::new();
    let mut warnings = Vec::new();
    let mut other_bytes = 0;
    for Entry { name, len, is_file } in entries(disk)? {
        match (FileKind::of(&name), is_file) {
            (FileKind::Segment { journal: of, segment }, true) if of == *journal => {
                segments.push(SegmentFile { id: segment, len });
            }
            (FileKind::Segment { journal: of, .. }, false) if of == *journal => {
                warnings.push(ListingWarning::NotAFile { name });
            }
            (FileKind::Segment { .. }, _) => {} // another journal's
            _ if FileKind::is_doubtful(&name, journal) => {
                if is_file {
                    return Err(ListingError::Doubtful { journal: journal.clone(), file: name });
                }
                warnings.push(ListingWarning::NotAFile { name });
            }
            (_, true) if is_temporary_of(&name, journal) || is_torn_copy_of(&name, journal) => {
                other_bytes += len;
            }
            (_, true) if begins_like_a_segment(&name, journal) => {
                warnings.push(ListingWarning::Unknown { name });
            }
            _ => {}
        }
    }
    Ok(JournalFiles { listing: Listing::Segments(segments), warnings, other_bytes })
}

/// The entries in order of their names, so that warnings and errors do not depend on the file system.
fn entries<D: Disk>(disk: &D) -> Result<Vec<Entry>, IoFailure> {
    let mut entries = disk.list().map_err(failed(IoOperation::List))?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// `{journal}-{digits}.seg` and something more: `.bak`, `.repair`, `.swp`.
fn begins_like_a_segment(file: &str, journal: &JournalName) -> bool {
    let rest = file.strip_prefix(journal.as_str()).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|rest| rest.split_once(".seg"))
        .is_some_and(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_disk::TestDisk;
    use strandline_core::{SegmentId, Seq};

    fn name(name: &str) -> JournalName {
        JournalName::parse(name).unwrap()
    }

    fn segment(first: u64, len: u64) -> SegmentFile {
        SegmentFile { id: SegmentId(Seq::new(first)), len }
    }

    #[test]
    fn journals_of_one_directory_are_told_apart() {
        let disk = TestDisk::new();
        assert_eq!(journals(&disk), Ok(vec![]));
        disk.put("a-00000000000000000000.seg", "123");
        disk.put("a-00000000000000000009.seg", "1");
        disk.put("a-b-00000000000000000001.seg", "12");
        disk.put("c-1.seg", "no journal's");
        disk.put("notes.txt", "");
        std::fs::create_dir(disk.path().join("lost+found")).unwrap();
        std::fs::create_dir(disk.path().join("d-00000000000000000001.seg")).unwrap();
        assert_eq!(journals(&disk), Ok(vec![name("a"), name("a-b")]));
        let files = files_of(&disk, &name("a")).unwrap();
        assert_eq!(files.listing, Listing::Segments(vec![segment(0, 3), segment(9, 1)]));
        assert_eq!(files.warnings, []);
        let files = files_of(&disk, &name("new")).unwrap();
        assert_eq!(files.listing, Listing::Segments(vec![]));
    }

    #[test]
    fn a_doubtful_name_is_refused() {
        for file in ["a-1.seg", "a-0000000000000000000x.seg", "a-18446744073709551615.seg", "a-.seg"] {
            let disk = TestDisk::new();
            disk.put("a-00000000000000000000.seg", "");
            disk.put(file, "");
            let error = files_of(&disk, &name("a")).unwrap_err();
            assert_eq!(error, ListingError::Doubtful { journal: name("a"), file: file.to_string() });
            assert!(error.to_string().contains(file), "{error}");
            assert!(files_of(&disk, &name("b")).is_ok(), "{file} is nothing to another journal");
        }
    }

    #[test]
    fn what_is_ignored_is_counted_or_told() {
        let disk = TestDisk::new();
        disk.put("a-00000000000000000000.seg.new-1", "12");
        disk.put("a-00000000000000000000.seg.torn-8", "345");
        disk.put("a.spare.new-0", "6");
        disk.put("a-00000000000000000000.seg.bak", "");
        std::fs::create_dir(disk.path().join("a-00000000000000000001.seg")).unwrap();
        std::fs::create_dir(disk.path().join("a-2.seg")).unwrap();
        let files = files_of(&disk, &name("a")).unwrap();
        assert_eq!(files.listing, Listing::Segments(vec![]));
        assert_eq!(files.other_bytes, 6);
        assert_eq!(
            files.warnings,
            [
                ListingWarning::Unknown { name: "a-00000000000000000000.seg.bak".into() },
                ListingWarning::NotAFile { name: "a-00000000000000000001.seg".into() },
                ListingWarning::NotAFile { name: "a-2.seg".into() },
            ]
        );
    }
}
