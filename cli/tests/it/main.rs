//! The program as people run it: the built binary, in directories of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crash; // A kill at any moment loses no number that was printed.
mod damage; // Damaged and foreign files: what is printed, what is said, and that nothing changes.
mod demo; // The demo: what it tells was so, and nothing of it stays.
mod exchange; // Sessions of the reference exchange: one history, whoever replays it.
mod hostile; // A server under attack stays small, and serves others.
mod http; // A bus over HTTP: served, killed, followed and published to.
mod input; // Bad input of every kind ends in one clear message, and harms nothing.
mod old_files; // Files of format version 1, made by hand.
mod places; // Which journal or file is meant, and what stands in the way.
mod processes; // A writer and its readers, each in a process of its own.
mod program; // Running the binary.
mod replay; // What was missed comes, or a gap in its place.
mod round_trip; // What is recorded is read back byte for byte.
mod subscribers; // Who follows a bus, skipping on behalf of one, and dropping what is old.
