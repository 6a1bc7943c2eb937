//! Readers beside writers: they see what is durable, all of it, and in order.

use strandline_core::{Config, ReadUpTo, Seq, SyncPolicy};

use super::memory_disk::MemoryDisk;
use super::{explore, open, payload, small, spawn};
use crate::ReadStep;

#[test]
fn readers_see_only_what_is_durable() {
    explore("readers", 4_000, || {
        let disk = MemoryDisk::default();
        let sync = SyncPolicy::Interval { ms: 1 };
        let journal = open(&disk, Config { sync, tail_bytes_max: 64, ..small() });
        let readers = [0, 2].map(|from| {
            let mut reader = journal.reader(Seq::new(from), ReadUpTo::Durable);
            let held = disk.clone();
            spawn(move || {
                let mut next = from;
                while next < 6 {
                    match reader.next_batch(None).unwrap() {
                        ReadStep::Records(batch) => {
                            for record in batch.records() {
                                assert_eq!(record.seq, Seq::new(next));
                                assert!(held.is_durable(record.payload), "{next} was read and can vanish");
                                next += 1;
                            }
                        }
                        // It began before the record that it asked for was there.
                        ReadStep::Beyond { end } => {
                            assert!(end < Seq::new(from));
                            shuttle::thread::yield_now();
                        }
                        other => panic!("{other:?}"),
                    }
                }
            })
        });
        let mine = journal.clone();
        let writer = spawn(move || {
            for n in 0..3 {
                mine.append(&payload(1, n)).unwrap();
            }
        });
        for n in 0..3 {
            drop(journal.append_nowait(&payload(2, n)).unwrap());
        }
        writer.join().unwrap();
        // Nobody flushes: housekeeping syncs when the interval is over, and readers are woken.
        for reader in readers {
            reader.join().unwrap();
        }
        journal.close().unwrap();
    });
}

#[test]
fn a_trim_races_with_everything() {
    const RECORDS: u64 = 8;
    explore("trimming", 2_800, || {
        let disk = MemoryDisk::default();
        let config = Config { tail_bytes_max: 0, removal_retry_ms: 1, ..small() };
        let journal = open(&disk, config);
        let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
        let reader = spawn(move || {
            let mut next = Seq::ZERO;
            loop {
                match reader.next_batch(None).unwrap() {
                    ReadStep::Records(batch) => {
                        for record in batch.records() {
                            assert_eq!(record.seq, next, "without a hole that was not told");
                            next = record.seq.next();
                        }
                    }
                    ReadStep::Trimmed { first } => {
                        assert!(first > next);
                        next = first;
                    }
                    ReadStep::Closed => return next,
                    other => panic!("{other:?}"),
                }
            }
        });
        let mine = journal.clone();
        let trimmer = spawn(move || {
            for _ in 0..3 {
                mine.trim_to(mine.durable_end()).unwrap();
                shuttle::thread::yield_now();
            }
        });
        for n in 0..RECORDS {
            assert_eq!(journal.append(&[b'x'; 300]), Ok(Seq::new(n)));
        }
        trimmer.join().unwrap();
        let first = journal.first();
        journal.close().unwrap();
        assert_eq!(reader.join().unwrap(), Some(Seq::new(RECORDS)));
        let again = open(&disk.after_power_loss(), small());
        assert_eq!((again.first(), again.next_seq()), (first, Seq::new(RECORDS)));
        again.close().unwrap();
    });
}
