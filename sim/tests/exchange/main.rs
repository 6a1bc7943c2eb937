//! The reference exchange: its trading, its messages, its sessions.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod determinism; // What the events of a session depend on.
mod floor; // An exchange to talk to, and what it says in words.
mod golden; // Bytes made by hand, and the messages that they are.
mod material; // What messages are made of: any numbers, any texts.
mod model; // The same exchange written without a thought for speed.
mod recorded; // Sessions on a real disk, and the records in them.
mod refusals; // What is no message, and what a newer version may add.
mod round_trips; // What is written is read as it was, and the other way round.
mod samples; // One message of each kind.
mod schema; // The codec is the schema's, line by line.
mod sessions; // The workload on a real disk: what happens in it, and that it can be replayed.
mod trading; // Who trades with whom at which price, and who is refused.
