//! Readers agree, and copies of a live directory open to a valid prefix or are refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use strandline::core::{Config, Pryj, Refusal, Verdict, verdict::Row};
use strandline::{Directory, JournalName, ReadUpTo, ScanOptions, Seq, inspect};
use strandline_sim::disk::Survivors;

use super::lab::{JOURNAL, Lab, config, file};

fn found(path: &Path) -> strandline::Inspection<Pryj> {
    inspect(path, &JournalName::parse(JOURNAL).unwrap(), ScanOptions::default()).unwrap()
}

#[test]
fn fault_168_a_copy_of_a_live_directory_opens_to_a_prefix_or_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let live = root.path().join("live");
    let directory = Directory::open(&live).unwrap();
    let settings = Config { segment_bytes: 20_000, reserve_bytes: 4_096, ..strandline::config() };
    let (journal, _) = directory.journal::<Pryj>(JOURNAL, settings).unwrap();
    let mut opened = 0;
    std::thread::scope(|scope| {
        let writer = journal.clone();
        scope.spawn(move || {
            for n in 0..2_000u64 {
                writer.append(&n.to_le_bytes().repeat(20)).unwrap();
            }
        });
        for round in 0..10 {
            let copy = root.path().join(format!("copy-{round}"));
            fs::create_dir(&copy).unwrap();
            for entry in fs::read_dir(&live).unwrap() {
                let entry = entry.unwrap();
                // A file may be renamed between the listing and the copy.
                let _ = fs::copy(entry.path(), copy.join(entry.file_name()));
            }
            let Ok(directory) = Directory::open(&copy) else { panic!("the copy is nobody's") };
            if let Ok((copied, report)) = directory.journal::<Pryj>(JOURNAL, strandline::config()) {
                opened += 1;
                assert_prefix(copied.reader(Seq::ZERO, ReadUpTo::Durable), report.end);
            }
        }
    });
    assert!(opened > 0, "a copy mostly opens");
    journal.close().unwrap();
}

fn assert_prefix(mut reader: strandline::Reader<Pryj>, end: Seq) {
    let mut next = 0u64;
    while Seq::new(next) < end {
        let strandline::ReadStep::Records(batch) = reader.next_batch(None).unwrap() else { panic!("a hole") };
        for record in batch.records() {
            assert_eq!(record.payload, next.to_le_bytes().repeat(20));
            next += 1;
        }
    }
}

#[test]
fn fault_170_inspect_and_open_give_the_same_verdict_also_after_retention() {
    let lab = Lab::new();
    let settings = Config { segment_bytes: 400, ..config() };
    let mut open = lab.open(settings.clone());
    for _ in 0..30 {
        open.commit(&[40]);
    }
    open.core.trim_to(Seq::new(17));
    open.drain();
    drop(open);
    for survivors in [Survivors::None, Survivors::All, Survivors::Random(3)] {
        let after = lab.power_loss(survivors);
        let seen = after.inspect().report;
        let opened = after.open(settings.clone()).report;
        assert_eq!((seen.first, seen.end, &seen.verdict), (opened.first, opened.end, &opened.verdict));
    }
    lab.flip(&lab.files().keys().next().unwrap().clone(), 60);
    lab.refusal(settings);
}

/// A seek through the index and a scan from the start stop at the same broken frame, with an error.
#[test]
fn fault_172_a_seek_and_a_scan_stop_at_the_same_broken_frame() {
    let lab = Lab::with_commits(config(), &[&[1_000; 300], &[10]]);
    let view = lab.inspect().view;
    let broken = 56 + 200 * 1_016;
    lab.flip(&file(0), broken + 500);
    assert_eq!(lab.damage(), (Row::B, 0, broken as u64));
    assert_eq!(lab.seqs().len(), 200);
    // A reader that has the index from before does not step over it either.
    for from in [0, 150, 200] {
        let mut cursor = strandline::core::Cursor::<Pryj>::new(Seq::new(from), ReadUpTo::Written);
        let mut error = None;
        for _ in 0..20 {
            let strandline::core::Replay::Read(read) = cursor.poll(&view) else { continue };
            let bytes = lab.bytes(&file(0));
            let start = usize::try_from(read.offset).unwrap();
            let piece = bytes::Bytes::copy_from_slice(&bytes[start..start + read.len]);
            if let Err(damaged) = cursor.handle_read(Ok(piece)) {
                error = Some(damaged.to_string());
                break;
            }
        }
        let error = error.expect("the broken frame is met");
        assert!(error.contains(&format!("offset {broken}")), "{error}");
    }
}

/// A raw copy can hold an old block and behind it a newer one that says the old one was synced.
#[test]
fn fault_173_a_raw_copy_taken_page_by_page_is_refused_with_its_cause_and_a_backup_is_not() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    open.commit(&[3_000; 2]);
    let early = lab.bytes(&file(0));
    for _ in 0..4 {
        open.commit(&[3_000]);
    }
    let late = lab.bytes(&file(0));
    let mut copy = late.clone();
    copy[4_096..early.len()].copy_from_slice(&early[4_096..]);
    copy[early.len()..8_192].fill(0);
    let raw = Lab::new();
    raw.put(&file(0), &copy);
    let refusal = raw.refusal(config());
    assert!(matches!(refusal, Refusal::Damaged { row: Row::B, .. }), "{refusal}");
    assert!(refusal.to_string().contains("raw copy"), "{refusal}");

    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(root.path().join("live")).unwrap();
    let (journal, _) = directory.journal::<Pryj>(JOURNAL, strandline::config()).unwrap();
    std::thread::scope(|scope| {
        let writer = journal.clone();
        scope.spawn(move || {
            for _ in 0..300 {
                writer.append(&[7; 3_000]).unwrap();
            }
        });
        for round in 0..5 {
            let destination = root.path().join(format!("backup-{round}"));
            journal.backup(&destination).unwrap();
            let report = found(&destination).report;
            assert_eq!((&report.verdict, report.unproven()), (&Verdict::Sound, 0));
        }
    });
}

#[test]
fn readers_change_nothing() {
    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    let (journal, _) = directory.journal::<Pryj>(JOURNAL, strandline::config()).unwrap();
    journal.append(b"x").unwrap();
    journal.close().unwrap();
    let snapshot = || -> BTreeMap<_, _> {
        let entries = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let before = snapshot();
    assert_eq!(found(root.path()).report.end, Seq::new(1));
    assert_eq!(snapshot(), before);
}
