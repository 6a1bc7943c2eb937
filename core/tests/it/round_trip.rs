//! What was appended comes back byte for byte, whatever the sizes, limits and policies.

use proptest::prelude::*;
use strandline_core::{Config, EventDraft, Pcpj, Pryj, ReadUpTo, Seq, SyncPolicy, Verdict};

use crate::world::{World, at, close, drain, idle, open, read_from, scan_all, small};

fn any_config() -> impl Strategy<Value = Config> {
    let policy = prop_oneof![
        Just(SyncPolicy::Always),
        (1u64..50).prop_map(|ms| SyncPolicy::Interval { ms }),
        Just(SyncPolicy::Never),
    ];
    (1u8..=2, policy, 100u64..5_000, 0u64..4_096, 1usize..3_000, 0usize..10_000).prop_map(
        |(version, sync, segment_bytes, reserve_bytes, commit_bytes_max, tail_bytes_max)| Config {
            sync,
            segment_bytes,
            reserve_bytes,
            commit_bytes_max,
            tail_bytes_max,
            ..small(version)
        },
    )
}

/// Payloads, and after each whether the journal is drained.
fn any_payloads() -> impl Strategy<Value = Vec<(Vec<u8>, bool)>> {
    let payload = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..200),
        1 => prop::collection::vec(any::<u8>(), 3_000..6_000),
        1 => (0usize..600).prop_map(|len| vec![0; len]),
    ];
    prop::collection::vec((payload, any::<bool>()), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_come_back(config in any_config(), payloads in any_payloads(), clean: bool) {
        let mut world = World::default();
        let (mut journal, _) = open::<Pryj>(&mut world, config.clone()).unwrap();
        for (payload, drained) in &payloads {
            journal.append(at(1), payload).unwrap();
            if *drained {
                drain(&mut journal, &mut world);
            }
        }
        journal.request_sync();
        idle(&mut journal, &mut world);
        let wanted: Vec<Vec<u8>> = payloads.into_iter().map(|(payload, _)| payload).collect();
        let read = |view: &_, world: &_| {
            read_from::<Pryj, _>(world, view, Seq::ZERO, ReadUpTo::Durable, |r| r.payload.to_vec())
        };
        prop_assert_eq!(&read(journal.view(), &world), &wanted, "read through the live view");
        if clean {
            close(journal, &mut world);
        }
        let (view, report) = scan_all::<Pryj>(&world);
        prop_assert_eq!(report.verdict, Verdict::Sound);
        prop_assert_eq!(report.end, Seq::new(wanted.len() as u64));
        let all = read_from(&world, &view, Seq::ZERO, ReadUpTo::Written, |r| r.payload.to_vec());
        prop_assert_eq!(&all, &wanted, "read from the files");
        let (journal, report) = open::<Pryj>(&mut world, config).unwrap();
        prop_assert_eq!(report.verdict, Verdict::Sound);
        prop_assert_eq!(&read(journal.view(), &world), &wanted, "read after reopening");
    }

    #[test]
    fn events_come_back(config in any_config(), events in prop::collection::vec(
        ("[a-zé]{1,40}", "[a-z/]{1,40}", 1u8.., prop::collection::vec(any::<u8>(), 0..300), any::<i64>()), 0..40)
    ) {
        let mut world = World::default();
        let (mut journal, _) = open::<Pcpj>(&mut world, config).unwrap();
        for (event_type, source, domain, payload, now) in &events {
            journal.append(at(*now), EventDraft { domain: *domain, event_type, source, payload }).unwrap();
        }
        close(journal, &mut world);
        let (view, report) = scan_all::<Pcpj>(&world);
        prop_assert_eq!(report.verdict, Verdict::Sound);
        let read = read_from(&world, &view, Seq::new(1), ReadUpTo::Written, |e| {
            (e.event_type.to_string(), e.source.to_string(), e.domain, e.payload.to_vec(), e.timestamp.as_millis())
        });
        prop_assert_eq!(read, events);
    }
}
