//! Progress on standard error, for people: only where it is a terminal, and only when the work takes long.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use strandline::{Disk, DiskLayer, StdDisk};

/// Work that ends sooner needs no bar.
const LONG: Duration = Duration::from_millis(700);

/// Counts things done, of which the number is not known before.
pub(crate) struct Counter {
    bar: LateBar,
}

impl Counter {
    /// It is shown only if it is `wanted`, where nothing else is printed in between.
    pub(crate) fn new(things: &'static str, wanted: bool) -> Self {
        let bar = LateBar::new("{spinner} {human_pos} {msg}, {elapsed}", things, wanted);
        Self { bar }
    }

    pub(crate) fn add(&self, n: u64) {
        self.bar.add(n);
    }

    pub(crate) fn finish(&self) {
        self.bar.bar.finish_and_clear();
    }
}

/// Shows how far work of a known length is.
pub(crate) struct Steps {
    bar: LateBar,
}

impl Steps {
    pub(crate) fn new(template: &str, things: &'static str) -> Self {
        Self { bar: LateBar::new(template, things, true) }
    }

    /// So many are done, of so many.
    pub(crate) fn at(&self, done: u64, of: u64) {
        self.bar.bar.set_length(of);
        self.bar.add(done.saturating_sub(self.bar.bar.position()));
    }

    /// One more is done, of so many.
    pub(crate) fn one_of(&self, of: u64) {
        self.bar.bar.set_length(of);
        self.bar.add(1);
    }

    pub(crate) fn finish(&self) {
        self.bar.bar.finish_and_clear();
    }
}

/// A bar that shows itself once the work has taken long.
#[derive(Debug)]
struct LateBar {
    bar: ProgressBar,
    started: Instant,
    wanted: bool,
}

impl LateBar {
    fn new(template: &str, message: &'static str, wanted: bool) -> Self {
        let bar = ProgressBar::hidden();
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(message);
        Self { bar, started: Instant::now(), wanted: wanted && io::stderr().is_terminal() }
    }

    fn add(&self, n: u64) {
        if !self.wanted {
            return;
        }
        if self.bar.is_hidden() && self.started.elapsed() >= LONG {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(n);
    }
}

/// A directory whose reads move a bar while a scan is under way.
#[derive(Debug)]
pub(crate) struct WatchedDisk {
    disk: StdDisk,
    bar: LateBar,
    scanning: AtomicBool,
}

impl WatchedDisk {
    pub(crate) fn new(disk: StdDisk) -> Self {
        let template = "{msg} {bar:30} {bytes} of {total_bytes} ({bytes_per_sec}, {eta} left)";
        let bar = LateBar::new(template, "verifying", true);
        Self { disk, bar, scanning: AtomicBool::new(false) }
    }

    /// A scan of this many bytes begins.
    pub(crate) fn begin(&self, bytes: u64) {
        self.bar.bar.reset();
        self.bar.bar.set_length(bytes);
        self.scanning.store(true, Ordering::Relaxed);
    }

    /// The scan is over.
    pub(crate) fn end(&self) {
        self.scanning.store(false, Ordering::Relaxed);
        self.bar.bar.finish_and_clear();
    }
}

impl DiskLayer for WatchedDisk {
    type Below = StdDisk;

    fn below(&self) -> &StdDisk {
        &self.disk
    }

    fn read_at(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.disk.read_at(file, offset, buffer)?;
        if self.scanning.load(Ordering::Relaxed) {
            self.bar.add(read as u64);
        }
        Ok(read)
    }
}
