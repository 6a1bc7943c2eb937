//! Group commit: nothing is acknowledged or seen before it is durable.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use strandline::core::{Completion, Config, Effect, Output, Pryj};
use strandline::{Directory, Disk, ReadStep, ReadUpTo, Seq};
use strandline_sim::disk::{Call, Fault, SimDisk, Survivors};

use super::gate::{Gate, Gated};
use super::lab::{Lab, config};

#[test]
fn fault_162_an_append_does_not_return_before_its_sync_does() {
    let gate = Gate::open();
    let directory = Directory::on(Gated::new(SimDisk::new(512), gate.clone()));
    let (journal, _) = directory.journal::<Pryj>("events", config()).unwrap();
    gate.shut();
    let (told, acknowledged) = mpsc::channel();
    let appender = {
        let journal = journal.clone();
        thread::spawn(move || told.send(journal.append(b"x").unwrap()).unwrap())
    };
    gate.wait_for_arrival();
    assert_eq!(acknowledged.try_recv(), Err(mpsc::TryRecvError::Empty));
    assert_eq!(journal.durable_end(), Seq::ZERO);
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    let seen = reader.next_batch(Some(Duration::ZERO)).unwrap();
    assert!(matches!(seen, ReadStep::TimedOut), "nor does a reader see it");
    gate.unshut();
    assert_eq!(acknowledged.recv().unwrap(), Seq::ZERO);
    appender.join().unwrap();
    assert_eq!(journal.durable_end(), Seq::new(1));
}

/// At any moment, an acknowledgement implies that every lower number is on the disk.
#[test]
fn fault_163_an_acknowledgement_covers_every_lower_number() {
    let disk = SimDisk::new(512);
    let directory = Directory::on(disk.clone());
    let (journal, _) = directory.journal::<Pryj>("events", config()).unwrap();
    thread::scope(|scope| {
        for writer in 0..8u8 {
            let (journal, disk) = (journal.clone(), disk.clone());
            scope.spawn(move || {
                for _ in 0..20 {
                    let seq = journal.append(&[writer; 100]).unwrap().get();
                    let after = Lab::from(disk.state().power_loss(Survivors::None));
                    let seqs = after.seqs();
                    assert!(seqs.len() as u64 > seq, "{seq} was acknowledged, {} are there", seqs.len());
                    assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
                }
            });
        }
    });
    journal.close().unwrap();
}

#[test]
fn fault_165_a_failed_write_leaves_no_gap_in_the_numbers() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    open.commit(&[50; 5]);
    lab.disk.plan_fault(Call::Write, 0, false, Fault::NoSpace);
    assert!(matches!(open.commit(&[50])[..], [Output::Void { from, .. }] if from.get() == 5));
    assert_eq!(open.append(b"again").unwrap().seq.get(), 5);
    open.drain();
    assert_eq!(lab.seqs(), (0..6).collect::<Vec<_>>());
}

#[test]
fn fault_167_time_alone_acknowledges_nothing() {
    let lab = Lab::new();
    let mut open = lab.open(Config { idle_mark_ms: 1, ..config() });
    open.append(b"first").unwrap();
    let step = |open: &mut super::lab::Open| match open.core.poll_output() {
        Some(Output::Effect { id, effect }) => (id, effect),
        other => panic!("{other:?}"),
    };
    let (write, _) = step(&mut open);
    open.core.handle_completion(Completion { id: write, result: Ok(()) });
    let (sync, effect) = step(&mut open);
    assert!(matches!(effect, Effect::Sync { .. }));
    let late = open.append(b"late").unwrap();
    for ms in 0..10_000 {
        open.core.tick(strandline::core::Monotonic::from_millis(ms));
        assert_eq!(open.core.poll_output(), None);
    }
    open.core.handle_completion(Completion { id: sync, result: Ok(()) });
    match open.core.poll_output() {
        Some(Output::Durable { end, commit }) => assert!(end == late.seq && commit < late.commit),
        other => panic!("{other:?}"),
    }
}

/// The wrapper of this test is a disk like any other.
#[test]
fn a_gated_disk_is_a_disk() {
    let disk = Gated::new(SimDisk::new(512), Gate::open());
    let file = disk.create("a").unwrap();
    assert_eq!(disk.write_at(&file, 0, b"abc").unwrap(), 3);
    disk.sync(&file).unwrap();
    assert_eq!(disk.list().unwrap().len(), 1);
}
