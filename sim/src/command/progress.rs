//! A progress bar on standard error, for people: only where it is a terminal, and only when the work takes long.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that ends sooner needs no bar.
const LONG: Duration = Duration::from_millis(700);

/// How far a run has come. It goes away when it is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    started: Instant,
    wanted: bool,
}

impl Progress {
    /// So many things to do; shown only if it is `wanted`.
    pub(super) fn new(things: &'static str, length: u64, wanted: bool) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_length(length);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} {msg}, {elapsed}, {eta} left")
        {
            bar.set_style(style);
        }
        bar.set_message(things);
        Self { bar, started: Instant::now(), wanted: wanted && io::stderr().is_terminal() }
    }

    pub(super) fn set_length(&self, length: u64) {
        self.bar.set_length(length);
    }

    pub(super) fn set(&self, done: u64) {
        if self.wanted && self.bar.is_hidden() && self.started.elapsed() >= LONG {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(done);
    }

    /// Prints something without the bar in between.
    pub(super) fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
