//! What the disk itself can do, without a journal.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const CHUNK: usize = 1024 * 1024;
const READ_BUFFER: usize = 256 * 1024;

/// Writes and syncs `count` blocks of `len` bytes, one after the other, into a file of zeros. Filling it is not
/// counted.
pub(crate) fn synced_writes(path: &Path, count: usize, len: usize) -> io::Result<Duration> {
    let file = zero_filled(path, count * len)?;
    let block = vec![0x5a; len];
    let start = Instant::now();
    for n in 0..count {
        file.write_all_at(&block, (n * len) as u64)?;
        file.sync_data()?;
    }
    let elapsed = start.elapsed();
    std::fs::remove_file(path)?;
    Ok(elapsed)
}

/// Writes `bytes` in large pieces to a file that grows, and syncs once.
pub(crate) fn bulk_write(path: &Path, bytes: usize) -> io::Result<Duration> {
    let block = vec![0x5a; CHUNK];
    let start = Instant::now();
    let mut file = File::create(path)?;
    for _ in 0..bytes.div_ceil(CHUNK) {
        file.write_all(&block)?;
    }
    file.sync_data()?;
    let elapsed = start.elapsed();
    std::fs::remove_file(path)?;
    Ok(elapsed)
}

/// Reads every file of a directory from end to end; gives the bytes too.
pub(crate) fn read_files(directory: &Path) -> io::Result<(u64, Duration)> {
    let mut buffer = vec![0; READ_BUFFER];
    let mut bytes = 0;
    let start = Instant::now();
    for entry in std::fs::read_dir(directory)? {
        let mut file = File::open(entry?.path())?;
        loop {
            let n = file.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            bytes += n as u64;
        }
    }
    Ok((bytes, start.elapsed()))
}

/// Reads `count` pieces of `len` bytes, each from another place of a file.
pub(crate) fn small_reads(path: &Path, count: usize, len: usize) -> io::Result<Duration> {
    let file = File::open(path)?;
    let places = (file.metadata()?.len() / len as u64).max(1);
    let mut piece = vec![0; len];
    let start = Instant::now();
    for n in 0..count as u64 {
        file.read_exact_at(&mut piece, (n * 7_919 % places) * len as u64)?;
    }
    Ok(start.elapsed())
}

fn zero_filled(path: &Path, bytes: usize) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    let zeros = vec![0; CHUNK];
    for _ in 0..bytes.div_ceil(CHUNK) {
        file.write_all(&zeros)?;
    }
    file.sync_all()?;
    Ok(file)
}
