//! Everybody who looks at the same files must come to the same verdict and read the same records.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline::core::{
    Completion, Config, Cursor, Event, FileKind, Framing, FramingKind, Journal, JournalName, Listing, Output,
    Pcpj, Pryj, PryjRecord, ReadRequest, ReadUpTo, RecoveryError, RecoveryPolicy, Refusal, Replay, Report,
    ScanOptions, SegmentId, Seq, Timestamp, Verdict,
};
use strandline::{Disk, DiskLayer, OfflineStep, Performer, Target, files_of, inspect_at_rest, recover};
use strandline_sim::disk::{SimDisk, Survivors};

use super::plain::Owned;
use super::plain_journal::{Expected, Judged, PlainVerdict, judge};
use super::watched_disk::WatchedDisk;

pub(super) const JOURNAL: &str = "fuzzed";
const BARE: &str = "event-journal.bin";

/// A framing whose records can be kept and compared.
pub(super) trait Known: Framing {
    const KIND: FramingKind;
    fn own(record: Self::Record<'_>) -> Owned;
    /// What is appended to a journal after it was opened.
    fn draft() -> Self::Draft<'static>;
}

impl Known for Pryj {
    const KIND: FramingKind = FramingKind::Pryj;

    fn own(record: PryjRecord<'_>) -> Owned {
        Owned { seq: record.seq.get(), payload: record.payload.to_vec(), ..Owned::default() }
    }

    fn draft() -> &'static [u8] {
        b"one more"
    }
}

impl Known for Pcpj {
    const KIND: FramingKind = FramingKind::Pcpj;

    fn own(event: Event<'_>) -> Owned {
        Owned {
            seq: event.seq.get(),
            timestamp: event.timestamp.as_millis(),
            domain: event.domain,
            event_type: event.event_type.to_owned(),
            source: event.source.to_owned(),
            payload: event.payload.to_vec(),
        }
    }

    fn draft() -> strandline::core::EventDraft<'static> {
        strandline::core::EventDraft { domain: 1, event_type: "more", source: "fuzzer", payload: b"one more" }
    }
}

/// How the files are looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// How doubtful damage is judged.
    pub policy: RecoveryPolicy,
    /// The version that a writer asks for, 1 or 2; anything else is 2.
    pub version: u8,
    /// Whether new segments begin with zeros.
    pub reserve: bool,
    /// Whether the one file, here under number 0, has no number in its name: it can be read, not written.
    pub bare: bool,
}

/// What everybody found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The row of the verdict table that decided, if one did.
    pub row: Option<char>,
    /// Whether opening it for writing was refused.
    pub refused: bool,
    /// The logical start.
    pub first: u64,
    /// One past the last valid record.
    pub end: u64,
    /// One past the last proven record.
    pub proven_end: u64,
    /// The records from the logical start to the end.
    pub records: Vec<Owned>,
}

/// Looks at the files of one journal, by their first numbers, in every way that there is.
///
/// The verdict, the watermarks and the records must be those of a plain reading of the format, for the inspection
/// (`verify`), for the offline readers (`cat`, `tail`) and for who opens it for writing. A refusal changes no byte. A
/// journal that was opened is sound after a power loss, holds the same records, and takes another one.
///
/// # Panics
/// If they do not agree.
#[must_use]
pub fn look(kind: FramingKind, files: &BTreeMap<u64, Vec<u8>>, look: Look) -> Found {
    match kind {
        FramingKind::Pryj => look_as::<Pryj>(files, look),
        FramingKind::Pcpj => look_as::<Pcpj>(files, look),
    }
}

fn look_as<F: Known>(files: &BTreeMap<u64, Vec<u8>>, look: Look) -> Found {
    let expected = judge(Judged { kind: F::KIND, policy: look.policy, bare: look.bare, files });
    let disk = disk_of(files, look);
    let before = files_on(disk.below());
    let report = inspect::<F>(&disk, files, look, &expected);
    assert_eq!(files_on(disk.below()), before, "looking changes no byte");
    let found = found(&report, kept(&expected));
    if look.bare {
        return found;
    }
    match open::<F>(&disk, look, 1, files) {
        Err(RecoveryError::Refused { refusal, report: seen }) => {
            assert_eq!(Verdict::Refused(refusal), report.verdict, "open and verify agree");
            assert_eq!(*seen, report, "open and verify agree in everything");
            assert_eq!(files_on(disk.below()), before, "a refusal changes no byte");
        }
        Err(other) => panic!("nothing else is wrong with the disk: {other}"),
        Ok((mut journal, performer, recovered)) => {
            assert_eq!(recovered.verdict, report.verdict, "open and verify agree");
            assert_eq!((recovered.first, recovered.end), (report.first, report.end));
            assert_eq!(recovered.segments, report.segments);
            assert_eq!(read::<F>(&journal, &performer, files), found.records, "open and verify agree");
            check_repairs(&report, &before, &files_on(disk.below()));
            reopen::<F>(disk.below(), look, &found.records);
            append(&mut journal, &performer, &found.records);
        }
    }
    found
}

/// The records from the logical start on.
fn kept(expected: &Expected) -> Vec<Owned> {
    expected.records.iter().filter(|record| record.seq >= expected.first).cloned().collect()
}

fn name() -> JournalName {
    JournalName::parse(JOURNAL).expect("a journal's name")
}

fn file_name(first: u64) -> String {
    name().segment_file(SegmentId(Seq::new(first)))
}

fn disk_of(files: &BTreeMap<u64, Vec<u8>>, look: Look) -> Arc<WatchedDisk> {
    let disk = SimDisk::new(512);
    for (first, bytes) in files {
        let name = if look.bare { BARE.to_owned() } else { file_name(*first) };
        let file = disk.create(&name).expect("a new file");
        let mut written = 0;
        while written < bytes.len() {
            written +=
                disk.write_at(&file, written as u64, &bytes[written..]).expect("a disk without faults");
        }
        disk.sync(&file).expect("a disk without faults");
    }
    disk.sync_directory().expect("a disk without faults");
    Arc::new(WatchedDisk::new(disk))
}

fn files_on(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    disk.state().files().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect()
}

/// Runs one pass over the files, and holds it to what a pass may read.
fn bounded<T>(disk: &WatchedDisk, files: &BTreeMap<u64, Vec<u8>>, pass: impl FnOnce() -> T) -> T {
    let total: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
    let pieces = total / ReadRequest::LEN_MAX as u64;
    // A frame across the end of a piece is read again from its beginning; so is what lies behind a bad one.
    disk.begin(4 * (files.len() as u64 + 1) + 6 * pieces);
    let result = pass();
    let bytes = disk.end();
    assert!(bytes <= 4 * total + 4_096, "{bytes} bytes were read of {total}");
    result
}

/// What `verify` says, checked against the plain reading; and what `cat` and `tail` read.
fn inspect<F: Known>(
    disk: &Arc<WatchedDisk>,
    files: &BTreeMap<u64, Vec<u8>>,
    look: Look,
    expected: &Expected,
) -> Report {
    let target = if look.bare { Target::File(BARE.to_owned()) } else { Target::Journal(name()) };
    let options = ScanOptions { policy: look.policy, ..ScanOptions::default() };
    let found = bounded(disk, files, || {
        inspect_at_rest::<F, _>(Arc::clone(disk), target, options).expect("it is there")
    });
    check_report(&found.report, expected);
    let records = kept(expected);
    for (until, end) in [(ReadUpTo::Written, expected.end), (ReadUpTo::Durable, expected.proven_end)] {
        let mut reader = found.reader(Seq::ZERO, until);
        let printed = bounded(disk, files, || {
            let mut printed = Vec::new();
            loop {
                match reader.next_batch().expect("what was found can be read") {
                    OfflineStep::Records(batch) => {
                        assert!(!batch.is_empty(), "a batch holds something");
                        printed.extend(batch.records().map(F::own));
                    }
                    OfflineStep::Trimmed { first } => assert_eq!(first.get(), expected.first),
                    OfflineStep::End => break printed,
                }
            }
        });
        let wanted: Vec<Owned> = records.iter().filter(|record| record.seq < end).cloned().collect();
        assert_eq!(printed, wanted, "{until:?}");
    }
    found.report
}

fn check_report(report: &Report, expected: &Expected) {
    assert_eq!(plain_verdict(&report.verdict), expected.verdict, "{report:?}");
    let found = (report.first.get(), report.end.get(), report.proven_end.get());
    assert_eq!(found, (expected.first, expected.end, expected.proven_end), "{report:?}");
    let counted: u64 = report.segments.iter().map(|segment| segment.first.until(segment.end)).sum();
    assert_eq!(counted, expected.records.len() as u64, "{report:?}");
}

fn plain_verdict(verdict: &Verdict) -> PlainVerdict {
    let label = |row: strandline::core::verdict::Row| match row.to_string().as_str() {
        "A" => "A",
        "B" => "B",
        "C" => "C",
        "D" => "D",
        "F" => "F",
        "G" => "G",
        "V" => "V",
        _ => "Z",
    };
    let (why, offset) = match verdict {
        Verdict::Sound => return PlainVerdict::Sound,
        Verdict::Cut(cut) => {
            let (segment, row) = (cut.segment.0.get(), label(cut.row));
            return PlainVerdict::Cut { row, segment, offset: cut.offset, bytes: cut.bytes };
        }
        Verdict::Refused(refusal) => match *refusal {
            Refusal::Magic { .. } => ("magic", 0),
            Refusal::UnsupportedVersion { .. } => ("version", 0),
            Refusal::HeaderMismatch { offset, .. } => ("header", offset),
            Refusal::Gap { .. } => ("gap", 0),
            Refusal::Overlap { .. } => ("overlap", 0),
            Refusal::MarkInVersion1 { offset, .. } => ("mark in version 1", offset),
            Refusal::Damaged { row, offset, .. } => (label(row), offset),
            Refusal::Unreadable { .. } => ("unreadable", 0),
            Refusal::Shrank { .. } => ("shrank", 0),
        },
    };
    let Verdict::Refused(refusal) = verdict else { return PlainVerdict::Sound };
    PlainVerdict::Refused { why, segment: refusal.segment().0.get(), offset }
}

fn found(report: &Report, records: Vec<Owned>) -> Found {
    let row = match plain_verdict(&report.verdict) {
        PlainVerdict::Cut { row, .. } => row.chars().next(),
        PlainVerdict::Refused { .. } => match &report.verdict {
            Verdict::Refused(refusal) => refusal.row().and_then(|row| row.to_string().chars().next()),
            _ => None,
        },
        PlainVerdict::Sound => None,
    };
    let refused = matches!(report.verdict, Verdict::Refused(_));
    let (first, end, proven_end) = (report.first.get(), report.end.get(), report.proven_end.get());
    Found { row, refused, first, end, proven_end, records }
}

type Opened<F> = (Journal<F>, Performer<WatchedDisk>, Report);

fn open<F: Known>(
    disk: &Arc<WatchedDisk>,
    look: Look,
    opening: u64,
    files: &BTreeMap<u64, Vec<u8>>,
) -> Result<Opened<F>, RecoveryError> {
    let reserve_bytes = if look.reserve { 4_096 } else { 0 };
    let config = Config {
        version: if look.version == 1 { 1 } else { 2 },
        recovery: look.policy,
        reserve_bytes,
        ..Config::new(opening, Timestamp::from_millis(1_000))
    };
    let performer = Performer::new(Arc::clone(disk), name());
    let listing = files_of(&**disk, &name()).expect("every name is a segment's").listing;
    assert!(matches!(listing, Listing::Segments(_)));
    // The scan, and the unproven end once more.
    let total = files.values().map(Vec::len).sum::<usize>() as u64;
    disk.begin(8 * (files.len() as u64 + 2) + 12 * (total / ReadRequest::LEN_MAX as u64));
    let (journal, report) = recover::<F, _>(&performer, config, listing)?;
    let bytes = disk.end();
    assert!(bytes <= 8 * total + 16 * 1_024, "{bytes} bytes were read of {total}");
    Ok((journal, performer, report))
}

/// Everything that a reader of the open journal is given.
fn read<F: Known>(
    journal: &Journal<F>,
    performer: &Performer<WatchedDisk>,
    files: &BTreeMap<u64, Vec<u8>>,
) -> Vec<Owned> {
    let mut cursor = Cursor::<F>::new(Seq::ZERO, ReadUpTo::Durable);
    bounded(performer.disk(), files, || {
        let mut records = Vec::new();
        loop {
            match cursor.poll(journal.view()) {
                Replay::Records(batch) => records.extend(batch.records().map(F::own)),
                Replay::Read(request) => {
                    let mut buffer = vec![0; request.len];
                    let read = performer.read(request, &mut buffer).map(|n| {
                        buffer.truncate(n);
                        buffer.into()
                    });
                    cursor.handle_read(read).expect("what was recovered can be read");
                }
                Replay::Trimmed { first } => assert_eq!(first, journal.view().first()),
                Replay::CaughtUp => break records,
                Replay::Beyond { end } => panic!("beyond {end}"),
            }
        }
    })
}

/// Nothing but the torn end is gone, and that is kept beside.
fn check_repairs(report: &Report, before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) {
    for segment in &report.segments {
        let name = name().segment_file(segment.id);
        let old = &before[&name];
        let valid = usize::try_from(segment.bytes).expect("a file in memory");
        match after.get(&name) {
            // An empty segment may be made again, of another version.
            Some(_) if segment.first == segment.end => {}
            Some(new) => assert_eq!(new[..valid], old[..valid], "valid bytes stay as they are"),
            None => assert_eq!(segment.first, segment.end, "a file with records stays"),
        }
    }
    if let Verdict::Cut(cut) = &report.verdict {
        let name = name().segment_file(cut.segment);
        let at = usize::try_from(cut.offset).expect("a file in memory");
        let len = usize::try_from(cut.bytes).expect("a file in memory");
        let kept = after.get(&format!("{name}.torn-{}", cut.offset)).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(kept, &before[&name][at..at + len], "what was cut is kept");
    }
}

/// After a power loss the journal is sound, and has the same records; a second opening repairs nothing.
fn reopen<F: Known>(disk: &SimDisk, look: Look, records: &[Owned]) {
    let disk = Arc::new(WatchedDisk::new(SimDisk::from_state(disk.state().power_loss(Survivors::None))));
    let files: BTreeMap<u64, Vec<u8>> = segments(disk.below());
    let expected = judge(Judged { kind: F::KIND, policy: look.policy, bare: false, files: &files });
    assert_eq!(expected.verdict, PlainVerdict::Sound);
    assert_eq!(kept(&expected), records, "what was recovered is durable");
    inspect::<F>(&disk, &files, look, &expected);
    let (journal, performer, report) = open::<F>(&disk, look, 2, &files).expect("it was opened before");
    assert_eq!((&report.verdict, report.repair.cut), (&Verdict::Sound, false));
    assert_eq!(read::<F>(&journal, &performer, &files), records);
    if !look.reserve {
        assert_eq!(segments(disk.below()), files, "opening again changes nothing");
    }
}

/// The recovered journal works: it takes a record, which is there after a power loss.
fn append<F: Known>(journal: &mut Journal<F>, performer: &Performer<WatchedDisk>, records: &[Owned]) {
    let seq = journal.next_seq().get();
    let accepted = journal.append(Timestamp::from_millis(2_000), F::draft());
    assert_eq!(accepted.is_err(), seq == u64::MAX, "{accepted:?}");
    while let Some(output) = journal.poll_output() {
        if let Output::Effect { id, effect } = output {
            let result = performer.perform(&effect);
            journal.handle_completion(Completion { id, result });
        }
    }
    let disk = SimDisk::from_state(performer.disk().below().state().power_loss(Survivors::None));
    let files = segments(&disk);
    let judged = Judged { kind: F::KIND, policy: RecoveryPolicy::Strict, bare: false, files: &files };
    let after = judge(judged);
    assert_eq!(after.verdict, PlainVerdict::Sound);
    let found = kept(&after);
    assert_eq!(&found[..records.len()], records);
    let more: Vec<&[u8]> = found[records.len()..].iter().map(|record| &*record.payload).collect();
    let wanted: &[&[u8]] = if accepted.is_ok() { &[b"one more"] } else { &[] };
    assert_eq!(more, wanted);
}

fn segments(disk: &SimDisk) -> BTreeMap<u64, Vec<u8>> {
    let mut files = BTreeMap::new();
    for (name, bytes) in files_on(disk) {
        if let FileKind::Segment { segment, .. } = FileKind::of(&name) {
            files.insert(segment.0.get(), bytes);
        }
    }
    files
}
