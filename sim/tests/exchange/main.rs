//! The reference exchange: its messages against their schema, and against bytes made by hand.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod golden;
mod material;
mod refusals;
mod round_trips;
mod samples;
mod schema;
