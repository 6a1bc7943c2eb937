//! A simulated machine on which no journal is open: its disk, its clocks, and what the oracle knows.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use strandline::{Performer, files_of};
use strandline_core::{
    Answer, Effect, IoFailure, Journal, JournalName, Listing, Monotonic, ReadRequest, Recovery,
    RecoveryError, RecoveryStep, Refusal, Report, Scan, ScanOptions, ScanStep, Timestamp, Verdict, View,
};

use super::reading::read_all;
use super::running::Running;
use crate::disk::{DiskState, SimDisk, Snapshot};
use crate::interpreter::Interpreter;
use crate::oracle::{Oracle, Recovered};
use crate::violation::{Broken, Check, Loss};
use crate::workload::{EPOCH_MS, Settings, SimFraming, SimRng, Stream};

/// The journal's name on every simulated disk.
const NAME: &str = "journal";

/// How often an opening is tried again when a fault of the disk is to blame.
const TRIES: usize = 3;

/// What a crash at certain steps leaves, and what must hold then.
pub(crate) struct Moment {
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) world: Rc<World>,
}

/// What a crash leaves alone: everything outside the machine.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) oracle: Oracle,
    pub(crate) clock: Timestamp,
    pub(crate) now: Monotonic,
    /// How often a journal was opened.
    pub(crate) openings: u64,
    /// How many records were submitted.
    pub(crate) submitted: u64,
}

/// A buffer that all machines of an exploration read into, so that opening does not allocate one each time.
pub(crate) type SharedBuffer = Rc<RefCell<Vec<u8>>>;

/// A buffer that serves every request for a frame of ordinary size.
pub(crate) fn shared_buffer() -> SharedBuffer {
    Rc::new(RefCell::new(vec![0; ReadRequest::LEN_MAX]))
}

/// A machine with its journal closed: never opened, cleanly closed, or crashed.
pub(crate) struct Machine<'a, F, D> {
    pub(crate) settings: &'a Settings,
    pub(crate) disk: SimDisk,
    pub(crate) world: World,
    /// Decides which of several outstanding effects goes first.
    pub(crate) order: SimRng,
    /// What was recorded and not taken yet.
    pub(crate) moments: Vec<Moment>,
    pub(crate) recording: bool,
    /// Lines for the trace; none unless somebody wants them.
    pub(crate) log: Option<Vec<String>>,
    pub(crate) buffer: SharedBuffer,
    pub(crate) kind: PhantomData<fn() -> (F, D)>,
}

impl<'a, F: SimFraming, D: Interpreter> Machine<'a, F, D> {
    /// A machine with an empty disk, on which no journal was ever opened.
    pub(crate) fn new(settings: &'a Settings, buffer: SharedBuffer) -> Self {
        let world = World {
            oracle: Oracle::new(settings.first_seq, settings.version >= 2),
            clock: Timestamp::from_millis(EPOCH_MS),
            now: Monotonic::from_millis(0),
            openings: 0,
            submitted: 0,
        };
        Self::start(settings, DiskState::new(settings.sector_bytes), world, buffer)
    }

    /// A machine that starts with this disk, in this world.
    pub(crate) fn start(
        settings: &'a Settings,
        state: DiskState,
        world: World,
        buffer: SharedBuffer,
    ) -> Self {
        Self {
            settings,
            disk: SimDisk::from_state(state),
            world,
            order: crate::workload::rng(settings.seed, Stream::Order),
            moments: Vec::new(),
            recording: false,
            log: None,
            buffer,
            kind: PhantomData,
        }
    }

    /// Starts or stops to record what a crash at each step would leave.
    pub(crate) fn recording(mut self, on: bool) -> Self {
        self.recording = on;
        if on {
            self.disk.record();
        }
        self
    }

    /// Stops the machine like this.
    pub(crate) fn lose(self, loss: Loss) -> Self {
        let recording = self.recording;
        let state = match loss {
            Loss::Kill => self.disk.state(),
            Loss::Power(survivors) => self.disk.state().power_loss(survivors),
        };
        Self { disk: SimDisk::from_state(state), ..self }.recording(recording)
    }

    /// Opens the journal after such a loss, and checks everything that can be seen.
    ///
    /// # Errors
    /// The first check that does not hold.
    pub(crate) fn open(mut self, loss: Loss) -> Result<(Running<'a, F, D>, Report), Broken> {
        self.world.openings += 1;
        let performer = self.performer();
        let scanned =
            if self.disk.state().files().next().is_some() { Some(self.scan(&performer)?) } else { None };
        let (journal, report) = self.recover()?;
        let found = Recovered { first: journal.view().first(), end: journal.view().written_end() };
        self.check_agreement(&journal, &report, scanned.as_ref().map(|(_, report)| report))?;
        self.world.oracle.check_recovered(loss, found)?;
        if let Some((view, _)) = &scanned {
            read_all(&self, &performer, view, found)?;
        }
        self.world.oracle.settle(found);
        let mut running = Running::new(self, performer, journal);
        running.read_everything()?;
        Ok((running, report))
    }

    /// Notes what a crash at the last steps would have left.
    pub(crate) fn record_moment(&mut self) {
        if !self.recording {
            return;
        }
        let snapshots = self.disk.take_snapshots();
        if !snapshots.is_empty() {
            self.moments.push(Moment { snapshots, world: Rc::new(self.world.clone()) });
        }
    }

    /// Adds a line to the log, made only if somebody wants it.
    pub(crate) fn log(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }

    fn performer(&self) -> Performer<D> {
        Performer::new(Arc::new(D::over(self.disk.clone())), journal_name())
    }

    /// Recovers, again where a fault of the disk is to blame, without that fault then.
    fn recover(&mut self) -> Result<(Box<Journal<F>>, Report), Broken> {
        let mut tries = 0;
        loop {
            // A process has its own handles.
            let performer = self.performer();
            let error = match self.recover_once(&performer)? {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            self.log(|| format!("not opened: {error}"));
            tries += 1;
            match &error {
                RecoveryError::Failed { .. } if self.disk.relieve() && tries < TRIES => {}
                RecoveryError::Refused { refusal: Refusal::Unreadable { .. }, .. }
                    if self.disk.relieve() && tries < TRIES => {}
                RecoveryError::Refused { .. } => {
                    return Err(Check::NeverRefusedAfterPlainCrash.broken(error.to_string()));
                }
                _ => return Err(Check::WorkCompletes.broken(error.to_string())),
            }
        }
    }

    fn recover_once(&mut self, performer: &Performer<D>) -> Result<Recovery1<F>, Broken> {
        let listing = self.listing(performer)?;
        let config = self.settings.config(self.world.openings, self.world.clock);
        let mut step = Recovery::<F>::start(config, listing);
        loop {
            let (effect, recovery) = match step {
                RecoveryStep::Perform(effect, recovery) => (effect, recovery),
                RecoveryStep::Done(journal, report) => return Ok(Ok((journal, *report))),
            };
            let resumed = match &effect {
                Effect::Read(request) => {
                    let buffer = Rc::clone(&self.buffer);
                    let buffer = &mut *buffer.borrow_mut();
                    let answer = read_into(performer, *request, buffer);
                    self.record_moment();
                    recovery.resume(answer.map_or_else(Answer::Failed, Answer::Bytes))
                }
                effect => {
                    let result = performer.perform(effect);
                    self.record_moment();
                    self.log(|| format!("recovery: {} {}", describe(effect), outcome(result)));
                    recovery.resume(result.map_or_else(Answer::Failed, |()| Answer::Done))
                }
            };
            match resumed {
                Ok(next) => step = next,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    fn listing(&self, performer: &Performer<D>) -> Result<Listing, Broken> {
        let files = files_of(&**performer.disk(), performer.journal());
        files.map(|files| files.listing).map_err(|error| Check::WorkCompletes.broken(error.to_string()))
    }

    /// Reads the journal as somebody without the writer would.
    fn scan(&self, performer: &Performer<D>) -> Result<(View<F>, Report), Broken> {
        let options =
            ScanOptions { policy: self.settings.recovery, block_bytes: self.settings.sector_bytes as u64 };
        let buffer = &mut *self.buffer.borrow_mut();
        let mut step = Scan::<F>::start(self.listing(performer)?, options);
        loop {
            match step {
                ScanStep::Read(request, scan) => step = scan.resume(read_into(performer, request, buffer)),
                ScanStep::Done(view, report) => return Ok((*view, *report)),
            }
        }
    }

    /// Recovery saw what the scan saw, and the open journal shows it.
    fn check_agreement(
        &self,
        journal: &Journal<F>,
        report: &Report,
        scan: Option<&Report>,
    ) -> Result<(), Broken> {
        let disagree = |detail: String| Err(Check::EveryReaderAgrees.broken(detail));
        let view = journal.view();
        if view.durable_end() != view.written_end() || journal.next_seq() != view.written_end() {
            let (durable, written) = (view.durable_end(), view.written_end());
            let next = journal.next_seq();
            return disagree(format!("opened with durable {durable}, written {written}, next {next}"));
        }
        if report.end != view.written_end() || report.first != view.first() {
            let (first, end) = (view.first(), view.written_end());
            return disagree(format!(
                "recovery reported {}..{}, the journal shows {first}..{end}",
                report.first, report.end
            ));
        }
        let Some(scan) = scan else { return Ok(()) };
        if (scan.first, scan.end, &scan.verdict) != (report.first, report.end, &report.verdict) {
            return disagree(format!(
                "the scan says {:?} {}..{}, recovery says {:?} {}..{}",
                scan.verdict, scan.first, scan.end, report.verdict, report.first, report.end
            ));
        }
        Ok(())
    }
}

/// A recovered journal, or why it was not.
type Recovery1<F> = Result<(Box<Journal<F>>, Report), RecoveryError>;

/// Whether a report calls for no repair.
pub(crate) fn is_clean(report: &Report) -> bool {
    report.verdict == Verdict::Sound && !report.repair.cut && !report.repair.set_aside
}

/// Reads what is asked for into the buffer, which grows for an oversized frame.
pub(crate) fn read_into<'b, D: Interpreter>(
    performer: &Performer<D>,
    request: ReadRequest,
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8], IoFailure> {
    if buffer.len() < request.len {
        buffer.resize(request.len, 0);
    }
    let read = performer.read(request, buffer)?;
    Ok(buffer.get(..read).unwrap_or_default())
}

/// An effect in a few words.
pub(crate) fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Create { segment, head, reserve } => {
            format!("create {} head {} reserve {reserve}", segment.0, head.len())
        }
        Effect::Reserve { segment, from, to } => format!("reserve {} {from}..{to}", segment.0),
        Effect::Write { segment, offset, data } => {
            format!("write {} {offset}..{}", segment.0, offset + data.len() as u64)
        }
        Effect::Sync { segment } => format!("sync {}", segment.0),
        Effect::Truncate { segment, len } => format!("truncate {} to {len}", segment.0),
        Effect::SetAside { segment, offset, len } => format!("set aside {} {offset}+{len}", segment.0),
        Effect::Remove { segment } => format!("remove {}", segment.0),
        Effect::SyncDirectory => "sync directory".to_owned(),
        Effect::RemoveTemporaries => "remove temporaries".to_owned(),
        Effect::Read(request) => format!("read {} {}", request.segment.0, request.offset),
    }
}

/// How it ended, in a few words.
pub(crate) fn outcome(result: Result<(), IoFailure>) -> String {
    result.map_or_else(|failure| failure.to_string(), |()| "done".to_owned())
}

fn journal_name() -> JournalName {
    JournalName::parse(NAME).expect("a name within the pattern")
}
