//! Edges: of segments, records, integers and limits.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use strandline::core::{AppendError, Config, Cursor, Pryj, ReadUpTo, Replay, Seq, Verdict, verdict::Row};
use strandline::{ScanOptions, inspect_file};

use super::lab::{Lab, config, file};

fn record(seq: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend_from_slice(&seq.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn version_1(first: u64, records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PRYJ\x01\0\0\0".to_vec();
    bytes.extend_from_slice(&first.to_le_bytes());
    bytes.extend(records.concat());
    bytes
}

#[test]
fn fault_094_a_segment_of_one_empty_record_is_recovered() {
    let lab = Lab::new();
    let bytes = version_1(7, &[record(7, b"")]);
    assert_eq!(bytes.len(), 32);
    lab.put(&file(7), &bytes);
    assert_eq!(lab.records(), [(7, Vec::new())]);
    let open = lab.open(Config { version: 1, ..config() });
    assert_eq!((open.report.verdict, open.report.end.get()), (Verdict::Sound, 8));
}

#[test]
fn fault_096_reading_a_trimmed_journal_is_defined_from_every_number() {
    let lab = Lab::new();
    let mut open = lab.open(Config { segment_bytes: 400, ..config() });
    for _ in 0..100 {
        open.commit(&[20]);
    }
    open.core.trim_to(Seq::new(80));
    open.drain();
    open.close();
    let found = lab.inspect();
    for from in [0, 79, 80, 81, 99, 100, 101] {
        let step = Cursor::<Pryj>::new(Seq::new(from), ReadUpTo::Written).poll(&found.view);
        match from {
            0 | 79 => assert!(matches!(step, Replay::Trimmed { first } if first.get() == 80), "{from}"),
            80..=99 => assert!(matches!(step, Replay::Read(_)), "{from}"),
            100 => assert!(matches!(step, Replay::CaughtUp), "{from}"),
            _ => assert!(matches!(step, Replay::Beyond { end } if end.get() == 100), "{from}"),
        }
    }
    assert_eq!(lab.seqs(), (80..100).collect::<Vec<_>>());
}

#[test]
fn fault_097_a_segment_without_records_does_not_stop_a_reader() {
    let lab = Lab::new();
    let mut open = lab.open(Config { segment_bytes: 200, ..config() });
    open.commit(&[60]);
    lab.disk.plan_fault(strandline_sim::disk::Call::Write, 3, true, strandline_sim::disk::Fault::NoSpace);
    open.commit(&[60]);
    drop(open);
    lab.disk.clear_faults();
    let mut open = lab.open(Config { segment_bytes: 200, ..config() });
    open.commit(&[60]);
    open.commit(&[60]);
    let seqs = lab.seqs();
    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    assert!(seqs.len() >= 3);
}

#[test]
fn fault_098_a_repeated_and_a_skipped_number_are_refused() {
    for (numbers, bad) in [(&[5, 5][..], 1), (&[5, 7], 1), (&[5, 6, 5], 2)] {
        let lab = Lab::new();
        let records: Vec<_> = numbers.iter().map(|seq| record(*seq, b"payload")).collect();
        lab.put(&file(5), &version_1(5, &records));
        assert_eq!(lab.damage(), (Row::V, 5, 16 + bad * 23), "{numbers:?}");
    }
}

#[test]
fn fault_099_records_that_end_around_the_limit_are_all_read_once() {
    for limit in [1_000, 1_001, 999] {
        let lab = Lab::new();
        let mut open = lab.open(Config { segment_bytes: limit, ..config() });
        for len in (0..60).map(|n| n * 13 % 200) {
            open.commit(&[len]);
        }
        drop(open);
        assert_eq!(lab.seqs(), (0..60).collect::<Vec<_>>());
    }
}

/// A sparse segment of more than 4 GiB: records of zeros, whose pages are never allocated.
#[test]
fn fault_100_a_segment_beyond_4_gib_is_read_to_its_end() {
    const PAYLOAD: usize = 16 << 20;
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(file(0));
    let mut out = fs::File::create(&path).unwrap();
    out.write_all(&version_1(0, &[record(0, b"before")])).unwrap();
    let zeros = vec![0; PAYLOAD];
    let count = 257;
    for seq in 1..=count {
        let mut head = u32::try_from(PAYLOAD).unwrap().to_le_bytes().to_vec();
        head.extend_from_slice(&u64::to_le_bytes(seq));
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &zeros);
        out.write_all(&head).unwrap();
        out.seek(SeekFrom::Current(16 << 20)).unwrap();
        out.write_all(&crc.to_le_bytes()).unwrap();
    }
    out.write_all(&record(count + 1, b"after")).unwrap();
    let len = fs::metadata(&path).unwrap().len();
    assert!(len > 4 << 30);
    let found = inspect_file::<Pryj>(&path, ScanOptions::default()).unwrap();
    assert_eq!((found.report.verdict.clone(), found.report.end.get()), (Verdict::Sound, count + 2));
    assert_eq!(found.report.segments[0].bytes, len);
    let mut reader = found.reader(Seq::new(count + 1), ReadUpTo::Written);
    let Ok(strandline::OfflineStep::Records(batch)) = reader.next_batch() else { panic!("the last record") };
    assert_eq!(batch.records().next().unwrap().payload, b"after");
}

#[test]
fn fault_102_numbers_end_and_do_not_wrap() {
    let lab = Lab::new();
    let mut open = lab.open(Config { first_seq: Some(Seq::new(u64::MAX - 3)), ..config() });
    for _ in 0..3 {
        open.append(b"x").unwrap();
    }
    assert_eq!(open.append(b"x"), Err(AppendError::SequenceExhausted));
    open.drain();
    drop(open);
    let mut open = lab.open(config());
    assert_eq!(open.append(b"x"), Err(AppendError::SequenceExhausted));
    assert_eq!(lab.seqs(), [u64::MAX - 3, u64::MAX - 2, u64::MAX - 1]);
}

/// The lint against shortening casts is on for every crate; this holds that nobody turned it off for lengths.
#[test]
fn fault_104_no_length_or_offset_is_shortened_by_a_cast() {
    let mut files = 0;
    for folder in ["core/src", "io/src"] {
        visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), &mut |path, text| {
            files += 1;
            for (line, code) in text.lines().enumerate() {
                let reasoned =
                    text.lines().nth(line.saturating_sub(1)).is_some_and(|l| l.contains("reason ="));
                assert!(!code.contains(" as u32") || reasoned, "{}:{}: {code}", path.display(), line + 1);
                assert!(!code.contains(" as u16"), "{}:{}: {code}", path.display(), line + 1);
            }
        });
    }
    assert!(files > 40, "the sources were found");
}

fn visit(folder: &Path, look: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let lines = fs::read_to_string(&path).unwrap();
            let code: String = lines.lines().filter(|l| !l.trim_start().starts_with("//")).fold(
                String::new(),
                |mut code, line| {
                    code.push_str(line);
                    code.push('\n');
                    code
                },
            );
            look(&path, &code);
        }
    }
}

#[test]
fn fault_105_a_commit_larger_than_a_segment_is_readable_after_reopening() {
    let lab = Lab::new();
    let settings = Config { segment_bytes: 64 << 10, ..config() };
    let mut open = lab.open(settings.clone());
    open.commit(&[1_000; 100]);
    drop(open);
    assert_eq!(lab.open(settings).report.end.get(), 100);
    assert_eq!(lab.seqs(), (0..100).collect::<Vec<_>>());
}

#[test]
fn fault_107_payloads_around_every_size_that_matters_are_recovered() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    let lens: Vec<usize> =
        [4_096, 65_536, 1 << 20].iter().flat_map(|n| [n - 1, *n, n + 1]).chain([16 << 20]).collect();
    open.commit(&lens);
    drop(open);
    let records = lab.records();
    assert_eq!(records.iter().map(|(_, p)| p.len()).collect::<Vec<_>>(), lens);
    assert!(records.iter().all(|(seq, p)| p.iter().all(|b| *b == seq.to_le_bytes()[0] | 0x80)));
}
