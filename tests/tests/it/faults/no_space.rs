//! Lack of space, short writes and interrupts in the middle of a batch.

use strandline::core::{AppendError, Config, Output, Pryj, Verdict};
use strandline::{Directory, StdDisk};
use strandline_sim::disk::{Call, Fault, Survivors};

use super::lab::{Lab, Open, config, file};

/// The next write comes out short and then finds no space; the ones after it find plenty.
fn fill_once(lab: &Lab, short: usize) {
    lab.disk.plan_fault(Call::Write, 0, false, Fault::Short(short));
    lab.disk.plan_fault(Call::Write, 1, false, Fault::NoSpace);
}

fn is_void(told: &[Output]) -> bool {
    matches!(told, [Output::Void { .. }])
}

#[test]
fn fault_046_the_bytes_of_a_short_write_are_gone_before_the_next_append() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    open.commit(&[84]);
    let good = lab.bytes(&file(0));
    fill_once(&lab, 30);
    assert!(is_void(&open.commit(&[84])));
    assert_eq!(lab.bytes(&file(0)), good);
    open.commit(&[84]);
    assert_eq!(lab.seqs(), [0, 1]);
}

#[test]
fn fault_047_a_crash_before_the_cut_back_is_a_torn_tail() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    open.commit(&[84]);
    fill_once(&lab, 60);
    lab.disk.plan_fault(Call::SetLen, 0, false, Fault::Error(Survivors::None));
    assert!(matches!(open.commit(&[84])[..], [Output::Poisoned(_)]));
    drop(open);
    let open = lab.open(config());
    assert!(matches!(open.report.verdict, Verdict::Cut(cut) if cut.first_lost.get() == 1));
    drop(open);
    assert_eq!((lab.seqs(), lab.inspect().report.verdict), (vec![0], Verdict::Sound));
}

#[test]
fn fault_048_a_torn_tail_is_cut_without_a_free_byte() {
    let lab = Lab::with_commits(config(), &[&[600], &[600]]);
    lab.edit(&file(0), |bytes| bytes.truncate(bytes.len() - 100));
    lab.disk.set_capacity(Some(0));
    let open = lab.open(config());
    assert!(matches!(open.report.verdict, Verdict::Cut(_)));
    assert!(open.report.repair.cut && !open.report.repair.set_aside, "there is no space for a copy");
    drop(open);
    assert_eq!(lab.seqs(), [0]);
}

#[test]
fn fault_050_restarts_on_a_full_disk_change_and_grow_nothing() {
    let lab = Lab::with_commits(Config { reserve_bytes: 4_096, ..config() }, &[&[600], &[600]]);
    let used = lab.disk.state().allocated_bytes();
    lab.disk.set_capacity(Some(used + 512));
    let mut open = lab.open(config());
    let mut voids = 0;
    while !is_void(&open.commit(&[400])) {
        voids += 1;
        assert!(voids < 100, "the disk fills up");
    }
    let acknowledged = open.durable_end();
    drop(open);
    let mut sizes = Vec::new();
    for _ in 0..5 {
        let open = lab.open(config());
        assert_eq!(open.durable_end(), acknowledged);
        sizes.push(lab.disk.state().allocated_bytes());
    }
    assert!(sizes.windows(2).all(|pair| pair[1] <= pair[0]), "{sizes:?}");
    assert_eq!(lab.seqs(), (0..acknowledged).collect::<Vec<_>>());
    lab.disk.set_capacity(None);
    let mut open = lab.open(config());
    assert_eq!(open.commit(&[400]).len(), 1);
    assert_eq!(open.durable_end(), acknowledged + 1);
}

#[test]
fn fault_051_the_size_told_is_the_size_of_the_file_after_every_write() {
    let lab = Lab::new();
    let mut open = lab.open(Config { segment_bytes: 1_000, ..config() });
    let agree = |open: &Open, lab: &Lab| {
        let files: usize = lab.files().values().map(Vec::len).sum();
        assert_eq!(open.core.view().bytes(), files as u64);
    };
    open.commit(&[200]);
    agree(&open, &lab);
    fill_once(&lab, 100);
    assert!(is_void(&open.commit(&[200])));
    agree(&open, &lab);
    for _ in 0..5 {
        open.commit(&[200]);
        agree(&open, &lab);
    }
    assert_eq!(open.core.view().segments().len(), 2, "it rolled where it should");
}

#[test]
fn fault_053_an_interrupted_write_leaves_exactly_one_record() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    lab.disk.plan_fault(Call::Write, 0, false, Fault::Short(10));
    lab.disk.plan_fault(Call::Write, 1, false, Fault::Interrupted);
    assert!(matches!(open.commit(&[100])[..], [Output::Durable { .. }]));
    assert_eq!(lab.bytes(&file(0)).len(), 56 + 116);
    assert_eq!(lab.seqs(), [0]);
}

#[test]
fn fault_054_short_writes_are_finished_and_what_is_too_large_is_refused_at_once() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    lab.disk.plan_fault(Call::Write, 0, true, Fault::Short(4_096));
    open.commit(&[1 << 20]);
    lab.disk.clear_faults();
    assert_eq!(lab.records(), [(0, vec![0x80; 1 << 20])]);
    let before = lab.files();
    let too_large = vec![0; (16 << 20) + 1];
    assert!(matches!(open.append(&too_large), Err(AppendError::Draft(_))));
    // A batch beyond what may wait is refused record by record, long before 2 GiB.
    let big = vec![1; 16 << 20];
    let mut accepted = 0;
    while open.append(&big).is_ok() {
        accepted += 1;
        assert!(accepted < 10);
    }
    assert!(matches!(open.append(&big), Err(AppendError::Full { .. })));
    assert_eq!(lab.files(), before);
}

/// A reserve that finds no space, a segment that finds none: appends go on as soon as there is room.
#[test]
fn fault_152_a_first_open_without_space_fails_cleanly_and_works_later() {
    let lab = Lab::new();
    lab.disk.set_capacity(Some(0));
    let error = lab.try_open(config()).err().unwrap().to_string();
    assert!(error.contains("create") && error.contains("no space"), "{error}");
    assert!(
        lab.files().keys().all(|name| !name.ends_with(".seg")),
        "nothing is half there: {:?}",
        lab.files()
    );
    lab.disk.set_capacity(None);
    lab.open(config()).commit(&[10]);
    assert_eq!(lab.seqs(), [0]);
}

#[test]
fn fault_150_a_segment_that_is_cut_under_a_reader_is_an_error_and_no_signal() {
    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    let settings = Config { tail_bytes_max: 0, reserve_bytes: 0, ..strandline::config() };
    let (journal, _) = directory.journal::<Pryj>("events", settings).unwrap();
    for _ in 0..100 {
        journal.append(&[7; 10_000]).unwrap();
    }
    let mut reader = journal.reader(strandline::Seq::ZERO, strandline::ReadUpTo::Durable);
    reader.next_batch(None).unwrap();
    let path = root.path().join(file(0));
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(300_000).unwrap();
    let mut failed = None;
    for _ in 0..10 {
        if let Err(error) = reader.next_batch(Some(std::time::Duration::ZERO)) {
            failed = Some(error.to_string());
            break;
        }
    }
    let failed = failed.expect("the bytes are gone");
    assert!(failed.contains("ends at offset"), "{failed}");
    let _: &StdDisk = directory.disk();
}
