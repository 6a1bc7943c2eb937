//! How much of a journal is kept: a policy outside of it, over its one mechanism, [`Journal::trim_to`].
//!
//! [`Journal::trim_to`]: crate::Journal::trim_to

use alloc::collections::VecDeque;

use crate::{Framing, Monotonic, Pcpj, Seq, Timestamp, View};

/// What a bus keeps. Size is that of the whole directory: every segment with its reserve, spare files and
/// copies of cut bytes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Older events are dropped, needed or not, in milliseconds; none keeps them. Default one hour.
    pub age_ms_max: Option<u64>,
    /// Above this many bytes the oldest events that no durable subscription needs are dropped. Default 40 MiB.
    pub compact_above: u64,
    /// The directory never has more bytes than this: the oldest events go even if they are needed. Default 50 MiB.
    pub bytes_max: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age_ms_max: Some(60 * 60 * 1_000), compact_above: 40 << 20, bytes_max: 50 << 20 }
    }
}

/// What the directory holds, and what the journal of events may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// Bytes of everything but the events' segments.
    pub others: u64,
    /// Bytes that the newest segment may come to have, and each one after it.
    pub segment: u64,
    /// Bytes that all the events' segments may come to have: `segments_bytes_max` of their journal.
    pub segments_max: u64,
    /// Bytes that what waits for room needs in a segment of its own: [`Journal::room_wanted`](crate::Journal::room_wanted).
    pub wanted: u64,
}

impl Retention {
    /// The lowest number to keep, if that is more than now. `pinned` is the first event that a durable subscription
    /// needs, `young` the first that is not too old.
    ///
    /// The hard bound leaves room for one more segment, so that room is made before it is created.
    #[must_use]
    pub fn candidate<F: Framing>(
        &self,
        view: &View<F>,
        occupied: Occupied,
        pinned: Option<Seq>,
        young: Seq,
    ) -> Option<Seq> {
        let end = view.durable_end();
        let newest = view.segments().next_back().map_or(0, crate::SegmentView::bytes);
        let sealed = view.bytes().saturating_sub(newest);
        let now = sealed.saturating_add(occupied.segment.max(newest));
        let soft = self.compact_above.saturating_sub(occupied.others);
        let unneeded = oldest_out(view, now, soft, pinned.unwrap_or(end));
        let hard = self.bytes_max.saturating_sub(occupied.others).min(occupied.segments_max);
        let next = occupied.segment.max(occupied.wanted);
        let room = now.saturating_add(next);
        let mut too_many = oldest_out(view, room, hard, end);
        // Made with larger segments than these: it goes whole.
        if newest > occupied.segment.saturating_mul(2) && newest.saturating_add(next) > hard {
            too_many = end;
        }
        let age = if self.age_ms_max.is_some() { young } else { Seq::ZERO };
        let first = unneeded.max(too_many).max(age).min(end);
        (first > view.first()).then_some(first)
    }
}

/// The end of the segments that have to go, oldest first, for `bytes` to come down to `limit`, of those that lie
/// wholly before `before`. The newest segment stays: it is written to.
fn oldest_out<F: Framing>(view: &View<F>, mut bytes: u64, limit: u64, before: Seq) -> Seq {
    let mut first = Seq::ZERO;
    let sealed = view.segments().len().saturating_sub(1);
    for segment in view.segments().take(sealed) {
        if bytes <= limit || segment.end() > before {
            break;
        }
        bytes = bytes.saturating_sub(segment.bytes());
        first = segment.end();
    }
    first
}

/// When events came to be, in the running process's own time, so that a wall clock which steps while it runs neither
/// keeps nor kills anything. Only at opening is age taken from the timestamps, from their running maximum.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    /// Ascending in both: every event before the number is at least as old as the time says. Times may lie before
    /// the clock's origin.
    points: VecDeque<(i64, Seq)>,
    /// Milliseconds between two points.
    stride: i64,
}

/// So many points to the longest age: an event goes at most this fraction of it late.
const POINTS: u64 = 1_024;

impl Ages {
    /// The ages of what is there at opening.
    pub(crate) fn new(view: &View<Pcpj>, now: Monotonic, wall: Timestamp, age_ms_max: Option<u64>) -> Self {
        let stride = age_ms_max.map_or(i64::MAX, |age| signed(age / POINTS).max(1));
        let mut ages = Self { points: VecDeque::new(), stride };
        if age_ms_max.is_none() {
            return ages;
        }
        let mut newest = None;
        for (at, seq) in view.ages() {
            // The events before `seq` are no younger than the maximum before it.
            if let Some(newest) = newest.replace(at) {
                ages.push(born(newest, now, wall), seq);
            }
        }
        if let Some(newest) = newest {
            ages.points.push_back((born(newest, now, wall), view.durable_end()));
        }
        ages
    }

    /// Every event before `end` is there by now.
    pub(crate) fn observe(&mut self, now: Monotonic, end: Seq) {
        if self.stride != i64::MAX && self.is_due(now, end) {
            self.push(signed(now.as_millis()), end);
        }
    }

    /// When [`observe`](Self::observe) has something to note, if it has.
    pub(crate) fn observe_at(&self, now: Monotonic, end: Seq) -> Option<Monotonic> {
        if self.stride == i64::MAX || !self.is_news(end) {
            return None;
        }
        let due = self.points.back().map_or(0, |(at, _)| at.saturating_add(self.stride));
        Some(now.max(Monotonic::from_millis(u64::try_from(due).unwrap_or(0))))
    }

    /// The first event that is not older than `age` milliseconds.
    pub(crate) fn young(&self, now: Monotonic, age: u64) -> Seq {
        let oldest = signed(now.as_millis()).saturating_sub(signed(age));
        let old = self.points.partition_point(|(at, _)| *at < oldest);
        old.checked_sub(1).and_then(|last| self.points.get(last)).map_or(Seq::ZERO, |(_, seq)| *seq)
    }

    /// When something that is kept now will be older than `age` milliseconds.
    pub(crate) fn next_expiry(&self, first: Seq, age: u64) -> Option<Monotonic> {
        let (at, _) = self.points.iter().find(|(_, seq)| *seq > first)?;
        let expires = at.saturating_add(signed(age)).saturating_add(1);
        Some(Monotonic::from_millis(u64::try_from(expires).unwrap_or(0)))
    }

    /// Forgets what lies before the journal's start.
    pub(crate) fn trim(&mut self, first: Seq) {
        while self.points.front().is_some_and(|(_, seq)| *seq <= first) {
            self.points.pop_front();
        }
    }

    fn is_due(&self, now: Monotonic, end: Seq) -> bool {
        let last = self.points.back();
        self.is_news(end)
            && last.is_none_or(|(at, _)| signed(now.as_millis()) >= at.saturating_add(self.stride))
    }

    fn is_news(&self, end: Seq) -> bool {
        self.points.back().is_none_or(|(_, seq)| *seq < end)
    }

    /// Adds a point, unless it is too close to the last one: its events count as younger then.
    fn push(&mut self, at: i64, seq: Seq) {
        if self.points.back().is_none_or(|(last, _)| at.saturating_sub(*last) >= self.stride) {
            self.points.push_back((at, seq));
        }
    }
}

/// A timestamp in the running process's time; one in the future is taken for now.
fn born(at: Timestamp, now: Monotonic, wall: Timestamp) -> i64 {
    let age = wall.as_millis().saturating_sub(at.as_millis()).max(0);
    signed(now.as_millis()).saturating_sub(age)
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
