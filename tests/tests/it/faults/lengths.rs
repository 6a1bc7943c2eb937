//! Damaged lengths: no huge allocation, no wrong skip, no sign extension.

use strandline::core::{Pcpj, Refusal, ScanOptions, Verdict, verdict::Row};
use strandline::{Target, inspect_on};

use super::lab::{JOURNAL, Lab, config, file};

fn with_length(lab: &Lab, at: usize, length: u32) {
    lab.edit(&file(0), |bytes| bytes[at..at + 4].copy_from_slice(&length.to_le_bytes()));
}

/// No buffer is as large as the length says: the file is smaller, and that is the bound.
#[test]
fn fault_013_an_impossible_length_of_the_last_record_is_judged_like_any_bad_record() {
    let lab = Lab::with_commits(config(), &[&[100], &[100]]);
    let last = 56 + 116 + 40;
    with_length(&lab, last, u32::MAX);
    let Verdict::Cut(cut) = lab.inspect().report.verdict else { panic!("it is unproven") };
    assert_eq!((cut.row, cut.offset, cut.first_lost.get()), (Row::G, last as u64, 1));
    with_length(&lab, last, 16 << 20);
    let Verdict::Cut(cut) = lab.inspect().report.verdict else { panic!("it is unproven") };
    assert_eq!(cut.row, Row::F, "the file ends inside the frame");
}

#[test]
fn fault_014_a_length_with_its_top_bit_set_in_the_middle_is_refused() {
    let lab = Lab::with_commits(config(), &[&[100], &[100], &[100]]);
    with_length(&lab, 56, 0x8000_0001);
    assert_eq!(lab.damage(), (Row::B, 0, 56));
}

#[test]
fn fault_016_reading_from_beyond_the_end_names_the_end() {
    use strandline::core::{Cursor, Pryj, ReadUpTo, Replay, Seq};
    let lab = Lab::with_commits(config(), &[&[10, 10]]);
    let view = lab.inspect().view;
    for from in [1_000_001, u64::MAX] {
        let mut cursor = Cursor::<Pryj>::new(Seq::new(from), ReadUpTo::Written);
        assert!(matches!(cursor.poll(&view), Replay::Beyond { end } if end.get() == 2));
    }
}

#[test]
fn fault_018_an_event_whose_payload_would_be_longer_than_the_file_is_bad_and_no_more() {
    let lab = Lab::new();
    let mut entry = b"PCPJ\x01\x01\x04\0\x02\0".to_vec();
    entry.extend_from_slice(&2u32.to_le_bytes());
    entry.extend_from_slice(&0u64.to_le_bytes());
    entry.extend_from_slice(&5i64.to_le_bytes());
    entry.extend_from_slice(&[0; 4]);
    entry.extend_from_slice(b"tick/a{}");
    let longer = u32::try_from(entry.len() + 1).unwrap();
    entry[10..14].copy_from_slice(&longer.to_le_bytes());
    lab.put(&file(0), &entry);
    let target = Target::Journal(strandline::JournalName::parse(JOURNAL).unwrap());
    let found = inspect_on::<Pcpj, _>(lab.disk.clone().into(), target, ScanOptions::default()).unwrap();
    assert!(matches!(found.report.verdict, Verdict::Cut(cut) if cut.row == Row::F && cut.offset == 0));
}

#[test]
fn fault_019_any_flipped_bit_of_a_segment_header_or_its_name_is_refused() {
    let lab = Lab::with_commits(config(), &[&[10], &[10]]);
    let good = lab.bytes(&file(0));
    for bit in 0..16 * 8 {
        lab.edit(&file(0), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        let refusal = lab.refusal(config());
        match bit / 8 {
            0..4 => assert!(matches!(refusal, Refusal::Magic { .. }), "bit {bit}: {refusal}"),
            4..6 => assert!(
                matches!(refusal, Refusal::UnsupportedVersion { .. } | Refusal::MarkInVersion1 { .. }),
                "bit {bit}: {refusal}"
            ),
            _ => assert!(matches!(refusal, Refusal::HeaderMismatch { .. }), "bit {bit}: {refusal}"),
        }
        lab.edit(&file(0), |bytes| bytes.clone_from(&good));
    }
    lab.put(&file(1), &good);
    strandline::Disk::remove(&lab.disk, &file(0)).unwrap();
    assert!(matches!(lab.refusal(config()), Refusal::HeaderMismatch { .. }), "renamed");
    assert_eq!(lab.bytes(&file(1)), good);
}
