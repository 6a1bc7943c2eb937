//! The same exchange written without a thought for speed: one list of orders, gone through from the beginning each time. It
//! says what it does in the words of [`floor`](crate::floor), and shares no code with the exchange.

use strandline_sim::exchange::{
    Command, ExchangeSetup, Instrument, OrderKind, PlaceOrder, Side, TimeInForce,
};

use crate::floor::HOUR;

pub(crate) struct Model {
    instruments: Vec<(Instrument, Option<i64>)>,
    hour: u64,
    /// The day on which the market is open.
    open: Option<u64>,
    orders: Vec<Order>,
}

#[derive(Clone)]
struct Order {
    number: u64,
    /// Who of the same price came first.
    place: u64,
    of: PlaceOrder<'static>,
}

impl Model {
    pub(crate) fn new(setup: &ExchangeSetup) -> Self {
        let instruments = setup.instruments.iter().map(|one| (one.clone(), None)).collect();
        Self { instruments, hour: 0, open: None, orders: Vec::new() }
    }

    pub(crate) fn tell(&mut self, seq: u64, command: Command<'static>) -> Vec<String> {
        let said = match command {
            Command::Tick(tick) => self.tick(tick.time / HOUR),
            Command::PlaceOrder(of) => self.check(&of).map(|()| {
                let mut said = vec![format!("{seq} accepted")];
                self.arrive(Order { number: seq, place: seq, of }, &mut said);
                said
            }),
            Command::CancelOrder(cancel) => self.find(cancel.order, cancel.trader).map(|at| {
                let gone = self.orders.remove(at);
                vec![format!("{} canceled {}: Requested", gone.number, gone.of.quantity)]
            }),
            Command::ModifyOrder(modify) => self.find(modify.order, modify.trader).and_then(|at| {
                let before = self.orders[at].clone();
                let of = PlaceOrder { price: modify.price, quantity: modify.quantity, ..before.of };
                self.check(&of)?;
                let mut said = vec![format!("{} is {} at {}", before.number, of.quantity, of.price)];
                if of.price == before.of.price && of.quantity <= before.of.quantity {
                    self.orders[at].of = of;
                } else {
                    self.orders.remove(at);
                    self.arrive(Order { number: before.number, place: seq, of }, &mut said);
                }
                Ok(said)
            }),
            Command::Halt(_) | Command::Resume(_) => panic!("the model knows no halts"),
        };
        said.unwrap_or_else(|refusal| vec![format!("refused: {refusal}")])
    }

    fn tick(&mut self, hour: u64) -> Result<Vec<String>, &'static str> {
        if hour < self.hour {
            return Err("TimeBackwards");
        }
        self.hour = hour;
        let mut said = Vec::new();
        if self.open.is_some_and(|day| hour >= day * 24 + 17) {
            self.open = None;
            for (one, last) in &mut self.instruments {
                let of_it = |order: &Order| order.of.instrument == one.instrument;
                let of_day = |order: &Order| of_it(order) && order.of.time_in_force == TimeInForce::Day;
                take_out(&mut self.orders, of_day, "Expired", &mut said);
                one.reference = last.take().unwrap_or(one.reference);
                said.push(format!("{} settled at {}", one.instrument, one.reference));
                let outside =
                    |order: &Order| of_it(order) && order.of.price.abs_diff(one.reference) > one.band;
                take_out(&mut self.orders, outside, "OutsideBand", &mut said);
            }
            said.push(format!("closed at {hour}h"));
        }
        if self.open.is_none() && (9..17).contains(&(hour % 24)) {
            self.open = Some(hour / 24);
            said.push(format!("open at {hour}h"));
        }
        Ok(said)
    }

    fn check(&self, of: &PlaceOrder<'_>) -> Result<(), &'static str> {
        let one = self.instruments.iter().find(|(one, _)| one.instrument == of.instrument);
        let (one, _) = one.ok_or("UnknownInstrument")?;
        if self.open.is_none() {
            return Err("MarketClosed");
        }
        if of.kind == OrderKind::Limit && of.price % i64::from(one.tick) != 0 {
            return Err("PriceOffTick");
        }
        if of.kind == OrderKind::Limit && of.price.abs_diff(one.reference) > one.band {
            return Err("PriceOutsideBand");
        }
        if of.quantity == 0 || !of.quantity.is_multiple_of(u64::from(one.lot)) {
            return Err("QuantityOffLot");
        }
        Ok(())
    }

    fn find(&self, number: u64, trader: &str) -> Result<usize, &'static str> {
        let at = self.orders.iter().position(|order| order.number == number).ok_or("UnknownOrder")?;
        if self.orders[at].of.trader == trader { Ok(at) } else { Err("ForeignOrder") }
    }

    /// The order that trades next with this one.
    fn best(&self, taker: &PlaceOrder<'_>) -> Option<usize> {
        let fits = |maker: &PlaceOrder<'_>| {
            let is_good = match taker.side {
                Side::Buy => maker.price <= taker.price,
                Side::Sell => maker.price >= taker.price,
            };
            maker.instrument == taker.instrument
                && maker.side != taker.side
                && (is_good || taker.kind == OrderKind::Market)
        };
        let candidates = (0..self.orders.len()).filter(|at| fits(&self.orders[*at].of));
        candidates.min_by_key(|at| {
            let Order { of, place, .. } = &self.orders[*at];
            (if of.side == Side::Buy { -of.price } else { of.price }, *place)
        })
    }

    fn arrive(&mut self, mut order: Order, said: &mut Vec<String>) {
        while let Some(at) = self.best(&order.of).filter(|_| order.of.quantity > 0) {
            let maker = &mut self.orders[at];
            let traded = maker.of.quantity.min(order.of.quantity);
            maker.of.quantity -= traded;
            order.of.quantity -= traded;
            let one = self.instruments.iter_mut().find(|(one, _)| one.instrument == maker.of.instrument);
            one.unwrap().1 = Some(maker.of.price);
            said.push(format!(
                "{} takes {traded} of {} at {}, left {} and {}",
                order.number, maker.number, maker.of.price, order.of.quantity, maker.of.quantity
            ));
            if maker.of.quantity == 0 {
                self.orders.remove(at);
            }
        }
        let PlaceOrder { kind, time_in_force, quantity, .. } = order.of;
        if quantity == 0 {
        } else if kind == OrderKind::Market || time_in_force == TimeInForce::ImmediateOrCancel {
            said.push(format!("{} canceled {quantity}: Unfilled", order.number));
        } else {
            self.orders.push(order);
        }
    }
}

/// Takes out orders: the bids first, then the asks, each from the best to the worst.
fn take_out(orders: &mut Vec<Order>, goes: impl Fn(&Order) -> bool, why: &str, said: &mut Vec<String>) {
    let mut gone: Vec<_> = orders.iter().filter(|order| goes(order)).cloned().collect();
    orders.retain(|order| !goes(order));
    gone.sort_by_key(|Order { of, place, .. }| match of.side {
        Side::Buy => (0, -of.price, *place),
        Side::Sell => (1, of.price, *place),
    });
    said.extend(gone.iter().map(|order| format!("{} canceled {}: {why}", order.number, order.of.quantity)));
}
