//! An exchange to talk to, and what it says in words.

use strandline_core::{Engine, Events, Seq};
use strandline_sim::exchange::{
    CancelOrder, Command, CommandRefused, Event, Exchange, ExchangeSetup, Halt, Instrument, ModifyOrder,
    OrderAccepted, OrderCanceled, OrderKind, OrderModified, PhaseChanged, PlaceOrder, Resume, Settled, Side,
    Tick, TimeInForce, Trade,
};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const HOUR: u64 = 3_600 * SECOND;

/// Two instruments, traded from 9 to 17: 1 around 100 with a band of 10, by ticks of 1 and lots of 1; 2 around 1,000 with a
/// band of 500, by ticks of 25 and lots of 10.
pub(crate) fn setup() -> ExchangeSetup {
    let instrument = |instrument, reference, band, tick, lot| Instrument {
        instrument,
        reference,
        band,
        tick,
        lot,
        symbol: format!("I{instrument}"),
    };
    ExchangeSetup {
        time: 0,
        opens_at: 9 * 3_600,
        closes_at: 17 * 3_600,
        instruments: vec![instrument(1, 100, 10, 1, 1), instrument(2, 1_000, 500, 25, 10)],
    }
}

/// An exchange, and the number of its last command.
pub(crate) struct Floor {
    engine: Exchange,
    seq: u64,
}

/// A limit order for instrument 1, for the day, of trader "ann".
pub(crate) fn limit(side: Side, quantity: u64, price: i64) -> PlaceOrder<'static> {
    PlaceOrder {
        instrument: 1,
        side,
        kind: OrderKind::Limit,
        time_in_force: TimeInForce::Day,
        price,
        quantity,
        trader: "ann",
        reference: "r",
    }
}

pub(crate) fn buy(quantity: u64, price: i64) -> PlaceOrder<'static> {
    limit(Side::Buy, quantity, price)
}

pub(crate) fn sell(quantity: u64, price: i64) -> PlaceOrder<'static> {
    limit(Side::Sell, quantity, price)
}

impl Floor {
    pub(crate) fn closed() -> Self {
        Self { engine: Exchange::start(&setup().to_bytes()).unwrap(), seq: 0 }
    }

    /// It is 9 o'clock.
    pub(crate) fn open() -> Self {
        let mut floor = Self::closed();
        assert_eq!(floor.tick(9 * HOUR), ["open at 9h"]);
        floor
    }

    pub(crate) fn raw(&mut self, command: &[u8]) -> Vec<String> {
        let mut events = Events::default();
        self.seq += 1;
        self.engine.apply(Seq::new(self.seq), command, &mut events);
        events.iter().map(|event| words(&Event::decode(event).unwrap())).collect()
    }

    pub(crate) fn tell(&mut self, command: Command<'_>) -> Vec<String> {
        self.raw(&command.to_bytes())
    }

    pub(crate) fn tick(&mut self, time: u64) -> Vec<String> {
        self.tell(Command::Tick(Tick { time }))
    }

    pub(crate) fn place(&mut self, order: PlaceOrder<'_>) -> Vec<String> {
        self.tell(Command::PlaceOrder(order))
    }

    /// Places an order that rests whole; gives its number.
    pub(crate) fn rests(&mut self, order: PlaceOrder<'_>) -> u64 {
        let said = self.place(order);
        assert_eq!(said, [format!("{} accepted", self.seq)]);
        self.seq
    }

    pub(crate) fn cancel(&mut self, order: u64) -> Vec<String> {
        self.tell(Command::CancelOrder(CancelOrder { order, trader: "ann" }))
    }

    pub(crate) fn modify(&mut self, order: u64, quantity: u64, price: i64) -> Vec<String> {
        self.tell(Command::ModifyOrder(ModifyOrder { order, price, quantity, trader: "ann" }))
    }

    pub(crate) fn halt(&mut self, instrument: u32) -> Vec<String> {
        self.tell(Command::Halt(Halt { instrument, reason: "news" }))
    }

    pub(crate) fn resume(&mut self, instrument: u32) -> Vec<String> {
        self.tell(Command::Resume(Resume { instrument }))
    }
}

/// An event as a sentence.
pub(crate) fn words(event: &Event<'_>) -> String {
    match *event {
        Event::OrderAccepted(OrderAccepted { order, .. }) => format!("{order} accepted"),
        Event::Trade(Trade { quantity, price, taker, taker_left, maker, maker_left, .. }) => {
            format!("{taker} takes {quantity} of {maker} at {price}, left {taker_left} and {maker_left}")
        }
        Event::OrderModified(OrderModified { order, price, quantity }) => {
            format!("{order} is {quantity} at {price}")
        }
        Event::OrderCanceled(OrderCanceled { order, reason, quantity }) => {
            format!("{order} canceled {quantity}: {reason:?}")
        }
        Event::CommandRefused(CommandRefused { refusal, .. }) => format!("refused: {refusal:?}"),
        Event::PhaseChanged(PhaseChanged { time, phase }) => {
            format!("{phase:?} at {}h", time / HOUR).to_lowercase()
        }
        Event::Settled(Settled { instrument, reference }) => format!("{instrument} settled at {reference}"),
        Event::Halted(halted) => format!("{} halted: {}", halted.instrument, halted.reason),
        Event::Resumed(resumed) => format!("{} resumed", resumed.instrument),
    }
}
