//! A simulated disk with one journal on it, driven by hand: each drain is one step, nothing runs in the background.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline::core::{
    Accepted, AppendError, Completion, Config, JournalName, Monotonic, Output, Pryj, ReadUpTo, RecoveryError,
    Refusal, Report, ScanOptions, SegmentId, Seq, Timestamp, Verdict, verdict::Row,
};
use strandline::{
    Access, Disk, Inspection, ListingError, OfflineStep, Performer, Target, core, files_of, inspect_on,
    recover,
};
use strandline_sim::disk::{DiskState, SimDisk, Survivors};

pub(crate) const JOURNAL: &str = "events";

/// The disk.
pub(crate) struct Lab {
    pub(crate) disk: SimDisk,
}

/// An open journal on it.
pub(crate) struct Open {
    pub(crate) core: core::Journal<Pryj>,
    pub(crate) report: Report,
    performer: Performer<SimDisk>,
    now: u64,
}

pub(crate) fn config() -> Config {
    Config { reserve_bytes: 0, ..Config::new(42, Timestamp::from_millis(1_000)) }
}

pub(crate) fn name() -> JournalName {
    JournalName::parse(JOURNAL).unwrap()
}

/// The file of the segment that begins with `first`.
pub(crate) fn file(first: u64) -> String {
    name().segment_file(SegmentId(Seq::new(first)))
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self { disk: SimDisk::new(512) }
    }

    pub(crate) fn from(state: DiskState) -> Self {
        Self { disk: SimDisk::from_state(state) }
    }

    /// A lab whose journal holds these commits, each of these payload lengths, and was then left as a kill
    /// leaves it.
    pub(crate) fn with_commits(config: Config, commits: &[&[usize]]) -> Self {
        let lab = Self::new();
        let mut open = lab.open(config);
        for commit in commits {
            open.commit(commit);
        }
        lab
    }

    pub(crate) fn try_open(&self, config: Config) -> Result<Open, RecoveryError> {
        let performer = Performer::new(Arc::new(self.disk.clone()), name());
        let listing = match files_of(&self.disk, &name()) {
            Ok(files) => files.listing,
            // The machine died before it could be listed.
            Err(ListingError::Io(failure)) => {
                let (step, segment) = ("list", SegmentId(Seq::ZERO));
                return Err(RecoveryError::Failed { step, segment, failure });
            }
            Err(other) => panic!("{other}"),
        };
        let (core, report) = recover(&performer, config, listing)?;
        Ok(Open { core, report, performer, now: 0 })
    }

    pub(crate) fn open(&self, config: Config) -> Open {
        self.try_open(config).unwrap()
    }

    /// The refusal, and that it changed nothing.
    pub(crate) fn refusal(&self, config: Config) -> Refusal {
        let before = self.files();
        let refusal = match self.try_open(config) {
            Err(RecoveryError::Refused { refusal, .. }) => refusal,
            Err(other) => panic!("{other}"),
            Ok(open) => panic!("opened: {:?}", open.report),
        };
        assert_eq!(self.files(), before, "a refusal changes no byte");
        assert_eq!(self.inspect().report.verdict, Verdict::Refused(refusal), "every reader agrees");
        refusal
    }

    /// The refusal's row, segment and offset.
    pub(crate) fn damage(&self) -> (Row, u64, u64) {
        match self.refusal(config()) {
            Refusal::Damaged { segment, offset, row, .. } => (row, segment.0.get(), offset),
            other => panic!("{other}"),
        }
    }

    pub(crate) fn inspect(&self) -> Inspection<Pryj, SimDisk> {
        inspect_on(Arc::new(self.disk.clone()), Target::Journal(name()), ScanOptions::default()).unwrap()
    }

    /// Every valid record, as an offline reader sees it.
    pub(crate) fn records(&self) -> Vec<(u64, Vec<u8>)> {
        let mut reader = self.inspect().reader(Seq::ZERO, ReadUpTo::Written);
        let mut records = Vec::new();
        loop {
            match reader.next_batch().unwrap() {
                OfflineStep::Records(batch) => {
                    records.extend(batch.records().map(|r| (r.seq.get(), r.payload.to_vec())));
                }
                OfflineStep::Trimmed { .. } => {}
                OfflineStep::End => return records,
            }
        }
    }

    /// The sequence numbers of every valid record.
    pub(crate) fn seqs(&self) -> Vec<u64> {
        self.records().into_iter().map(|(seq, _)| seq).collect()
    }

    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.disk.state().files().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.disk.state().file(name).unwrap().to_vec()
    }

    /// Writes a whole file durably, as another program would.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let _ = self.disk.remove(name);
        let file = self.disk.create(name).unwrap();
        write(&self.disk, &file, bytes);
        self.disk.sync(&file).unwrap();
        self.disk.sync_directory().unwrap();
    }

    /// Changes a file's bytes durably.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.bytes(name);
        change(&mut bytes);
        let file = self.disk.open(name, Access::ReadWrite).unwrap();
        self.disk.set_len(&file, 0).unwrap();
        write(&self.disk, &file, &bytes);
        self.disk.sync(&file).unwrap();
    }

    pub(crate) fn flip(&self, name: &str, offset: usize) {
        self.edit(name, |bytes| bytes[offset] ^= 1);
    }

    pub(crate) fn power_loss(&self, survivors: Survivors) -> Self {
        Self::from(self.disk.state().power_loss(survivors))
    }

    pub(crate) fn kill(&self) -> Self {
        Self::from(self.disk.state())
    }
}

impl Open {
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<Accepted, AppendError> {
        self.core.append(Timestamp::from_millis(2_000), payload)
    }

    /// Appends records of these lengths, each filled with its sequence number, and drains.
    pub(crate) fn commit(&mut self, lens: &[usize]) -> Vec<Output> {
        for len in lens {
            let fill = self.core.next_seq().get().to_le_bytes()[0] | 0x80;
            self.append(&vec![fill; *len]).unwrap();
        }
        self.drain()
    }

    /// Performs everything that the journal wants, and gives what it told.
    pub(crate) fn drain(&mut self) -> Vec<Output> {
        let mut told = Vec::new();
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Effect { id, effect } => {
                    let result = self.performer.perform(&effect);
                    self.core.handle_completion(Completion { id, result });
                }
                other => told.push(other),
            }
        }
        told
    }

    /// Lets a second pass, so that an idle mark is written.
    pub(crate) fn idle(&mut self) -> Vec<Output> {
        let mut told = Vec::new();
        for _ in 0..2 {
            self.now += 1_000;
            self.core.tick(Monotonic::from_millis(self.now));
            told.extend(self.drain());
        }
        told
    }

    pub(crate) fn close(mut self) {
        self.core.close();
        assert_eq!(self.drain().last(), Some(&Output::Closed));
    }

    pub(crate) fn durable_end(&self) -> u64 {
        self.core.view().durable_end().get()
    }
}

fn write(disk: &SimDisk, file: &<SimDisk as Disk>::File, mut bytes: &[u8]) {
    let mut offset = 0;
    while !bytes.is_empty() {
        let written = disk.write_at(file, offset, bytes).unwrap();
        bytes = &bytes[written..];
        offset += written as u64;
    }
}
