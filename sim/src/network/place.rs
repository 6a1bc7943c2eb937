//! Where a subscriber stands, as far as that is known from outside.

/// What a subscriber has, and what it is to be given next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Nothing up to here is given again: it was acknowledged, or said.
    pub(super) least: u64,
    /// Everything up to here was given or acknowledged: what comes next begins no later than behind it.
    pub(super) most: u64,
    /// A gap was told and not acknowledged: it comes before any event.
    pub(super) owes_gap: bool,
}

impl Place {
    /// Behind this event, exactly.
    pub(super) const fn at(number: u64) -> Self {
        Self { least: number, most: number, owes_gap: false }
    }
}
