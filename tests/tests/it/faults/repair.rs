//! Repairs are physical and durable: nothing is left behind that a second crash could bring back.

use strandline::core::{Config, Verdict};
use strandline_sim::disk::{Call, Fault, Survivors};

use super::lab::{Lab, config, file};

fn tear(lab: &Lab, bytes: usize) {
    let last = lab.files().keys().filter(|name| name.ends_with(".seg")).max().unwrap().clone();
    lab.edit(&last, |content| content.truncate(content.len() - bytes));
}

#[test]
fn fault_032_what_is_appended_behind_a_cut_tail_is_readable() {
    let lab = Lab::with_commits(config(), &[&[50; 3], &[50; 3]]);
    tear(&lab, 10);
    let mut open = lab.open(config());
    for _ in 0..10 {
        open.commit(&[20]);
    }
    open.close();
    let seqs = lab.seqs();
    assert_eq!(seqs, (0..15).collect::<Vec<_>>(), "3 and 2 survived, 10 came after");
    assert_eq!(lab.open(config()).report.verdict, Verdict::Sound);
}

#[test]
fn fault_033_two_tears_and_two_recoveries_leave_one_contiguous_sequence() {
    let lab = Lab::with_commits(config(), &[&[50; 3], &[50]]);
    tear(&lab, 10);
    let mut open = lab.open(config());
    open.commit(&[30; 3]);
    drop(open);
    tear(&lab, 5);
    let mut open = lab.open(config());
    assert!(matches!(open.report.verdict, Verdict::Cut(_)));
    open.commit(&[40; 3]);
    open.close();
    assert_eq!(lab.seqs(), (0..8).collect::<Vec<_>>());
    assert_eq!(lab.inspect().report.verdict, Verdict::Sound);
}

#[test]
fn fault_035_after_space_was_freed_the_file_parses_without_a_break() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    open.commit(&[1_000]);
    lab.disk.plan_fault(Call::Write, 0, false, Fault::Short(500));
    lab.disk.plan_fault(Call::Write, 1, false, Fault::NoSpace);
    let told = open.commit(&[1_000]);
    assert!(matches!(told[..], [strandline::core::Output::Void { .. }]), "{told:?}");
    open.commit(&[2_000]);
    open.close();
    let report = lab.inspect().report;
    assert_eq!((report.verdict, report.end.get()), (Verdict::Sound, 2));
}

/// r3 and r4 are unsynced, r3 is torn, r4 is whole. A new r3 of the same length must not bring r4 back, whatever a
/// power loss undoes.
#[test]
fn fault_036_a_record_behind_a_torn_one_never_comes_back() {
    let build = || {
        let lab = Lab::new();
        let mut open = lab.open(config());
        open.commit(&[100; 3]);
        open.append(&[b'O'; 600]).unwrap();
        open.append(&[b'O'; 600]).unwrap();
        open.drain();
        drop(open);
        let first = 56 + 3 * 116 + 40;
        lab.edit(&file(0), |bytes| bytes[first + 200] ^= 1);
        lab
    };
    let seeds = (0..64).map(Survivors::Random);
    for survivors in seeds.chain([Survivors::None, Survivors::All]).chain((0..12).map(Survivors::AllBut)) {
        let lab = build();
        let mut open = lab.open(config());
        open.append(&[b'N'; 600]).unwrap();
        // The write happens; the sync does not come.
        let disk_before = lab.disk.state().unsynced();
        assert_eq!(disk_before, 0, "recovery leaves nothing unsynced");
        lab.disk.plan_fault(Call::Sync, 0, true, Fault::Error(Survivors::None));
        let after_kill = lab.kill();
        drop(open);
        let after = after_kill.power_loss(survivors);
        after.open(config());
        let records = after.records();
        assert!(records.iter().all(|(_, payload)| payload[0] != b'O'), "{survivors}");
    }
}

/// The cut is synced before the first new byte is written.
#[test]
fn fault_037_a_cut_is_durable_before_anything_is_written_behind_it() {
    let lab = Lab::with_commits(config(), &[&[50; 3], &[900]]);
    let whole = lab.bytes(&file(0)).len();
    lab.edit(&file(0), |bytes| bytes[whole - 300] ^= 1);
    let mut open = lab.open(config());
    let cut = lab.bytes(&file(0)).len();
    assert!(cut < whole - 800);
    let lost_everything_since = lab.power_loss(Survivors::None);
    assert_eq!(lost_everything_since.bytes(&file(0)).len(), cut, "the cut survives a power loss");
    open.commit(&[50]);
    assert_eq!(lab.power_loss(Survivors::None).seqs(), [0, 1, 2, 3]);
}

/// Equal lengths, other contents: what is recovered is old or new as a whole prefix, never a mixture.
#[test]
fn fault_040_records_written_in_the_place_of_cut_ones_are_never_mixed_with_them() {
    let lab = Lab::with_commits(config(), &[&[100; 50]]);
    let mut open = lab.open(config());
    for _ in 0..50 {
        open.append(&[b'O'; 100]).unwrap();
    }
    open.drain();
    drop(open);
    let old = 56 + 50 * 116 + 40;
    lab.edit(&file(0), |bytes| bytes[old + 10] ^= 1);
    let mut open = lab.open(config());
    assert_eq!(open.report.end.get(), 50);
    lab.disk.plan_fault(Call::Sync, 0, false, Fault::Error(Survivors::None));
    for _ in 0..50 {
        open.append(&[b'N'; 100]).unwrap();
    }
    open.drain();
    drop(open);
    lab.disk.clear_faults();
    for seed in 0..64 {
        let after = lab.power_loss(Survivors::Random(seed));
        let Ok(open) = after.try_open(config()) else { panic!("a crash is never refused") };
        assert!(open.report.end.get() >= 50);
        let rewritten: Vec<u8> = after.records().iter().skip(50).map(|(_, payload)| payload[0]).collect();
        assert!(rewritten.iter().all(|fill| *fill == b'N'), "seed {seed}: {rewritten:?}");
    }
}

#[test]
fn fault_140_dying_during_every_step_of_a_recovery_does_not_grow_the_journal() {
    let lab = Lab::with_commits(Config { reserve_bytes: 2_048, ..config() }, &[&[300; 3], &[700]]);
    let size = |lab: &Lab| lab.files().values().map(Vec::len).sum::<usize>();
    let mut state = lab.disk.state();
    let before = size(&lab);
    for round in 0..50 {
        let dying = Lab::from(state);
        dying.disk.crash_after(round * 7 % 200);
        let _ = dying.try_open(config());
        state = dying.disk.state();
    }
    let after = Lab::from(state);
    after.open(config()).close();
    assert!(size(&after) <= before, "{} grew to {}", before, size(&after));
    assert_eq!(after.seqs(), [0, 1, 2, 3]);
}
