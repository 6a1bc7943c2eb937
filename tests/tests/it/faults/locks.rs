//! Two writers, permissions, and directories that may only be read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use strandline::core::{Config, Pryj};
use strandline::{Directory, DirectoryError, JournalName, ScanOptions, Seq, Verdict, inspect};

use super::lab::{JOURNAL, Lab, config, file};

/// Set in a child process of these tests: the directory that it is to open.
const CHILD: &str = "STRANDLINE_CHILD_DIRECTORY";

/// Starts this test again as another process, with a directory.
fn child(test: &str, directory: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(CHILD, directory).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn open(path: &std::path::Path) -> strandline::Journal<Pryj> {
    Directory::open(path).unwrap().journal::<Pryj>(JOURNAL, strandline::config()).unwrap().0
}

/// There is no lock file: the lock is on the directory itself.
#[test]
fn fault_126_nothing_can_be_deleted_that_would_let_a_second_writer_in() {
    let root = tempfile::tempdir().unwrap();
    let journal = open(root.path());
    let names: Vec<_> = fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name.to_string_lossy().contains(".seg")), "{names:?}");
    for name in names {
        if !name.to_string_lossy().ends_with(".seg") {
            fs::remove_file(root.path().join(name)).unwrap();
        }
    }
    assert!(matches!(Directory::open(root.path()), Err(DirectoryError::Locked { .. })));
    journal.append(b"x").unwrap();
}

#[test]
fn fault_128_a_second_process_is_refused_with_a_clear_error() {
    let name = "faults::locks::fault_128_a_second_process_is_refused_with_a_clear_error";
    if let Ok(path) = std::env::var(CHILD) {
        let error = Directory::open(path).err().unwrap().to_string();
        assert!(error.contains("open for writing already"), "{error}");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let journal = open(root.path());
    assert!(child(name, root.path()).status().unwrap().success());
    journal.append(b"x").unwrap();
    journal.close().unwrap();
}

#[test]
fn fault_129_a_killed_writer_leaves_no_lock_behind() {
    let name = "faults::locks::fault_129_a_killed_writer_leaves_no_lock_behind";
    if let Ok(path) = std::env::var(CHILD) {
        let journal = open(path.as_ref());
        journal.append(b"from the child").unwrap();
        fs::write(format!("{path}.ready"), "").unwrap();
        loop {
            std::thread::park();
        }
    }
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("journal");
    let mut writer = child(name, &path).spawn().unwrap();
    let ready = root.path().join("journal.ready");
    while !ready.exists() {
        assert!(writer.try_wait().unwrap().is_none(), "the child lives");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(matches!(Directory::open(&path), Err(DirectoryError::Locked { .. })));
    writer.kill().unwrap();
    writer.wait().unwrap();
    let journal = open(&path);
    assert_eq!(journal.append(b"x").unwrap(), Seq::new(1));
}

#[test]
fn fault_130_a_name_is_free_only_when_the_close_is_complete() {
    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(root.path()).unwrap();
    for _ in 0..20 {
        let (journal, report) = directory.journal::<Pryj>(JOURNAL, strandline::config()).unwrap();
        assert_eq!(report.verdict, Verdict::Sound);
        assert!(directory.journal::<Pryj>(JOURNAL, strandline::config()).is_err());
        for _ in 0..50 {
            let _ticket = journal.append_nowait(b"x").unwrap();
        }
        journal.close().unwrap();
    }
    let found =
        inspect::<Pryj>(root.path(), &JournalName::parse(JOURNAL).unwrap(), ScanOptions::default()).unwrap();
    assert_eq!((found.report.verdict, found.report.end.get()), (Verdict::Sound, 1_000));
}

#[test]
fn fault_131_a_full_disk_with_a_torn_segment_opens_or_says_so() {
    let lab = Lab::with_commits(Config { segment_bytes: 200, ..config() }, &[&[60], &[60]]);
    lab.put(&file(2), b"PRYJ\x02\0");
    lab.disk.set_capacity(Some(0));
    assert_eq!(lab.seqs(), [0, 1], "reading needs no space");
    let open = lab.open(Config { segment_bytes: 200, ..config() });
    assert_eq!(open.report.end.get(), 2);
    drop(open);
    assert_eq!(lab.seqs(), [0, 1]);
}

#[test]
fn fault_133_a_directory_that_may_only_be_read_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("journal");
    let journal = open(&path);
    journal.append(b"x").unwrap();
    journal.close().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o555)).unwrap();
    let found = inspect::<Pryj>(&path, &JournalName::parse(JOURNAL).unwrap(), ScanOptions::default());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(found.unwrap().report.end, Seq::new(1));
}

#[test]
fn fault_134_and_135_modes_do_not_depend_on_the_umask() {
    let name = "faults::locks::fault_134_and_135_modes_do_not_depend_on_the_umask";
    if let Ok(path) = std::env::var(CHILD) {
        let journal = open(path.as_ref());
        journal.append(b"x").unwrap();
        journal.close().unwrap();
        let journal = open(path.as_ref());
        assert_eq!(journal.append(b"y").unwrap(), Seq::new(1), "a second run finds what the first wrote");
        return;
    }
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for umask in ["000", "777"] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        let inner = child(name, &path);
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).arg(inner.get_program()).args(inner.get_args());
        shell.env(CHILD, &path).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(shell.status().unwrap().success(), "umask {umask}");
        assert_eq!((mode(&path), mode(&path.join(file(0)))), (0o700, 0o600), "umask {umask}");
    }
}
