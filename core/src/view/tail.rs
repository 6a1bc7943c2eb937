//! The newest commits, kept in memory for readers that follow the end.

use alloc::collections::VecDeque;

use bytes::Bytes;

use crate::Seq;

/// One commit's frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TailCommit {
    pub(crate) first: Seq,
    pub(crate) end: Seq,
    pub(crate) frames: Bytes,
}

/// The newest commits in order, bounded by bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    commits: VecDeque<TailCommit>,
    bytes: usize,
    bytes_max: usize,
}

impl Tail {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { commits: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Adds the newest commit and forgets the oldest ones beyond the limit.
    pub(crate) fn push(&mut self, commit: TailCommit) {
        self.bytes += commit.frames.len();
        self.commits.push_back(commit);
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.commits.pop_front() else { break };
            self.bytes -= oldest.frames.len();
        }
    }

    /// The commit that holds `seq`.
    pub(crate) fn find(&self, seq: Seq) -> Option<&TailCommit> {
        let behind = self.commits.partition_point(|commit| commit.end <= seq);
        self.commits.get(behind).filter(|commit| commit.first <= seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(first: u64, end: u64, len: usize) -> TailCommit {
        TailCommit { first: Seq::new(first), end: Seq::new(end), frames: Bytes::from(alloc::vec![0; len]) }
    }

    #[test]
    fn the_oldest_commits_go_first_and_the_bytes_stay_bounded() {
        let mut tail = Tail::new(100);
        tail.push(commit(0, 3, 60));
        tail.push(commit(3, 4, 40));
        assert_eq!(tail.find(Seq::new(2)).unwrap().first, Seq::new(0));
        tail.push(commit(4, 9, 10));
        assert_eq!(tail.find(Seq::new(2)), None);
        assert_eq!(tail.find(Seq::new(3)).unwrap().end, Seq::new(4));
        assert_eq!(tail.find(Seq::new(8)).unwrap().first, Seq::new(4));
        assert_eq!(tail.find(Seq::new(9)), None);
        tail.push(commit(9, 10, 101));
        assert_eq!((tail.bytes, tail.commits.len()), (0, 0), "a commit beyond the limit is not kept");
    }
}
