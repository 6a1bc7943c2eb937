//! The journal under threads and on a failing disk.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use strandline_core::{Config, IoOperation, Pryj, ReadError, ReadUpTo, Seq, SyncPolicy};

use crate::test_disk::{EIO, EMFILE, ENOSPC, Fault, TestDisk};
use crate::{AppendError, Directory, FlushError, Journal, OpenError, Poisoned, ReadStep, Reader, config};

type TestJournal = Journal<Pryj, TestDisk>;

/// Small enough that a test that fills it is quick, with an idle mark so late that it disturbs no test.
fn small() -> Config {
    Config { segment_bytes: 16 * 1024, reserve_bytes: 4 * 1024, idle_mark_ms: 60_000, ..config() }
}

fn open_with(disk: &TestDisk, config: Config) -> TestJournal {
    let (journal, _) = Directory::on(disk.clone()).journal("a", config).unwrap();
    journal
}

fn open(disk: &TestDisk) -> TestJournal {
    open_with(disk, small())
}

/// Every record that can be read, by its sequence number.
fn read_all(journal: &TestJournal) -> BTreeMap<u64, Vec<u8>> {
    let mut reader = journal.reader(journal.first(), ReadUpTo::Durable);
    let mut found = BTreeMap::new();
    loop {
        match reader.next_batch(Some(Duration::ZERO)).unwrap() {
            ReadStep::Records(batch) => {
                for record in batch.records() {
                    let before = found.insert(record.seq.get(), record.payload.to_vec());
                    assert_eq!(before, None, "record {} came twice", record.seq);
                }
            }
            ReadStep::TimedOut | ReadStep::Closed => return found,
            other => panic!("{other:?}"),
        }
    }
}

fn next_records(reader: &mut Reader<Pryj, TestDisk>) -> Vec<Vec<u8>> {
    match reader.next_batch(None).unwrap() {
        ReadStep::Records(batch) => batch.records().map(|record| record.payload.to_vec()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_appended_is_there_after_a_reopen() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    for n in 0..100u64 {
        assert_eq!(journal.append(&[7; 300]).unwrap(), Seq::new(n));
    }
    assert_eq!(journal.durable_end(), Seq::new(100));
    let before = read_all(&journal);
    journal.close().unwrap();
    assert!(disk.names().len() > 1, "it went over several segments: {:?}", disk.names());
    assert!(disk.names().iter().all(|name| name.ends_with(".seg")), "{:?}", disk.names());
    let journal = open(&disk);
    assert_eq!(read_all(&journal), before);
    assert_eq!(before.len(), 100);
    assert_eq!(journal.append(b"next").unwrap(), Seq::new(100));
}

#[test]
fn threads_share_commits_and_every_record_is_there_once() {
    const THREADS: u64 = 16;
    const EACH: u64 = 200;
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { segment_bytes: 64 * 1024, ..small() });
    let syncs_before = disk.syncs();
    let appended: Vec<(Seq, String)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let journal = journal.clone();
                scope.spawn(move || {
                    let append = |n| {
                        let payload = format!("{thread}/{n}");
                        let seq = journal.append(payload.as_bytes()).unwrap();
                        assert!(journal.durable_end() > seq, "acknowledged means durable");
                        (seq, payload)
                    };
                    (0..EACH).map(append).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let syncs = disk.syncs() - syncs_before;
    let expected: BTreeMap<u64, Vec<u8>> =
        appended.into_iter().map(|(seq, payload)| (seq.get(), payload.into_bytes())).collect();
    assert_eq!(expected.len() as u64, THREADS * EACH);
    assert_eq!(expected.keys().copied().max(), Some(THREADS * EACH - 1), "the numbers have no gap");
    assert_eq!(read_all(&journal), expected);
    assert!((syncs as u64) < THREADS * EACH, "{syncs} syncs");
    journal.close().unwrap();
    assert_eq!(read_all(&open(&disk)), expected);
}

#[test]
fn tickets_that_nobody_waits_on_are_durable_all_the_same() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    drop(journal.append_nowait(b"dropped").unwrap());
    assert_eq!(next_records(&mut reader), [b"dropped"]);
}

#[test]
fn many_tickets_and_a_wait_are_one_commit() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    // What is appended while a commit is on its way gathers for the next one.
    disk.hold_syncs();
    let first = journal.append_nowait(b"first").unwrap();
    disk.wait_for_held_sync();
    let syncs = disk.syncs();
    let tickets: Vec<_> = (0..100).map(|_| journal.append_nowait(b"more").unwrap()).collect();
    assert!(tickets.iter().all(|ticket| ticket.try_wait().is_none()));
    disk.release_syncs();
    first.wait().unwrap();
    for (n, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(ticket.wait().unwrap(), Seq::new(n as u64 + 1));
    }
    assert_eq!(disk.syncs(), syncs + 1);
    let counts = journal.commit_counts();
    assert_eq!((counts.commits, counts.records), (2, 101));
    assert_eq!((counts.by_records[0], counts.by_records[7]), (1, 1), "one record, and 65 to 128");
}

#[test]
fn a_waiter_is_released_by_its_own_commit() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    disk.hold_syncs();
    let first = journal.append_nowait(b"first").unwrap();
    disk.wait_for_held_sync();
    let second = journal.append_nowait(b"second").unwrap();
    disk.inject("write", Fault::Error(ENOSPC), 1);
    disk.release_syncs();
    assert_eq!(first.wait(), Ok(Seq::new(0)));
    assert_eq!(second.wait(), Err(AppendError::NoSpace));
    assert_eq!(journal.append(b"third"), Ok(Seq::new(1)), "the number of what was void is given out again");
    assert_eq!(read_all(&journal).into_values().collect::<Vec<_>>(), [b"first", b"third"]);
}

#[test]
fn no_space_fails_what_waits_and_nothing_else() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    journal.append(b"before").unwrap();
    disk.inject("write", Fault::Error(ENOSPC), 2);
    assert_eq!(journal.append(b"void"), Err(AppendError::NoSpace));
    assert_eq!(journal.append(b"void"), Err(AppendError::NoSpace));
    assert_eq!(journal.append(b"after"), Ok(Seq::new(1)));
    assert_eq!((journal.commit_counts().commits, journal.commit_counts().records), (2, 2), "no void counts");
    assert_eq!(journal.poisoned(), None);
    journal.close().unwrap();
    assert_eq!(read_all(&open(&disk)).into_values().collect::<Vec<_>>(), [&b"before"[..], b"after"]);
}

#[test]
fn too_many_open_files_fail_what_waits_and_nothing_else() {
    let disk = TestDisk::new();
    // Without zeros, no file is prepared for the next segment either.
    let journal = open_with(&disk, Config { reserve_bytes: 0, ..small() });
    assert_eq!(journal.append(&[1; 16_000]), Ok(Seq::new(0)));
    disk.inject("create", Fault::Error(EMFILE), 2);
    assert_eq!(journal.append(&[2; 16_000]), Err(AppendError::TooManyFiles));
    let refused = journal.append_nowait(&[2; 16_000]).unwrap().wait();
    assert_eq!(refused, Err(AppendError::TooManyFiles));
    let text = AppendError::TooManyFiles.to_string();
    assert!(text.contains("too many open files") && text.contains("ulimit -n"), "{text}");
    assert_eq!(journal.append(&[3; 16_000]), Ok(Seq::new(1)));
    assert_eq!(journal.poisoned(), None);
    journal.close().unwrap();
    let kept: Vec<_> = read_all(&open(&disk)).into_values().map(|payload| payload[0]).collect();
    assert_eq!(kept, [1, 3]);
}

#[test]
fn an_opening_with_too_many_open_files_says_so_and_changes_nothing() {
    let disk = TestDisk::new();
    open(&disk).append(b"kept").unwrap();
    disk.inject("open", Fault::Error(EMFILE), 1);
    let refused = Directory::on(disk.clone()).journal::<Pryj>("a", small()).map(|_| ()).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("too many open files") && text.contains("ulimit -n"), "{text}");
    assert_eq!(read_all(&open(&disk))[&0], b"kept");
}

#[test]
fn a_producer_that_asks_for_numbers_leaves_no_hole() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    journal.append(b"one").unwrap();
    disk.hold_syncs();
    let first = journal.append_nowait_at(Seq::new(1), b"two").unwrap();
    disk.wait_for_held_sync();
    // These gather behind the commit under way, and are lost.
    let lost = journal.append_nowait_at(Seq::new(2), b"three").unwrap();
    disk.inject("write a-", Fault::Error(ENOSPC), 1);
    disk.release_syncs();
    assert_eq!((first.wait(), lost.wait()), (Ok(Seq::new(1)), Err(AppendError::NoSpace)));
    let refused = journal.append_nowait_at(Seq::new(3), b"four").err();
    assert_eq!(refused, Some(AppendError::NotNext { expected: Seq::new(3), next: Seq::new(2) }));
    let again = journal.append_nowait_at(Seq::new(2), b"three").unwrap();
    assert_eq!(again.wait(), Ok(Seq::new(2)));
    journal.close().unwrap();
    assert_eq!(journal.append_nowait_at(Seq::new(7), b"late").err(), Some(AppendError::Closed));
    let expected = [&b"one"[..], b"two", b"three"].map(<[u8]>::to_vec);
    assert_eq!(read_all(&journal).into_values().collect::<Vec<_>>(), expected);
}

#[test]
fn a_failed_sync_poisons_everything_that_follows() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    journal.append(b"safe").unwrap();
    disk.inject("sync", Fault::Error(EIO), 1);
    let Err(AppendError::Poisoned(Poisoned::Disk(poison))) = journal.append(b"unknown") else {
        panic!("a failed sync must not acknowledge");
    };
    assert_eq!(poison.failure.operation, IoOperation::Sync);
    let poisoned = Poisoned::Disk(poison);
    disk.take_log();
    assert_eq!(journal.append(b"refused"), Err(AppendError::Poisoned(poisoned)));
    assert_eq!(journal.append_nowait(b"refused").err(), Some(AppendError::Poisoned(poisoned)));
    assert_eq!(journal.flush(), Err(FlushError::Poisoned(poisoned)));
    assert_eq!(journal.trim_to(Seq::new(1)), Err(poisoned));
    assert_eq!(read_all(&journal).into_values().collect::<Vec<_>>(), [b"safe"], "reading goes on");
    assert_eq!(journal.close(), Err(poisoned));
    assert_eq!(disk.take_log(), [""; 0], "after a poison nothing is written or synced");
    assert_eq!(read_all(&open(&disk))[&0], b"safe");
}

#[test]
fn a_panic_in_the_middle_of_a_commit_poisons() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    journal.append(b"safe").unwrap();
    disk.hold_syncs();
    disk.inject("sync", Fault::Panic, 1);
    let leader = journal.clone();
    let leader = thread::spawn(move || leader.append(b"panics"));
    disk.wait_for_held_sync();
    let follower = journal.append_nowait(b"follows").unwrap();
    let watcher = journal.clone();
    let (started, has_started) = mpsc::channel();
    let watcher = thread::spawn(move || {
        started.send(()).unwrap();
        watcher.append(b"watches")
    });
    has_started.recv().unwrap();
    disk.release_syncs();
    assert!(leader.join().is_err(), "the panic goes to its own thread");
    let poisoned = AppendError::Poisoned(Poisoned::Abandoned);
    assert_eq!(follower.wait(), Err(poisoned));
    assert_eq!(watcher.join().unwrap(), Err(poisoned));
    assert_eq!(journal.append(b"refused"), Err(poisoned));
    assert_eq!(journal.close(), Err(Poisoned::Abandoned));
    assert_eq!(read_all(&open(&disk))[&0], b"safe");
}

#[test]
fn a_full_queue_refuses_a_ticket_and_blocks_an_append() {
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { pending_bytes_max: 1_000, ..small() });
    disk.hold_syncs();
    let first = journal.append_nowait(&[1; 500]).unwrap();
    disk.wait_for_held_sync();
    let second = journal.append_nowait(&[2; 900]).unwrap();
    assert!(matches!(journal.append_nowait(&[3; 900]), Err(AppendError::Full { max: 1_000, .. })));
    let appender = journal.clone();
    let appender = thread::spawn(move || appender.append(&[4; 900]));
    disk.release_syncs();
    assert_eq!(appender.join().unwrap(), Ok(Seq::new(2)));
    assert_eq!((first.wait(), second.wait()), (Ok(Seq::new(0)), Ok(Seq::new(1))));
}

#[test]
fn a_reader_follows_the_writer() {
    const RECORDS: u64 = 500;
    let disk = TestDisk::new();
    let journal = open(&disk);
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    let follower = thread::spawn(move || {
        let mut payloads = Vec::new();
        loop {
            match reader.next_batch(None).unwrap() {
                ReadStep::Records(batch) => payloads.extend(batch.records().map(|r| r.payload.to_vec())),
                ReadStep::Closed => return payloads,
                other => panic!("{other:?}"),
            }
        }
    });
    for n in 0..RECORDS {
        journal.append(&n.to_le_bytes()).unwrap();
    }
    journal.close().unwrap();
    let expected: Vec<_> = (0..RECORDS).map(|n| n.to_le_bytes().to_vec()).collect();
    assert_eq!(follower.join().unwrap(), expected);
}

#[test]
fn a_reader_is_told_what_was_trimmed() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    for _ in 0..100 {
        journal.append(&[7; 1_000]).unwrap();
    }
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    journal.trim_to(Seq::new(60)).unwrap();
    let step = reader.next_batch(Some(Duration::ZERO)).unwrap();
    assert!(matches!(step, ReadStep::Trimmed { first } if first == Seq::new(60)), "{step:?}");
    assert_eq!(read_all(&journal).len(), 40);
    let mut beyond = journal.reader(Seq::new(101), ReadUpTo::Durable);
    let step = beyond.next_batch(None).unwrap();
    assert!(matches!(step, ReadStep::Beyond { end } if end == Seq::new(100)), "{step:?}");
    journal.close().unwrap();
    assert!(!disk.names().contains(&"a-00000000000000000000.seg".to_string()), "{:?}", disk.names());
    let journal = open(&disk);
    assert_eq!((journal.first(), read_all(&journal).len()), (Seq::new(60), 40));
}

#[test]
fn a_segment_that_is_removed_under_a_reader_is_trimmed_and_no_failure() {
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { tail_bytes_max: 0, ..small() });
    for _ in 0..100 {
        journal.append(&[7; 1_000]).unwrap();
    }
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    let (oldest, trims) = (disk.path().join("a-00000000000000000000.seg"), journal.clone());
    disk.before_next("open", move || {
        trims.trim_to(Seq::new(60)).unwrap();
        // Whether the journal has come to it already or not.
        let _ = std::fs::remove_file(oldest);
    });
    let step = reader.next_batch(Some(Duration::ZERO)).unwrap();
    assert!(matches!(step, ReadStep::Trimmed { first } if first == Seq::new(60)), "{step:?}");
    // What is not there and was not given up is a failure.
    let newest = journal.view().segments().next_back().unwrap().id();
    std::fs::remove_file(disk.path().join(journal.name().segment_file(newest))).unwrap();
    let error = journal.reader(newest.0, ReadUpTo::Durable).next_batch(Some(Duration::ZERO));
    assert!(matches!(error, Err(ReadError::Failed { .. })), "{error:?}");
}

#[test]
fn a_flush_makes_weaker_policies_durable() {
    for sync in [SyncPolicy::Never, SyncPolicy::Interval { ms: 60_000 }] {
        let disk = TestDisk::new();
        let journal = open_with(&disk, Config { sync, ..small() });
        let syncs = disk.syncs();
        journal.append(b"one").unwrap();
        journal.append_nowait(b"two").unwrap().wait().unwrap();
        assert_eq!((disk.syncs(), journal.durable_end()), (syncs, Seq::ZERO), "{sync:?}");
        journal.flush().unwrap();
        assert_eq!((disk.syncs(), journal.durable_end()), (syncs + 1, Seq::new(2)), "{sync:?}");
        assert_eq!((journal.commit_counts().commits, journal.commit_counts().records), (2, 2), "{sync:?}");
        journal.flush().unwrap();
        assert_eq!(disk.syncs(), syncs + 1, "{sync:?}: nothing was left to flush");
        let ticket = journal.append_nowait(b"three").unwrap();
        journal.flush().unwrap();
        assert_eq!((ticket.try_wait(), journal.durable_end()), (Some(Ok(Seq::new(2))), Seq::new(3)));
    }
}

#[test]
fn an_interval_syncs_and_an_idle_writer_leaves_a_mark() {
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { sync: SyncPolicy::Interval { ms: 5 }, ..small() });
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    journal.append(b"synced by housekeeping").unwrap();
    assert_eq!(next_records(&mut reader), [b"synced by housekeeping"]);

    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { idle_mark_ms: 1, ..small() });
    journal.append(b"proven").unwrap();
    let proven = || {
        let found = crate::inspect::<Pryj>(disk.path(), journal.name(), Default::default()).unwrap();
        found.report.proven_end
    };
    while proven() < Seq::new(1) {
        thread::yield_now();
    }
    assert!(journal.durable_end() >= Seq::new(1));
}

#[test]
fn each_journal_is_open_once_and_closed_by_its_last_handle() {
    let disk = TestDisk::new();
    let directory = Directory::on(disk.clone());
    let (journal, _) = directory.journal::<Pryj>("a", small()).unwrap();
    assert!(matches!(directory.journal::<Pryj>("a", small()), Err(OpenError::AlreadyOpen(_))));
    assert!(matches!(directory.journal::<Pryj>("A", small()), Err(OpenError::Name(_))));
    let (other, _) = directory.journal::<Pryj>("b", small()).unwrap();
    let clone = journal.clone();
    let ticket = clone.append_nowait(b"accepted").unwrap();
    drop(journal);
    assert!(directory.journal::<Pryj>("a", small()).is_err(), "a clone keeps it open");
    drop(clone);
    assert_eq!(ticket.try_wait(), Some(Ok(Seq::ZERO)), "what was accepted is committed first");
    let (journal, report) = directory.journal::<Pryj>("a", small()).unwrap();
    assert_eq!((report.end, report.unproven()), (Seq::new(1), 0), "a drop closes cleanly");
    journal.close().unwrap();
    journal.close().unwrap();
    assert_eq!(journal.append(b"refused"), Err(AppendError::Closed));
    assert_eq!(read_all(&journal).len(), 1);
    assert!(directory.journal::<Pryj>("a", small()).is_ok(), "a close gives the name back");
    other.append(b"undisturbed").unwrap();
}

#[test]
fn an_idle_journal_sleeps_until_somebody_wakes_it() {
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { idle_mark_ms: 1, ..small() });
    for _ in 0..3 {
        journal.append(b"busy").unwrap();
        while !journal.is_asleep() {
            thread::yield_now();
        }
    }
    assert!(journal.is_asleep());
    drop(journal.append_nowait(b"wakes it").unwrap());
    while journal.durable_end() < Seq::new(4) {
        thread::yield_now();
    }
    assert_eq!(journal.durable_end(), Seq::new(4));
}

/// What a waker drops may be the last handle, and housekeeping is the one who wakes.
struct HoldsTheHandle(mpsc::Sender<()>, std::sync::Mutex<Option<TestJournal>>);

impl Wake for HoldsTheHandle {
    fn wake(self: Arc<Self>) {
        drop(self.1.lock().unwrap().take());
        self.0.send(()).unwrap();
    }
}

#[test]
fn the_last_handle_can_be_dropped_by_a_waker() {
    let disk = TestDisk::new();
    let directory = Directory::on(disk.clone());
    let (journal, _) = directory.journal::<Pryj>("a", small()).unwrap();
    let mut ticket = pin!(journal.append_nowait(b"from a task").unwrap());
    let (woken, is_woken) = mpsc::channel();
    disk.hold_syncs();
    let waker = Waker::from(Arc::new(HoldsTheHandle(woken, std::sync::Mutex::new(Some(journal)))));
    assert!(ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    disk.release_syncs();
    is_woken.recv().unwrap();
    assert_eq!(ticket.try_wait(), Some(Ok(Seq::ZERO)));
    let reopened = loop {
        match directory.journal::<Pryj>("a", small()) {
            Err(OpenError::AlreadyOpen(_)) => thread::yield_now(),
            other => break other.unwrap(),
        }
    };
    assert_eq!((reopened.1.end, reopened.1.unproven()), (Seq::new(1), 0));
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn tasks_wait_without_threads() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
    assert!(reader.poll_batch(&mut context).is_pending());
    let mut ticket = pin!(journal.append_nowait(b"from a task").unwrap());
    let acknowledged = loop {
        match ticket.as_mut().poll(&mut context) {
            Poll::Ready(result) => break result,
            Poll::Pending => thread::park(),
        }
    };
    assert_eq!(acknowledged, Ok(Seq::ZERO));
    match reader.poll_batch(&mut context) {
        Poll::Ready(Ok(ReadStep::Records(batch))) => assert_eq!(batch.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failed_removal_is_tried_again() {
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { removal_retry_ms: 1, ..small() });
    for _ in 0..40 {
        journal.append(&[7; 1_000]).unwrap();
    }
    disk.inject("remove a-0", Fault::Error(EIO), 2);
    journal.trim_to(Seq::new(30)).unwrap();
    while disk.names().contains(&"a-00000000000000000000.seg".to_string()) {
        thread::yield_now();
    }
    assert_eq!(journal.append(b"goes on"), Ok(Seq::new(40)));
}

/// Nobody leads while all that is left to do is done in the background. If that fails, there must still be
/// somebody to say so.
#[test]
fn a_poison_from_the_background_reaches_who_waits() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    while journal.view().segments().len() < 3 {
        journal.append(&[7; 1_000]).unwrap();
    }
    let (watched, failing) = (journal.clone(), disk.clone());
    disk.before_next("remove a-", move || {
        while !watched.close_waits_for_background() {
            thread::yield_now();
        }
        failing.inject("sync_directory", Fault::Error(EIO), 1);
    });
    journal.trim_to(Seq::new(20)).unwrap();
    assert!(matches!(journal.close(), Err(Poisoned::Disk(_))));
    assert!(matches!(journal.append(b"late"), Err(AppendError::Poisoned(_))));
}

/// The housekeeping thread sleeps through the failure, and the close waits for it to end.
#[test]
fn a_close_that_poisons_ends() {
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { idle_mark_ms: 1, ..small() });
    journal.append(b"one").unwrap();
    while !journal.is_asleep() {
        thread::yield_now();
    }
    disk.inject("sync", Fault::Error(EIO), 1);
    assert!(matches!(journal.close(), Err(Poisoned::Disk(_))));
}

#[test]
fn spares_are_prepared_and_do_not_outlive_the_close() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    while !disk.names().contains(&"a.spare.new-1".to_string()) {
        journal.append(&[7; 500]).unwrap();
    }
    journal.close().unwrap();
    assert!(disk.names().iter().all(|name| name.ends_with(".seg")), "{:?}", disk.names());
}

#[test]
fn many_records_in_one_call_share_a_sync() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    let syncs = disk.syncs();
    let drafts: Vec<_> = (0..100u8).map(|n| [n]).collect();
    assert_eq!(journal.append_all(drafts.iter().map(|draft| &draft[..])), Ok(Some(Seq::new(99))));
    assert_eq!(disk.syncs(), syncs + 1);
    assert_eq!(journal.append_all([]), Ok(None));
    assert_eq!(read_all(&journal)[&42], [42]);
}

#[test]
fn many_records_in_one_call_go_beyond_a_commit_and_the_queue() {
    let disk = TestDisk::new();
    let config = Config { pending_bytes_max: 8_000, commit_bytes_max: 2_000, ..small() };
    let journal = open_with(&disk, config);
    assert_eq!(journal.append_all(std::iter::repeat_n(&[7; 300][..], 200)), Ok(Some(Seq::new(199))));
    assert_eq!(read_all(&journal).len(), 200);
}

#[test]
fn of_many_records_those_before_the_first_failure_count() {
    let disk = TestDisk::new();
    let journal = open_with(&disk, Config { payload_bytes_max: 10, ..small() });
    let error = journal.append_all([&[1; 5][..], &[2; 5], &[3; 11], &[4; 5]]).unwrap_err();
    assert_eq!(error.appended, 2);
    assert!(matches!(error.source, AppendError::Draft(_)), "{error}");
    disk.inject("write", Fault::Error(ENOSPC), 1);
    let error = journal.append_all([&[5; 5][..], &[6; 5]]).unwrap_err();
    assert_eq!((error.appended, error.source), (0, AppendError::NoSpace));
    assert_eq!(read_all(&journal).into_values().collect::<Vec<_>>(), [[1; 5], [2; 5]]);
}

#[test]
fn a_panic_in_housekeeping_poisons_too() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    disk.inject("zeros a-00000000000000000000.seg.new-0 4096", Fault::Panic, 1);
    let failed = loop {
        match journal.append(&[7; 300]) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(failed, AppendError::Poisoned(Poisoned::Abandoned));
    assert_eq!(journal.close(), Err(Poisoned::Abandoned));
    assert!(!read_all(&open(&disk)).is_empty());
}

#[test]
fn a_record_that_asks_for_its_number_is_never_stored_behind_a_lost_one() {
    let disk = TestDisk::new();
    let journal = open(&disk);
    assert_eq!(journal.append_at(Seq::new(0), b"first"), Ok(Seq::new(0)));
    disk.inject("write", Fault::Error(ENOSPC), 1);
    let lost = journal.append_nowait_at(Seq::new(1), b"lost").unwrap();
    assert_eq!(lost.wait(), Err(AppendError::NoSpace));
    let late = journal.append_nowait_at(Seq::new(2), b"late").err();
    assert_eq!(late, Some(AppendError::NotNext { expected: Seq::new(2), next: Seq::new(1) }));
    assert_eq!(journal.append_at(Seq::new(1), b"again"), Ok(Seq::new(1)));
}

/// A rename would replace a pipe or a socket in silence.
#[test]
fn what_has_a_segments_name_and_is_no_file_is_left_alone_and_opening_says_so() {
    let disk = TestDisk::new();
    let directory = Directory::on(disk.clone());
    let in_the_way = disk.path().join("log-00000000000000000007.seg");
    std::fs::create_dir(&in_the_way).unwrap();
    let refused = directory.journal::<Pryj>("log", config()).map(drop).unwrap_err();
    let listing = OpenError::Listing(crate::ListingError::InTheWay {
        journal: crate::JournalName::parse("log").unwrap(),
        name: "log-00000000000000000007.seg".into(),
    });
    assert_eq!(refused.to_string(), listing.to_string());
    assert_eq!(disk.names(), ["log-00000000000000000007.seg"], "nothing was made");
    std::fs::remove_dir(in_the_way).unwrap();
    assert!(directory.journal::<Pryj>("log", config()).is_ok());
}
