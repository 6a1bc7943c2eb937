//! Changes one event of a session behind its back, and makes its checksum right again: what no checksum shows, a replay does.
//! Done twice, it is as it was.
//!
//! ```sh
//! cargo run --release -- exchange run ./session
//! cargo run --release -p strandline-cli --example tamper -- ./session 1234
//! cargo run --release -- replay-check ./session
//! ```

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use strandline::session::EVENTS;
use strandline::{JournalName, OfflineStep, Pryj, ReadUpTo, Report, ScanOptions, Seq, inspect};

/// Flip the lowest bit of an event's last byte, and mend the checksum
#[derive(Parser)]
struct Flags {
    /// The session's directory
    directory: PathBuf,
    /// The event's number
    seq: u64,
}

fn main() -> ExitCode {
    match tamper(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tamper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn tamper(flags: &Flags) -> Result<(), Box<dyn std::error::Error>> {
    let seq = Seq::new(flags.seq);
    let found = inspect::<Pryj>(&flags.directory, &JournalName::parse(EVENTS)?, ScanOptions::default())?;
    let mut reader = found.reader(seq, ReadUpTo::Written);
    let OfflineStep::Records(batch) = reader.next_batch()? else {
        return Err(missing(&found.report).into());
    };
    let event = batch.records().next().ok_or_else(|| missing(&found.report))?.payload.to_vec();

    // A record is its length, its number, its payload, and CRC-32C over all of these; integers are little-endian.
    let mut record = Vec::new();
    record.extend(u32::try_from(event.len())?.to_le_bytes());
    record.extend(seq.get().to_le_bytes());
    record.extend(event);
    for entry in fs::read_dir(&flags.directory)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with("events-") {
            continue;
        }
        let path = entry.path();
        let mut file = fs::read(&path)?;
        let Some(at) = file.windows(record.len()).position(|window| *window == *record) else { continue };
        let last = record.last_mut().ok_or("an event is never empty here")?;
        *last ^= 1;
        let checksum = crc32c::crc32c(&record).to_le_bytes();
        let changed = [&record[..], &checksum].concat();
        file[at..at + changed.len()].copy_from_slice(&changed);
        fs::write(&path, file)?;
        println!("changed event {seq} at byte {at} of {}", path.display());
        return Ok(());
    }
    Err("the event is in no file".into())
}

fn missing(report: &Report) -> String {
    format!("there is no such event: the first is {}, and {} comes next", report.first, report.end)
}
