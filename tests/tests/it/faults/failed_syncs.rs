//! A failed sync is never retried, and what the page cache shows after it is not believed.

use strandline::core::{AppendError, Config, IoOperation, Output, SyncPolicy};
use strandline_sim::disk::{Call, Fault, Survivors};

use super::lab::{Lab, config};

#[test]
fn fault_041_after_a_failed_sync_nothing_is_acknowledged_until_the_journal_is_reopened() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    open.commit(&[100]);
    lab.disk.plan_fault(Call::Sync, 0, false, Fault::Error(Survivors::None));
    let told = open.commit(&[100]);
    assert!(matches!(told[..], [Output::Poisoned(poison)] if poison.failure.operation == IoOperation::Sync));
    assert!(matches!(open.append(b"more"), Err(AppendError::Poisoned(_))), "the next sync would succeed");
    assert_eq!(open.drain(), []);
    assert_eq!(open.durable_end(), 1);
    drop(open);
    let mut open = lab.open(config());
    assert_eq!(open.commit(&[10]).len(), 1);
    // What reads showed after the failed sync had never reached the disk: recovery wrote it again.
    let end = open.durable_end();
    assert_eq!(lab.power_loss(Survivors::None).seqs(), (0..end).collect::<Vec<_>>());
}

#[test]
fn fault_042_a_failed_directory_sync_while_rolling_acknowledges_nothing_in_the_new_segment() {
    let lab = Lab::new();
    let mut open = lab.open(Config { segment_bytes: 200, ..config() });
    open.commit(&[60]);
    lab.disk.plan_fault(Call::SyncDirectory, 0, false, Fault::Error(Survivors::None));
    let told = open.commit(&[60]);
    assert!(
        matches!(told[..], [Output::Poisoned(poison)] if poison.failure.operation == IoOperation::SyncDirectory),
        "{told:?}"
    );
    assert_eq!(open.durable_end(), 1);
    drop(open);
    for survivors in [Survivors::None, Survivors::All] {
        let after = lab.power_loss(survivors);
        let mut open = after.open(config());
        assert_eq!(open.append(b"x").unwrap().seq.get(), 1);
    }
}

/// A reader of the reopened journal saw record 10; a power loss after that must not take it.
#[test]
fn fault_045_what_is_served_after_a_kill_is_synced_before_it_is_served() {
    for sync in [SyncPolicy::Never, SyncPolicy::Always] {
        let lab = Lab::new();
        let mut open = lab.open(Config { sync, ..config() });
        open.commit(&[100; 10]);
        open.commit(&[100]);
        drop(open);
        let killed = lab.kill();
        let open = killed.open(config());
        assert_eq!(open.durable_end(), 11, "record 10 is served");
        drop(open);
        assert_eq!(killed.power_loss(Survivors::None).seqs(), (0..11).collect::<Vec<_>>());
    }
}
