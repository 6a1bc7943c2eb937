//! A simulated machine on which no journal is open: its disk, its clocks, and what the oracle knows.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use strandline::Performer;
use strandline_core::{Effect, IoFailure, JournalName, Monotonic, ReadRequest, Timestamp};

use crate::disk::{Detail, DiskState, SimDisk, Snapshot};
use crate::interpreter::Interpreter;
use crate::oracle::Oracle;
use crate::violation::Loss;
use crate::workload::{EPOCH_MS, Settings, SimFraming, SimRng, Stream};

/// The journal's name on every simulated disk.
const NAME: &str = "journal";

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
    pub(crate) recording: Option<Detail>,
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
            recording: None,
            log: None,
            buffer,
            kind: PhantomData,
        }
    }

    /// Starts to record what a crash at each step from here on would leave.
    pub(crate) fn start_recording(&mut self, detail: Detail) {
        self.recording = Some(detail);
        self.disk.record(detail);
    }

    /// Starts or stops to record what a crash at each step would leave.
    pub(crate) fn recording(mut self, detail: Option<Detail>) -> Self {
        self.recording = detail;
        detail.into_iter().for_each(|detail| self.disk.record(detail));
        self
    }

    /// Stops the machine like this.
    pub(crate) fn lose(mut self, loss: Loss) -> Self {
        self.world.oracle.lost(loss);
        let recording = self.recording;
        let state = match loss {
            Loss::Kill => self.disk.state(),
            Loss::Power(survivors) => self.disk.state().power_loss(survivors),
        };
        let disk = self.disk.restarted(state);
        Self { disk, ..self }.recording(recording)
    }

    /// Notes what a crash at the last steps would have left.
    pub(crate) fn record_moment(&mut self) {
        if self.recording.is_none() {
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

    /// The interpreter of effects of a new process, with its own handles.
    pub(crate) fn performer(&self) -> Performer<D> {
        Performer::new(Arc::new(D::over(self.disk.clone())), journal_name())
    }
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

pub(super) fn journal_name() -> JournalName {
    JournalName::parse(NAME).expect("a name within the pattern")
}
