//! Names of files that are not finished yet, and of copies of cut bytes.
//!
//! Everything is written under a temporary name first and renamed when it is whole and synced:
//!
//! | file | name | temporary name |
//! |---|---|---|
//! | segment | `{name}-{first_seq:020}.seg` | `{segment}.new-{n}` |
//! | copy of cut bytes | `{segment}.torn-{offset}`, `.torn-{offset}.{k}` | the same with `.new-{n}` |
//! | spare segment | none until it becomes a segment | `{name}.spare.new-{n}` |
//!
//! A temporary name never ends in `.seg`, and says which journal it belongs to, so that one
//! journal leaves alone what another one in the same directory is just writing.

use std::io::ErrorKind;

use strandline_core::{FileKind, IoFailure, IoOperation, JournalName};

use crate::disk::Disk;
use crate::failure::failed;
use crate::sync::atomic::{AtomicU64, Ordering};

const TEMPORARY: &str = ".new-";
const TORN: &str = ".torn-";

/// Gives out temporary names of one journal.
#[derive(Debug, Default)]
pub(crate) struct Temporaries {
    next: AtomicU64,
}

impl Temporaries {
    /// Creates a file under a temporary name derived from `target`; leftovers of the same name are skipped.
    pub(crate) fn create<D: Disk>(&self, disk: &D, target: &str) -> Result<(String, D::File), IoFailure> {
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let name = format!("{target}{TEMPORARY}{n}");
            match disk.create(&name) {
                Ok(file) => return Ok((name, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(IoOperation::Open)(error)),
            }
        }
    }
}

/// The name from which temporary names of spare segments are made.
pub(crate) fn spare_target(journal: &JournalName) -> String {
    format!("{journal}.spare")
}

/// The name of the `k`-th copy of bytes that were cut from a segment at `offset`.
pub(crate) fn torn_copy(segment_file: &str, offset: u64, k: u32) -> String {
    match k {
        0 => format!("{segment_file}{TORN}{offset}"),
        _ => format!("{segment_file}{TORN}{offset}.{k}"),
    }
}

/// Whether `file` is a temporary file of this journal.
pub(crate) fn is_temporary_of(file: &str, journal: &JournalName) -> bool {
    let Some((target, n)) = file.rsplit_once(TEMPORARY) else { return false };
    let is_target =
        target == spare_target(journal) || is_segment_of(target, journal) || is_torn_copy_of(target, journal);
    is_target && is_number(n)
}

/// Whether `file` is a copy of bytes that were cut from a segment of this journal.
pub(crate) fn is_torn_copy_of(file: &str, journal: &JournalName) -> bool {
    let Some((segment, place)) = file.rsplit_once(TORN) else { return false };
    let (offset, k) = place.split_once('.').unwrap_or((place, "1"));
    is_segment_of(segment, journal) && is_number(offset) && is_number(k)
}

fn is_segment_of(file: &str, journal: &JournalName) -> bool {
    matches!(FileKind::of(file), FileKind::Segment { journal: of, .. } if of == *journal)
}

fn is_number(digits: &str) -> bool {
    digits.parse::<u64>().is_ok() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_of_the_same_journal_are_ours() {
        let journal = JournalName::parse("a").unwrap();
        let segment = "a-00000000000000000007.seg";
        for ours in [
            format!("{segment}.new-0"),
            format!("{segment}.torn-40.new-12"),
            format!("{segment}.torn-40.2.new-12"),
            "a.spare.new-3".to_string(),
        ] {
            assert!(is_temporary_of(&ours, &journal), "{ours}");
            assert_eq!(FileKind::of(&ours), FileKind::Other, "{ours} is no segment");
        }
        for foreign in [
            segment.to_string(),
            format!("{segment}.new-"),
            format!("{segment}.new-+1"),
            format!("{segment}.torn-40"),
            "b-00000000000000000007.seg.new-0".to_string(),
            "a.spare-00000000000000000007.seg.new-0".to_string(),
            "a-7.seg.new-0".to_string(),
            "notes.new-1".to_string(),
        ] {
            assert!(!is_temporary_of(&foreign, &journal), "{foreign}");
        }
        assert!(is_torn_copy_of(&torn_copy(segment, 40, 0), &journal));
        assert!(is_torn_copy_of(&torn_copy(segment, 40, 3), &journal));
        assert!(!is_torn_copy_of("b-00000000000000000007.seg.torn-40", &journal));
    }
}
