//! What one pass says is what two say: a scan of everything, then a playback over what it found.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;
use std::io;
use std::io::ErrorKind;
use std::sync::Mutex;

use strandline_core::session::Setup;
use strandline_core::{Config, Events, Seq};

use super::*;
use crate::directory::Directory;
use crate::disk::{Access, Entry};
use crate::test_disk::EIO;

/// Says each command again up to twice, with more at its end, as much as the session's setup is long; and panics at a word.
struct Repeater(usize);

#[derive(Debug, thiserror::Error)]
#[error("no setup")]
struct NoSetup;

impl Engine for Repeater {
    const ID: &'static str = "repeater/1";
    type Error = NoSetup;

    fn start(setup: &[u8]) -> Result<Self, NoSetup> {
        if setup.is_empty() { Err(NoSetup) } else { Ok(Self(setup.len())) }
    }

    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events) {
        assert!(command != b"panic", "the engine panics here");
        for n in (0..3).filter(|n| u64::from(*n) < seq.get() % 3) {
            let more = command.last().map_or(b'-', |last| last.wrapping_add(n));
            events.push(&[command, &vec![more; self.0]].concat());
        }
    }
}

type Files = BTreeMap<String, Vec<u8>>;

/// Files in memory, for reading only.
struct Copies {
    files: Files,
    /// Reads of files whose name begins like this fail so often.
    failing: Mutex<(&'static str, usize)>,
}

impl Disk for Copies {
    type File = String;

    fn list(&self) -> io::Result<Vec<Entry>> {
        let entry = |(name, bytes): (&String, &Vec<u8>)| Entry {
            name: name.clone(),
            len: bytes.len() as u64,
            is_file: true,
        };
        Ok(self.files.iter().map(entry).collect())
    }

    fn open(&self, name: &str, _: Access) -> io::Result<String> {
        self.files.get(name).map(|_| name.to_string()).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn len(&self, file: &String) -> io::Result<u64> {
        Ok(self.files[file].len() as u64)
    }

    fn read_at(&self, file: &String, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut failing = self.failing.lock().unwrap();
        if failing.1 > 0 && file.starts_with(failing.0) {
            failing.1 -= 1;
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let rest = self.files[file].get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn create(&self, _: &str) -> io::Result<String> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn write_at(&self, _: &String, _: u64, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self, _: &String) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_len(&self, _: &String, _: u64) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// A session with these records in its journals, in segments of this size.
fn recorded(input: &[&[u8]], events: &[&[u8]], config: &Config) -> Files {
    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    for (name, first, records) in [(INPUT, 0, input), (EVENTS, 1, events)] {
        let config = Config { first_seq: Some(Seq::new(first)), ..config.clone() };
        let (journal, _) = directory.journal::<Pryj>(name, config).unwrap();
        for record in records {
            journal.append(record).unwrap();
        }
        journal.close().unwrap();
    }
    let entries = std::fs::read_dir(root.path()).unwrap().map(Result::unwrap);
    let named =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
    named.filter(|(name, _)| name.ends_with(".seg")).collect()
}

fn small() -> Config {
    Config { segment_bytes: 220, reserve_bytes: 0, ..crate::config() }
}

fn setup(setup: &[u8]) -> Vec<u8> {
    Setup { engine: Repeater::ID, setup }.encode().to_vec()
}

const COMMANDS: [&[u8]; 4] = [b"a", b"bc", b"def", b"gh"];
const EVENTS_OF_THEM: [&[u8]; 4] = [b"aaa", b"bccc", b"bcdd", b"ghhh"];

fn session(setup_bytes: &[u8], events: &[&[u8]]) -> Files {
    let setup = setup(setup_bytes);
    let input: Vec<&[u8]> = std::iter::once(&setup[..]).chain(COMMANDS).collect();
    recorded(&input, events, &small())
}

type Outcome = Result<Checked, ReplayCheckError<NoSetup>>;

/// How it ends: everything that is told, and whether the engine panicked.
fn told(check: impl FnOnce() -> Outcome) -> String {
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(Ok(checked)) => format!("{checked:?}"),
        Ok(Err(error)) => format!("{error}\n{error:?}"),
        Err(panic) => format!("panicked: {:?}", panic.downcast_ref::<&str>()),
    }
}

fn on(files: &Files) -> Arc<Copies> {
    Arc::new(Copies { files: files.clone(), failing: Mutex::new(("", 0)) })
}

fn one_pass(disk: &Arc<Copies>, tries: usize) -> Outcome {
    let listed = [INPUT, EVENTS].map(|name| list(&**disk, &target(name).unwrap()));
    let [Ok((input, _)), Ok((events, _))] = listed else { return two_passes(disk, tries) };
    let check = ScanningCheck::new(input, events, DigestThread::default());
    in_one_pass::<Repeater, _>(disk, check, tries, |_, _| {})
}

fn two_passes(disk: &Arc<Copies>, tries: usize) -> Outcome {
    in_two_passes::<Repeater, _>(disk, tries, |_, _| {})
}

/// What both say.
fn agreed(files: &Files, what: &str) -> String {
    let disk = on(files);
    let [one, two] = [told(|| one_pass(&disk, 1)), told(|| two_passes(&disk, 1))];
    assert_eq!(one, two, "{what}");
    one
}

/// Each byte changed, all from there on cut off, or zero; each file missing, or in the other's place.
fn every_damage(files: &Files, mut damaged: impl FnMut(&Files, &str)) {
    for (name, bytes) in files {
        for at in 0..bytes.len() {
            let mut change = |what: &str, change: fn(&mut Vec<u8>, usize)| {
                let mut files = files.clone();
                change(files.get_mut(name).unwrap(), at);
                damaged(&files, &format!("{name} at {at}: {what}"));
            };
            change("flipped", |bytes, at| bytes[at] ^= 1 << (at % 8));
            change("cut", Vec::truncate);
            change("zeros", |bytes, at| bytes[at..].fill(0));
        }
        for other in files.keys() {
            let mut files = files.clone();
            let bytes = files.remove(name).unwrap();
            if other != name {
                files.insert(other.clone(), bytes);
            }
            damaged(&files, &format!("{name} in the place of {other}"));
        }
    }
}

#[test]
fn whatever_is_damaged_one_pass_says_what_two_say() {
    let whole = session(b"xy", &EVENTS_OF_THEM);
    assert_eq!(whole.len(), 5, "segments of both: {:?}", whole.keys());
    let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
    every_damage(&whole, |files, what| {
        let told = agreed(files, what);
        let kinds =
            ["Checked", "journal `input` is damaged", "journal `events` is damaged", "event ", "journal"];
        let kind = kinds.into_iter().find(|kind| told.starts_with(kind)).unwrap_or("other");
        *starts.entry(kind).or_default() += 1;
    });
    let wanted =
        ["Checked", "event ", "journal", "journal `events` is damaged", "journal `input` is damaged"];
    assert!(starts.keys().eq(&wanted), "each kind of outcome occurs: {starts:?}");
}

#[test]
fn damage_behind_a_difference_is_told_first() {
    let mut events = EVENTS_OF_THEM;
    events[0] = b"aab";
    let differs = session(b"xy", &events);
    assert!(agreed(&differs, "whole").starts_with("event 1 differs"));
    let mut damaged = 0;
    every_damage(&differs, |files, what| damaged += usize::from(agreed(files, what).contains("is damaged")));
    assert!(damaged > 500, "{damaged}");
}

#[test]
fn damage_behind_a_setup_that_is_refused_is_told_first() {
    let refused = session(b"", &EVENTS_OF_THEM);
    assert!(agreed(&refused, "whole").contains("the engine refuses its setup"));
    every_damage(&refused, |files, what| assert!(!agreed(files, what).starts_with("Checked"), "{what}"));
    let foreign = Setup { engine: "repeater/2", setup: b"x" }.encode();
    let foreign = recorded(&[&foreign, b"a"], &[], &small());
    assert!(agreed(&foreign, "whole").contains("the session is of engine `repeater/2`"));
    let none = recorded(&[], &EVENTS_OF_THEM, &small());
    assert!(agreed(&none, "whole").contains("no session was ever begun"));
}

#[test]
fn damage_behind_a_command_at_which_the_engine_panics_is_told_first() {
    let (setup, mut files) = (setup(b"x"), Files::new());
    let input: [&[u8]; 5] = [&setup, b"a", b"panic", b"b", b"c"];
    files.extend(recorded(&input, &[b"aa", b"bb"], &small()));
    assert!(agreed(&files, "whole").starts_with("panicked"));
    let (_, last) = files.iter_mut().next_back().unwrap();
    let middle = last.len() / 2;
    last[middle] ^= 1;
    assert!(agreed(&files, "damaged").starts_with("journal `input` is damaged"));
}

#[test]
fn journals_of_version_1_trimmed_ones_and_long_records_are_the_same_in_one_pass() {
    let setup = setup(b"xy");
    let input: Vec<&[u8]> = std::iter::once(&setup[..]).chain(COMMANDS).collect();
    let old = recorded(&input, &EVENTS_OF_THEM, &Config { version: 1, ..small() });
    assert!(agreed(&old, "version 1").starts_with("Checked"));
    every_damage(&old, |files, what| drop(agreed(files, what)));

    let long: Vec<Vec<u8>> = (0..5u8).map(|n| vec![n; 300_000 * usize::from(n) + 7]).collect();
    let input: Vec<&[u8]> = std::iter::once(&setup[..]).chain(long.iter().map(Vec::as_slice)).collect();
    let events: Vec<Vec<u8>> = [0u8, 1, 1, 3, 4, 4]
        .into_iter()
        .zip([0, 0, 1, 0, 0, 1])
        .map(|(n, more)| [&long[usize::from(n)][..], &[n + more; 2]].concat())
        .collect();
    let events: Vec<&[u8]> = events.iter().map(Vec::as_slice).collect();
    let mut files = recorded(&input, &events, &Config { reserve_bytes: 0, ..crate::config() });
    assert!(agreed(&files, "long").starts_with("Checked { commands: 5, events: 6"));
    for (name, bytes) in files.clone() {
        for at in [bytes.len() / 2, bytes.len() - 100] {
            files.get_mut(&name).unwrap()[at] ^= 1;
            assert!(agreed(&files, &name).contains("is damaged"));
            files.insert(name.clone(), bytes.clone());
        }
    }
}

#[test]
fn a_bad_end_is_looked_at_again() {
    let whole = session(b"xy", &EVENTS_OF_THEM);
    let same = agreed(&whole, "whole");
    for side in [INPUT, EVENTS] {
        let failing = |times| {
            let disk = on(&whole);
            *disk.failing.lock().unwrap() = (side, times);
            disk
        };
        assert_eq!(told(|| one_pass(&failing(1), TRIES)), same, "what was read in a second look counts");
        let [one, two] = [told(|| one_pass(&failing(99), TRIES)), told(|| two_passes(&failing(99), TRIES))];
        assert!(one == two && one.contains("input/output error"), "{one}");
    }
    let mut torn = whole;
    torn.values_mut().next_back().unwrap().extend([7; 9]);
    let disk = on(&torn);
    assert_eq!(told(|| one_pass(&disk, TRIES)), same);
    assert_eq!(told(|| two_passes(&disk, TRIES)), same);
}

#[test]
fn many_events_are_digested_by_a_thread_and_progress_is_told() {
    let (setup, commands) = (setup(b"x"), vec![[b'c'; 999]; 2_000]);
    let input: Vec<&[u8]> = std::iter::once(&setup[..]).chain(commands.iter().map(|c| &c[..])).collect();
    let second = [[b'c'; 999].as_slice(), b"d"].concat();
    let first = [b'c'; 1_000];
    let emitted = (1..=2_000).flat_map(|seq| [&first[..], &second].into_iter().take(seq % 3));
    let mut digest = strandline_core::session::EventDigest::default();
    let events: Vec<&[u8]> = emitted.collect();
    for (seq, event) in (1..).zip(&events) {
        digest.update(Seq::new(seq), event);
    }
    let disk = on(&recorded(&input, &events, &crate::config()));
    let mut told = Vec::new();
    let checked = replay_check_on::<Repeater, _>(disk, |commands, of| told.push((commands, of))).unwrap();
    let wanted = Checked { commands: 2_000, events: 2_001, sha256: digest.finish() };
    assert_eq!(checked, wanted);
    assert!(told.is_sorted_by_key(|(commands, _)| *commands), "{told:?}");
    assert!(told.iter().all(|(commands, of)| commands <= of && *of < 2_200), "{told:?}");
    assert_eq!(told.last().unwrap().1, 2_000);
}
