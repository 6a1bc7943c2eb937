//! Reading without the writer: offline, beside it, on single files; and the backup that makes copies for it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use strandline_core::{
    Config, EventDraft, Framing, FramingKind, JournalName, Pcpj, Pryj, ReadUpTo, Refusal, ScanOptions, Seq,
    Verdict,
};

use crate::disk::{Access, Disk, Entry};
use crate::{
    BackupError, Directory, InspectError, Inspection, Journal, OfflineStep, StdDisk, Target, config, detect,
    detect_file, inspect, inspect_at_rest, inspect_file, inspect_on,
};

fn small() -> Config {
    Config { segment_bytes: 16 * 1024, reserve_bytes: 4 * 1024, idle_mark_ms: 60_000, ..config() }
}

fn name() -> JournalName {
    JournalName::parse("a").unwrap()
}

fn open(path: &Path) -> Journal<Pryj> {
    Directory::open(path).unwrap().journal("a", small()).unwrap().0
}

/// A closed journal of 100 records in several segments.
fn closed_journal(path: &Path) {
    let journal = open(path);
    for n in 0..100u64 {
        journal.append(&[&n.to_le_bytes()[..], &[7; 300]].concat()).unwrap();
    }
    journal.close().unwrap();
}

fn look<F: Framing>(path: &Path) -> Inspection<F> {
    inspect(path, &name(), ScanOptions::default()).unwrap()
}

fn count<D: Disk>(inspection: &Inspection<Pryj, D>, from: u64) -> u64 {
    let mut reader = inspection.reader(Seq::new(from), ReadUpTo::Written);
    let mut records = 0;
    loop {
        match reader.next_batch().unwrap() {
            OfflineStep::Records(batch) => records += batch.records().count() as u64,
            OfflineStep::Trimmed { .. } => {}
            OfflineStep::End => return records,
        }
    }
}

fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_closed_journal_is_sound_and_readable_from_anywhere() {
    let root = tempfile::tempdir().unwrap();
    closed_journal(root.path());
    let before = files(root.path());
    let inspection = look::<Pryj>(root.path());
    assert_eq!(inspection.report.verdict, Verdict::Sound);
    assert_eq!((inspection.report.end, inspection.report.unproven()), (Seq::new(100), 0));
    assert_eq!((count(&inspection, 0), count(&inspection, 42), count(&inspection, 100)), (100, 58, 0));
    assert_eq!(files(root.path()), before, "looking changes nothing");
    assert_eq!(detect(root.path(), &name()), Ok(Some(FramingKind::Pryj)));
}

#[test]
fn a_live_journal_is_read_beside_its_writer() {
    let root = tempfile::tempdir().unwrap();
    let journal = open(root.path());
    for _ in 0..100 {
        journal.append(&[7; 300]).unwrap();
        let inspection = look::<Pryj>(root.path());
        assert!(inspection.is_sound(), "{:?}", inspection.report.verdict);
        assert!(inspection.report.end >= journal.durable_end());
    }
    let inspection = look::<Pryj>(root.path());
    assert_eq!(
        (count(&inspection, 0), inspection.report.unproven()),
        (100, 1),
        "no mark states the last one yet"
    );
}

#[test]
fn what_is_damaged_or_missing_is_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let missing = inspect::<Pryj>(root.path(), &name(), ScanOptions::default()).err();
    assert_eq!(missing, Some(InspectError::NoJournal(name())));
    let nowhere = inspect::<Pryj>(root.path().join("none"), &name(), ScanOptions::default()).err();
    assert!(matches!(nowhere, Some(InspectError::Io { .. })), "{nowhere:?}");

    closed_journal(root.path());
    let first = root.path().join("a-00000000000000000000.seg");
    let mut bytes = fs::read(&first).unwrap();
    bytes[1_000] ^= 1;
    fs::write(&first, &bytes).unwrap();
    let inspection = look::<Pryj>(root.path());
    assert!(matches!(inspection.report.verdict, Verdict::Refused(_)), "{:?}", inspection.report.verdict);
    assert!(!inspection.is_sound());
    assert_eq!(count(&inspection, 0), inspection.report.end.get(), "what lies before the damage is readable");
    assert!(matches!(look::<Pcpj>(root.path()).report.verdict, Verdict::Refused(_)), "another framing");
}

#[test]
fn single_files_are_read_on_their_own() {
    let root = tempfile::tempdir().unwrap();
    closed_journal(root.path());
    let mut names: Vec<_> = files(root.path()).into_iter().map(|(name, _)| name).collect();
    let last = root.path().join(names.pop().unwrap());
    let inspection = inspect_file::<Pryj>(&last, ScanOptions::default()).unwrap();
    assert!(inspection.is_sound());
    assert_eq!(inspection.report.end, Seq::new(100));
    assert!(count(&inspection, 0) > 0);
    let error = inspect_file::<Pryj>(root.path(), ScanOptions::default()).err();
    assert!(matches!(error, Some(InspectError::NotAFile { .. })), "{error:?}");

    let (journal, _) = Directory::open(root.path()).unwrap().journal::<Pcpj>("events", small()).unwrap();
    let draft = EventDraft { domain: 1, event_type: "created", source: "desk", payload: b"{}" };
    journal.append(draft).unwrap();
    journal.append(draft).unwrap();
    journal.close().unwrap();
    let bare = root.path().join("event-journal.bin");
    fs::copy(root.path().join("events-00000000000000000001.seg"), &bare).unwrap();
    assert_eq!(detect_file(&bare), Ok(Some(FramingKind::Pcpj)));
    let inspection = inspect_file::<Pcpj>(&bare, ScanOptions::default()).unwrap();
    assert_eq!((inspection.is_sound(), inspection.report.end), (true, Seq::new(3)));
    let mut reader = inspection.reader(Seq::ZERO, ReadUpTo::Written);
    let Ok(OfflineStep::Records(batch)) = reader.next_batch() else { panic!("the file has records") };
    assert_eq!(batch.records().map(|event| event.event_type).collect::<Vec<_>>(), ["created", "created"]);
}

#[test]
fn a_backup_is_a_sound_journal_of_what_was_durable() {
    let root = tempfile::tempdir().unwrap();
    let journal = open(&root.path().join("live"));
    for n in 0..100u64 {
        journal.append(&[&n.to_le_bytes()[..], &[7; 300]].concat()).unwrap();
    }
    let copy = root.path().join("copies/first");
    let report = journal.backup(&copy).unwrap();
    journal.append(b"after the copy").unwrap();
    assert_eq!(report.end, Seq::new(100));
    let inspection = look::<Pryj>(&copy);
    assert_eq!(inspection.report.verdict, Verdict::Sound);
    assert_eq!((inspection.report.unproven(), count(&inspection, 0)), (0, 100));
    assert_eq!(report.bytes, files(&copy).iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    let again = journal.backup(&copy);
    assert!(matches!(again, Err(BackupError::Occupied { .. })), "{again:?}");
    let (copy, report) = Directory::open(&copy).unwrap().journal::<Pryj>("a", small()).unwrap();
    assert_eq!((report.verdict, copy.append(b"goes its own way")), (Verdict::Sound, Ok(Seq::new(100))));
}

/// Otherwise the shorter of two copies would replace segments of the longer one.
#[test]
fn two_backups_into_one_directory_do_not_mix() {
    let root = tempfile::tempdir().unwrap();
    let journal = open(&root.path().join("live"));
    journal.append(b"one").unwrap();
    let copy = root.path().join("copy");
    let held = Directory::open(&copy).unwrap();
    let locked = journal.backup(&copy);
    assert!(matches!(locked, Err(BackupError::Locked { .. })), "{locked:?}");
    drop(held);
    let taken = std::thread::scope(|scope| {
        let copies: Vec<_> = (0..8).map(|_| scope.spawn(|| journal.backup(&copy).is_ok())).collect();
        copies.into_iter().map(|copy| copy.join().unwrap()).filter(|done| *done).count()
    });
    assert_eq!(taken, 1);
    let own = journal.backup(root.path().join("live"));
    assert!(matches!(own, Err(BackupError::Occupied { .. })), "{own:?}");
}

#[test]
fn a_segment_behind_a_link_that_leads_nowhere_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("live");
    open(&path).append(b"one").unwrap();
    std::os::unix::fs::symlink("unmounted", path.join("a-00000000000000000001.seg")).unwrap();
    for _ in 0..2 {
        let verdict = look::<Pryj>(&path).report.verdict;
        assert!(matches!(verdict, Verdict::Refused(Refusal::Unreadable { .. })), "{verdict:?}");
        let opened = Directory::open(&path).unwrap().journal::<Pryj>("a", small());
        assert!(opened.is_err(), "a segment was created in its place");
    }
}

/// Appends, closes, reopens, appends and reads.
fn live_through_a_reopen<F: Framing>(version: u8, draft: F::Draft<'_>) {
    let root = tempfile::tempdir().unwrap();
    let config = || Config { version, ..small() };
    for end in [60, 120] {
        let directory = Directory::open(root.path()).unwrap();
        let (journal, report) = directory.journal::<F>("a", config()).unwrap();
        assert_eq!(report.verdict, Verdict::Sound, "{} {version}", F::LABEL);
        while journal.durable_end() < Seq::new(end) {
            journal.append(draft).unwrap();
        }
        journal.close().unwrap();
    }
    let inspection = look::<F>(root.path());
    assert_eq!(
        (inspection.is_sound(), inspection.report.end),
        (true, Seq::new(120)),
        "{} {version}",
        F::LABEL
    );
    let mut reader = inspection.reader(Seq::ZERO, ReadUpTo::Written);
    let mut expected = F::FIRST_SEQ.get();
    while let OfflineStep::Records(batch) = reader.next_batch().unwrap() {
        for record in batch.records() {
            assert_eq!(F::seq(record), Seq::new(expected), "{} {version}", F::LABEL);
            expected += 1;
        }
    }
    assert_eq!(expected, 120, "{} {version}", F::LABEL);
}

#[test]
fn every_framing_and_version_lives_through_a_reopen() {
    let payload = [b' '; 400];
    let event = EventDraft { domain: 1, event_type: "filled", source: "desk", payload: &payload };
    for version in [1, 2] {
        live_through_a_reopen::<Pryj>(version, &payload);
        live_through_a_reopen::<Pcpj>(version, event);
    }
}

/// A disk on which each listing finds the last segment torn at another place, as beside a busy writer.
struct Busy {
    inner: StdDisk,
    listings: AtomicU32,
    /// From this listing on, the file is whole.
    calm_after: u32,
}

impl Disk for Busy {
    type File = fs::File;

    fn list(&self) -> io::Result<Vec<Entry>> {
        let n = self.listings.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.inner.list()?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(last) = entries.last_mut().filter(|_| n < self.calm_after) {
            last.len -= u64::from(600 - n * 50);
        }
        Ok(entries)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<fs::File> {
        self.inner.open(name, access)
    }

    fn len(&self, file: &fs::File) -> io::Result<u64> {
        self.inner.len(file)
    }

    fn read_at(&self, file: &fs::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(file, offset, buffer)
    }

    fn create(&self, _: &str) -> io::Result<fs::File> {
        panic!("an inspection creates nothing")
    }

    fn write_at(&self, _: &fs::File, _: u64, _: &[u8]) -> io::Result<usize> {
        panic!("an inspection writes nothing")
    }

    fn sync(&self, _: &fs::File) -> io::Result<()> {
        panic!("an inspection syncs nothing")
    }

    fn set_len(&self, _: &fs::File, _: u64) -> io::Result<()> {
        panic!("an inspection cuts nothing")
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        panic!("an inspection renames nothing")
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        panic!("an inspection removes nothing")
    }

    fn sync_directory(&self) -> io::Result<()> {
        panic!("an inspection syncs nothing")
    }
}

#[test]
fn a_bad_end_that_moves_is_a_commit_in_flight() {
    let root = tempfile::tempdir().unwrap();
    closed_journal(root.path());
    let found = |calm_after| {
        let inner = StdDisk::open(root.path()).unwrap();
        let disk = Arc::new(Busy { inner, listings: AtomicU32::new(0), calm_after });
        let target = Target::Journal(name());
        let inspection = inspect_on::<Pryj, _>(Arc::clone(&disk), target, ScanOptions::default()).unwrap();
        (
            inspection.report.verdict == Verdict::Sound,
            inspection.in_flight,
            disk.listings.load(Ordering::Relaxed),
        )
    };
    assert_eq!(found(0), (true, false, 1));
    assert_eq!(found(1), (true, false, 2), "the second look finds it whole");
    assert_eq!(found(u32::MAX), (false, true, 3), "three looks, three ends");

    let names = files(root.path());
    let (last, bytes) = names.last().unwrap();
    fs::write(root.path().join(last), &bytes[..bytes.len() - 100]).unwrap();
    let inspection = look::<Pryj>(root.path());
    assert!(matches!(inspection.report.verdict, Verdict::Cut(_)), "{:?}", inspection.report.verdict);
    assert!(!inspection.is_sound(), "the same bad end twice is the verdict");
}

#[test]
fn at_rest_the_first_look_counts() {
    let root = tempfile::tempdir().unwrap();
    closed_journal(root.path());
    let last = files(root.path()).pop().unwrap().0;
    let mut bytes = fs::read(root.path().join(&last)).unwrap();
    bytes.extend_from_slice(b"torn");
    fs::write(root.path().join(&last), bytes).unwrap();
    let patient = look::<Pryj>(root.path());
    let disk = Arc::new(StdDisk::open(root.path()).unwrap());
    let rest = inspect_at_rest::<Pryj, _>(disk, Target::Journal(name()), ScanOptions::default()).unwrap();
    assert!(matches!(rest.report.verdict, Verdict::Cut(_)), "{:?}", rest.report);
    assert_eq!((&rest.report, rest.in_flight), (&patient.report, patient.in_flight));
    assert_eq!(count(&rest, 0), 100);
}
