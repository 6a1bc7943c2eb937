//! The writer's system calls, one by one: nothing is acknowledged before the calls that make it durable returned.

use std::path::Path;
use std::process::{Command, Stdio};

use super::trace::{Call, parse};
use super::writer::{PROGRAM, acknowledgement, look};

const CALLS: &str = "trace=write,pwrite64,pwritev,fsync,fdatasync,rename,renameat,renameat2";

/// An acknowledgement, and the line of the log at which the writer began to say it.
struct Acknowledged {
    seq: u64,
    marker: String,
    at: usize,
}

/// Whether strace is there and may trace. If not, says why; where it is required, that is a failure.
fn can_trace() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let why = match tried {
        Ok(status) if status.success() => return true,
        Ok(status) => format!("strace may not trace here: {status}"),
        Err(error) => format!("strace does not start: {error}"),
    };
    assert!(std::env::var_os("STRANDLINE_REQUIRE_STRACE").is_none(), "{why}");
    // Past the harness, which keeps the output of tests that pass to itself.
    let said = Command::new("sh")
        .args(["-c", "echo \"SKIPPED the scan of system calls: $1\" >&2", "sh", &why])
        .status();
    assert!(said.is_ok());
    false
}

/// Runs the writer under strace with more options, and gives its calls.
fn traced(directory: &Path, options: &[&str], records: u64) -> Vec<Call> {
    let log = directory.with_extension("strace");
    let traced = Command::new("strace")
        .args(["-f", "-y", "-s", "1000000", "-e", CALLS, "-e", "signal=none"])
        .args(options)
        .arg("-o")
        .arg(&log)
        .arg(PROGRAM)
        .arg(directory)
        .args(["1", "run", "2"])
        .env("STRANDLINE_WRITER_RECORDS", records.to_string())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(traced.success());
    parse(&String::from_utf8_lossy(&std::fs::read(&log).unwrap()))
}

fn acknowledgements(calls: &[Call]) -> Vec<Acknowledged> {
    let said = calls.iter().filter(|call| call.name == "write" && call.arguments.starts_with("1<"));
    said.filter_map(|call| {
        let text = call.texts().first()?.strip_suffix("\\n")?;
        let (seq, marker) = acknowledgement(text)?;
        Some(Acknowledged { seq, marker, at: call.begins })
    })
    .collect()
}

fn is_sync(call: &Call) -> bool {
    call.name == "fdatasync" || call.name == "fsync"
}

/// A sync of `path` that began after one line and was over, without an error, before another.
fn is_synced(calls: &[Call], path: &str, after: usize, before: usize) -> bool {
    let mut syncs = calls.iter().filter(|call| is_sync(call) && call.path() == Some(path));
    syncs.any(|sync| sync.result == Some(0) && sync.begins > after && sync.ends < before)
}

/// The record went to a segment with a write that wrote all it was given, and that segment was synced since.
fn check_contents<'a>(calls: &'a [Call], said: &Acknowledged) -> &'a str {
    let mut writes = calls.iter().filter(|call| {
        call.name.starts_with("pwrite")
            && call.path().is_some_and(|path| path.ends_with(".seg"))
            && call.texts().first().is_some_and(|bytes| bytes.contains(&said.marker))
    });
    let write = writes.next().unwrap_or_else(|| panic!("record {} was never written", said.seq));
    let asked = write.arguments.rsplit(", ").nth(1).and_then(|len| len.parse().ok());
    assert_eq!(write.result, asked, "record {}: a short write", said.seq);
    let path = write.path().unwrap();
    assert!(
        is_synced(calls, path, write.ends, said.at),
        "record {} was acknowledged at line {} without a sync of {path} since its write at line {}",
        said.seq,
        said.at,
        write.ends
    );
    path
}

/// The segment got its name, and the directory was synced since.
fn check_name(calls: &[Call], said: &Acknowledged, path: &str, directory: &str) {
    let mut renamed =
        calls.iter().filter(|call| call.name.starts_with("rename") && call.texts().get(1) == Some(&path));
    let named = renamed.next_back().unwrap_or_else(|| panic!("{path} never got its name"));
    assert_eq!(named.result, Some(0));
    assert!(
        is_synced(calls, directory, named.ends, said.at),
        "record {} was acknowledged at line {} without a sync of the directory since {path} got its name at line {}",
        said.seq,
        said.at,
        named.ends
    );
}

fn check(calls: &[Call], directory: &Path) -> usize {
    let said = acknowledgements(calls);
    for said in &said {
        let path = check_contents(calls, said);
        check_name(calls, said, path, directory.to_str().unwrap());
    }
    // No failed sync is ignored: nothing is acknowledged that was not synced well before it.
    let failed = calls.iter().filter(|call| is_sync(call)).find(|call| call.result != Some(0));
    if let Some(failed) = failed {
        assert!(
            said.iter().all(|said| said.at < failed.ends || is_before(calls, said, failed)),
            "{failed:?}"
        );
    }
    said.len()
}

/// Whether what made the record durable was over before `failed` began.
fn is_before(calls: &[Call], said: &Acknowledged, failed: &Call) -> bool {
    let path = check_contents(calls, said);
    let written = calls.iter().find(|call| {
        call.name.starts_with("pwrite")
            && call.texts().first().is_some_and(|bytes| bytes.contains(&said.marker))
    });
    written.is_some_and(|write| is_synced(calls, path, write.ends, failed.begins))
}

#[test]
fn every_acknowledgement_comes_after_the_syncs_that_make_it_true() {
    if !can_trace() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("journal");
    let calls = traced(&directory, &[], 100);
    assert_eq!(check(&calls, &directory), 200);
    assert!(calls.iter().all(|call| !is_sync(call) || call.result == Some(0)));
    let (report, _) = look(&directory);
    assert!(report.segments.len() > 1, "it went over several segments");
}

/// A sync that fails in the kernel's name, at several places: nobody is told that it did not matter.
#[test]
fn a_sync_that_fails_is_never_ignored() {
    if !can_trace() {
        return;
    }
    // Counted thread by thread; opening the journal takes four syncs of directories on the main thread.
    for (syncs, when, records) in [("fdatasync", 3, 100), ("fdatasync", 8, 100), ("fsync", 5, 800)] {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("journal");
        let fails = format!("inject={syncs}:error=EIO:when={when}");
        let calls = traced(&directory, &["-e", &fails], records);
        let failed = calls.iter().filter(|call| is_sync(call) && call.result != Some(0)).count();
        assert!(failed > 0, "{syncs} {when} was never reached");
        let acknowledged = check(&calls, &directory);
        assert!(
            acknowledged < 2 * usize::try_from(records).unwrap(),
            "{syncs} {when}: {acknowledged} acknowledged"
        );
        let told = calls.iter().any(|call| call.texts().first() == Some(&"poisoned\\n"));
        assert!(told, "{syncs} {when}");
        let (_, records) = look(&directory);
        assert!(records.len() >= acknowledged, "{} of {acknowledged}", records.len());
    }
}
