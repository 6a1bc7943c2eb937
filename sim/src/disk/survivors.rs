//! Which unsynced changes a power loss leaves.

use std::fmt;
use std::str::FromStr;

/// The choice of survivors among the unsynced changes of the whole disk, ranked in the order in
/// which they were made: sector writes and lengths of every file, and directory operations.
///
/// Its text form (`none`, `all`, `prefix:3`, `all-but:2`, `random:17`) is what a replay names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Survivors {
    /// Nothing unsynced survives.
    None,
    /// Everything survives.
    All,
    /// The first so many survive.
    Prefix(usize),
    /// All survive but the one of this rank.
    AllBut(usize),
    /// Each survives or not, by a coin thrown from this seed. For half of the seeds the directory
    /// operations survive as a prefix, as in a journaled file system; for the others any subset does.
    Random(u64),
}

impl Survivors {
    /// Whether the change of this rank survives.
    #[must_use]
    pub fn keeps(self, rank: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Prefix(count) => rank < count,
            Self::AllBut(lost) => rank != lost,
            Self::Random(seed) => coin(seed, rank as u64),
        }
    }

    /// Whether directory operations survive only as a prefix: after the first lost one, none.
    pub(crate) fn orders_directory(self) -> bool {
        match self {
            Self::Random(seed) => coin(seed, u64::MAX),
            _ => false,
        }
    }
}

impl fmt::Display for Survivors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str("all"),
            Self::Prefix(count) => write!(f, "prefix:{count}"),
            Self::AllBut(lost) => write!(f, "all-but:{lost}"),
            Self::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}

/// Text that names no choice of survivors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no survivors: use none, all, prefix:N, all-but:N or random:SEED")]
pub struct UnknownSurvivors(pub String);

impl FromStr for Survivors {
    type Err = UnknownSurvivors;

    fn from_str(text: &str) -> Result<Self, UnknownSurvivors> {
        let unknown = || UnknownSurvivors(text.to_owned());
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "all" => Ok(Self::All),
            Some(("prefix", count)) => count.parse().map(Self::Prefix).map_err(|_| unknown()),
            Some(("all-but", lost)) => lost.parse().map(Self::AllBut).map_err(|_| unknown()),
            Some(("random", seed)) => seed.parse().map(Self::Random).map_err(|_| unknown()),
            _ => Err(unknown()),
        }
    }
}

/// A fair coin: the last bit of SplitMix64's output for this seed and throw. Written out here so
/// that a replay never depends on the version of a random number generator.
fn coin(seed: u64, throw: u64) -> bool {
    let mut z = seed.wrapping_add(throw.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_names_the_same_choice() {
        let choices = [
            Survivors::None,
            Survivors::All,
            Survivors::Prefix(3),
            Survivors::AllBut(0),
            Survivors::Random(u64::MAX),
        ];
        for choice in choices {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for bad in ["", "some", "prefix", "prefix:", "prefix:-1", "random:x", "none:1"] {
            assert_eq!(bad.parse::<Survivors>(), Err(UnknownSurvivors(bad.to_owned())));
        }
    }

    #[test]
    fn random_survivors_are_neither_all_nor_none_and_depend_on_the_seed_alone() {
        let subset = |seed| (0..64).map(|rank| Survivors::Random(seed).keeps(rank)).collect::<Vec<_>>();
        assert_eq!(subset(7), subset(7));
        assert_ne!(subset(7), subset(8));
        let kept = subset(7).into_iter().filter(|&kept| kept).count();
        assert!((16..48).contains(&kept), "a fair coin, not {kept} of 64");
    }
}
