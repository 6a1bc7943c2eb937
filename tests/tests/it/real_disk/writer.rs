//! The writer process, and what is there to be read once it is gone.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use strandline::{
    Directory, Journal, JournalName, OfflineStep, Pryj, ReadUpTo, Report, ScanOptions, Seq, StdDisk, config,
    inspect, journals,
};

/// The program.
pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_strandline-writer");

/// What is there, by number.
pub(super) type Records = BTreeMap<u64, Vec<u8>>;

/// A writer that does what it is told.
pub(super) struct Obedient {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Obedient {
    /// Starts a command that ends in the writer.
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, answers }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Has it do something; gives what was acknowledged meanwhile, as number and marker, and the last word.
    pub(super) fn tell(&mut self, command: &str) -> (Vec<(u64, String)>, String) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{command}").unwrap();
        let mut acknowledged = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the writer ended: {command}");
            match acknowledgement(line.trim_end()) {
                Some(record) => acknowledged.push(record),
                None => return (acknowledged, line.trim_end().to_string()),
            }
        }
    }

    /// Waits for its end.
    pub(super) fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// What a line of the writer's says was acknowledged.
pub(super) fn acknowledgement(line: &str) -> Option<(u64, String)> {
    let (seq, marker) = line.split_once(' ')?;
    marker.starts_with('<').then_some(())?;
    Some((seq.parse().ok()?, marker.to_string()))
}

/// Looks at the journal without opening it, as `verify` and `cat` do.
pub(super) fn look(directory: &Path) -> (Report, Records) {
    let name = journal_name();
    let found = inspect::<Pryj>(directory, &name, ScanOptions::default()).unwrap();
    let mut reader = found.reader(Seq::ZERO, ReadUpTo::Written);
    let mut records = Records::new();
    loop {
        match reader.next_batch().unwrap() {
            OfflineStep::Records(batch) => {
                records.extend(batch.records().map(|record| (record.seq.get(), record.payload.to_vec())));
            }
            OfflineStep::Trimmed { .. } => {}
            OfflineStep::End => return (found.report, records),
        }
    }
}

/// Whether a segment has its name yet.
pub(super) fn exists(directory: &Path) -> bool {
    !journals(&StdDisk::open(directory).unwrap()).unwrap().is_empty()
}

fn journal_name() -> JournalName {
    JournalName::parse("a").unwrap()
}

/// Opens the journal for writing.
pub(super) fn reopen(directory: &Path) -> (Journal<Pryj>, Report) {
    Directory::open(directory).unwrap().journal("a", config()).unwrap()
}

/// The three numbers of a payload or marker; none if it is of nobody's making.
pub(super) fn numbers(payload: &[u8]) -> Option<(u64, u64, u64)> {
    let text = std::str::from_utf8(payload).ok()?;
    let (marker, _) = text.strip_prefix('<')?.split_once('>')?;
    let mut numbers = marker.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}
