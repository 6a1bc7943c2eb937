//! Sessions on a real disk, and the records in them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use strandline::session::{EVENTS, EventDigest, FIRST_EVENT, Session, SessionSettings};
use strandline::{Config, Directory, ReadStep, ReadUpTo, config};
use strandline_core::{Engine, Events, Pryj, Seq};
use strandline_sim::exchange::{Exchange, Workload};
use tempfile::TempDir;

pub(crate) fn session_in(path: &Path) -> Session<Exchange> {
    let directory = Directory::open(path).unwrap();
    let settings = SessionSettings::default();
    Session::open_or_create(&directory, &Workload::setup().to_bytes(), settings).unwrap().0
}

/// Runs a workload in a directory; gives how many commands were answered.
pub(crate) fn trade(workload: Workload, path: &Path) -> u64 {
    let session = session_in(path);
    let answered = AtomicU64::new(0);
    workload.run(&session, |_| _ = answered.fetch_add(1, Ordering::Relaxed)).unwrap();
    session.close().unwrap();
    answered.into_inner()
}

pub(crate) fn records(path: &Path, name: &str) -> Vec<Vec<u8>> {
    let (journal, report) = Directory::open(path).unwrap().journal::<Pryj>(name, config()).unwrap();
    let mut reader = journal.reader(report.first, ReadUpTo::Durable);
    let mut records = Vec::new();
    while let ReadStep::Records(batch) = reader.next_batch(Some(Duration::ZERO)).unwrap() {
        records.extend(batch.records().map(|record| record.payload.to_vec()));
    }
    records
}

pub(crate) fn digest(events: &[Vec<u8>]) -> [u8; 32] {
    let mut digest = EventDigest::default();
    for (seq, event) in (1..).zip(events) {
        digest.update(Seq::new(seq), event);
    }
    digest.finish()
}

/// A copy of a session in which one journal has these records. All frames are right.
pub(crate) fn with_records(session: &Path, name: &str, records: &[Vec<u8>]) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(session).unwrap().map(Result::unwrap) {
        if !entry.file_name().to_string_lossy().starts_with(name) {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
    }
    let first = if name == EVENTS { FIRST_EVENT } else { Seq::ZERO };
    let settings = Config { first_seq: Some(first), ..config() };
    let (journal, _) = Directory::open(copy.path()).unwrap().journal::<Pryj>(name, settings).unwrap();
    journal.append_all(records.iter().map(Vec::as_slice)).unwrap();
    journal.close().unwrap();
    copy
}

/// The events that these commands cause.
pub(crate) fn replayed(setup: &[u8], commands: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut engine = Exchange::start(setup).unwrap();
    let (mut events, mut all) = (Events::default(), Vec::new());
    for (seq, command) in (1..).zip(commands) {
        events.clear();
        engine.apply(Seq::new(seq), command, &mut events);
        all.extend(events.iter().map(<[u8]>::to_vec));
    }
    all
}
