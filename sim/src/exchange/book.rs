//! The orders of one instrument that rest, in price-time priority.

use std::collections::BTreeMap;

use super::code::{Side, TimeInForce};

/// An order's place on its side of the book: the better price first, then the earlier arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Grows as the price gets worse.
    rank: i64,
    /// The command that gave it this place.
    arrival: u64,
}

/// An order that rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resting {
    pub(super) order: u64,
    pub(super) quantity: u64,
    pub(super) time_in_force: TimeInForce,
    pub(super) trader: Box<str>,
}

/// Two orders have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) price: i64,
    pub(super) quantity: u64,
    pub(super) taker_left: u64,
    pub(super) maker: u64,
    pub(super) maker_left: u64,
}

/// Both sides.
#[derive(Debug, Default)]
pub(super) struct Book {
    bids: BTreeMap<Place, Resting>,
    asks: BTreeMap<Place, Resting>,
}

/// The complement turns the order of prices around, and no price overflows.
const fn rank(side: Side, price: i64) -> i64 {
    match side {
        Side::Buy => !price,
        Side::Sell => price,
    }
}

impl Place {
    pub(super) const fn new(side: Side, price: i64, arrival: u64) -> Self {
        Self { rank: rank(side, price), arrival }
    }

    pub(super) const fn price(self, side: Side) -> i64 {
        rank(side, self.rank)
    }
}

impl Book {
    pub(super) fn rest(&mut self, side: Side, place: Place, order: Resting) {
        let before = self.side_mut(side).insert(place, order);
        assert_eq!(before, None, "a command gives a place to one order");
    }

    pub(super) fn order_mut(&mut self, side: Side, place: Place) -> Option<&mut Resting> {
        self.side_mut(side).get_mut(&place)
    }

    pub(super) fn remove(&mut self, side: Side, place: Place) -> Option<Resting> {
        self.side_mut(side).remove(&place)
    }

    /// Trades an order that comes with those that rest, the best first, as far as its limit and its quantity go; without
    /// a limit, at any price.
    pub(super) fn trade(
        &mut self,
        side: Side,
        limit: Option<i64>,
        mut quantity: u64,
        mut on_fill: impl FnMut(Fill),
    ) -> u64 {
        let against = side.opposite();
        let worst = limit.map_or(i64::MAX, |limit| rank(against, limit));
        while quantity > 0 {
            let Some(mut best) = self.side_mut(against).first_entry().filter(|best| best.key().rank <= worst)
            else {
                break;
            };
            let (price, maker) = (best.key().price(against), best.get_mut());
            let traded = quantity.min(maker.quantity);
            maker.quantity -= traded;
            quantity -= traded;
            let (maker, maker_left) = (maker.order, maker.quantity);
            if maker_left == 0 {
                best.remove();
            }
            on_fill(Fill { price, quantity: traded, taker_left: quantity, maker, maker_left });
        }
        quantity
    }

    /// Takes out what `goes` says, bids first, each side in its order.
    pub(super) fn take_out(
        &mut self,
        mut goes: impl FnMut(i64, &Resting) -> bool,
        mut taken: impl FnMut(&Resting),
    ) {
        for side in [Side::Buy, Side::Sell] {
            self.side_mut(side).retain(|place, order| {
                let goes = goes(place.price(side), order);
                if goes {
                    taken(order);
                }
                !goes
            });
        }
    }

    const fn side_mut(&mut self, side: Side) -> &mut BTreeMap<Place, Resting> {
        match side {
            Side::Buy => &mut self.bids,
            Side::Sell => &mut self.asks,
        }
    }
}
