//! The workloads, on the journal.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use strandline::{Directory, Journal, OfflineStep, config, inspect};
use strandline_core::{Config, JournalName, Pryj, ReadUpTo, ScanOptions, Seq, SyncPolicy};

use crate::Figures;
use crate::raw;

const RECORD: [u8; 256] = [0x5a; 256];
pub(crate) const BATCH: usize = 1_000;
pub(crate) const THREADS: usize = 16;
pub(crate) const NAME: &str = "bench";

/// How much each workload does in a round.
pub(crate) struct Sizes {
    pub(crate) appends: usize,
    pub(crate) batches: usize,
    bulk_bytes: usize,
    journal_bytes: usize,
    pub(crate) seeks: usize,
}

impl Sizes {
    pub(crate) const FULL: Self =
        Self { appends: 8_000, batches: 100, bulk_bytes: 512 << 20, journal_bytes: 1 << 30, seeks: 200_000 };
    pub(crate) const QUICK: Self =
        Self { appends: 1_500, batches: 20, bulk_bytes: 64 << 20, journal_bytes: 128 << 20, seeks: 20_000 };
}

pub(crate) fn one_writer(root: &Path, sizes: &Sizes) -> Figures {
    let raw = done(raw::synced_writes(&root.join("raw"), sizes.appends, RECORD.len()));
    let ours = done(append_each(root, sizes.appends));
    Figures { ours: per_second(sizes.appends, ours), raw: per_second(sizes.appends, raw) }
}

pub(crate) fn sixteen_writers(root: &Path, sizes: &Sizes) -> Figures {
    let one = done(append_each(root, sizes.appends));
    let count = sizes.appends * 4;
    let many = done(append_in_threads(root, count / THREADS));
    Figures { ours: per_second(count, many), raw: per_second(sizes.appends, one) }
}

pub(crate) fn batches(root: &Path, sizes: &Sizes) -> Figures {
    batches_with(root, sizes, config())
}

/// The same where zeros are made in steps, as in a reopened segment.
pub(crate) fn batches_in_steps(root: &Path, sizes: &Sizes) -> Figures {
    batches_with(root, sizes, Config { reserve_bytes: 4 << 20, ..config() })
}

fn batches_with(root: &Path, sizes: &Sizes, config: Config) -> Figures {
    let count = sizes.batches * BATCH;
    let raw = done(raw::synced_writes(&root.join("raw"), sizes.batches, BATCH * RECORD.len()));
    let ours = done(append_batches(root, sizes.batches, config));
    Figures { ours: per_second(count, ours), raw: per_second(count, raw) }
}

pub(crate) fn bulk(root: &Path, sizes: &Sizes) -> Figures {
    let raw = done(raw::bulk_write(&root.join("raw"), sizes.bulk_bytes));
    let path = root.join("journal");
    let ours = done(load(&path, sizes.bulk_bytes));
    done(fs::remove_dir_all(path));
    let bytes = sizes.bulk_bytes / 1_000_000;
    Figures { ours: per_second(bytes, ours), raw: per_second(bytes, raw) }
}

pub(crate) fn open_after_crash(root: &Path, sizes: &Sizes) -> Figures {
    let path = prepared(root, sizes.journal_bytes);
    done(tear(&path));
    let (bytes, raw) = done(raw::read_files(&path));
    let start = Instant::now();
    let opened = done(open(&path, config()));
    let ours = start.elapsed();
    done(opened.close());
    let megabytes = megabytes(bytes);
    Figures { ours: per_second(megabytes, ours), raw: per_second(megabytes, raw) }
}

pub(crate) fn open_small(root: &Path, _: &Sizes) -> Figures {
    const OPENS: usize = 20;
    let path = root.join("small");
    done(load(&path, 10 << 20));
    let mut spent = Duration::ZERO;
    for _ in 0..OPENS {
        let start = Instant::now();
        let journal = done(open(&path, config()));
        spent += start.elapsed();
        done(journal.close());
    }
    let (_, raw) = done(raw::read_files(&path));
    done(fs::remove_dir_all(path));
    Figures { ours: per_second(OPENS, spent), raw: per_second(1, raw) }
}

pub(crate) fn read_back(root: &Path, sizes: &Sizes) -> Figures {
    let path = prepared(root, sizes.journal_bytes);
    let name = done(JournalName::parse(NAME));
    let inspection = done(inspect::<Pryj>(&path, &name, ScanOptions::default()));
    let (bytes, raw) = done(raw::read_files(&path));
    let start = Instant::now();
    let mut reader = inspection.reader(Seq::ZERO, ReadUpTo::Written);
    let mut records = 0;
    while let OfflineStep::Records(batch) = done(reader.next_batch()) {
        records += batch.records().filter(|record| record.payload.len() == RECORD.len()).count() as u64;
    }
    let ours = start.elapsed();
    assert_eq!(records, inspection.report.end.get(), "every record was read");
    let megabytes = megabytes(bytes);
    Figures { ours: per_second(megabytes, ours), raw: per_second(megabytes, raw) }
}

fn append_each(root: &Path, count: usize) -> Result<Duration, Box<dyn Error>> {
    let path = root.join("journal");
    let journal = open(&path, config())?;
    let start = Instant::now();
    for _ in 0..count {
        journal.append(&RECORD)?;
    }
    let elapsed = start.elapsed();
    journal.close()?;
    fs::remove_dir_all(path)?;
    Ok(elapsed)
}

pub(crate) fn append_in_threads(root: &Path, each: usize) -> Result<Duration, Box<dyn Error>> {
    let path = root.join("journal");
    let journal = open(&path, config())?;
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let journal = journal.clone();
            scope.spawn(move || {
                for _ in 0..each {
                    done(journal.append(&RECORD));
                }
            });
        }
    });
    let elapsed = start.elapsed();
    journal.close()?;
    fs::remove_dir_all(path)?;
    Ok(elapsed)
}

fn append_batches(root: &Path, batches: usize, config: Config) -> Result<Duration, Box<dyn Error>> {
    let path = root.join("journal");
    let journal = open(&path, config)?;
    let start = Instant::now();
    for _ in 0..batches {
        journal.append_all(std::iter::repeat_n(&RECORD[..], BATCH))?;
    }
    let elapsed = start.elapsed();
    journal.close()?;
    fs::remove_dir_all(path)?;
    Ok(elapsed)
}

/// Appends about so many bytes, with one sync at the end, and closes.
fn load(path: &Path, bytes: usize) -> Result<Duration, Box<dyn Error>> {
    let config = Config { sync: SyncPolicy::Never, reserve_bytes: 0, ..config() };
    let journal = open(path, config)?;
    let start = Instant::now();
    journal.append_all(std::iter::repeat_n(&RECORD[..], bytes / RECORD.len()))?;
    journal.flush()?;
    let elapsed = start.elapsed();
    journal.close()?;
    Ok(elapsed)
}

/// A journal for reading, made once.
fn prepared(root: &Path, bytes: usize) -> std::path::PathBuf {
    let path = root.join("prepared");
    if !path.exists() {
        done(load(&path, bytes));
    }
    path
}

/// What a crash leaves: half a record behind the last one.
fn tear(path: &Path) -> std::io::Result<()> {
    let mut names =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    names.retain(|name| name.extension().is_some_and(|extension| extension == "seg"));
    names.sort();
    let Some(last) = names.last() else { return Ok(()) };
    OpenOptions::new().append(true).open(last)?.write_all(&[0x5a; 100])
}

fn open(path: &Path, config: Config) -> Result<Journal<Pryj>, Box<dyn Error>> {
    let directory = Directory::open(path)?;
    Ok(directory.journal(NAME, config)?.0)
}

#[allow(clippy::cast_precision_loss)] // far below what a double holds
pub(crate) fn per_second(count: usize, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

pub(crate) fn megabytes(bytes: u64) -> usize {
    usize::try_from(bytes / 1_000_000).unwrap_or(usize::MAX)
}

/// A benchmark that cannot run its workload has nothing to say.
pub(crate) fn done<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("the workload failed: {error}"))
}
