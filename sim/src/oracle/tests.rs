//! The oracle itself: what it lets pass, and what it does not.

use strandline_core::{Pryj, PryjRecord, Timestamp};

use super::*;
use crate::disk::Survivors;

const POWER: Loss = Loss::Power(Survivors::None);

/// Five records from number 10 on, one commit each, three of them durable, four written.
fn oracle() -> Oracle {
    let mut oracle = Oracle::new(Seq::new(10), true);
    for id in 0..5 {
        let record = Rc::new(Submitted::new(id, Timestamp::from_millis(0), 8, b""));
        oracle.accepted(Seq::new(10 + id), CommitId::new(id + 1), record).unwrap();
    }
    oracle.durable(Seq::new(13), CommitId::new(3)).unwrap();
    oracle.written(Seq::new(14), CommitId::new(4)).unwrap();
    oracle
}

fn found(first: u64, end: u64) -> Recovered {
    Recovered { first: Seq::new(first), end: Seq::new(end) }
}

fn check(result: Result<(), Broken>) -> Option<Check> {
    result.err().map(|broken| broken.check)
}

fn read(oracle: &Oracle, seq: u64, id: u64) -> Option<Check> {
    let submitted = Submitted::new(id, Timestamp::from_millis(0), 8, b"");
    let record = PryjRecord { seq: Seq::new(seq), payload: &submitted.payload };
    check(oracle.check_record::<Pryj>(record))
}

#[test]
fn what_was_acknowledged_must_be_there_and_no_more_than_was_submitted() {
    let oracle = oracle();
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 13))), None);
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 15))), None);
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 12))), Some(Check::AcknowledgedIsRecovered));
    assert_eq!(check(oracle.check_recovered(Loss::Kill, found(10, 14))), None);
    let lost = oracle.check_recovered(Loss::Kill, found(10, 13));
    assert_eq!(check(lost), Some(Check::AcknowledgedIsRecovered), "written survives a kill");
    let more = oracle.check_recovered(POWER, found(10, 16));
    assert_eq!(check(more), Some(Check::RecoveredIsSubmittedPrefix));
}

#[test]
fn a_kill_after_a_power_loss_leaves_no_more_than_the_power_loss() {
    let mut oracle = oracle();
    oracle.lost(Loss::Kill);
    assert!(oracle.check_recovered(Loss::Kill, found(10, 13)).is_err());
    oracle.lost(POWER);
    assert_eq!(oracle.check_recovered(Loss::Kill, found(10, 13)), Ok(()));
}

#[test]
fn a_reader_that_was_shown_a_record_must_find_it_again() {
    let mut oracle = oracle();
    oracle.shown(Seq::new(14));
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 13))), Some(Check::ReadersSeeOnlyDurable));
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 14))), None);
}

#[test]
fn a_record_is_compared_with_what_had_its_number() {
    let oracle = oracle();
    assert_eq!(read(&oracle, 12, 2), None);
    assert_eq!(read(&oracle, 12, 3), Some(Check::RecoveredIsSubmittedPrefix));
    assert_eq!(read(&oracle, 15, 5), Some(Check::RecoveredIsSubmittedPrefix), "never submitted");
    assert_eq!(read(&oracle, 9, 0), Some(Check::RecoveredIsSubmittedPrefix), "before the first");
}

#[test]
fn what_was_told_void_or_lost_in_a_crash_never_returns() {
    let mut oracle = oracle();
    oracle.void(Seq::new(14), CommitId::new(5)).unwrap();
    assert_eq!(read(&oracle, 14, 4), Some(Check::NothingUndead));
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 15))), Some(Check::NothingUndead));
    oracle.settle(found(10, 13), true);
    assert_eq!(read(&oracle, 13, 3), Some(Check::NothingUndead));
    assert_eq!(oracle.next(), 13);
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 12))), Some(Check::AcknowledgedIsRecovered));
}

#[test]
fn a_void_takes_neither_acknowledged_nor_untold_records() {
    let covers = Some(Check::WatermarkCoversCommit);
    assert_eq!(check(oracle().void(Seq::new(13), CommitId::new(5))), covers, "13 was told written");
    assert_eq!(check(oracle().void(Seq::new(14), CommitId::new(4))), covers, "commit 5 had number 14");
    assert_eq!(check(oracle().void(Seq::new(16), CommitId::new(5))), covers, "no such number");
}

#[test]
fn a_watermark_covers_its_commit_and_never_moves_back() {
    let covers = Some(Check::WatermarkCoversCommit);
    assert_eq!(check(oracle().durable(Seq::new(14), CommitId::new(5))), covers, "commit 5 needs 15");
    assert_eq!(check(oracle().durable(Seq::new(16), CommitId::new(5))), covers, "nothing was submitted");
    assert_eq!(check(oracle().durable(Seq::new(12), CommitId::new(2))), covers, "it was 13");
    assert_eq!(check(oracle().durable(Seq::new(15), CommitId::new(5))), None);
}

#[test]
fn the_logical_start_only_grows() {
    let restart = Some(Check::NumbersNeverRestart);
    let mut oracle = oracle();
    oracle.trimmed(Seq::new(12)).unwrap();
    assert_eq!(check(oracle.trimmed(Seq::new(11))), restart);
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 13))), None, "not stated by a mark yet");
    assert_eq!(check(oracle.check_recovered(POWER, found(13, 13))), restart, "never asked for");
    oracle.removed_before(Seq::new(11));
    assert_eq!(check(oracle.check_recovered(POWER, found(10, 13))), restart, "those files are gone");
    oracle.settle(found(12, 14), true);
    assert_eq!(check(oracle.check_recovered(POWER, found(11, 14))), restart, "stated by the last open");
}

#[test]
fn numbers_are_given_out_in_order() {
    let record = Rc::new(Submitted::new(9, Timestamp::from_millis(0), 8, b""));
    let again = oracle().accepted(Seq::new(14), CommitId::new(6), Rc::clone(&record));
    assert_eq!(check(again), Some(Check::NumbersNeverRestart));
    assert_eq!(check(oracle().accepted(Seq::new(15), CommitId::new(6), record)), None);
}

#[test]
fn what_was_durable_before_the_newest_commit_must_be_proven() {
    let proven = |oracle: &Oracle, end| check(oracle.check_proven(Seq::new(end)));
    let mut oracle = oracle();
    assert_eq!(proven(&oracle, 10), None, "nothing was durable before the first sync");
    oracle.durable(Seq::new(15), CommitId::new(5)).unwrap();
    assert_eq!(proven(&oracle, 12), Some(Check::DurableIsProven));
    assert_eq!(proven(&oracle, 13), None);
    oracle.closed(false).unwrap();
    assert_eq!(proven(&oracle, 13), None, "there was no space for the mark");
    oracle.closed(true).unwrap();
    assert_eq!(proven(&oracle, 14), Some(Check::DurableIsProven));
    oracle.check_remains(found(10, 15)).unwrap();
    oracle.settle(found(10, 15), false);
    assert_eq!(proven(&oracle, 10), None, "the disk lost the marks, and there was no space for another");
    oracle.check_remains(found(10, 15)).unwrap();
    oracle.settle(found(10, 15), true);
    assert_eq!(proven(&oracle, 10), Some(Check::DurableIsProven), "there was");
}
