//! The event bus.

mod model;
mod replay;
mod retention;
mod town;
