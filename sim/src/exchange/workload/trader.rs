//! What a trader does: places orders around the price that it knows, and cancels and modifies orders of its own, which it
//! knows from the answers.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_core::Events;

use super::super::code::{OrderKind, Side, TimeInForce};
use super::super::command::{CancelOrder, Command, ModifyOrder, PlaceOrder};
use super::super::event::{Event, OrderAccepted};
use super::super::setup::Instrument;

/// Orders that a trader keeps in mind.
const ORDERS_MAX: usize = 64;
const NAMES: [&str; 4] = ["Ödön", "Σοφία", "نور", "李雷"];

/// One trader. The same seed and the same answers give the same commands.
#[derive(Debug)]
pub(super) struct Trader {
    name: String,
    choice: ChaCha8Rng,
    placed: u64,
    orders: Vec<Own>,
    /// The instruments, each with the last price that the trader has seen.
    prices: Vec<(Instrument, i64)>,
}

/// An order of the trader's own, as far as it knows.
#[derive(Clone, Copy, Debug)]
struct Own {
    order: u64,
    /// Its place in `prices`.
    instrument: usize,
    price: i64,
    quantity: u64,
}

impl Trader {
    pub(super) fn new(seed: u64, index: u64, instruments: Vec<Instrument>) -> Self {
        let mut choice = ChaCha8Rng::seed_from_u64(seed);
        choice.set_stream(index + 1);
        let name = NAMES.iter().cycle().nth(usize::try_from(index).unwrap_or_default()).unwrap_or(&"");
        let prices = instruments.into_iter().map(|one| (one.reference, one)).map(|(price, one)| (one, price));
        Self {
            name: format!("{name} {index}"),
            choice,
            placed: 0,
            orders: Vec::new(),
            prices: prices.collect(),
        }
    }

    pub(super) fn next_command(&mut self) -> Vec<u8> {
        match self.choice.random_range(0..100) {
            0..14 => self.cancel(),
            14..26 => self.modify(),
            26..34 => self.mistake(),
            34..44 => self.place(OrderKind::Market),
            _ => self.place(OrderKind::Limit),
        }
    }

    /// Learns from an answer.
    pub(super) fn learn(&mut self, events: &Events) {
        for event in events.iter() {
            match Event::decode(event) {
                Ok(Event::OrderAccepted(accepted)) => self.accepted(&accepted),
                Ok(Event::Trade(trade)) => {
                    if let Some(seen) =
                        self.prices.iter_mut().find(|(one, _)| one.instrument == trade.instrument)
                    {
                        seen.1 = trade.price;
                    }
                    self.left(trade.taker, trade.taker_left);
                    self.left(trade.maker, trade.maker_left);
                }
                Ok(Event::OrderModified(modified)) => {
                    if let Some(own) = self.orders.iter_mut().find(|own| own.order == modified.order) {
                        (own.price, own.quantity) = (modified.price, modified.quantity);
                    }
                }
                Ok(Event::OrderCanceled(canceled)) => self.left(canceled.order, 0),
                Ok(Event::CommandRefused(refused))
                    if refused.refusal == super::super::Refusal::UnknownOrder =>
                {
                    self.left(refused.order, 0);
                }
                _ => {}
            }
        }
    }

    fn accepted(&mut self, accepted: &OrderAccepted<'_>) {
        let OrderAccepted { order, price, quantity, .. } = *accepted;
        let instrument = self.prices.iter().position(|(one, _)| one.instrument == accepted.instrument);
        if let (Some(instrument), OrderKind::Limit) = (instrument, accepted.kind) {
            if self.orders.len() == ORDERS_MAX {
                self.orders.remove(0);
            }
            self.orders.push(Own { order, instrument, price, quantity });
        }
    }

    fn left(&mut self, order: u64, left: u64) {
        if let Some(at) = self.orders.iter().position(|own| own.order == order) {
            self.orders[at].quantity = left;
            if left == 0 {
                self.orders.remove(at);
            }
        }
    }

    fn place(&mut self, kind: OrderKind) -> Vec<u8> {
        let at = self.choice.random_range(0..self.prices.len());
        let side = if self.choice.random() { Side::Buy } else { Side::Sell };
        let time_in_force = match self.choice.random_range(0..100) {
            0..15 => TimeInForce::GoodTillCancel,
            15..22 => TimeInForce::ImmediateOrCancel,
            _ => TimeInForce::Day,
        };
        let price = if kind == OrderKind::Market { 0 } else { self.price(at, side) };
        let quantity = self.quantity(at);
        let instrument = self.prices[at].0.instrument;
        self.order(PlaceOrder {
            instrument,
            side,
            kind,
            time_in_force,
            price,
            quantity,
            trader: "",
            reference: "",
        })
    }

    /// The order in the trader's name, and with a reference of its own.
    fn order(&mut self, order: PlaceOrder<'_>) -> Vec<u8> {
        self.placed += 1;
        let reference = format!("№{}", self.placed);
        Command::PlaceOrder(PlaceOrder { trader: &self.name, reference: &reference, ..order }).to_bytes()
    }

    /// A price that trades at once in about a sixth of cases.
    fn price(&mut self, instrument: usize, side: Side) -> i64 {
        let (rules, seen) = &self.prices[instrument];
        let tick = i64::from(rules.tick);
        let away = self.choice.random_range(-2..=14) * tick;
        let seen = seen / tick * tick;
        match side {
            Side::Buy => seen - away,
            Side::Sell => seen + away,
        }
    }

    fn quantity(&mut self, instrument: usize) -> u64 {
        u64::from(self.prices[instrument].0.lot) * self.choice.random_range(1..=20)
    }

    /// One of the trader's own orders; if it knows none, it places one.
    fn own(&mut self) -> Option<Own> {
        let at = (!self.orders.is_empty()).then(|| self.choice.random_range(0..self.orders.len()))?;
        self.orders.get(at).copied()
    }

    fn cancel(&mut self) -> Vec<u8> {
        let Some(Own { order, .. }) = self.own() else { return self.place(OrderKind::Limit) };
        Command::CancelOrder(CancelOrder { order, trader: &self.name }).to_bytes()
    }

    fn modify(&mut self) -> Vec<u8> {
        let Some(own) = self.own() else { return self.place(OrderKind::Limit) };
        let lot = u64::from(self.prices[own.instrument].0.lot);
        let (price, quantity) = match self.choice.random_range(0..3) {
            // Less keeps the order's place.
            0 => (own.price, (own.quantity / lot).div_ceil(2) * lot),
            1 => (own.price, own.quantity + lot),
            _ => {
                let side = if self.choice.random() { Side::Buy } else { Side::Sell };
                (self.price(own.instrument, side), own.quantity)
            }
        };
        Command::ModifyOrder(ModifyOrder { order: own.order, price, quantity, trader: &self.name }).to_bytes()
    }

    /// Something that is refused.
    fn mistake(&mut self) -> Vec<u8> {
        let (rules, price) = self.prices[0].clone();
        let good = PlaceOrder {
            instrument: rules.instrument,
            side: Side::Buy,
            kind: OrderKind::Limit,
            time_in_force: TimeInForce::Day,
            price: price / i64::from(rules.tick) * i64::from(rules.tick),
            quantity: u64::from(rules.lot),
            trader: "",
            reference: "",
        };
        let bad = match self.choice.random_range(0..7) {
            0 => PlaceOrder { instrument: 99, ..good },
            1 => PlaceOrder { price: good.price + 1, ..good },
            2 => PlaceOrder { price: good.price * 2, ..good },
            3 => PlaceOrder { quantity: 0, ..good },
            4 => PlaceOrder { kind: OrderKind::Market, ..good },
            5 => return b"no command".to_vec(),
            _ => return self.foreign(),
        };
        self.order(bad)
    }

    /// Somebody else's order, for somebody who guesses well.
    fn foreign(&mut self) -> Vec<u8> {
        let near = self.orders.last().map_or(0, |own| own.order);
        let order = near.saturating_sub(self.choice.random_range(1..20));
        Command::CancelOrder(CancelOrder { order, trader: &self.name }).to_bytes()
    }
}
