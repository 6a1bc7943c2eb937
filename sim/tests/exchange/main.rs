//! The reference exchange: its messages against their schema, and against bytes made by hand.

mod golden;
mod material;
mod refusals;
mod round_trips;
mod samples;
mod schema;
