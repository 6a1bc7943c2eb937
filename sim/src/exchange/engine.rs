//! The exchange: commands in, events out. It knows no clock but the commands', and iterates over nothing but ordered maps.

use std::collections::BTreeMap;

use strandline_core::{Engine, Events, Seq};

use super::book::{Fill, Place, Resting};
use super::code::{CancelReason, OrderKind, Phase, Refusal, Side, TimeInForce};
use super::command::{CancelOrder, Command, ModifyOrder, PlaceOrder};
use super::event::{
    CommandRefused, Event, Halted, OrderAccepted, OrderCanceled, OrderModified, PhaseChanged, Resumed,
    Settled, Trade,
};
use super::market::Market;
use super::setup::{DAY_SECONDS, ExchangeSetup, SetupError};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = DAY_SECONDS as u64 * SECOND;

/// An exchange of any number of instruments that trade at the same hours.
///
/// It begins closed, and opens with the first tick within its hours. An order is checked against its instrument's tick, lot
/// and band, then trades with what rests, the best price first and the earliest of each, at the price of the order that
/// rested; what is left rests, or is canceled. At the close the orders of the day expire, and each instrument's last price
/// becomes the reference of its next band.
#[derive(Debug)]
pub struct Exchange {
    opens_at: u64,
    closes_at: u64,
    /// The clock: the newest time that a command has told.
    time: u64,
    phase: Phase,
    /// When the market closes, while it is open.
    closes: u64,
    markets: BTreeMap<u32, Market>,
    /// Where every order stands that rests.
    orders: BTreeMap<u64, Standing>,
    trades: u64,
}

/// Where an order stands.
#[derive(Clone, Copy, Debug)]
struct Standing {
    instrument: u32,
    side: Side,
    place: Place,
}

/// An order that comes to trade.
#[derive(Clone, Copy, Debug)]
struct Taker<'a> {
    order: u64,
    instrument: u32,
    side: Side,
    /// None at any price.
    limit: Option<i64>,
    time_in_force: TimeInForce,
    quantity: u64,
    trader: &'a str,
}

fn emit(events: &mut Events, event: Event<'_>) {
    events.push_with(|out| event.encode(out));
}

impl Engine for Exchange {
    const ID: &'static str = "strandline-exchange/1";
    type Error = SetupError;

    fn start(setup: &[u8]) -> Result<Self, SetupError> {
        let setup = ExchangeSetup::decode(setup)?;
        setup.check()?;
        let markets = setup.instruments.into_iter().map(|rules| (rules.instrument, Market::new(rules)));
        Ok(Self {
            opens_at: u64::from(setup.opens_at) * SECOND,
            closes_at: u64::from(setup.closes_at) * SECOND,
            time: setup.time,
            phase: Phase::Closed,
            closes: 0,
            markets: markets.collect(),
            orders: BTreeMap::new(),
            trades: 0,
        })
    }

    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events) {
        let refused = match Command::decode(command) {
            Ok(command) => self.take(seq, &command, events).err().map(|refusal| refused(&command, refusal)),
            Err(_) => Some(CommandRefused {
                command: 0,
                refusal: Refusal::Unreadable,
                order: 0,
                trader: "",
                reference: "",
            }),
        };
        if let Some(refused) = refused {
            emit(events, Event::CommandRefused(refused));
        }
    }
}

fn refused<'a>(command: &Command<'a>, refusal: Refusal) -> CommandRefused<'a> {
    let (order, trader, reference) = match *command {
        Command::PlaceOrder(PlaceOrder { trader, reference, .. }) => (0, trader, reference),
        Command::CancelOrder(CancelOrder { order, trader }) => (order, trader, ""),
        Command::ModifyOrder(ModifyOrder { order, trader, .. }) => (order, trader, ""),
        Command::Tick(_) | Command::Halt(_) | Command::Resume(_) => (0, "", ""),
    };
    CommandRefused { command: command.template().id, refusal, order, trader, reference }
}

impl Exchange {
    /// What is refused has changed nothing and emitted nothing.
    fn take(&mut self, seq: Seq, command: &Command<'_>, events: &mut Events) -> Result<(), Refusal> {
        match command {
            Command::Tick(tick) => self.tick(tick.time, events),
            Command::PlaceOrder(order) => self.place(seq.get(), order, events),
            Command::CancelOrder(cancel) => self.cancel(cancel, events),
            Command::ModifyOrder(modify) => self.modify(seq.get(), modify, events),
            Command::Halt(halt) => {
                self.halt(halt.instrument, true)?;
                emit(events, Event::Halted(Halted { instrument: halt.instrument, reason: halt.reason }));
                Ok(())
            }
            Command::Resume(resume) => {
                self.halt(resume.instrument, false)?;
                emit(events, Event::Resumed(Resumed { instrument: resume.instrument }));
                Ok(())
            }
        }
    }

    fn tick(&mut self, time: u64, events: &mut Events) -> Result<(), Refusal> {
        if time < self.time {
            return Err(Refusal::TimeBackwards);
        }
        self.time = time;
        if self.phase == Phase::Open && time >= self.closes {
            self.close(events);
        }
        let hours = self.opens_at..self.closes_at;
        if self.phase == Phase::Closed && hours.contains(&(time % DAY)) {
            self.closes = (time - time % DAY).saturating_add(self.closes_at);
            self.turn(Phase::Open, events);
        }
        Ok(())
    }

    fn turn(&mut self, phase: Phase, events: &mut Events) {
        self.phase = phase;
        emit(events, Event::PhaseChanged(PhaseChanged { time: self.time, phase }));
    }

    fn close(&mut self, events: &mut Events) {
        for (&instrument, market) in &mut self.markets {
            let is_of_the_day = |_, order: &Resting| order.time_in_force == TimeInForce::Day;
            Self::take_out(market, &mut self.orders, is_of_the_day, CancelReason::Expired, events);
            let reference = market.settle();
            emit(events, Event::Settled(Settled { instrument, reference }));
            let band = market.band();
            let is_outside = |price, _: &Resting| !band.contains(&price);
            Self::take_out(market, &mut self.orders, is_outside, CancelReason::OutsideBand, events);
        }
        self.turn(Phase::Closed, events);
    }

    fn take_out(
        market: &mut Market,
        orders: &mut BTreeMap<u64, Standing>,
        goes: impl FnMut(i64, &Resting) -> bool,
        reason: CancelReason,
        events: &mut Events,
    ) {
        market.book.take_out(goes, |&Resting { order, quantity, .. }| {
            orders.remove(&order);
            emit(events, Event::OrderCanceled(OrderCanceled { order, reason, quantity }));
        });
    }

    /// The market of an instrument while it is open.
    fn open_market(&mut self, instrument: u32) -> Result<&mut Market, Refusal> {
        let market = self.markets.get_mut(&instrument).ok_or(Refusal::UnknownInstrument)?;
        if self.phase == Phase::Closed { Err(Refusal::MarketClosed) } else { Ok(market) }
    }

    fn halt(&mut self, instrument: u32, halts: bool) -> Result<(), Refusal> {
        let market = self.markets.get_mut(&instrument).ok_or(Refusal::UnknownInstrument)?;
        match (halts, market.is_halted) {
            (true, true) => return Err(Refusal::InstrumentHalted),
            (false, false) => return Err(Refusal::NotHalted),
            (true, false) | (false, true) => market.is_halted = halts,
        }
        Ok(())
    }

    fn place(&mut self, seq: u64, new: &PlaceOrder<'_>, events: &mut Events) -> Result<(), Refusal> {
        let PlaceOrder { instrument, side, kind, time_in_force, price, quantity, trader, reference } = *new;
        self.open_market(instrument)?.check(kind, price, quantity)?;
        let accepted = OrderAccepted {
            order: seq,
            instrument,
            side,
            kind,
            time_in_force,
            price,
            quantity,
            trader,
            reference,
        };
        emit(events, Event::OrderAccepted(accepted));
        let limit = (kind == OrderKind::Limit).then_some(price);
        let taker = Taker { order: seq, instrument, side, limit, time_in_force, quantity, trader };
        self.trade(seq, taker, events);
        Ok(())
    }

    /// The order of a trader, and where it stands.
    fn standing(&mut self, order: u64, trader: &str) -> Result<(Standing, &mut Resting), Refusal> {
        let standing = *self.orders.get(&order).ok_or(Refusal::UnknownOrder)?;
        let market = self.markets.get_mut(&standing.instrument).ok_or(Refusal::UnknownOrder)?;
        let resting = market.book.order_mut(standing.side, standing.place).ok_or(Refusal::UnknownOrder)?;
        if *resting.trader == *trader { Ok((standing, resting)) } else { Err(Refusal::ForeignOrder) }
    }

    fn remove(&mut self, order: u64, standing: Standing) -> Option<Resting> {
        self.orders.remove(&order);
        self.markets.get_mut(&standing.instrument)?.book.remove(standing.side, standing.place)
    }

    fn cancel(&mut self, cancel: &CancelOrder<'_>, events: &mut Events) -> Result<(), Refusal> {
        let (standing, resting) = self.standing(cancel.order, cancel.trader)?;
        let quantity = resting.quantity;
        self.remove(cancel.order, standing);
        let (order, reason) = (cancel.order, CancelReason::Requested);
        emit(events, Event::OrderCanceled(OrderCanceled { order, reason, quantity }));
        Ok(())
    }

    fn modify(&mut self, seq: u64, modify: &ModifyOrder<'_>, events: &mut Events) -> Result<(), Refusal> {
        let ModifyOrder { order, price, quantity, trader } = *modify;
        let (standing, resting) = self.standing(order, trader)?;
        let Standing { instrument, side, place } = standing;
        let (has, time_in_force) = (resting.quantity, resting.time_in_force);
        self.open_market(instrument)?.check(OrderKind::Limit, price, quantity)?;
        emit(events, Event::OrderModified(OrderModified { order, price, quantity }));
        if price == place.price(side) && quantity <= has {
            self.standing(order, trader)?.1.quantity = quantity;
            return Ok(());
        }
        self.remove(order, standing);
        let limit = Some(price);
        self.trade(seq, Taker { order, instrument, side, limit, time_in_force, quantity, trader }, events);
        Ok(())
    }

    /// Trades an order with what rests. What is left of it rests in turn, or is canceled.
    fn trade(&mut self, arrival: u64, taker: Taker<'_>, events: &mut Events) {
        let Taker { order, instrument, side, limit, time_in_force, quantity, trader } = taker;
        let Self { markets, orders, trades, time, .. } = self;
        let Some(market) = markets.get_mut(&instrument) else { return };
        let last = &mut market.last;
        let left = market.book.trade(side, limit, quantity, |fill| {
            *trades += 1;
            *last = Some(fill.price);
            if fill.maker_left == 0 {
                orders.remove(&fill.maker);
            }
            emit(events, Event::Trade(trade(*trades, *time, &taker, fill)));
        });
        match limit {
            _ if left == 0 => {}
            Some(price) if time_in_force != TimeInForce::ImmediateOrCancel => {
                let place = Place::new(side, price, arrival);
                orders.insert(order, Standing { instrument, side, place });
                let resting = Resting { order, quantity: left, time_in_force, trader: trader.into() };
                market.book.rest(side, place, resting);
            }
            _ => {
                let reason = CancelReason::Unfilled;
                emit(events, Event::OrderCanceled(OrderCanceled { order, reason, quantity: left }));
            }
        }
    }
}

const fn trade(trade: u64, time: u64, taker: &Taker<'_>, fill: Fill) -> Trade {
    Trade {
        trade,
        time,
        instrument: taker.instrument,
        price: fill.price,
        quantity: fill.quantity,
        taker_side: taker.side,
        taker: taker.order,
        taker_left: fill.taker_left,
        maker: fill.maker,
        maker_left: fill.maker_left,
    }
}
