//! Readers beside a session, and sessions that go on where another one stopped.

use shuttle::rand::{Rng, thread_rng};
use strandline_core::Seq;

use super::{
    MemoryDisk, TestSession, Told, begin, either, events_of, explore, first_event, payload, resume_when_free,
    settings, spawn,
};
use crate::session::{EVENTS, Session, SessionStopped, Side};
use crate::test_disk::{EIO, ENOSPC};
use crate::thread_tests::memory_disk::Fault;
use crate::thread_tests::tasks::block_on;
use crate::{Directory, ReadStep};

/// Follows the events up to the close; each has to be durable, and its command before it. Gives how many there were.
fn follow_events(session: &TestSession, disk: &MemoryDisk) -> u64 {
    let mut reader = session.reader(Side::Events, Seq::new(1));
    let mut events = 0;
    loop {
        let step = match either() {
            true => reader.next_batch(None),
            false => block_on(|context| reader.poll_batch(context)),
        };
        match step.unwrap() {
            ReadStep::Records(batch) => {
                for record in batch.records() {
                    assert!(disk.is_durable(record.payload), "{} was read and can vanish", record.seq);
                    let text = String::from_utf8_lossy(record.payload).into_owned();
                    let name = text.split(' ').nth(2).unwrap();
                    assert!(disk.is_durable(format!("<{name}>").as_bytes()), "{text}: of no durable command");
                    events += 1;
                    assert_eq!(record.seq, Seq::new(events), "in order, and without a hole");
                }
            }
            ReadStep::Closed => return events,
            other => panic!("{other:?}"),
        }
    }
}

/// The events that are durable are those of durable commands, whoever looks, and whenever.
#[test]
fn no_event_is_seen_before_its_command_is_durable() {
    explore("a reader of events", 1_200, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let session = begin(&disk);
        let (held, mine) = (disk.clone(), session.clone());
        let follows = spawn(move || follow_events(&mine, &held));
        let producers = [1, 2].map(|thread| {
            let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
            spawn(move || {
                for n in 0..2 {
                    noted.run(&held, &mine, &payload(thread, n)).unwrap();
                }
            })
        });
        let mut commands = 0;
        while commands < 4 {
            let events = session.durable_end(Side::Events);
            commands = session.durable_end(Side::Input).get() - 1;
            assert!(events <= Seq::new(first_event(commands + 1)), "{events} with {commands} commands");
            shuttle::thread::yield_now();
        }
        for producer in producers {
            assert_eq!(producer.join().unwrap(), Some(()));
        }
        session.close().unwrap();
        assert_eq!(follows.join().unwrap(), Some(first_event(5) - 1));
        drop(session);
        assert_eq!(told.is_kept_by(&disk), 4);
    });
}

/// A session stops because its events cannot be recorded, and is opened again while the handles of the first one are still
/// there: what is missing is appended, and it goes on.
#[test]
fn a_session_that_stopped_is_resumed_with_what_is_missing() {
    explore("resuming", 1_200, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let directory = Directory::on(disk.clone());
        let session: TestSession = Session::create_new(&directory, b"setup", settings()).unwrap();
        let (call, error) = if either() { ("write", ENOSPC) } else { ("write", EIO) };
        disk.inject_in(EVENTS, call, thread_rng().gen_range(0..3), Fault::Error(error));
        let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
        let producer = spawn(move || {
            for n in 0..3 {
                if noted.run(&held, &mine, &payload(1, n)).is_err() {
                    break;
                }
            }
            drop(mine);
        });
        let _ = told.run(&disk, &session, &payload(2, 0));
        let closes = spawn(move || session.close().is_ok());
        let (again, resumed) = resume_when_free(&directory);
        producer.join().unwrap();
        let closed = closes.join().unwrap();
        let stopped = told.stopped();
        let by_the_disk = matches!(stopped, Some(ref stopped) if !matches!(stopped, SessionStopped::Closed));
        assert!(!by_the_disk || closed == Some(false), "{stopped:?}");
        // A poison may come from elsewhere while they are written: then they can be there.
        let had_no_space = matches!(stopped, Some(SessionStopped::Events(_)));
        assert!(!had_no_space || resumed.appended > 0, "its command is durable, and its events were not");
        assert!(resumed.commands >= told.len() as u64);
        assert_eq!(resumed.events, first_event(resumed.commands + 1) - 1, "nothing is missing any more");
        assert!(resumed.appended <= resumed.events);
        disk.mend();
        let answer = told.run(&disk, &again, &payload(3, 0)).unwrap();
        assert_eq!(answer.command, Seq::new(resumed.commands + 1));
        assert_eq!(answer.events.len(), events_of(answer.command.get(), &payload(3, 0)).len());
        again.close().unwrap();
        drop(again);
        assert_eq!(told.is_kept_by(&disk), resumed.commands + 1);
    });
}
