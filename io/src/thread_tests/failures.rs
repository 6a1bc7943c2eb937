//! A disk that fails, fills up or panics in the middle: who is told what, in which order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shuttle::rand::{Rng, thread_rng};
use strandline_core::{ReadUpTo, Seq};

use super::memory_disk::{Fault, MemoryDisk};
use super::{Ledger, TestJournal, explore, open, payload, small, spawn};
use crate::sync::thread::Injected;
use crate::test_disk::{EIO, ENOSPC};
use crate::{AppendError, Poisoned, ReadStep};

/// Appends until it is refused. Once anybody has been told of the poison, no later append may be accepted.
fn append_until_poisoned(
    (disk, journal, ledger): &(MemoryDisk, TestJournal, Ledger),
    thread: u32,
    told: &AtomicBool,
) {
    for n in 0..4 {
        // The model runs one thread at a time, so this is the order in which it happened.
        let was_told = told.load(Ordering::SeqCst);
        let result = match n % 2 {
            0 => journal.append(&payload(thread, n)),
            _ => journal.append_nowait(&payload(thread, n)).and_then(crate::Ticket::wait),
        };
        match result {
            Ok(seq) => {
                assert!(!was_told, "an append was accepted after the poison was told");
                ledger.acknowledged(disk, seq, &payload(thread, n));
            }
            Err(AppendError::Poisoned(poisoned)) => {
                told.store(true, Ordering::SeqCst);
                assert_eq!(journal.poisoned(), Some(poisoned));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Two writers, a ticket that nobody waits on, and a reader that waits, on a disk that meets `fault` at some call.
fn meets(call: &'static str, fault: Fault) {
    let (disk, ledger) = (MemoryDisk::default(), Ledger::default());
    let journal = open(&disk, small());
    let told = Arc::new(AtomicBool::new(false));
    disk.inject(call, thread_rng().gen_range(0..4), fault);
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    let held = disk.clone();
    let reader = spawn(move || {
        loop {
            match reader.next_batch(None).unwrap() {
                ReadStep::Records(batch) => {
                    batch.records().for_each(|record| assert!(held.is_durable(record.payload)));
                }
                ReadStep::Closed => return,
                other => panic!("{other:?}"),
            }
        }
    });
    let writers = [1, 2].map(|thread| {
        let (all, told) = ((disk.clone(), journal.clone(), ledger.clone()), Arc::clone(&told));
        spawn(move || append_until_poisoned(&all, thread, &told))
    });
    let ticket = journal.append_nowait(&payload(3, 0));
    for writer in writers {
        writer.join().unwrap();
    }
    let closed = catch_unwind(AssertUnwindSafe(|| journal.close()));
    match closed {
        Ok(closed) => assert!(closed.is_ok() || journal.poisoned() == closed.err()),
        Err(panic) => assert!(panic.is::<Injected>(), "the close led, and met the panic"),
    }
    reader.join().unwrap();
    if let Ok(ticket) = ticket {
        let outcome = ticket.try_wait();
        assert!(matches!(outcome, Some(Ok(_) | Err(AppendError::Poisoned(_)))), "{outcome:?}");
    }
    if fault == Fault::Panic {
        assert!(matches!(journal.poisoned(), None | Some(Poisoned::Abandoned)));
    }
    // Whoever looks once more, by whatever way, is told the same.
    let late = journal.append(&payload(9, 9));
    match journal.poisoned() {
        Some(poisoned) => {
            assert_eq!(late, Err(AppendError::Poisoned(poisoned)));
            assert_eq!(journal.trim_to(Seq::new(1)), Err(poisoned));
            assert_eq!(journal.flush(), Err(poisoned.into()));
        }
        None => assert_eq!(late, Err(AppendError::Closed)),
    }
    ledger.is_kept_by(&disk);
}

#[test]
fn a_poison_is_seen_before_anybody_is_released() {
    explore("a sync that fails", 6_000, || meets("sync", Fault::Error(EIO)));
    explore("a write that fails", 2_000, || meets("write", Fault::Error(EIO)));
    explore("a directory sync that fails", 1_200, || meets("sync_directory", Fault::Error(EIO)));
}

#[test]
fn a_panicking_disk_poisons_and_nobody_is_forgotten() {
    explore("a sync that panics", 4_000, || meets("sync", Fault::Panic));
    explore("a write that panics", 4_000, || meets("write", Fault::Panic));
}

/// What was told void is not in the journal, what was acknowledged is, under a number that nobody else has; and
/// once there is space again, appends work.
#[test]
fn a_void_fails_those_whose_records_it_takes() {
    explore("no space", 6_000, || {
        let (disk, ledger) = (MemoryDisk::default(), Ledger::default());
        let journal = open(&disk, small());
        for _ in 0..2 {
            disk.inject("write", thread_rng().gen_range(0..5), Fault::Error(ENOSPC));
        }
        let writers = [1, 2, 3].map(|thread| {
            let (disk, journal, ledger) = (disk.clone(), journal.clone(), ledger.clone());
            spawn(move || {
                let mut void = Vec::new();
                for n in 0..3 {
                    let payload = payload(thread, n);
                    let ticket = match thread {
                        3 => journal.append_nowait(&payload).map(|ticket| {
                            shuttle::thread::yield_now();
                            ticket.wait()
                        }),
                        _ => Ok(journal.append(&payload)),
                    };
                    match ticket.unwrap() {
                        Ok(seq) => ledger.acknowledged(&disk, seq, &payload),
                        Err(AppendError::NoSpace) => void.push(payload),
                        Err(other) => panic!("{other}"),
                    }
                }
                void
            })
        });
        let void: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap().unwrap()).collect();
        assert_eq!(journal.poisoned(), None);
        while journal.append(&payload(4, 0)).is_err() {}
        journal.close().unwrap();
        let found = ledger.is_kept_by(&disk);
        assert_eq!(found.len() + void.len(), 10, "each ended in one way");
        for payload in void {
            assert!(!found.values().any(|kept| *kept == payload), "a record that was told void is there");
        }
    });
}
