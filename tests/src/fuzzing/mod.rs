//! The bodies of the fuzz targets: each takes any bytes, and panics where a promise does not hold.
//!
//! They are ordinary functions on stable, so that the corpus is replayed by an ordinary test. How to run them
//! under a fuzzer is in `fuzz/README.md`.

mod agreement;
mod exchange_messages;
mod frames;
mod journal_bytes;
mod journal_pieces;
mod lines;
mod operations;
mod plain;
mod plain_encode;
mod plain_journal;
mod watched_disk;
mod words;

pub use agreement::{Found, Look, look};
pub use journal_pieces::Piece;
pub use plain::Owned;
pub use watched_disk::WatchedDisk;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, of the file that starts it and of the folder of its corpus.
    pub name: &'static str,
    /// Its body.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 7] = [
    Target { name: "exchange_messages", run: exchange_messages::run },
    Target { name: "frames", run: frames::run },
    Target { name: "journal_bytes", run: journal_bytes::run },
    Target { name: "journal_pieces", run: journal_pieces::run },
    Target { name: "lines", run: lines::run },
    Target { name: "operations", run: operations::run },
    Target { name: "words", run: words::run },
];

/// Runs the body of the target of this name.
///
/// # Panics
/// If a promise does not hold for these bytes, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target has this name").run)(bytes);
}
