//! The index of events: what it finds is what a walk over all of them would.

use strandline_core::{
    Config, EventDraft, EventPlace, Filter, Journal, Pcpj, ReadUpTo, ScanOptions, Seq, View,
};

use crate::world::{World, at, drain, open, read_from, scan, small};

const SOURCES: [&str; 3] = ["audio", "compositor", "net"];
const TYPES: [&str; 2] = ["opened", "closed"];

fn settings() -> Config {
    Config { segment_bytes: 700, index_events: true, ..small(2) }
}

/// Appends 60 events of mixed kinds, in commits of one to four.
fn filled(world: &mut World) -> Box<Journal<Pcpj>> {
    let (mut journal, _) = open::<Pcpj>(world, settings()).unwrap();
    for n in 0..60usize {
        let domain = u8::try_from(1 + n % 5 / 4).unwrap();
        let (source, event_type) = (SOURCES[n * n % 3], TYPES[n / 7 % 2]);
        let draft = EventDraft { domain, event_type, source, payload: &[b'x'; 40][..n % 41] };
        journal.append(at(1_000 + 90 * i64::try_from(n).unwrap()), draft).unwrap();
        if n % 4 == n % 3 {
            drain(&mut journal, world);
        }
    }
    drain(&mut journal, world);
    journal
}

fn filters() -> Vec<Filter> {
    vec![
        Filter::all(),
        Filter::all().source("audio"),
        Filter::all().source("audio").source("nobody"),
        Filter::all().source("nobody"),
        Filter::all().event_type("closed"),
        Filter::all().domain(2),
        Filter::all().domain(2).source("compositor").event_type("opened"),
    ]
}

/// Holds every count and every match of the view against a walk.
fn check(world: &World, view: &View<Pcpj>) {
    for filter in filters() {
        let wanted = read_from(world, view, view.first(), ReadUpTo::Written, |event| {
            (event.seq, filter.matches(&event))
        });
        let wanted: Vec<Seq> = wanted.into_iter().filter(|(_, fits)| *fits).map(|(seq, _)| seq).collect();
        for from in (0..64).step_by(3) {
            for to in from..66 {
                let (from, to) = (Seq::new(from), Seq::new(to));
                let within: Vec<_> = wanted.iter().filter(|seq| **seq >= from && **seq < to).collect();
                assert_eq!(
                    view.count_matches(&filter, from, to),
                    within.len() as u64,
                    "{filter:?} {from}..{to}"
                );
                let found = |place: Option<EventPlace>| place.map(|place| place.seq);
                assert_eq!(found(view.first_match(&filter, from, to)), within.first().map(|seq| **seq));
                assert_eq!(found(view.last_match(&filter, from, to)), within.last().map(|seq| **seq));
            }
        }
    }
}

#[test]
fn counts_and_matches_are_those_of_a_walk_live_trimmed_and_reopened() {
    let mut world = World::default();
    let mut journal = filled(&mut world);
    assert!(world.files.len() > 5, "more than one segment");
    check(&world, journal.view());
    let ages: Vec<_> = journal.view().ages().collect();
    journal.trim_to(Seq::new(31));
    drain(&mut journal, &mut world);
    check(&world, journal.view());
    drop(journal);
    let (journal, _) = open::<Pcpj>(&mut world, settings()).unwrap();
    check(&world, journal.view());
    let kept = journal.view().segments().next().unwrap().first();
    let again: Vec<_> = journal.view().ages().collect();
    assert!(again.len() > 10 && ages.ends_with(&again[1..]), "the same ages, from {kept} on");
    let options = ScanOptions { index_events: true, ..ScanOptions::default() };
    check(&world, &scan::<Pcpj>(&world, world.listing(), options).0);
}

#[test]
fn a_match_says_where_the_event_stands() {
    let mut world = World::default();
    let journal = filled(&mut world);
    let place = journal.view().first_match(&Filter::all().source("net"), Seq::new(20), Seq::new(99));
    assert_eq!(place, None, "squares are 0 or 1 modulo 3");
    let filter = Filter::all().source("compositor").domain(2);
    let place = journal.view().first_match(&filter, Seq::new(30), Seq::new(99)).unwrap();
    let frame = world.slice(place.segment, place.offset, 46);
    assert_eq!(frame[..4], *b"PCPJ");
    assert_eq!(frame[14..22], place.seq.get().to_le_bytes());
    assert_eq!(frame[40..], *b"compos"[..].first_chunk::<6>().unwrap(), "type, then source");
}
