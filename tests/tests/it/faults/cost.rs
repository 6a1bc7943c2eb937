//! What opening costs: files, growth, memory.

use strandline::core::{Config, Verdict};

use super::lab::{Lab, config};

#[test]
fn fault_137_opening_and_dying_without_appends_leaves_no_files_behind() {
    let lab = Lab::with_commits(config(), &[&[100]]);
    let mut state = lab.disk.state();
    for round in 0..600 {
        let dying = Lab::from(state);
        dying.disk.crash_after(round % 120);
        let _ = dying.try_open(config());
        state = dying.disk.state();
        assert!(state.files().count() <= 2, "round {round}");
    }
    assert_eq!(Lab::from(state).open(config()).report.end.get(), 1);
}

/// The buffer is the reader's, one of 256 KiB; the scan asks for no more at once, however large the journal.
#[test]
fn fault_139_a_large_journal_is_read_in_small_pieces() {
    use strandline::core::{
        Listing, Pryj, ReadRequest, Scan, ScanOptions, ScanStep, SegmentFile, SegmentId, Seq,
    };
    let lab = Lab::with_commits(config(), &[&[4_000; 6_000][..], &[4_000; 6_000]]);
    let bytes = lab.bytes(&super::lab::file(0));
    assert!(bytes.len() > 48_000_000);
    let listing = Listing::Segments(vec![SegmentFile { id: SegmentId(Seq::ZERO), len: bytes.len() as u64 }]);
    let mut step = Scan::<Pryj>::start(listing, ScanOptions::default());
    let (mut reads, mut read_bytes) = (0u64, 0u64);
    let report = loop {
        match step {
            ScanStep::Read(read, scan) => {
                assert!(read.len <= ReadRequest::LEN_MAX);
                reads += 1;
                read_bytes += read.len as u64;
                let start = usize::try_from(read.offset).unwrap();
                step = scan.resume(Ok(&bytes[start..start + read.len]));
            }
            ScanStep::Done(_, report) => break report,
        }
    };
    assert_eq!((report.verdict, report.end.get()), (Verdict::Sound, 12_000));
    assert!(read_bytes < bytes.len() as u64 * 103 / 100, "{reads} reads of {read_bytes} bytes");
}

#[test]
fn fault_142_an_idle_day_appends_nothing() {
    let lab = Lab::new();
    let mut open = lab.open(Config { reserve_bytes: 4_096, ..config() });
    open.commit(&[100]);
    open.idle();
    let before = lab.files();
    for _ in 0..24 * 60 {
        assert_eq!(open.idle(), []);
    }
    assert_eq!(lab.files(), before);
}
