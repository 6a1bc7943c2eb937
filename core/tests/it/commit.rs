//! Group commit, and when an append is acknowledged.

use strandline_core::{
    AppendError, CommitId, Completion, Config, DraftError, Effect, EventDraft, Monotonic, Output, Pcpj, Pryj,
    Seq, SyncPolicy,
};

use crate::world::{World, at, drain, effects_of, open, small};

#[test]
fn what_is_appended_between_two_drains_is_one_commit() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    let before = world.log.len();
    for n in 0..100u64 {
        let accepted = journal.append(at(1), &n.to_le_bytes()).unwrap();
        assert_eq!((accepted.seq, accepted.commit), (Seq::new(n), CommitId::new(1)));
    }
    let told = drain(&mut journal, &mut world);
    assert_eq!(told, [Output::Durable { end: Seq::new(100), commit: CommitId::new(1) }]);
    assert_eq!(effects_of(&world, before), ["write", "sync"]);
}

#[test]
fn a_record_appended_while_a_sync_is_in_flight_waits_for_the_next_one() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), b"first").unwrap();
    let Some(Output::Effect { id, effect }) = journal.poll_output() else { panic!("a write") };
    world.perform(&effect).unwrap();
    journal.handle_completion(Completion { id, result: Ok(()) });
    let Some(Output::Effect { id, effect: Effect::Sync { .. } }) = journal.poll_output() else {
        panic!("a sync")
    };
    let late = journal.append(at(1), b"late").unwrap();
    assert_eq!(late.commit, CommitId::new(2));
    assert_eq!(journal.poll_output(), None, "one commit in flight");
    journal.handle_completion(Completion { id, result: Ok(()) });
    assert_eq!(
        journal.poll_output(),
        Some(Output::Durable { end: Seq::new(1), commit: CommitId::new(1) }),
        "the sync covers what was written before it began"
    );
    assert_eq!(
        drain(&mut journal, &mut world),
        [Output::Durable { end: Seq::new(2), commit: CommitId::new(2) }]
    );
}

#[test]
fn weaker_policies_acknowledge_what_is_written_and_sync_later() {
    for sync in [SyncPolicy::Never, SyncPolicy::Interval { ms: 20 }] {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, Config { sync, ..small(2) }).unwrap();
        journal.tick(Monotonic::from_millis(100));
        journal.request_sync();
        drain(&mut journal, &mut world);
        let before = world.log.len();
        journal.append(at(1), b"x").unwrap();
        let written = Output::Written { end: Seq::new(1), commit: CommitId::new(1) };
        assert_eq!(drain(&mut journal, &mut world), [written]);
        assert_eq!(effects_of(&world, before), ["write"]);
        assert_eq!(journal.view().durable_end(), Seq::new(0));
        assert_eq!(journal.view().written_end(), Seq::new(1));
        match sync {
            SyncPolicy::Interval { .. } => {
                assert_eq!(journal.next_deadline(), Some(Monotonic::from_millis(120)));
                journal.tick(Monotonic::from_millis(119));
                assert_eq!(drain(&mut journal, &mut world), []);
                journal.tick(Monotonic::from_millis(120));
            }
            _ => {
                assert_eq!(journal.next_deadline(), None);
                journal.request_sync();
            }
        }
        let durable = Output::Durable { end: Seq::new(1), commit: CommitId::new(1) };
        assert_eq!(drain(&mut journal, &mut world), [durable]);
    }
}

#[test]
fn a_request_to_sync_waits_for_what_was_accepted_before_it() {
    let mut world = World::default();
    let config = Config { sync: SyncPolicy::Never, commit_bytes_max: 1, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
    for _ in 0..3 {
        journal.append(at(1), b"x").unwrap();
    }
    journal.request_sync();
    let told = drain(&mut journal, &mut world);
    assert_eq!(told.last(), Some(&Output::Durable { end: Seq::new(3), commit: CommitId::new(3) }));
}

#[test]
fn what_waits_is_bounded_and_a_refusal_accepts_nothing() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, Config { pending_bytes_max: 100, ..small(2) }).unwrap();
    journal.append(at(1), &[1; 70]).unwrap();
    assert_eq!(journal.append(at(1), &[2; 70]), Err(AppendError::Full { pending: 86, max: 100 }));
    assert_eq!(journal.next_seq(), Seq::new(1));
    drain(&mut journal, &mut world);
    journal.append(at(1), &[3; 500]).expect("a record beyond the limit is accepted when nothing waits");
}

#[test]
fn what_cannot_be_stored_is_refused_with_a_reason() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, small(2)).unwrap();
    let good = EventDraft { domain: 1, event_type: "t", source: "s", payload: b"{}" };
    let long = "x".repeat(1_025);
    let big = vec![b' '; 16 * 1024 * 1024 + 1];
    let refused = [
        (EventDraft { domain: 0, ..good }, DraftError::DomainReserved),
        (
            EventDraft { event_type: "", ..good },
            DraftError::LabelLength { field: "type", len: 0, max: 1_024 },
        ),
        (
            EventDraft { source: &long, ..good },
            DraftError::LabelLength { field: "source", len: 1_025, max: 1_024 },
        ),
        (EventDraft { event_type: "a\ndata: x", ..good }, DraftError::LabelControl { field: "type", at: 1 }),
        (EventDraft { source: "a\0", ..good }, DraftError::LabelControl { field: "source", at: 1 }),
        (
            EventDraft { payload: &big, ..good },
            DraftError::PayloadTooLong { len: 16_777_217, max: 16_777_216 },
        ),
    ];
    for (draft, error) in refused {
        assert_eq!(journal.append(at(1), draft), Err(AppendError::Draft(error)));
    }
    assert_eq!(journal.append(at(1), good).unwrap().seq, Seq::new(1));
}

#[test]
fn the_last_sequence_number_is_never_passed() {
    let mut world = World::default();
    let config = Config { first_seq: Some(Seq::new(u64::MAX - 2)), ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config.clone()).unwrap();
    assert_eq!(journal.append(at(1), b"a").unwrap().seq, Seq::new(u64::MAX - 2));
    assert_eq!(journal.append(at(1), b"b").unwrap().seq, Seq::LAST);
    assert_eq!(journal.append(at(1), b"c"), Err(AppendError::SequenceExhausted));
    drain(&mut journal, &mut world);
    assert_eq!(journal.append(at(1), b"c"), Err(AppendError::SequenceExhausted));
    crate::world::close(journal, &mut world);
    let (mut journal, report) = open::<Pryj>(&mut world, config).unwrap();
    assert_eq!(report.end, Seq::new(u64::MAX));
    assert_eq!(journal.append(at(1), b"c"), Err(AppendError::SequenceExhausted));
}

#[test]
#[should_panic(expected = "must answer an outstanding effect")]
fn a_completion_of_nothing_is_a_programmer_error() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), b"x").unwrap();
    let Some(Output::Effect { id, .. }) = journal.poll_output() else { panic!("a write") };
    journal.handle_completion(Completion { id, result: Ok(()) });
    journal.handle_completion(Completion { id, result: Ok(()) });
}
