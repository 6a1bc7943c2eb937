//! What the exchange is told. Time comes in a command too.

use bytes::BufMut;
use strandline_core::sbe::{SbeError, Template};

use super::code::{OrderKind, Side, TimeInForce};
use super::codec::{Field, MessageLayout, SCHEMA, messages, put_text};

messages! {
    /// A command: the payload of a record of the journal `input`.
    ///
    /// ```
    /// use strandline_sim::exchange::{Command, Tick};
    ///
    /// let bytes = Command::Tick(Tick { time: 5 }).to_bytes();
    /// assert_eq!(bytes, b"\x08\0\x0b\0\x8e\x1c\0\0\x05\0\0\0\0\0\0\0");
    /// assert_eq!(Command::decode(&bytes), Ok(Command::Tick(Tick { time: 5 })));
    /// ```
    pub enum Command {
        /// The clock went on.
        Tick = 11 {
            /// Nanoseconds since 1970, UTC.
            time: u64,
        }
        /// Somebody wants to trade.
        PlaceOrder<'a> = 12 {
            /// The instrument's number.
            instrument: u32,
            /// Whether it buys or sells.
            side: Side,
            /// Whether its price is a limit.
            kind: OrderKind,
            /// How long it stands.
            time_in_force: TimeInForce,
            /// The worst price it takes; 0 for a market order.
            price: i64,
            /// How much.
            quantity: u64;
            /// Whose order it is.
            trader: &'a str,
            /// What the trader calls it.
            reference: &'a str,
        }
        /// Somebody wants an order back.
        CancelOrder<'a> = 13 {
            /// The order's number.
            order: u64;
            /// Whose order it is.
            trader: &'a str,
        }
        /// Somebody wants another price, or another quantity. Less of it at the same price keeps its place.
        ModifyOrder<'a> = 14 {
            /// The order's number.
            order: u64,
            /// The new price.
            price: i64,
            /// How much shall stand, beside what was traded.
            quantity: u64;
            /// Whose order it is.
            trader: &'a str,
        }
        /// Operations stop the trading of an instrument.
        Halt<'a> = 15 {
            /// The instrument's number.
            instrument: u32;
            /// Why.
            reason: &'a str,
        }
        /// Operations allow the trading of an instrument again.
        Resume = 16 {
            /// The instrument's number.
            instrument: u32,
        }
    }
}
