//! The reference exchange: a deterministic engine of the kind that sessions are made for.

mod book;
mod code;
mod codec;
mod command;
mod engine;
mod event;
mod market;
mod setup;
mod workload;

pub use code::{CancelReason, OrderKind, Phase, Refusal, Side, TimeInForce};
pub use codec::{FieldLayout, MessageLayout, SCHEMA};
pub use command::{CancelOrder, Command, Halt, ModifyOrder, PlaceOrder, Resume, Tick};
pub use engine::Exchange;
pub use event::{
    CommandRefused, Event, Halted, OrderAccepted, OrderCanceled, OrderModified, PhaseChanged, Resumed,
    Settled, Trade,
};
pub use setup::{DAY_SECONDS, ExchangeSetup, Instrument, SetupError};
pub use workload::{Workload, WorkloadError};
