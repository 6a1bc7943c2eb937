//! A real lack of space: what was acknowledged stays, the rest is told, and appends work once there is space again,
//! with no restart.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use strandline::{AppendError, Config, Directory, Journal, Pryj, Seq, Verdict, config};

use super::payload::payload;
use super::writer::{Obedient, PROGRAM, look, numbers};

/// Kibibytes that a file may have.
const LIMIT_KIB: u64 = 96;

/// A writer under a limit on the length of its files. It ignores the signal, and so meets EFBIG.
fn limited(directory: &Path) -> Obedient {
    let script = format!("trap '' XFSZ; ulimit -S -f {LIMIT_KIB}; exec \"$@\"");
    Obedient::start(
        Command::new("bash")
            .args(["-c", &script, "bash", PROGRAM])
            .arg(directory)
            .args(["1", "obey"])
            .env("STRANDLINE_WRITER_SEGMENT", "1048576"),
    )
}

fn raise_limit(writer: &Obedient) {
    let pid = writer.id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited:"]).status().unwrap();
    assert!(raised.success());
}

#[test]
fn a_file_size_limit_voids_what_it_hits_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = limited(root.path());
    let (mut acknowledged, last) = writer.tell("fill");
    assert_eq!(last, "nospace");
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    for _ in 0..3 {
        let (more, last) = writer.tell("fill");
        assert_eq!(last, "nospace", "still full, and still going");
        acknowledged.extend(more);
    }
    let (_, records) = look(root.path());
    assert_eq!(records.len(), acknowledged.len(), "nothing of the void ones is there");
    let (_, last) = writer.tell("trim 10");
    assert_eq!(last, "done", "trimming needs no space");
    raise_limit(&writer);
    let (more, last) = writer.tell("append 50");
    assert_eq!((more.len(), &*last), (50, "done"), "space is back, with no restart");
    acknowledged.extend(more);
    assert_eq!(writer.tell("close").1, "done");
    writer.end();
    let (report, records) = look(root.path());
    assert_eq!(
        (report.verdict, report.first, report.end.get()),
        (Verdict::Sound, Seq::new(10), acknowledged.len() as u64)
    );
    for (seq, marker) in acknowledged.into_iter().skip(10) {
        let (process, thread, n) = numbers(marker.as_bytes()).unwrap();
        assert_eq!(records[&seq], payload(process, thread, n));
    }
}

/// The rest of a small file system, taken and given back.
struct Ballast(PathBuf);

impl Ballast {
    /// Takes what is left, to the last block.
    fn take(root: &Path) -> Self {
        let path = root.join("ballast");
        let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        for block in [64 * 1024, 4096, 512] {
            while file.write_all(&vec![1; block]).is_ok() && file.sync_data().is_ok() {}
        }
        Self(path)
    }

    /// Where a file system frees the blocks of a removed file only once it has written that down, it has now.
    fn give_back(self) {
        fs::remove_file(&self.0).unwrap();
        File::open(self.0.parent().unwrap()).unwrap().sync_all().unwrap();
    }
}

/// Appends until there is no space; what was acknowledged is noted.
fn fill(journal: &Journal<Pryj>, next: &mut u64, kept: &mut BTreeMap<u64, Vec<u8>>) -> u64 {
    let before = *next;
    loop {
        let payload = payload(1, 0, *next);
        *next += 1;
        match journal.append(&payload) {
            Ok(seq) => assert_eq!(kept.insert(seq.get(), payload), None),
            Err(error) => {
                assert_eq!(error, AppendError::NoSpace);
                return *next - before - 1;
            }
        }
    }
}

/// On a file system of a few mebibytes that is all ours: see `tests/deep/run.sh`.
#[test]
#[ignore = "needs a small file system in STRANDLINE_SMALL_DISK: tests/deep/run.sh makes some"]
fn a_file_system_that_is_full_is_no_end() {
    let root = PathBuf::from(std::env::var_os("STRANDLINE_SMALL_DISK").expect("a mounted file system"));
    let path = root.join("journal");
    let settings = || Config { segment_bytes: 128 * 1024, reserve_bytes: 32 * 1024, ..config() };
    let (journal, _) = Directory::open(&path).unwrap().journal::<Pryj>("a", settings()).unwrap();
    let (mut next, mut kept) = (0, BTreeMap::new());
    let filled = fill(&journal, &mut next, &mut kept);
    for _ in 0..3 {
        let ballast = Ballast::take(&root);
        // What little is left goes, until not even a short record finds room.
        fill(&journal, &mut next, &mut kept);
        assert_eq!(journal.poisoned(), None);
        ballast.give_back();
        let first = Seq::new(kept.len() as u64 / 2).max(journal.first());
        let ballast = Ballast::take(&root);
        journal.trim_to(first).unwrap();
        ballast.give_back();
        fill(&journal, &mut next, &mut kept);
    }
    assert!(kept.len() as u64 > filled, "trimming made room, with no restart");
    let ballast = Ballast::take(&root);
    let first = journal.first();
    journal.close().expect("a close at zero bytes free");
    drop(journal);
    let (report, records) = look(&path);
    assert_eq!((&report.verdict, report.first, report.unproven()), (&Verdict::Sound, first, 0));
    let expected: BTreeMap<_, _> =
        kept.range(first.get()..).map(|(seq, kept)| (*seq, kept.clone())).collect();
    assert!(records == expected, "{} of {} records", records.len(), expected.len());
    // Opened again while it is still full.
    let opened = Directory::open(&path).unwrap().journal::<Pryj>("a", settings());
    let (journal, _) = opened.expect("an open at zero bytes free");
    ballast.give_back();
    journal.trim_to(journal.next_seq()).unwrap();
    let seq = journal.append(b"after it all").unwrap();
    assert_eq!(seq.get(), kept.len() as u64);
    journal.close().unwrap();
    println!("{filled} records filled it, {} were acknowledged in all", kept.len() + 1);
    fs::remove_dir_all(&path).unwrap();
}
