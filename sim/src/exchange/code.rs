//! The enums of the schema. Each value has its number there, never its place here.

use bytes::BufMut;
use strandline_core::sbe::{Fields, SbeError};

use super::codec::{Field, code};

code! {
    /// Which side of the market an order is on.
    Side {
        /// Wants to buy.
        Buy = 1,
        /// Wants to sell.
        Sell = 2,
    }
}

code! {
    /// What an order asks for.
    OrderKind {
        /// Its price or a better one.
        Limit = 1,
        /// Whatever price there is, at once.
        Market = 2,
    }
}

code! {
    /// How long an order stands.
    TimeInForce {
        /// Until the market closes.
        Day = 1,
        /// Until somebody cancels it.
        GoodTillCancel = 2,
        /// What does not trade at once is canceled.
        ImmediateOrCancel = 3,
    }
}

code! {
    /// Whether there is trading.
    Phase {
        /// Orders and changes of orders are refused; the clock, cancels, halts and their ends are taken.
        Closed = 1,
        /// Orders are taken.
        Open = 2,
    }
}

code! {
    /// Why an order stands no longer.
    CancelReason {
        /// Its trader asked for it.
        Requested = 1,
        /// It was for the day.
        Expired = 2,
        /// It was not to rest, and nothing was left to trade with.
        Unfilled = 3,
        /// Its price is outside the band of the next day.
        OutsideBand = 4,
    }
}

code! {
    /// Why a command was refused.
    Refusal {
        /// It is no command of the schema.
        Unreadable = 1,
        /// The clock does not go back.
        TimeBackwards = 2,
        /// There is no trading now.
        MarketClosed = 3,
        /// There is no such instrument.
        UnknownInstrument = 4,
        /// The instrument is halted.
        InstrumentHalted = 5,
        /// The instrument is not halted.
        NotHalted = 6,
        /// The price is too far from the reference.
        PriceOutsideBand = 7,
        /// The price is no multiple of the tick.
        PriceOffTick = 8,
        /// A market order has no price.
        PriceOfMarketOrder = 9,
        /// The quantity is zero or no multiple of the lot.
        QuantityOffLot = 10,
        /// No such order stands.
        UnknownOrder = 11,
        /// The order is somebody else's.
        ForeignOrder = 12,
    }
}

impl Side {
    /// The side that it trades with.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
}
