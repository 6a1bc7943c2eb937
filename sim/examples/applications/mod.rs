//! One application over two kinds of log: it appends a few events, and promises each one that it has appended.

#![allow(dead_code, unreachable_pub, reason = "each example uses one of the two, and the tests both")]

use strandline::{Access, Directory, Disk, Pryj, ReadStep, ReadUpTo, Seq, config};
use strandline_sim::disk::SimDisk;
use strandline_sim::{Application, Promises};

/// Small sectors, so that few events have many edges.
pub const SECTOR_BYTES: usize = 64;

/// How many events are appended.
const EVENTS: u64 = 6;

/// Appends lines to a file and syncs it after each one, as one does. Yet nothing makes the file's name durable.
pub struct JsonLines;

impl Application for JsonLines {
    type Promise = String;

    fn run(&self, disk: SimDisk, promises: &mut Promises<String>) {
        let file = disk.create("events.jsonl").expect("an empty disk");
        let mut end = 0;
        for event in events() {
            let line = format!("{event}\n");
            end += disk.write_at(&file, end, line.as_bytes()).expect("a disk without faults") as u64;
            disk.sync(&file).expect("a disk without faults");
            promises.promise(event);
        }
    }

    fn check(&self, disk: SimDisk, promised: &[String]) -> Result<(), String> {
        let Ok(file) = disk.open("events.jsonl", Access::Read) else { return same(&[], promised) };
        let mut bytes = vec![0; 4096];
        let len = disk.read_at(&file, 0, &mut bytes).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(bytes.get(..len).unwrap_or_default()).into_owned();
        let whole = text.lines().take_while(|line| line.starts_with('{') && line.ends_with('}'));
        same(&whole.map(str::to_owned).collect::<Vec<_>>(), promised)
    }
}

/// The same over a journal.
pub struct StrandlineLog;

impl Application for StrandlineLog {
    type Promise = String;

    fn run(&self, disk: SimDisk, promises: &mut Promises<String>) {
        let (journal, _) = Directory::on(disk).journal::<Pryj>("events", small()).expect("an empty disk");
        for event in events() {
            journal.append(event.as_bytes()).expect("a disk without faults");
            promises.promise(event);
        }
        journal.close().expect("a disk without faults");
    }

    fn check(&self, disk: SimDisk, promised: &[String]) -> Result<(), String> {
        let opened = Directory::on(disk).journal::<Pryj>("events", small());
        let (journal, _) = opened.map_err(|error| error.to_string())?;
        journal.close().map_err(|error| error.to_string())?;
        let mut reader = journal.reader(Seq::ZERO, ReadUpTo::Durable);
        let mut read = Vec::new();
        while let ReadStep::Records(batch) = reader.next_batch(None).map_err(|error| error.to_string())? {
            read.extend(batch.records().map(|record| String::from_utf8_lossy(record.payload).into_owned()));
        }
        same(&read, promised)
    }
}

/// A journal whose segments hold two events, on a disk with small sectors.
fn small() -> strandline::Config {
    let mut config = config();
    config.segment_bytes = 256;
    config.reserve_bytes = 128;
    config.block_bytes = SECTOR_BYTES as u64;
    config
}

fn events() -> impl Iterator<Item = String> {
    (0..EVENTS).map(|number| format!(r#"{{"event":{number},"text":"the tide is {number} metres high"}}"#))
}

/// Everything that was promised is there; what follows is what was to come next.
fn same(read: &[String], promised: &[String]) -> Result<(), String> {
    let expected: Vec<String> = events().collect();
    if read.len() < promised.len() {
        return Err(format!("{} events were promised, {} are there", promised.len(), read.len()));
    }
    if expected.get(..read.len()) != Some(read) {
        return Err(format!("the events are {read:?}"));
    }
    Ok(())
}
