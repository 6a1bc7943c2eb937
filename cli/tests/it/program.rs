//! Running the binary, and looking at what it left.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Whoever waits longer than this for a line waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that is gone after the test, and a journal's place in it.
pub(crate) struct Place {
    root: TempDir,
    pub(crate) journal: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let journal = root.path().join("journal");
        Self { root, journal }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.journal.join(name)
    }

    /// Something beside the journal's directory.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// `strandline COMMAND JOURNAL FLAGS` without input.
    pub(crate) fn run(&self, command: &str, flags: &[&str]) -> Ran {
        self.feed(command, flags, b"")
    }

    /// The same with standard input.
    pub(crate) fn feed(&self, command: &str, flags: &[&str], input: &[u8]) -> Ran {
        feed(program(command).arg(&self.journal).args(flags), input)
    }

    /// Records lines that are all good.
    pub(crate) fn record(&self, lines: &str) {
        let ran = self.feed("record", &[], lines.as_bytes());
        assert_eq!((ran.code, &*ran.err), (0, ""), "{ran:?}");
    }

    pub(crate) fn verdict(&self) -> Value {
        serde_json::from_slice(&self.run("verify", &["--json"]).out).unwrap()
    }

    /// The journal's first segment file.
    pub(crate) fn segment(&self) -> PathBuf {
        self.path("event-journal-00000000000000000001.seg")
    }

    /// Every file and its bytes.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files_of(&self.journal)
    }
}

pub(crate) fn files_of(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| (name(&entry.file_name()), fs::read(entry.path()).unwrap())).collect()
}

fn name(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// How a run ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// For messages: the beginning of standard output is enough.
impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let out = String::from_utf8_lossy(self.out.get(..500).unwrap_or(&self.out));
        write!(f, "exit code {}\nstdout ({} bytes): {out}\nstderr: {}", self.code, self.out.len(), self.err)
    }
}

impl Ran {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text().lines().collect()
    }

    /// Standard output as one JSON value a line.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Holds the exit code, and that standard error is one line of ours that says these words.
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.starts_with("strandline: "), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {self:?}");
        }
    }

    /// Holds that all went well and nothing was said.
    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!((self.code, &*self.err), (0, ""), "{self:?}");
        self
    }
}

pub(crate) fn program(command: &str) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_strandline"));
    program.arg(command);
    program
}

/// Runs with this input. A program that stops reading early is none of the feeder's business.
pub(crate) fn feed(program: &mut Command, input: &[u8]) -> Ran {
    let mut child =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    });
    let err = String::from_utf8(output.stderr).unwrap();
    Ran { code: output.status.code().unwrap(), out: output.stdout, err }
}

/// A program that runs beside the test; killed if the test ends before.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(program: &mut Command) -> Self {
        let mut child =
            program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, stdin, lines }
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Standard input; `None` once it was closed.
    pub(crate) fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The next line on standard output.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// The next line on standard output; none if it ended.
    pub(crate) fn line_or_end(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line for {PATIENCE:?}"),
        }
    }

    /// Kills it with SIGKILL; gives all lines that were not read yet. A last line that was cut short is none.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Tells it to end, waits, and gives the exit code, and the rest of standard output and error.
    pub(crate) fn terminate(self) -> (i32, Vec<String>, String) {
        let told = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(told.unwrap().success());
        self.finish()
    }

    /// Closes its input, waits, and gives the exit code, and the rest of standard output and error.
    pub(crate) fn finish(mut self) -> (i32, Vec<String>, String) {
        drop(self.stdin.take());
        let lines = self.lines.iter().collect();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code().unwrap(), lines, err)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
