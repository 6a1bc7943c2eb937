//! Tickets and readers as futures, under an executor of a few lines.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use shuttle::rand::{Rng, thread_rng};
use strandline_core::{Config, JournalName, Pryj, ReadUpTo, Seq};

use super::memory_disk::{Fault, MemoryDisk};
use super::{Ledger, TestJournal, explore, open, payload, small, spawn};
use crate::sync::thread::Injected;
use crate::test_disk::EIO;
use crate::{AppendError, Directory, ReadStep};

/// Lets one thread run one task.
#[derive(Default)]
struct Alarm {
    rung: shuttle::sync::Mutex<bool>,
    changed: shuttle::sync::Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

/// Polls again when, and only when, it was woken.
pub(super) fn block_on<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let alarm = Arc::new(Alarm::default());
    let waker = Waker::from(Arc::clone(&alarm));
    loop {
        if let Poll::Ready(result) = poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        // Poisoned where another thread of the model unwinds meanwhile: all of them are one thread of the system.
        let mut rung = alarm.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while !*rung {
            rung = alarm.changed.wait(rung).unwrap_or_else(PoisonError::into_inner);
        }
        *rung = false;
    }
}

#[test]
fn tasks_are_woken() {
    explore("tasks", 4_000, || {
        let (disk, ledger) = (MemoryDisk::default(), Ledger::default());
        let journal = open(&disk, small());
        let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
        let held = disk.clone();
        let reader = spawn(move || {
            while reader.next_seq() < Seq::new(6) {
                match block_on(|context| reader.poll_batch(context)).unwrap() {
                    ReadStep::Records(batch) => {
                        batch.records().for_each(|record| assert!(held.is_durable(record.payload)));
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
        let writers = [1, 2].map(|thread| {
            let (held, mine, noted) = (disk.clone(), journal.clone(), ledger.clone());
            spawn(move || {
                for n in 0..2 {
                    let mut ticket = pin!(mine.append_nowait(&payload(thread, n)).unwrap());
                    let seq = block_on(|context| ticket.as_mut().poll(context)).unwrap();
                    noted.acknowledged(&held, seq, &payload(thread, n));
                }
            })
        });
        for n in 0..2 {
            let seq = journal.append(&payload(3, n)).unwrap();
            ledger.acknowledged(&disk, seq, &payload(3, n));
        }
        for writer in writers {
            writer.join().unwrap();
        }
        reader.join().unwrap();
        drop(journal);
        assert_eq!(ledger.is_kept_by(&disk).len(), 6);
    });
}

/// A waker that owns a handle, and gives it up when it is woken.
struct LastHandle(shuttle::sync::Mutex<Option<TestJournal>>);

impl Wake for LastHandle {
    fn wake(self: Arc<Self>) {
        let handle = self.0.lock().unwrap().take();
        drop(handle);
    }
}

/// The last handle goes while the one who wakes is a thread that leads for a ticket, and in the middle of it: the
/// next commit is what it waits for. It cannot wait for itself.
#[test]
fn whoever_leads_can_drop_the_last_handle() {
    explore("the last handle", 4_000, || {
        let disk = MemoryDisk::default();
        let directory = Directory::on(disk.clone());
        let config = Config { commit_bytes_max: 60, ..small() };
        let (journal, _) = directory.journal::<Pryj>("a", config).unwrap();
        if thread_rng().gen_ratio(1, 2) {
            disk.inject("sync", thread_rng().gen_range(0..4), Fault::Error(EIO));
        }
        let mut polled = pin!(journal.append_nowait(&[b'x'; 50]).unwrap());
        // Refused where the first one has met the fault already.
        let Ok(waits) = journal.append_nowait(&payload(1, 0)) else { return };
        let waker = Waker::from(Arc::new(LastHandle(shuttle::sync::Mutex::new(Some(journal)))));
        let is_pending = polled.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        drop(waker);
        let waits = spawn(move || waits.wait());
        match waits.join().unwrap().unwrap() {
            Ok(seq) => assert!(seq == Seq::new(1) && disk.is_durable(&payload(1, 0))),
            Err(error) => assert!(matches!(error, AppendError::Poisoned(_)), "{error}"),
        }
        assert!(is_pending || polled.try_wait().is_some());
        // Whoever closes it in the end gives the name back, although a ticket is still held.
        let name = JournalName::parse("a").unwrap();
        while directory.lease(&name).is_err() {
            shuttle::thread::yield_now();
        }
    });
}

/// A waker that owns a handle, and closes the journal when it is woken.
struct Closes(TestJournal);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        self.0.close().unwrap();
    }
}

/// The housekeeping thread wakes a task, which closes the journal, while another close waits for the end of that thread already.
#[test]
fn a_task_can_close_what_somebody_else_is_closing() {
    explore("a close beside another", 2_000, || {
        let disk = MemoryDisk::default();
        let journal = open(&disk, small());
        let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
        let waker = Waker::from(Arc::new(Closes(journal.clone())));
        assert!(reader.poll_batch(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        let mine = journal.clone();
        let closer = spawn(move || mine.close().unwrap());
        let appended = thread_rng().gen_ratio(1, 2).then(|| journal.append_nowait(&payload(1, 0)).is_ok());
        journal.close().unwrap();
        assert_eq!(closer.join().unwrap(), Some(()));
        drop(journal);
        assert_eq!(Ledger::default().is_kept_by(&disk).len(), usize::from(appended == Some(true)));
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        resume_unwind(Box::new(Injected));
    }
}

/// A waker is foreign code. What it does must not keep those from being woken who come after it.
#[test]
fn a_waker_that_panics_forgets_nobody() {
    explore("a panicking waker", 4_000, || {
        let disk = MemoryDisk::default();
        let journal = open(&disk, Config { commit_bytes_max: 60, ..small() });
        let panics = Waker::from(Arc::new(Panics));
        let mut polled = pin!(journal.append_nowait(&[b'x'; 10]).unwrap());
        let _ = polled.as_mut().poll(&mut Context::from_waker(&panics));
        let writers = [1, 2].map(|thread| {
            let (held, mine) = (disk.clone(), journal.clone());
            spawn(move || {
                mine.append(&payload(thread, 0)).unwrap();
                assert!(held.is_durable(&payload(thread, 0)));
            })
        });
        let mut task = pin!(journal.append_nowait(&payload(3, 0)).unwrap());
        assert!(block_on(|context| task.as_mut().poll(context)).is_ok());
        for writer in writers {
            assert_eq!(writer.join().unwrap(), Some(()), "who leads is not the one who panics");
        }
        assert_eq!(polled.try_wait(), Some(Ok(Seq::ZERO)));
        journal.close().unwrap();
    });
}
