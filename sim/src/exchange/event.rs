//! What the exchange says.

use bytes::BufMut;
use strandline_core::sbe::{SbeError, Template};

use super::code::{CancelReason, OrderKind, Phase, Refusal, Side, TimeInForce};
use super::codec::{Field, MessageLayout, SCHEMA, messages, put_text};

messages! {
    /// An event: the payload of a record of the journal `events`.
    pub enum Event {
        /// An order is taken.
        OrderAccepted<'a> = 31 {
            /// The order's number: that of the command that placed it.
            order: u64,
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
        /// Two orders met, at the price of the one that rested.
        Trade = 32 {
            /// The trade's number, from 1.
            trade: u64,
            /// Nanoseconds since 1970, UTC: of the clock's last command.
            time: u64,
            /// The instrument's number.
            instrument: u32,
            /// The price of the order that rested.
            price: i64,
            /// How much.
            quantity: u64,
            /// Whether the order that came buys or sells.
            taker_side: Side,
            /// The order that came.
            taker: u64,
            /// What it still wants.
            taker_left: u64,
            /// The order that rested.
            maker: u64,
            /// What it still wants.
            maker_left: u64,
        }
        /// An order has another price or quantity.
        OrderModified = 33 {
            /// The order's number.
            order: u64,
            /// Its price.
            price: i64,
            /// How much it wants.
            quantity: u64,
        }
        /// An order stands no longer, though it wanted more.
        OrderCanceled = 34 {
            /// The order's number.
            order: u64,
            /// Why.
            reason: CancelReason,
            /// What it still wanted.
            quantity: u64,
        }
        /// A command was refused, and changed nothing.
        CommandRefused<'a> = 35 {
            /// The command's message id, 0 if it was not readable.
            command: u16,
            /// Why.
            refusal: Refusal,
            /// The order that it was about, 0 if there was none.
            order: u64;
            /// Who gave it.
            trader: &'a str,
            /// What the trader calls the order.
            reference: &'a str,
        }
        /// The market opened or closed.
        PhaseChanged = 36 {
            /// Nanoseconds since 1970, UTC.
            time: u64,
            /// What it is now.
            phase: Phase,
        }
        /// A day's last price: the next band is around it.
        Settled = 37 {
            /// The instrument's number.
            instrument: u32,
            /// The price.
            reference: i64,
        }
        /// An instrument's trading was stopped.
        Halted<'a> = 38 {
            /// The instrument's number.
            instrument: u32;
            /// Why.
            reason: &'a str,
        }
        /// An instrument's trading was allowed again.
        Resumed = 39 {
            /// The instrument's number.
            instrument: u32,
        }
    }
}
