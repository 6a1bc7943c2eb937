//! How close the journal comes to what the disk can do, and what the event bus adds to it.
//!
//! Each workload runs beside its raw limit in the same round, the two in turn, and the ratio of one
//! round is what counts: absolute figures move with the machine and its neighbours. Medians of five rounds.
//!
//! `cargo bench -p strandline`, or `cargo bench -p strandline -- --quick` for smaller sizes; `-- B2` for one workload.

mod bus;
mod events;
mod raw;
mod sessions;
mod workloads;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tempfile::TempDir;
use workloads::Sizes;

const ROUNDS: usize = 5;

/// One workload and its raw limit, each as a figure of the same unit where more is better.
struct Workload {
    name: &'static str,
    unit: &'static str,
    aim: Aim,
    run: fn(&Path, &Sizes) -> Figures,
}

/// The least to aim for.
enum Aim {
    /// Of the raw limit of the same round.
    Ratio(f64),
    /// In the workload's unit.
    Figure(f64),
}

/// What one round measured.
struct Figures {
    ours: f64,
    raw: f64,
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "W1 one writer, each append durable; raw: pwrite + fdatasync, zero-filled",
        unit: "appends/s",
        aim: Aim::Ratio(0.95),
        run: workloads::one_writer,
    },
    Workload {
        name: "W2 16 threads, each append durable; beside W1 of the same round",
        unit: "appends/s",
        aim: Aim::Ratio(6.0),
        run: workloads::sixteen_writers,
    },
    Workload {
        name: "W3 1,000 records, then one sync; raw: one write, zero-filled",
        unit: "records/s",
        aim: Aim::Ratio(0.9),
        run: workloads::batches,
    },
    Workload {
        name: "W3 the same, zeros in steps of 4 MiB",
        unit: "records/s",
        aim: Aim::Ratio(0.9),
        run: workloads::batches_in_steps,
    },
    Workload {
        name: "W4 bulk, one sync at the end; raw: 1 MiB writes, growing file",
        unit: "MB/s",
        aim: Aim::Ratio(0.9),
        run: workloads::bulk,
    },
    Workload {
        name: "W5 open after a crash, all verified; raw: read()",
        unit: "MB/s",
        aim: Aim::Figure(2_000.0),
        run: workloads::open_after_crash,
    },
    Workload {
        name: "W5 opens of a 10 MiB journal; raw: read()",
        unit: "opens/s",
        aim: Aim::Figure(100.0),
        run: workloads::open_small,
    },
    Workload {
        name: "W6 sequential read-back, verified; raw: read()",
        unit: "MB/s",
        aim: Aim::Figure(2_800.0),
        run: workloads::read_back,
    },
    Workload {
        name: "B1 open 50 MiB of events after a clean close, indexed; raw: read()",
        unit: "MB/s",
        aim: Aim::Figure(1_500.0),
        run: events::open_after_close,
    },
    Workload {
        name: "B1 the same after a crash",
        unit: "MB/s",
        aim: Aim::Figure(1_500.0),
        run: events::open_after_crash,
    },
    Workload {
        name: "B2 next event of a frequent source among 250,000; raw: pread of one event",
        unit: "seeks/s",
        aim: SEEK,
        run: |root, sizes| events::seeks(root, sizes, events::FREQUENT),
    },
    Workload {
        name: "B2 of a rare source",
        unit: "seeks/s",
        aim: SEEK,
        run: |root, sizes| events::seeks(root, sizes, events::RARE),
    },
    Workload {
        name: "B2 of a source that never occurs",
        unit: "seeks/s",
        aim: SEEK,
        run: |root, sizes| events::seeks(root, sizes, events::ABSENT),
    },
    Workload {
        name: "B3 a subscriber to a frequent source comes, up to its first read; raw: pread of one event",
        unit: "replays/s",
        aim: SEEK,
        run: |root, sizes| events::replays(root, sizes, events::FREQUENT),
    },
    Workload {
        name: "B3 to a rare source",
        unit: "replays/s",
        aim: SEEK,
        run: |root, sizes| events::replays(root, sizes, events::RARE),
    },
    Workload {
        name: "B3 to a source that never occurs",
        unit: "replays/s",
        aim: SEEK,
        run: |root, sizes| events::replays(root, sizes, events::ABSENT),
    },
    Workload {
        name: "B4 one publisher, each event durable; beside appends to a plain journal",
        unit: "events/s",
        aim: Aim::Ratio(0.95),
        run: bus::publish,
    },
    Workload {
        name: "B4 the same, a live durable subscriber acknowledging",
        unit: "events/s",
        aim: Aim::Ratio(0.8),
        run: bus::publish_to_subscriber,
    },
    Workload {
        name: "B5 1,000 events, then one sync, delivered live; beside the same in a plain journal",
        unit: "events/s",
        aim: Aim::Ratio(0.8),
        run: bus::deliver_live,
    },
    Workload {
        name: "B6 replay of every event, verified; raw: read()",
        unit: "events/s",
        aim: Aim::Figure(5_000_000.0),
        run: bus::deliver_replay,
    },
    Workload {
        name: "S1 a session, 4 producers with 64 commands in flight each; beside 16 threads on a plain journal",
        unit: "answers/s",
        aim: Aim::Ratio(0.5),
        run: sessions::answers,
    },
    Workload {
        name: "S2 replay check, every event compared and digested; raw: read()",
        unit: "MB/s",
        aim: Aim::Figure(900.0),
        run: sessions::checked,
    },
];

/// 20 microseconds for one.
const SEEK: Aim = Aim::Figure(50_000.0);

fn main() -> ExitCode {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let only = std::env::args().nth(1).filter(|argument| argument.starts_with(['B', 'S', 'W']));
    let sizes = if quick { Sizes::QUICK } else { Sizes::FULL };
    let root = match scratch() {
        Ok(root) => root,
        Err(error) => {
            eprintln!("no scratch directory: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("| workload | unit | ours | raw | ratio | aim |");
    println!("|---|---|---|---|---|---|");
    for workload in WORKLOADS {
        if only.as_ref().is_some_and(|only| !workload.name.starts_with(only.as_str())) {
            continue;
        }
        let rounds: Vec<_> = (0..ROUNDS).map(|_| (workload.run)(root.path(), &sizes)).collect();
        let ours = median(rounds.iter().map(|round| round.ours));
        let raw = median(rounds.iter().map(|round| round.raw));
        let ratio = median(rounds.iter().map(|round| round.ours / round.raw));
        let Workload { name, unit, aim, .. } = workload;
        println!("| {name} | {unit} | {ours:.0} | {raw:.0} | {ratio:.2} | {aim} |");
    }
    ExitCode::SUCCESS
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio(ratio) => write!(f, "ratio {ratio:.2}"),
            Self::Figure(figure) => write!(f, "{figure:.0}"),
        }
    }
}

/// Beside the build's own output: a temporary directory may be memory, which syncs for free.
fn scratch() -> std::io::Result<TempDir> {
    let beside = std::env::current_exe()?.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    tempfile::Builder::new().prefix("strandline-limits-").tempdir_in(beside)
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<_> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
