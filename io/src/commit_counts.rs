//! How many commits a journal has made, and how large they were.

use strandline_core::Seq;

/// Commits of an open journal: those that were acknowledged, be it that they were durable or, under a weaker sync policy, written. Each
/// is one write, and under [`SyncPolicy::Always`](strandline_core::SyncPolicy::Always) one sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitCounts {
    /// How many there were.
    pub commits: u64,
    /// Records in all of them.
    pub records: u64,
    /// Commits by their number of records: those at place `n` had at most 2 to the power of `n`, and more than those before. The last
    /// place has all that are larger.
    pub by_records: [u64; CommitCounts::PLACES],
}

impl CommitCounts {
    /// Places of [`by_records`](Self::by_records).
    pub const PLACES: usize = 17;

    fn note(&mut self, records: u64) {
        self.commits += 1;
        self.records += records;
        let place = records.max(1).next_power_of_two().trailing_zeros() as usize;
        let (last, places) = (Self::PLACES - 1, &mut self.by_records);
        if let Some(count) = places.get_mut(place.min(last)) {
            *count += 1;
        }
    }
}

/// Counts commits as they are acknowledged.
#[derive(Debug)]
pub(crate) struct CountsCommits {
    pub(crate) counts: CommitCounts,
    /// One past the last record that was counted.
    end: Seq,
}

impl CountsCommits {
    /// Counts from here on.
    pub(crate) fn from(end: Seq) -> Self {
        Self { counts: CommitCounts::default(), end }
    }

    /// A commit that ends before `end`.
    pub(crate) fn note(&mut self, end: Seq) {
        self.counts.note(end.get().saturating_sub(self.end.get()));
        self.end = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted_by_their_size() {
        let mut counted = CountsCommits::from(Seq::new(7));
        let mut end = 7;
        for records in [1, 1, 2, 3, 4, 5, 1 << 15, 1 << 16, 1 << 20] {
            end += records;
            counted.note(Seq::new(end));
        }
        let counts = counted.counts;
        assert_eq!((counts.commits, counts.records), (9, end - 7));
        let mut wanted = [0; CommitCounts::PLACES];
        for (place, count) in [(0, 2), (1, 1), (2, 2), (3, 1), (15, 1), (16, 2)] {
            wanted[place] = count;
        }
        assert_eq!(counts.by_records, wanted);
    }
}
