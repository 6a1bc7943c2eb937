//! What the first bad byte of a journal means: the verdict table, as data.
//!
//! | row | evidence at the first bad byte | standard | strict |
//! |---|---|---|---|
//! | D | last segment, shorter than its header and first mark | cut | cut |
//! | C | header or first mark there in full length and invalid | refuse | refuse |
//! | Z | only zeros to the end of the file: reserved space, or in an earlier segment a lost seal | clean end | clean end |
//! | A | the segment has a successor | refuse | refuse |
//! | B | a valid mark at or behind it states more than the records before it | refuse | refuse |
//! | V | the frame's checksum is right, but it does not belong here | refuse | refuse |
//! | F | the frame is certainly torn | cut | cut |
//! | G | anything else | cut | refuse |
//!
//! The first row that matches wins. Rows A to V are proof that bytes were damaged *after* they were
//! durable, and cutting them would lose what was acknowledged; F and G are what a crash in the
//! middle of a write leaves behind, G less certainly so.

use core::fmt;

use crate::RecoveryPolicy;

/// A row of the verdict table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// The last segment is shorter than its header and first mark: it was never created whole.
    D,
    /// The header or the first mark is there and invalid.
    C,
    /// Zeros to the end of the file: a clean end.
    Z,
    /// The damage lies in a segment that has a successor.
    A,
    /// A valid mark proves that more was durable.
    B,
    /// The checksum is right, but sequence, salt, offset or kind do not belong here.
    V,
    /// A torn write: the file ends inside the frame, or a block of it was never written.
    F,
    /// Bad, complete, unproven.
    G,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing is wrong.
    CleanEnd,
    /// Set the bytes aside, cut them off and say so.
    Cut,
    /// Change nothing and say what was found.
    Refuse,
}

/// The facts at the first bad byte that the verdict depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// It lies in the last segment.
    pub last: bool,
    /// The file is shorter than its header and first mark.
    pub short: bool,
    /// The header or first mark is there in full length, and invalid.
    pub head_invalid: bool,
    /// Everything from there to the end of the file is zero.
    pub rest_zero: bool,
    /// The sequence number expected there is the first of the next segment.
    pub meets_successor: bool,
    /// A valid mark at or behind it states more than the records before it.
    pub proven_beyond: bool,
    /// The frame's checksum is right.
    pub checksum_right: bool,
    /// The file ends inside the frame, or nothing but zeros follows from inside it, or a block that
    /// it touches is zero.
    pub torn: bool,
}

/// One row: when it applies, and what follows under each policy.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its label.
    pub row: Row,
    /// Whether the evidence fits, given that no earlier row did.
    pub applies: fn(&Evidence) -> bool,
    /// Under [`RecoveryPolicy::Standard`].
    pub standard: Action,
    /// Under [`RecoveryPolicy::Strict`].
    pub strict: Action,
    /// What the row says, for messages.
    pub meaning: &'static str,
}

/// The verdict table. The first row that applies wins; the last always applies.
pub const VERDICTS: [Rule; 8] = [
    Rule {
        row: Row::D,
        applies: |e| e.last && e.short,
        standard: Action::Cut,
        strict: Action::Cut,
        meaning: "the last segment was never created whole",
    },
    Rule {
        row: Row::C,
        applies: |e| e.head_invalid,
        standard: Action::Refuse,
        strict: Action::Refuse,
        meaning: "the segment's header or first mark is damaged",
    },
    Rule {
        row: Row::Z,
        applies: |e| e.rest_zero && !e.short && (e.last || e.meets_successor),
        standard: Action::CleanEnd,
        strict: Action::CleanEnd,
        meaning: "reserved space follows the end",
    },
    Rule {
        row: Row::A,
        applies: |e| !e.last,
        standard: Action::Refuse,
        strict: Action::Refuse,
        meaning: "the segment has a successor, so all of it was durable",
    },
    Rule {
        row: Row::B,
        applies: |e| e.proven_beyond,
        standard: Action::Refuse,
        strict: Action::Refuse,
        meaning: "a later mark proves that the damaged bytes were durable",
    },
    Rule {
        row: Row::V,
        applies: |e| e.checksum_right,
        standard: Action::Refuse,
        strict: Action::Refuse,
        meaning: "the frame is whole but does not belong here",
    },
    Rule {
        row: Row::F,
        applies: |e| e.torn,
        standard: Action::Cut,
        strict: Action::Cut,
        meaning: "a torn write",
    },
    Rule {
        row: Row::G,
        applies: |_| true,
        standard: Action::Cut,
        strict: Action::Refuse,
        meaning: "a bad frame that no mark proves to have been durable",
    },
];

impl Row {
    /// The table's rule of this row.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        // Every row is in the table; a test holds that.
        let [.., last] = &VERDICTS;
        VERDICTS.iter().find(|rule| rule.row == self).unwrap_or(last)
    }
}

/// The first row that applies, and what follows.
#[must_use]
pub fn judge(evidence: &Evidence, policy: RecoveryPolicy) -> (Row, Action) {
    let found = VERDICTS.iter().find(|rule| (rule.applies)(evidence));
    let rule = found.unwrap_or_else(|| Row::G.rule());
    let action = match policy {
        RecoveryPolicy::Standard => rule.standard,
        RecoveryPolicy::Strict => rule.strict,
    };
    (rule.row, action)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn every_evidence() -> Vec<Evidence> {
        let bit = |bits: u32, n: u32| bits & (1 << n) != 0;
        let of = |bits| Evidence {
            last: bit(bits, 0),
            short: bit(bits, 1),
            head_invalid: bit(bits, 2),
            rest_zero: bit(bits, 3),
            meets_successor: bit(bits, 4),
            proven_beyond: bit(bits, 5),
            checksum_right: bit(bits, 6),
            torn: bit(bits, 7),
        };
        (0..256).map(of).collect()
    }

    /// The table once more, written as nested decisions by hand.
    fn expected(e: &Evidence) -> Row {
        if e.last {
            if e.short {
                return Row::D;
            }
            if e.head_invalid {
                return Row::C;
            }
            if e.rest_zero {
                return Row::Z;
            }
            return match (e.proven_beyond, e.checksum_right, e.torn) {
                (true, _, _) => Row::B,
                (false, true, _) => Row::V,
                (false, false, true) => Row::F,
                (false, false, false) => Row::G,
            };
        }
        match (e.head_invalid, e.rest_zero && e.meets_successor && !e.short) {
            (true, _) => Row::C,
            (false, true) => Row::Z,
            (false, false) => Row::A,
        }
    }

    #[test]
    fn every_input_matches_exactly_one_row() {
        for evidence in every_evidence() {
            let (row, _) = judge(&evidence, RecoveryPolicy::Standard);
            assert_eq!(row, expected(&evidence), "{evidence:?}");
        }
    }

    #[test]
    fn every_row_is_reached_and_labelled_once() {
        let mut reached: Vec<Row> =
            every_evidence().iter().map(|e| judge(e, RecoveryPolicy::Standard).0).collect();
        reached.sort_unstable();
        reached.dedup();
        let mut labels: Vec<Row> = VERDICTS.iter().map(|rule| rule.row).collect();
        labels.sort_unstable();
        assert_eq!(reached, labels);
        assert!(labels.iter().all(|row| row.rule().row == *row));
    }

    #[test]
    fn the_policies_differ_in_row_g_alone() {
        for rule in VERDICTS {
            assert_eq!(rule.standard != rule.strict, rule.row == Row::G, "{}", rule.row);
        }
        assert_eq!(
            judge(&Evidence { last: true, ..Evidence::default() }, RecoveryPolicy::Strict),
            (Row::G, Action::Refuse)
        );
    }
}
