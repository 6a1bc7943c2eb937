//! The reference exchange: its trading, its messages, its sessions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod determinism; // What the events of a session depend on.
mod floor; // An exchange to talk to, and what it says in words.
mod model; // The same exchange written without a thought for speed.
mod recorded; // Sessions on a real disk, and the records in them.
mod sessions; // The workload on a real disk: what happens in it, and that it can be replayed.
mod trading; // Who trades with whom at which price, and who is refused.
