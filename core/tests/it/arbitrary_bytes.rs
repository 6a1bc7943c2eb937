//! Whatever the bytes are: no panic, no endless scan, open and scan agree, and the second open is clean.

use proptest::prelude::*;
use strandline_core::{
    Config, EventDraft, Framing, Pcpj, Pryj, RecoveryError, SegmentId, Seq, Verdict, verdict::Row,
};

use crate::world::{World, at, drain, open, scan_all, small};

/// What is done to the files of a sound journal.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Truncate(prop::sample::Index),
    Zero(prop::sample::Index, usize),
    Append(Vec<u8>),
    /// Bytes of one place, once more at another.
    Repeat(prop::sample::Index, prop::sample::Index, usize),
    Remove(prop::sample::Index, usize),
    Overwrite(prop::sample::Index, Vec<u8>),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    use Damage::{Append, Flip, Overwrite, Remove, Repeat, Truncate, Zero};
    let place = any::<prop::sample::Index>;
    prop_oneof![
        (place(), 0u8..8).prop_map(|(at, bit)| Flip(at, bit)),
        place().prop_map(Truncate),
        (place(), 1usize..600).prop_map(|(at, len)| Zero(at, len)),
        prop::collection::vec(any::<u8>(), 1..100).prop_map(Append),
        (place(), place(), 1usize..200).prop_map(|(from, to, len)| Repeat(from, to, len)),
        (place(), 1usize..100).prop_map(|(at, len)| Remove(at, len)),
        (place(), prop::collection::vec(any::<u8>(), 1..60)).prop_map(|(at, bytes)| Overwrite(at, bytes)),
    ]
}

fn damage(file: &mut Vec<u8>, damage: &Damage) {
    if file.is_empty() {
        return;
    }
    let clip = |file: &[u8], at: usize, len: usize| at..file.len().min(at + len);
    match damage {
        Damage::Flip(at, bit) => {
            let at = at.index(file.len());
            file[at] ^= 1 << bit;
        }
        Damage::Truncate(at) => file.truncate(at.index(file.len())),
        Damage::Zero(at, len) => {
            let range = clip(file, at.index(file.len()), *len);
            file[range].fill(0);
        }
        Damage::Append(bytes) => file.extend_from_slice(bytes),
        Damage::Repeat(from, to, len) => {
            let bytes = file[clip(file, from.index(file.len()), *len)].to_vec();
            let range = clip(file, to.index(file.len()), bytes.len());
            file.splice(range, bytes);
        }
        Damage::Remove(at, len) => {
            file.drain(clip(file, at.index(file.len()), *len));
        }
        Damage::Overwrite(at, bytes) => {
            let range = clip(file, at.index(file.len()), bytes.len());
            file.splice(range, bytes.iter().copied());
        }
    }
}

/// Scans, opens, opens again; gives the first verdict.
fn open_twice<F: Framing>(world: &mut World, config: &Config) -> Verdict {
    let (view, report) = scan_all::<F>(world);
    assert!(view.first() <= view.durable_end() && view.durable_end() <= view.written_end());
    let before = world.files.clone();
    match open::<F>(world, config.clone()) {
        Ok((journal, opened)) => {
            assert!(!matches!(report.verdict, Verdict::Refused(_)), "{report:?}");
            assert_eq!((&opened.verdict, opened.end), (&report.verdict, report.end));
            assert_eq!(journal.next_seq(), report.end);
            drop(journal);
            let (_, again) = open::<F>(world, config.clone()).unwrap();
            assert_eq!((&again.verdict, again.end), (&Verdict::Sound, report.end));
        }
        Err(RecoveryError::Refused { refusal, .. }) => {
            assert_eq!(report.verdict, Verdict::Refused(refusal));
            assert_eq!(world.files, before, "a refusal changes nothing");
        }
        Err(other) => panic!("{other}"),
    }
    report.verdict
}

fn journal<F: Framing>(config: &Config, draft: F::Draft<'_>, commits: usize) -> World {
    let mut world = World::default();
    let (mut journal, _) = open::<F>(&mut world, config.clone()).unwrap();
    for commit in 0..commits {
        for _ in 0..=commit % 3 {
            journal.append(at(1), draft).unwrap();
        }
        drain(&mut journal, &mut world);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_records_are_judged_alike_by_all(
        version in 1u8..=2, segment_bytes in 300u64..3_000, commits in 1usize..12,
        which: prop::sample::Index, kinds in prop::collection::vec(any_damage(), 1..4),
    ) {
        let config = Config { segment_bytes, ..small(version) };
        let mut world = journal::<Pryj>(&config, b"some payload", commits);
        let id = *world.files.keys().nth(which.index(world.files.len())).unwrap();
        kinds.iter().for_each(|kind| damage(world.files.get_mut(&id).unwrap(), kind));
        let last = world.files.last_key_value().is_some_and(|(last, _)| *last == id);
        let verdict = open_twice::<Pryj>(&mut world, &config);
        if let (Verdict::Cut(cut), false) = (&verdict, last) {
            prop_assert_eq!(cut.segment, *world.files.last_key_value().unwrap().0, "only the last one is cut");
        }
    }

    #[test]
    fn damaged_events_are_judged_alike_by_all(
        version in 1u8..=2, segment_bytes in 300u64..3_000, commits in 1usize..12,
        which: prop::sample::Index, kinds in prop::collection::vec(any_damage(), 1..4),
    ) {
        let config = Config { segment_bytes, ..small(version) };
        let draft = EventDraft { domain: 1, event_type: "type", source: "source", payload: b"{\"n\":1}" };
        let mut world = journal::<Pcpj>(&config, draft, commits);
        let id = *world.files.keys().nth(which.index(world.files.len())).unwrap();
        kinds.iter().for_each(|kind| damage(world.files.get_mut(&id).unwrap(), kind));
        open_twice::<Pcpj>(&mut world, &config);
    }

    #[test]
    fn bytes_of_no_journal_are_refused_or_cut(
        files in prop::collection::btree_map(0u64..4, prop::collection::vec(any::<u8>(), 0..200), 1..4),
        magic: bool,
    ) {
        let mut world = World::default();
        for (first, mut bytes) in files {
            if magic {
                bytes.splice(..bytes.len().min(6), *b"PRYJ\x01\0");
            }
            world.files.insert(SegmentId(Seq::new(first)), bytes);
        }
        let as_records = open_twice::<Pryj>(&mut World { files: world.files.clone(), ..World::default() }, &small(2));
        let as_events = open_twice::<Pcpj>(&mut world, &small(2));
        prop_assert!(as_records != Verdict::Sound || as_events != Verdict::Sound || !magic);
        if let Verdict::Cut(cut) = as_events {
            prop_assert!(matches!(cut.row, Row::D | Row::F | Row::G));
        }
    }
}
