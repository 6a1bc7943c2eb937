//! More producers than there is room for.

use shuttle::rand::{Rng, thread_rng};
use strandline_core::Config;

use super::{MemoryDisk, Told, begin_with, explore, payload, settings, small, spawn, wait};
use crate::AppendError;
use crate::session::{INPUT, SessionSettings, SubmitError};
use crate::test_disk::ENOSPC;
use crate::thread_tests::memory_disk::Fault;

/// So many in flight at most, or so little of them that is not written yet.
fn few() -> SessionSettings {
    match thread_rng().gen_range(0..3) {
        0 => SessionSettings { unanswered_max: 1, ..settings() },
        1 => SessionSettings { unanswered_max: 2, ..settings() },
        _ => {
            let input = Config { pending_bytes_max: 70, commit_bytes_max: 60, ..small() };
            SessionSettings { input, ..settings() }
        }
    }
}

#[test]
fn whoever_waits_for_room_to_submit_gets_it() {
    explore("room to submit", 1_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let limits = few();
        let max = limits.unanswered_max;
        let session = begin_with(&disk, limits);
        let producers = [1, 2, 3].map(|thread| {
            let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
            spawn(move || {
                let tickets = [0, 1].map(|n| mine.submit(&payload(thread, n)).unwrap());
                assert!(mine.unanswered() <= max);
                for (n, ticket) in (0..2).zip(tickets) {
                    noted.note(&held, &payload(thread, n), &wait(ticket));
                }
            })
        });
        for producer in producers {
            assert_eq!(producer.join().unwrap(), Some(()));
        }
        assert_eq!(session.unanswered(), 0);
        session.close().unwrap();
        drop(session);
        assert_eq!((told.len(), told.is_kept_by(&disk)), (6, 6));
    });
}

/// Commands find no space while others wait to submit and nobody waits for the commands: their room is given to those who wait.
#[test]
fn what_finds_no_space_makes_room_for_whoever_waits() {
    explore("room of what found no space", 2_500, || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let session = begin_with(&disk, few());
        for _ in 0..2 {
            disk.inject_in(INPUT, "write", thread_rng().gen_range(0..3), Fault::Error(ENOSPC));
        }
        let producers = [1, 2, 3].map(|thread| {
            let (held, mine, noted) = (disk.clone(), session.clone(), told.clone());
            spawn(move || {
                let tickets = [0, 1].map(|n| mine.submit(&payload(thread, n)).unwrap());
                for (n, ticket) in (0..2).zip(tickets) {
                    let answer = wait(ticket);
                    let of_space = matches!(answer, Ok(_) | Err(SubmitError::Refused(AppendError::NoSpace)));
                    assert!(of_space, "{answer:?}");
                    noted.note(&held, &payload(thread, n), &answer);
                }
            })
        });
        for producer in producers {
            assert_eq!(producer.join().unwrap(), Some(()));
        }
        assert!(session.stopped().is_none());
        session.close().unwrap();
        drop(session);
        assert_eq!(told.len() + told.refused(), 6, "each ended in one way");
        assert_eq!(told.is_kept_by(&disk), told.len() as u64);
    });
}
