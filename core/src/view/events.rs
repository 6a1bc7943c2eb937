//! The events of one segment by source, type and domain, and by age. In memory only: a scan that verifies
//! everything anyway makes it, each commit adds to it, and it goes with its segment.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::{Event, Filter, Seq, Timestamp};

/// Milliseconds between two points in time that are kept.
const AGE_STRIDE_MS: i64 = 100;

/// Where an event begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) seq: Seq,
    pub(crate) offset: u64,
}

/// The events of one source, type and domain, oldest first.
#[derive(Clone, Debug)]
struct Kind {
    source: Box<str>,
    event_type: Box<str>,
    domain: u8,
    places: Vec<Place>,
}

/// Which kinds there are by source, then by type; a source and a type mostly have one domain.
type Sources = BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<usize>>>;

/// The kinds that came last, each where the endings of its texts lead. Most events are of a few kinds, and finding
/// those here rather than by their texts' order makes opening a sixth faster. What it says is looked at, not trusted.
#[derive(Clone, Debug)]
struct Recent(Box<[usize; 256]>);

/// What a segment's events are found by, beside their numbers. 16 bytes an event; texts are kept once a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventIndex {
    kinds: Vec<Kind>,
    sources: Sources,
    recent: Recent,
    /// The running maximum of timestamps, with the first event that raised it that far.
    ages: Vec<(Timestamp, Seq)>,
}

impl EventIndex {
    /// Notes an event that begins at `offset`.
    pub(crate) fn note(&mut self, event: &Event<'_>, offset: u64) {
        let slot = self.recent.slot(event);
        let kind = match self.kinds.get(*slot) {
            Some(kind) if kind.is_of(event) => *slot,
            _ => kind_of(&mut self.sources, &mut self.kinds, event),
        };
        *slot = kind;
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.places.push(Place { seq: event.seq, offset });
        }
        let newest = self.ages.last().map(|(newest, _)| newest.as_millis().saturating_add(AGE_STRIDE_MS));
        if newest.is_none_or(|newest| event.timestamp.as_millis() >= newest) {
            self.ages.push((event.timestamp, event.seq));
        }
    }

    /// How many events in `from..to` the filter lets through.
    pub(crate) fn count(&self, filter: &Filter, from: Seq, to: Seq) -> u64 {
        self.selected(filter)
            .map(|places| before(places, to).saturating_sub(before(places, from)) as u64)
            .sum()
    }

    /// The first event at or after `from` that the filter lets through.
    pub(crate) fn first_match(&self, filter: &Filter, from: Seq) -> Option<Place> {
        self.selected(filter)
            .filter_map(|places| places.get(before(places, from)).copied())
            .min_by_key(|place| place.seq)
    }

    /// The last event before `to` that the filter lets through.
    pub(crate) fn last_match(&self, filter: &Filter, to: Seq) -> Option<Place> {
        self.selected(filter)
            .filter_map(|places| places.get(before(places, to).checked_sub(1)?).copied())
            .max_by_key(|place| place.seq)
    }

    /// The timestamps of the segment, ascending, each with the first event that has it or a later one.
    pub(crate) fn ages(&self) -> &[(Timestamp, Seq)] {
        &self.ages
    }

    /// The lists of places of every kind that the filter lets through.
    fn selected<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = &'a [Place]> {
        // A filter that names sources looks up those, however many others there are.
        let named = filter.sources().filter_map(|source| self.sources.get(source));
        let every = (filter.sources().len() == 0).then(|| self.sources.values()).into_iter().flatten();
        named
            .chain(every)
            .flatten()
            .filter(|(event_type, _)| filter.selects_type(event_type))
            .flat_map(|(_, kinds)| kinds)
            .filter_map(|kind| self.kinds.get(*kind))
            .filter(|kind| filter.selects_domain(kind.domain))
            .map(|kind| kind.places.as_slice())
    }
}

impl Kind {
    fn is_of(&self, event: &Event<'_>) -> bool {
        *self.source == *event.source && *self.event_type == *event.event_type && self.domain == event.domain
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self(Box::new([0; 256]))
    }
}

impl Recent {
    /// Where the kind of this event is remembered, or one whose texts end alike.
    #[allow(clippy::indexing_slicing, reason = "a byte is always below 256")]
    fn slot(&mut self, event: &Event<'_>) -> &mut usize {
        let key = ending(event.source).rotate_left(32) ^ ending(event.event_type) ^ u64::from(event.domain);
        // Fibonacci hashing: the highest bits depend on all of the key.
        let [highest, ..] = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        &mut self.0[usize::from(highest)]
    }
}

/// The last bytes of a text: what differs most in texts of one program.
fn ending(text: &str) -> u64 {
    let bytes = text.as_bytes();
    match bytes.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => bytes.iter().fold(0, |ending, byte| ending << 8 | u64::from(*byte)),
    }
}

/// The kind of an event, which may be a new one.
fn kind_of(sources: &mut Sources, kinds: &mut Vec<Kind>, event: &Event<'_>) -> usize {
    let types = match sources.get_mut(event.source) {
        Some(types) => types,
        None => sources.entry(event.source.into()).or_default(),
    };
    let domains = match types.get_mut(event.event_type) {
        Some(domains) => domains,
        None => types.entry(event.event_type.into()).or_default(),
    };
    let of_domain = |kind: &&usize| kinds.get(**kind).is_some_and(|kind| kind.domain == event.domain);
    if let Some(kind) = domains.iter().find(of_domain) {
        return *kind;
    }
    let (source, event_type) = (event.source.into(), event.event_type.into());
    kinds.push(Kind { source, event_type, domain: event.domain, places: Vec::new() });
    domains.push(kinds.len() - 1);
    kinds.len() - 1
}

/// How many places lie before `seq`.
fn before(places: &[Place], seq: Seq) -> usize {
    places.partition_point(|place| place.seq < seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, source: &'static str, event_type: &'static str, domain: u8) -> Event<'static> {
        let timestamp = Timestamp::from_millis(i64::try_from(seq).unwrap() * 60);
        Event { seq: Seq::new(seq), timestamp, domain, event_type, source, payload: b"" }
    }

    fn index() -> EventIndex {
        let mut index = EventIndex::default();
        for seq in 10..20 {
            let source = if seq % 3 == 0 { "c" } else { "a" };
            index.note(
                &event(seq, source, if seq < 15 { "t" } else { "u" }, 1 + u8::from(seq == 17)),
                seq * 100,
            );
        }
        index
    }

    #[test]
    fn events_are_counted_and_found_by_source_type_and_domain() {
        let (index, all) = (index(), Filter::all());
        let seq = Seq::new;
        assert_eq!(index.count(&all, seq(0), seq(99)), 10);
        assert_eq!(index.count(&all, seq(12), seq(15)), 3);
        let c = Filter::all().source("c");
        assert_eq!(index.count(&c, seq(0), seq(99)), 3, "12, 15 and 18");
        assert_eq!(index.count(&c, seq(12), seq(18)), 2, "the end is exclusive, the beginning is not");
        assert_eq!(index.first_match(&c, seq(13)), Some(Place { seq: seq(15), offset: 1_500 }));
        assert_eq!(index.first_match(&c, seq(19)), None);
        assert_eq!(index.last_match(&c, seq(15)), Some(Place { seq: seq(12), offset: 1_200 }));
        assert_eq!(index.last_match(&c, seq(12)), None);
        assert_eq!(index.count(&Filter::all().domain(2), seq(0), seq(99)), 1, "17");
        let narrow = Filter::all().source("a").source("x").event_type("u").domain(1);
        assert_eq!(index.count(&narrow, seq(0), seq(99)), 2, "16 and 19");
        assert_eq!(index.first_match(&narrow, seq(0)).map(|place| place.seq), Some(seq(16)));
    }

    #[test]
    fn kinds_whose_texts_end_alike_are_told_apart() {
        let kinds =
            [("a.long.source", "t", 1), ("b.long.source", "t", 1), ("b.long.source", "t", 2), ("", "", 1)];
        let mut index = EventIndex::default();
        for seq in 0..40 {
            let (source, event_type, domain) = kinds[usize::try_from(seq).unwrap() % kinds.len()];
            index.note(&event(seq, source, event_type, domain), seq * 100);
        }
        for (first, (source, event_type, domain)) in (0..).zip(kinds) {
            let filter = Filter::all().source(source).event_type(event_type).domain(domain);
            assert_eq!(index.count(&filter, Seq::ZERO, Seq::new(40)), 10, "{source} {event_type} {domain}");
            assert_eq!(
                index.first_match(&filter, Seq::new(4)).map(|place| place.seq),
                Some(Seq::new(first + 4))
            );
        }
    }

    #[test]
    fn ages_are_a_running_maximum_and_few() {
        let mut index = index();
        let ages: Vec<_> = index.ages().iter().map(|(at, seq)| (at.as_millis(), seq.get())).collect();
        assert_eq!(ages, [(600, 10), (720, 12), (840, 14), (960, 16), (1_080, 18)]);
        index.note(&Event { timestamp: Timestamp::from_millis(5), ..event(20, "a", "t", 1) }, 0);
        assert_eq!(index.ages().len(), 5, "a clock that stepped back adds nothing");
    }
}
