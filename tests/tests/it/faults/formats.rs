//! Versions: what is newer is "unsupported", never damage; and old readers refuse new files by their header.

use strandline::core::{Pcpj, Refusal, ScanOptions, Verdict, verdict::Row};
use strandline::{JournalName, Target, inspect_on};

use super::lab::{JOURNAL, Lab, config, file};

#[test]
fn fault_145_newer_versions_and_unknown_kinds_are_refused_and_nothing_is_cut() {
    let lab = Lab::with_commits(config(), &[&[60], &[60]]);
    lab.edit(&file(0), |bytes| bytes[4] = 3);
    assert!(matches!(lab.refusal(config()), Refusal::UnsupportedVersion { version: 3, .. }));

    // An unknown flag in a length word that a mark proves to have been durable.
    let lab = Lab::with_commits(config(), &[&[60], &[60], &[60]]);
    lab.edit(&file(0), |bytes| bytes[56 + 3] |= 0x40);
    assert_eq!(lab.damage().0, Row::B);

    // An entry whose checksum is right but that this version does not know: a reserved domain.
    let lab = Lab::new();
    let mut entry = b"PCPJ\x02\x00\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&entry), b"ts");
    entry.extend_from_slice(&crc.to_le_bytes());
    entry.extend_from_slice(b"ts");
    let mut first = b"PCPJ\x02\x00\0\0\0\0\x18\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let payload = [0; 24];
    let crc = crc32c::crc32c_append(crc32c::crc32c(&first), &payload);
    first.extend_from_slice(&crc.to_le_bytes());
    first.extend_from_slice(&payload);
    lab.put(&file(0), &[first, entry].concat());
    let target = Target::Journal(JournalName::parse(JOURNAL).unwrap());
    let found = inspect_on::<Pcpj, _>(lab.disk.clone().into(), target, ScanOptions::default()).unwrap();
    let Verdict::Refused(refusal) = found.report.verdict else { panic!("{:?}", found.report.verdict) };
    assert_eq!(refusal.row(), Some(Row::V));
}

/// Marks carry a bit in the length word that a version 1 reader would take for a huge length. It never gets
/// there: the header's version stops it. The other way round, marks in a version 1 file are refused, not cut.
#[test]
fn fault_147_a_version_1_file_with_marks_is_refused_and_not_cut() {
    let lab = Lab::with_commits(config(), &[&[60], &[60]]);
    lab.edit(&file(0), |bytes| bytes[4] = 1);
    assert!(matches!(lab.refusal(config()), Refusal::MarkInVersion1 { .. }));
}
