//! Finding events by what they are, over all segments of an indexed view.

use super::View;
use super::events::{EventIndex, Place};
use crate::{Filter, Pcpj, SegmentId, Seq, Timestamp};

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// Its number.
    pub seq: Seq,
    /// Its segment.
    pub segment: SegmentId,
    /// Where it begins in the segment's file.
    pub offset: u64,
}

impl View<Pcpj> {
    /// How many events in `from..to` there are that the filter lets through, of those that are written and kept.
    ///
    /// # Panics
    /// If the view has no index of events (`index_events`) and the filter needs one: a programmer error.
    #[must_use]
    pub fn count_matches(&self, filter: &Filter, from: Seq, to: Seq) -> u64 {
        let (from, to) = (from.max(self.first()), to.min(self.written_end()));
        if filter.is_all() || from >= to {
            return from.until(to);
        }
        self.indexes(from, to).map(|(_, events)| events.count(filter, from, to)).sum()
    }

    /// The first event in `from..to` that the filter lets through.
    ///
    /// # Panics
    /// If the view has no index of events: a programmer error.
    #[must_use]
    pub fn first_match(&self, filter: &Filter, from: Seq, to: Seq) -> Option<EventPlace> {
        let (from, to) = (from.max(self.first()), to.min(self.written_end()));
        let found = self.indexes(from, to).find_map(|(segment, events)| {
            events.first_match(filter, from).map(|place| EventPlace::new(segment, place))
        });
        found.filter(|place| place.seq < to)
    }

    /// The last event in `from..to` that the filter lets through.
    ///
    /// # Panics
    /// If the view has no index of events: a programmer error.
    #[must_use]
    pub fn last_match(&self, filter: &Filter, from: Seq, to: Seq) -> Option<EventPlace> {
        let (from, to) = (from.max(self.first()), to.min(self.written_end()));
        let found = self.indexes(from, to).rev().find_map(|(segment, events)| {
            events.last_match(filter, to).map(|place| EventPlace::new(segment, place))
        });
        found.filter(|place| place.seq >= from)
    }

    /// Bytes of the segments from an event on.
    #[must_use]
    pub fn bytes_from(&self, place: &EventPlace) -> u64 {
        let from = self.segments.partition_point(|segment| segment.id() < place.segment);
        let bytes: u64 = self.segments.range(from..).map(super::SegmentView::bytes).sum();
        bytes.saturating_sub(place.offset)
    }

    /// The running maximum of the events' timestamps: each with the first event that has it or a later one, ascending
    /// in both. Points closer than a tenth of a second are left out.
    ///
    /// # Panics
    /// If the view has no index of events: a programmer error.
    pub fn ages(&self) -> impl Iterator<Item = (Timestamp, Seq)> {
        let all = self.indexes(self.first(), Seq::new(u64::MAX)).flat_map(|(_, events)| events.ages());
        let mut newest = None;
        all.copied().filter(move |(at, _)| {
            let rises = newest.is_none_or(|newest| *at > newest);
            newest = newest.max(Some(*at));
            rises
        })
    }

    /// The indexes of the segments that reach into `from..to`.
    fn indexes(&self, from: Seq, to: Seq) -> impl DoubleEndedIterator<Item = (SegmentId, &EventIndex)> {
        let begin = self.segments.partition_point(|segment| segment.end() <= from);
        let end = self.segments.partition_point(|segment| segment.first() < to).max(begin);
        self.segments.range(begin..end).filter(|segment| !segment.is_empty()).filter_map(|segment| {
            let events = segment.events();
            assert!(events.is_some(), "the journal was opened without an index of events");
            Some((segment.id(), events?))
        })
    }
}

impl EventPlace {
    const fn new(segment: SegmentId, place: Place) -> Self {
        Self { seq: place.seq, segment, offset: place.offset }
    }
}
