//! The bus over HTTP, as clients see it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod following; // Streams: where they begin, what they say, and how they end.
mod guarding; // Who may talk to the server, and what it does about too much.
mod publishing; // What is taken, what is refused and why, and each event once.
mod server; // A server of a test's own, and a plain client.
mod standing; // What a server says of how it is: whether it is ready, and what it counts.
