//! Faults from the field: public reports about other journals, each as the smallest scenario for this one.
//!
//! A test is named after its row in `docs/faults.md`, which links the report.

mod boundaries;
mod commits;
mod cost;
mod failed_syncs;
mod formats;
mod gate;
pub(crate) mod lab;
mod lengths;
mod locks;
mod no_space;
mod readers;
mod repair;
mod rot;
mod segments;
mod subscribers;
mod torn_tails;
