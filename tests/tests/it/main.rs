//! What spans crates, in one binary.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod corpus;
mod disk_conformance;
mod every_bit;
mod every_bit_of_a_directory;
mod exchange_codec;
mod faults;
mod long_session;
mod real_disk;
mod replay_check;
