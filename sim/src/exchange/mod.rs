//! The reference exchange: an engine of the kind that sessions are made for, to read before writing one.
//!
//! | where | what |
//! |---|---|
//! | `sim/schema/exchange.xml` | every message, in Simple Binary Encoding; enum values and message ids are numbered there |
//! | `codec.rs` | how a message is declared once, so that its type, encoder, decoder and layout follow; a test holds the layout against the schema |
//! | `code.rs`, `command.rs`, `event.rs`, `setup.rs` | the messages |
//! | `engine.rs` | commands in, events out: the [`Exchange`] |
//! | `market.rs`, `book.rs` | one instrument: its rules, and its orders in price-time priority |
//! | `workload/` | traders and a clock that submit commands from many threads |
//!
//! What makes it deterministic, and what to copy:
//!
//! - The clock is a command ([`Tick`]); the hours at which the market opens are in the [setup](ExchangeSetup), the first record
//!   of the session. Nothing is read from the machine.
//! - Prices, quantities and times are integers. Maps are ordered; an order's number is that of the command that placed it.
//! - A command that makes no sense is an event that says so by a code ([`Refusal`]), and changes nothing.
//!
//! ```
//! use strandline::session::{Session, SessionSettings, replay_check};
//! use strandline::Directory;
//! use strandline_sim::exchange::{Command, Event, Exchange, Tick, Workload};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! let directory = Directory::open(root.path())?;
//! let setup = Workload::setup();
//! let session = Session::<Exchange>::create_new(&directory, &setup.to_bytes(), SessionSettings::default())?;
//! let an_hour_later = Command::Tick(Tick { time: setup.time + 3_600_000_000_000 });
//! let answer = session.submit(&an_hour_later.to_bytes())?.wait()?;
//! let opened = Event::decode(answer.events.get(0).ok_or("no event")?)?;
//! assert!(matches!(opened, Event::PhaseChanged(_)));
//! session.close()?;
//! assert_eq!(replay_check::<Exchange>(root.path(), |_, _| {})?.events, 1);
//! # Ok(())
//! # }
//! ```

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
