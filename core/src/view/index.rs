//! The sparse index of one segment: one point each 64 KiB, so that a seek reads little and the
//! index stays small (16 bytes for each 64 KiB).

use alloc::vec::Vec;

use crate::Seq;

/// Bytes between two points.
const STRIDE: u64 = 64 * 1024;

/// Where some of a segment's records begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SparseIndex {
    /// Ascending in both fields, at least [`STRIDE`] bytes apart.
    points: Vec<(Seq, u64)>,
}

impl SparseIndex {
    /// Notes that record `seq` begins at `offset`; kept only where the last point is far enough.
    pub(crate) fn note(&mut self, seq: Seq, offset: u64) {
        let far_enough = self.points.last().is_none_or(|(_, last)| offset.saturating_sub(*last) >= STRIDE);
        if far_enough {
            self.points.push((seq, offset));
        }
    }

    /// The last point at or before `seq`.
    pub(crate) fn seek(&self, seq: Seq) -> Option<(Seq, u64)> {
        let behind = self.points.partition_point(|(at, _)| *at <= seq);
        self.points.get(behind.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_finds_the_last_point_at_or_before() {
        let mut index = SparseIndex::default();
        for seq in 0..1_000u64 {
            index.note(Seq::new(seq), 16 + seq * 1_024);
        }
        assert_eq!(index.points.len(), 16, "1,000 KiB hold a point each 64 KiB");
        assert_eq!(index.seek(Seq::new(0)), Some((Seq::new(0), 16)));
        assert_eq!(index.seek(Seq::new(63)), Some((Seq::new(0), 16)));
        assert_eq!(index.seek(Seq::new(64)), Some((Seq::new(64), 16 + 64 * 1_024)));
        assert_eq!(index.seek(Seq::new(5_000)), Some((Seq::new(960), 16 + 960 * 1_024)));
        assert_eq!(SparseIndex::default().seek(Seq::new(1)), None);
    }
}
