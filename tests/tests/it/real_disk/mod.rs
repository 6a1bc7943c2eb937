//! The journal on the file system at hand: killed, out of space, and looked at call by call.
//!
//! `tests/deep/run.sh` runs the same with more rounds, and on small file systems that are really full.

mod full_disk;
mod kills;
#[path = "../../../writer/payload.rs"]
mod payload;
mod system_calls;
mod trace;
mod writer;
