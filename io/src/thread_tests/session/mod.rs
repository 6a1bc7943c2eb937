//! Sessions: producers, the engine's thread and the two journals beneath it, in thousands of interleavings.

mod answering;
mod closing;
mod failing;
mod reading;
mod room;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use strandline_core::{Engine, Events, Seq};

use super::memory_disk::MemoryDisk;
use super::tasks::block_on;
use super::{explore, payload, small, spawn};
use crate::session::{
    Answer, Resumed, Session, SessionOpenError, SessionSettings, SessionStopped, SessionTicket, Side,
    SubmitError,
};
use crate::sync::thread::Injected;
use crate::{Directory, OpenError};

type TestSession = Session<Herald, MemoryDisk>;
type TestTicket = SessionTicket<MemoryDisk>;

/// The command that its engine panics at.
const PANIC: &[u8] = b"<panic>";

/// Announces each command in as many events as its number leaves when it is divided by three.
struct Herald {
    commands: u64,
}

impl Engine for Herald {
    const ID: &'static str = "herald/1";
    type Error = Infallible;

    fn start(_: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { commands: 0 })
    }

    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events) {
        if command == PANIC {
            resume_unwind(Box::new(Injected));
        }
        self.commands += 1;
        assert_eq!(self.commands, seq.get(), "each command once, and in order");
        for event in events_of(self.commands, command) {
            events.push(&event);
        }
    }
}

/// What the engine emits. No event contains its command's bytes, which are looked for on the disk.
fn events_of(seq: u64, command: &[u8]) -> Vec<Vec<u8>> {
    let name = String::from_utf8_lossy(&command[1..command.len() - 1]).into_owned();
    (0..seq % 3).map(|n| format!("[{n} of {name} as {seq}]").into_bytes()).collect()
}

/// The number of a command's first event.
fn first_event(command: u64) -> u64 {
    1 + (1..command).map(|before| before % 3).sum::<u64>()
}

fn settings() -> SessionSettings {
    SessionSettings { input: small(), events: small(), ..SessionSettings::default() }
}

fn begin(disk: &MemoryDisk) -> TestSession {
    begin_with(disk, settings())
}

fn begin_with(disk: &MemoryDisk, settings: SessionSettings) -> TestSession {
    Session::create_new(&Directory::on(disk.clone()), b"setup", settings).unwrap()
}

fn resume(disk: &MemoryDisk) -> (TestSession, Resumed) {
    Session::open(&Directory::on(disk.clone()), settings()).unwrap()
}

/// Tossed: whether something is done in the one way or the other.
fn either() -> bool {
    thread_rng().gen_ratio(1, 2)
}

/// Waits as a thread does, or as a task.
fn wait(ticket: TestTicket) -> Result<Answer, SubmitError> {
    if either() {
        return ticket.wait();
    }
    let mut ticket = pin!(ticket);
    block_on(|context| ticket.as_mut().poll(context))
}

/// What all producers were told, held against what is recorded.
#[derive(Clone, Default)]
struct Told {
    inner: Arc<std::sync::Mutex<Outcomes>>,
}

#[derive(Default)]
struct Outcomes {
    /// By number.
    answered: BTreeMap<u64, Vec<u8>>,
    /// Told not to be recorded.
    refused: Vec<Vec<u8>>,
    /// What becomes of them is known when the session is opened again.
    open: Vec<Vec<u8>>,
    /// Told with the first of those.
    stopped: Option<SessionStopped>,
}

impl Told {
    /// Notes what a producer is told: an answer has to be the command's own, and durable.
    fn note(&self, disk: &MemoryDisk, command: &[u8], told: &Result<Answer, SubmitError>) {
        match told {
            Ok(answer) => self.answered(disk, command, answer),
            Err(SubmitError::Refused(_)) => self.inner.lock().unwrap().refused.push(command.to_vec()),
            Err(SubmitError::Stopped(stopped)) => {
                let mut outcomes = self.inner.lock().unwrap();
                outcomes.open.push(command.to_vec());
                outcomes.stopped.get_or_insert_with(|| stopped.clone());
            }
        }
    }

    fn answered(&self, disk: &MemoryDisk, command: &[u8], answer: &Answer) {
        let seq = answer.command.get();
        let expected = events_of(seq, command);
        assert_eq!(answer.events.iter().collect::<Vec<_>>(), expected, "the events of command {seq}");
        assert_eq!(answer.first_event, Seq::new(first_event(seq)));
        for bytes in expected.iter().map(Vec::as_slice).chain([command]) {
            assert!(disk.is_durable(bytes), "command {seq} was answered and can vanish");
        }
        let before = self.inner.lock().unwrap().answered.insert(seq, command.to_vec());
        assert_eq!(before, None, "two commands were answered as number {seq}");
    }

    /// Submits and waits; gives what was told.
    fn run(&self, disk: &MemoryDisk, session: &TestSession, command: &[u8]) -> Result<Answer, SubmitError> {
        let told = session.submit(command).and_then(wait);
        self.note(disk, command, &told);
        told
    }

    fn len(&self) -> usize {
        self.inner.lock().unwrap().answered.len()
    }

    fn refused(&self) -> usize {
        self.inner.lock().unwrap().refused.len()
    }

    fn stopped(&self) -> Option<SessionStopped> {
        self.inner.lock().unwrap().stopped.clone()
    }

    /// What a power loss leaves, and what the end of the process does: the session is resumed, all that was answered
    /// is there under its number, and nothing that was refused. Gives the number of commands that the latter has.
    ///
    /// The session is closed by now.
    fn is_kept_by(&self, disk: &MemoryDisk) -> u64 {
        self.is_kept_where(&disk.after_power_loss());
        disk.mend();
        self.is_kept_where(disk)
    }

    fn is_kept_where(&self, disk: &MemoryDisk) -> u64 {
        let (session, resumed) = resume(disk);
        let commands = read_all(&session, Side::Input, Seq::new(1));
        let events = read_all(&session, Side::Events, Seq::new(1));
        let outcomes = self.inner.lock().unwrap();
        for (seq, command) in &outcomes.answered {
            assert_eq!(commands.get(seq), Some(command), "command {seq} was answered and is not there");
        }
        for refused in &outcomes.refused {
            assert!(!commands.values().any(|kept| kept == refused), "what was refused is there");
        }
        let expected: Vec<_> = commands.iter().flat_map(|(seq, command)| events_of(*seq, command)).collect();
        assert_eq!(events.into_values().collect::<Vec<_>>(), expected);
        assert_eq!(resumed.commands, commands.len() as u64);
        resumed.commands
    }
}

/// Every record from there on, by its number; closes the session.
fn read_all(session: &TestSession, side: Side, from: Seq) -> BTreeMap<u64, Vec<u8>> {
    let mut reader = session.reader(side, from);
    session.close().unwrap();
    super::rest_of(&mut reader)
}

/// Opens the session again once whoever closes it has given both names back.
fn resume_when_free(directory: &Directory<MemoryDisk>) -> (TestSession, Resumed) {
    loop {
        match Session::open(directory, settings()) {
            Ok(opened) => return opened,
            Err(SessionOpenError::Journal(OpenError::AlreadyOpen(_))) => shuttle::thread::yield_now(),
            // It meets the fault that the one before has not met; faults come once.
            Err(SessionOpenError::Journal(OpenError::Recovery { .. }) | SessionOpenError::Stopped(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
