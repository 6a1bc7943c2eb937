//! One instrument: its rules, its reference price, its book.

use std::ops::RangeInclusive;

use super::book::Book;
use super::code::{OrderKind, Refusal};
use super::setup::Instrument;

/// One instrument.
#[derive(Debug)]
pub(super) struct Market {
    rules: Instrument,
    /// The price that the band is around.
    pub(super) reference: i64,
    /// The price of today's last trade.
    pub(super) last: Option<i64>,
    pub(super) is_halted: bool,
    pub(super) book: Book,
}

impl Market {
    pub(super) fn new(rules: Instrument) -> Self {
        let reference = rules.reference;
        Self { rules, reference, last: None, is_halted: false, book: Book::default() }
    }

    /// Whether an order may be like this.
    pub(super) fn check(&self, kind: OrderKind, price: i64, quantity: u64) -> Result<(), Refusal> {
        if self.is_halted {
            return Err(Refusal::InstrumentHalted);
        }
        match kind {
            OrderKind::Market if price != 0 => return Err(Refusal::PriceOfMarketOrder),
            OrderKind::Limit if price % i64::from(self.rules.tick) != 0 => return Err(Refusal::PriceOffTick),
            OrderKind::Limit if !self.band().contains(&price) => return Err(Refusal::PriceOutsideBand),
            OrderKind::Market | OrderKind::Limit => {}
        }
        if quantity == 0 || !quantity.is_multiple_of(u64::from(self.rules.lot)) {
            return Err(Refusal::QuantityOffLot);
        }
        Ok(())
    }

    /// The prices that are taken.
    pub(super) const fn band(&self) -> RangeInclusive<i64> {
        let (reference, band) = (self.reference, self.rules.band);
        reference.saturating_sub_unsigned(band)..=reference.saturating_add_unsigned(band)
    }

    /// The end of a day: its last price is what the next band is around.
    pub(super) fn settle(&mut self) -> i64 {
        self.reference = self.last.take().unwrap_or(self.reference);
        self.reference
    }
}
