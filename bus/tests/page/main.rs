//! The page that shows the journal, as browsers see it. What needs one is skipped where none is installed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod browser; // Chromium, driven over a pipe.
mod files; // What is served, and that it holds to its policy.
mod live; // What the page shows of a bus that runs, and what it does to it.
mod pure; // The parts of the scripts that need no page.
mod server; // A server of a test's own.
