//! The core, driven in memory: no file, no thread, no clock.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod arbitrary_bytes;
mod bus;
mod commit;
mod damage;
mod events;
mod evidence;
mod failure;
mod framing;
mod golden;
mod marks;
mod opening;
mod reading;
mod reserve;
mod retention;
mod room;
mod rotation;
mod round_trip;
mod scanning;
mod session;
mod state;
mod waiting;
mod world;
