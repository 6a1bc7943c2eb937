//! A world in memory that performs effects at once, and the few steps that every test takes.

use std::collections::BTreeMap;

use bytes::Bytes;
use strandline_core::{
    Answer, Completion, Config, Cursor, Effect, EffectId, Framing, IoFailure, Journal, Listing, Monotonic,
    Output, ReadRequest, ReadUpTo, Recovery, RecoveryError, RecoveryStep, Replay, Report, Scan, ScanOptions,
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

    /// More reads than this nobody needs for these files: each of the passes over them takes two at most to go on
    /// by a whole read, and a few at the edges of a file.
    fn reads_max(&self) -> usize {
        let reads: usize = self.files.values().map(|file| 4 + file.len() / ReadRequest::LEN_MAX).sum();
        4 + 8 * reads
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
    // What is written again is read and written once more, and a few steps come before and behind.
    let mut steps = 16 + 2 * world.reads_max();
    loop {
        match step {
            RecoveryStep::Done(journal, report) => return Ok((journal, report)),
            RecoveryStep::Perform(effect, recovery) => {
                steps = steps.checked_sub(1).expect("an opening comes to an end");
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
    let mut effects = 0..10_000;
    while let Some(output) = journal.poll_output() {
        match output {
            Output::Effect { id, effect } => {
                effects.next().expect("a journal comes to rest");
                let result = world.perform(&effect);
                journal.handle_completion(Completion { id, result });
            }
            other => told.push(other),
        }
    }
    told
}

/// Takes what the journal wants now and performs none of it: the effects that are outstanding, and what it told.
pub(crate) fn take<F: Framing>(journal: &mut Journal<F>) -> (Vec<(EffectId, Effect)>, Vec<Output>) {
    let (mut effects, mut told) = (Vec::new(), Vec::new());
    while let Some(output) = journal.poll_output() {
        match output {
            Output::Effect { id, effect } => effects.push((id, effect)),
            other => told.push(other),
        }
        assert!(effects.len() <= 3, "one effect on the commit path, one reserve, one removal: {effects:?}");
    }
    (effects, told)
}

/// Takes the one effect that the journal wants now.
pub(crate) fn take_one<F: Framing>(journal: &mut Journal<F>) -> (EffectId, Effect) {
    let (mut effects, told) = take(journal);
    assert_eq!((effects.len(), told.len()), (1, 0), "{effects:?} {told:?}");
    effects.remove(0)
}

/// Performs an effect that was taken, and hands the answer in.
pub(crate) fn answer<F: Framing>(
    journal: &mut Journal<F>,
    world: &mut World,
    (id, effect): (EffectId, Effect),
) {
    let result = world.perform(&effect);
    journal.handle_completion(Completion { id, result });
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
    let mut reads = 0..world.reads_max();
    loop {
        match step {
            ScanStep::Done(view, report) => return (view, report),
            ScanStep::Read(ReadRequest { segment, offset, len }, scan) => {
                reads.next().expect("a scan comes to an end");
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
    let mut reads = 0..world.reads_max();
    loop {
        match cursor.poll(view) {
            Replay::Records(batch) => taken.extend(batch.records().map(&take)),
            Replay::Read(read) => {
                reads.next().expect("a reader comes to the end");
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
