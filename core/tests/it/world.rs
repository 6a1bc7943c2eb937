//! A world in memory that performs effects at once, and the few steps that every test takes.

use std::collections::BTreeMap;

use bytes::Bytes;
use strandline_core::{
    Answer, Completion, Config, Cursor, Effect, Framing, IoFailure, Journal, Listing, Monotonic, Output,
    ReadRequest, ReadUpTo, Recovery, RecoveryError, RecoveryStep, Replay, Report, Scan, ScanOptions,
    ScanStep, SegmentFile, SegmentId, Seq, Timestamp, View,
};

/// Decides whether an effect fails, and how.
pub(crate) type Fault = Box<dyn FnMut(&Effect) -> Option<IoFailure>>;

/// Files by segment, and what was done to them.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) files: BTreeMap<SegmentId, Vec<u8>>,
    pub(crate) set_aside: BTreeMap<(SegmentId, u64), Vec<u8>>,
    pub(crate) log: Vec<Effect>,
    pub(crate) fault: Option<Fault>,
}

impl World {
    pub(crate) fn listing(&self) -> Listing {
        let file = |(id, bytes): (&SegmentId, &Vec<u8>)| SegmentFile { id: *id, len: bytes.len() as u64 };
        Listing::Segments(self.files.iter().map(file).collect())
    }

    pub(crate) fn perform(&mut self, effect: &Effect) -> Result<(), IoFailure> {
        self.log.push(effect.clone());
        if let Some(failure) = self.fault.as_mut().and_then(|fault| fault(effect)) {
            return Err(failure);
        }
        match effect {
            Effect::Create { segment, head, reserve } => {
                let mut bytes = head.to_vec();
                bytes.resize(usize::try_from(*reserve).unwrap(), 0);
                self.files.insert(*segment, bytes);
            }
            Effect::Reserve { segment, from, to } => {
                let zeros = vec![0; usize::try_from(to - from).unwrap()];
                self.write(*segment, *from, &zeros);
            }
            Effect::Write { segment, offset, data } => self.write(*segment, *offset, data),
            Effect::Truncate { segment, len } => {
                self.files.get_mut(segment).unwrap().resize(usize::try_from(*len).unwrap(), 0);
            }
            Effect::SetAside { segment, offset, len } => {
                let bytes = self.slice(*segment, *offset, usize::try_from(*len).unwrap()).to_vec();
                self.set_aside.insert((*segment, *offset), bytes);
            }
            Effect::Remove { segment } => {
                self.files.remove(segment);
            }
            Effect::Sync { .. } | Effect::SyncDirectory | Effect::RemoveTemporaries | Effect::Read(_) => {}
        }
        Ok(())
    }

    pub(crate) fn slice(&self, segment: SegmentId, offset: u64, len: usize) -> &[u8] {
        let file = &self.files[&segment];
        let start = usize::try_from(offset).unwrap().min(file.len());
        &file[start..file.len().min(start + len)]
    }

    pub(crate) fn last_file(&mut self) -> &mut Vec<u8> {
        self.files.last_entry().unwrap().into_mut()
    }

    fn write(&mut self, segment: SegmentId, offset: u64, data: &[u8]) {
        let file = self.files.get_mut(&segment).unwrap();
        let start = usize::try_from(offset).unwrap();
        if file.len() < start + data.len() {
            file.resize(start + data.len(), 0);
        }
        file[start..start + data.len()].copy_from_slice(data);
    }
}

/// Small limits, so that edges come up all the time; no reserve, so that files are exact.
pub(crate) fn small(version: u8) -> Config {
    Config {
        version,
        segment_bytes: 1 << 20,
        reserve_bytes: 0,
        ..Config::new(7, Timestamp::from_millis(1_000))
    }
}

pub(crate) fn open<F: Framing>(
    world: &mut World,
    config: Config,
) -> Result<(Box<Journal<F>>, Box<Report>), RecoveryError> {
    let mut step = Recovery::<F>::start(config, world.listing());
    loop {
        match step {
            RecoveryStep::Done(journal, report) => return Ok((journal, report)),
            RecoveryStep::Perform(effect, recovery) => {
                let done = world.perform(&effect);
                let answer = match (&effect, &done) {
                    (_, Err(failure)) => Answer::Failed(*failure),
                    (Effect::Read(read), Ok(())) => {
                        Answer::Bytes(world.slice(read.segment, read.offset, read.len))
                    }
                    (_, Ok(())) => Answer::Done,
                };
                step = recovery.resume(answer)?;
            }
        }
    }
}

/// Drains the journal, performing every effect, and gives what it told.
pub(crate) fn drain<F: Framing>(journal: &mut Journal<F>, world: &mut World) -> Vec<Output> {
    let mut told = Vec::new();
    while let Some(output) = journal.poll_output() {
        match output {
            Output::Effect { id, effect } => {
                let result = world.perform(&effect);
                journal.handle_completion(Completion { id, result });
            }
            other => told.push(other),
        }
    }
    told
}

/// Lets time pass until nothing is due any more.
pub(crate) fn idle<F: Framing>(journal: &mut Journal<F>, world: &mut World) -> Vec<Output> {
    let mut told = drain(journal, world);
    for round in 0..10 {
        let Some(deadline) = journal.next_deadline() else { break };
        assert!(round < 9, "an idle journal comes to rest");
        journal.tick(Monotonic::from_millis(deadline.as_millis()));
        told.extend(drain(journal, world));
        journal.tick(Monotonic::from_millis(deadline.as_millis() + 1_000));
    }
    told
}

pub(crate) fn close<F: Framing>(mut journal: Box<Journal<F>>, world: &mut World) {
    journal.close();
    assert_eq!(drain(&mut journal, world).last(), Some(&Output::Closed));
}

pub(crate) fn scan<F: Framing>(
    world: &World,
    listing: Listing,
    options: ScanOptions,
) -> (Box<View<F>>, Box<Report>) {
    let mut step = Scan::<F>::start(listing, options);
    loop {
        match step {
            ScanStep::Done(view, report) => return (view, report),
            ScanStep::Read(ReadRequest { segment, offset, len }, scan) => {
                step = scan.resume(Ok(world.slice(segment, offset, len)));
            }
        }
    }
}

pub(crate) fn scan_all<F: Framing>(world: &World) -> (Box<View<F>>, Box<Report>) {
    scan(world, world.listing(), ScanOptions::default())
}

/// Reads everything from `from` on through a cursor.
pub(crate) fn read_from<F: Framing, T>(
    world: &World,
    view: &View<F>,
    from: Seq,
    until: ReadUpTo,
    take: impl Fn(F::Record<'_>) -> T,
) -> Vec<T> {
    let mut cursor = Cursor::<F>::new(from, until);
    let mut taken = Vec::new();
    loop {
        match cursor.poll(view) {
            Replay::Records(batch) => taken.extend(batch.records().map(&take)),
            Replay::Read(read) => {
                let bytes = Bytes::copy_from_slice(world.slice(read.segment, read.offset, read.len));
                cursor.handle_read(Ok(bytes)).unwrap();
            }
            Replay::CaughtUp => return taken,
            Replay::Trimmed { .. } => {}
            Replay::Beyond { .. } => panic!("reading begins within the journal"),
        }
    }
}

/// Every payload of an opaque journal, read through a cursor over the files alone.
pub(crate) fn payloads(world: &World) -> Vec<(u64, Vec<u8>)> {
    let (view, _) = scan_all::<strandline_core::Pryj>(world);
    let first = view.first();
    read_from(world, &view, first, ReadUpTo::Written, |r| (r.seq.get(), r.payload.to_vec()))
}

pub(crate) const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

pub(crate) fn effects_of(world: &World, from: usize) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::Create { .. } => "create",
        Effect::Reserve { .. } => "reserve",
        Effect::Write { .. } => "write",
        Effect::Sync { .. } => "sync",
        Effect::Truncate { .. } => "truncate",
        Effect::SetAside { .. } => "set aside",
        Effect::Remove { .. } => "remove",
        Effect::SyncDirectory => "sync directory",
        Effect::RemoveTemporaries => "remove temporaries",
        Effect::Read(_) => "read",
    };
    world.log[from..].iter().map(name).collect()
}
