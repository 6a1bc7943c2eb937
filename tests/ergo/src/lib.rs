//! The messages of the reference exchange as `ergo-sbe` reads the schema. A package of its own, so that only who runs
//! the differential test builds it, and so that unsafe code is forbidden everywhere else.

#![allow(warnings, clippy::all, reason = "nobody here writes it")]

include!(concat!(env!("OUT_DIR"), "/exchange.rs"));
