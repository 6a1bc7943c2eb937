//! stub
pub mod disk;
mod failure;
mod std_disk;
pub use failure::io_failure;
pub use std_disk::StdDisk;
