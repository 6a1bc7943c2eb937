//! Who waits is released by its own commit, not before it is durable, and always.

use strandline_core::{Config, ReadUpTo, Seq, SyncPolicy};

use super::memory_disk::MemoryDisk;
use super::{Ledger, TestJournal, explore, open, payload, small, spawn};
use crate::{AppendError, FlushError, ReadStep};

/// One appends record by record, one holds tickets, one hands over many at a time.
fn three_ways(disk: &MemoryDisk, journal: &TestJournal, ledger: &Ledger) {
    let (held, mine, noted) = (disk.clone(), journal.clone(), ledger.clone());
    let one = spawn(move || {
        for n in 0..3 {
            let seq = mine.append(&payload(1, n)).unwrap();
            assert!(mine.durable_end() > seq);
            noted.acknowledged(&held, seq, &payload(1, n));
        }
    });
    let (held, mine, noted) = (disk.clone(), journal.clone(), ledger.clone());
    let two = spawn(move || {
        let tickets = [0, 1, 2].map(|n| mine.append_nowait(&payload(2, n)).unwrap());
        for (n, ticket) in (0..3).zip(tickets).rev() {
            let seq = ticket.wait().unwrap();
            noted.acknowledged(&held, seq, &payload(2, n));
        }
    });
    let drafts = [0, 1, 2].map(|n| payload(3, n));
    journal.append_all(drafts.iter().map(|draft| &draft[..])).unwrap();
    for draft in &drafts {
        assert!(disk.is_durable(draft));
    }
    one.join().unwrap();
    two.join().unwrap();
}

#[test]
fn no_waiter_is_released_before_its_record_is_durable() {
    explore("waiters", 6_000, || {
        let (disk, ledger) = (MemoryDisk::default(), Ledger::default());
        let journal = open(&disk, small());
        three_ways(&disk, &journal, &ledger);
        assert_eq!(journal.durable_end(), Seq::new(9));
        journal.close().unwrap();
        assert_eq!(ledger.is_kept_by(&disk).len(), 9);
    });
}

#[test]
fn whoever_waits_for_room_gets_it() {
    explore("a full queue", 4_000, || {
        let (disk, ledger) = (MemoryDisk::default(), Ledger::default());
        let config = Config { pending_bytes_max: 100, commit_bytes_max: 60, ..small() };
        let journal = open(&disk, config);
        let mine = journal.clone();
        let bulk = spawn(move || {
            let drafts = (0..6).map(|n| payload(4, n)).collect::<Vec<_>>();
            mine.append_all(drafts.iter().map(|draft| &draft[..])).unwrap()
        });
        let (held, mine, noted) = (disk.clone(), journal.clone(), ledger.clone());
        let single = spawn(move || {
            for n in 0..4 {
                let seq = mine.append(&payload(5, n)).unwrap();
                noted.acknowledged(&held, seq, &payload(5, n));
            }
        });
        let refused = (0..4).map(|n| journal.append_nowait(&payload(6, n)).err());
        let refused = refused.flatten().filter(|error| matches!(error, AppendError::Full { .. })).count();
        bulk.join().unwrap();
        single.join().unwrap();
        drop(journal);
        assert_eq!(ledger.is_kept_by(&disk).len(), 6 + 4 + 4 - refused);
    });
}

#[test]
fn tickets_that_nobody_waits_on_end() {
    explore("tickets", 6_000, || {
        let disk = MemoryDisk::default();
        let journal = open(&disk, small());
        let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
        let held = disk.clone();
        let reader = spawn(move || {
            while reader.next_seq() < Seq::new(4) {
                let step = reader.next_batch(None).unwrap();
                let ReadStep::Records(batch) = step else { panic!("{step:?}") };
                for record in batch.records() {
                    assert!(held.is_durable(record.payload));
                }
            }
        });
        let mine = journal.clone();
        let other = spawn(move || {
            drop(mine.append_nowait(&payload(1, 0)).unwrap());
            let kept = mine.append_nowait(&payload(1, 1)).unwrap();
            drop(mine);
            kept
        });
        drop(journal.append_nowait(&payload(2, 0)).unwrap());
        drop(journal.append_nowait(&payload(2, 1)).unwrap());
        reader.join().unwrap();
        let kept = other.join().unwrap().unwrap();
        assert!(kept.try_wait().is_some_and(|result| result.is_ok()));
        drop(journal);
        assert_eq!(Ledger::default().is_kept_by(&disk).len(), 4);
    });
}

#[test]
fn a_close_releases_everybody() {
    explore("closing", 6_000, || {
        let (disk, ledger) = (MemoryDisk::default(), Ledger::default());
        let journal = open(&disk, small());
        let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
        let reader = spawn(move || {
            let mut records = 0_usize;
            loop {
                match reader.next_batch(None).unwrap() {
                    ReadStep::Records(batch) => records += batch.records().count(),
                    ReadStep::Closed => return records,
                    other => panic!("{other:?}"),
                }
            }
        });
        let writers = [1, 2].map(|thread| {
            let (held, mine, noted) = (disk.clone(), journal.clone(), ledger.clone());
            spawn(move || {
                for n in 0..3 {
                    match mine.append(&payload(thread, n)) {
                        Ok(seq) => noted.acknowledged(&held, seq, &payload(thread, n)),
                        Err(AppendError::Closed) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        });
        let mine = journal.clone();
        let closer = spawn(move || mine.close());
        let flushed = journal.flush();
        assert!(matches!(flushed, Ok(()) | Err(FlushError::Closed)), "{flushed:?}");
        journal.close().unwrap();
        assert!(disk.names().iter().all(|name| name.ends_with(".seg")), "{:?}", disk.names());
        assert_eq!(closer.join().unwrap(), Some(Ok(())), "closed twice");
        for writer in writers {
            writer.join().unwrap();
        }
        let read = reader.join().unwrap();
        let found = ledger.is_kept_by(&disk);
        assert_eq!((found.len(), read), (ledger.len(), Some(ledger.len())));
    });
}

#[test]
fn a_closed_name_is_free_for_the_next() {
    explore("leases", 2_000, || {
        let disk = MemoryDisk::default();
        let directory = crate::Directory::on(disk.clone());
        let (journal, _) = directory.journal::<strandline_core::Pryj>("a", small()).unwrap();
        let other = journal.clone();
        let other = spawn(move || {
            let ticket = other.append_nowait(&payload(1, 0)).unwrap();
            drop(other);
            ticket
        });
        drop(journal);
        let ticket = other.join().unwrap().unwrap();
        assert_eq!(ticket.try_wait(), Some(Ok(Seq::ZERO)), "the last handle waits for what was accepted");
        let (journal, report) = directory.journal::<strandline_core::Pryj>("a", small()).unwrap();
        assert_eq!((report.end, report.unproven()), (Seq::new(1), 0));
        journal.close().unwrap();
    });
}

/// Idle marks and interval syncs are due at any moment here: housekeeping takes the lead and gives it back.
#[test]
fn housekeeping_hands_the_lead_over_and_takes_it_back() {
    explore("housekeeping", 4_000, || {
        let disk = MemoryDisk::default();
        let config =
            Config { sync: SyncPolicy::Interval { ms: 1 }, idle_mark_ms: 1, removal_retry_ms: 1, ..small() };
        let journal = open(&disk, config);
        let writers = [1, 2].map(|thread| {
            let mine = journal.clone();
            spawn(move || {
                for n in 0..2 {
                    mine.append(&payload(thread, n)).unwrap();
                    drop(mine.append_nowait(&payload(thread, n + 2)).unwrap());
                }
            })
        });
        let first = journal.append(&payload(3, 0)).unwrap();
        journal.flush().unwrap();
        assert!(disk.is_durable(&payload(3, 0)), "flushed");
        let mut reader = journal.reader(first, ReadUpTo::Durable);
        assert!(matches!(reader.next_batch(None).unwrap(), ReadStep::Records(_)));
        for writer in writers {
            writer.join().unwrap();
        }
        journal.flush().unwrap();
        assert_eq!(journal.durable_end(), Seq::new(9));
        for n in 0..4 {
            assert!(disk.is_durable(&payload(1, n)) && disk.is_durable(&payload(2, n)));
        }
        drop(journal);
        assert_eq!(Ledger::default().is_kept_by(&disk).len(), 9);
    });
}
