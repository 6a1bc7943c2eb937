//! The event bus.

mod replay;
mod retention;
mod town;
