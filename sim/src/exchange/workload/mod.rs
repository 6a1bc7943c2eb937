//! Trading: producers on threads of their own and a clock submit commands to a session of the exchange.

mod course;
mod seat;
mod trader;
mod turns;

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use strandline::session::{Session, Side, SubmitError};
use strandline::{Disk, ReadStep};
use strandline_core::{Engine, Events, ReadError, Seq};

use super::engine::Exchange;
use super::setup::{ExchangeSetup, SetupError};
use seat::{Seat, Submitter};
use trader::Trader;
use turns::{Due, Turns, Who};

/// Traders there are, whoever submits for them.
const TRADERS: usize = 16;
/// One command of so many is the clock's.
const CLOCK_EVERY: u64 = 51;
/// Commands of the clock at least: enough for its course to come past every opening, close and halt.
const CLOCK_COMMANDS_MIN: u64 = 60;

/// A workload for a session of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Commands in all, at least [`COMMANDS_MIN`](Self::COMMANDS_MIN).
    pub commands: u64,
    /// Threads that submit the traders' commands, at least 1. Another one submits the clock's.
    pub producers: usize,
    /// Decides what the traders do.
    pub seed: u64,
    /// Whether the seed also decides whose turn it is. Then the same seed and number of commands give the same session, byte
    /// for byte, however many threads submit; and a session that was broken off can be gone on with.
    pub in_turn: bool,
}

/// Why a workload ended early.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A command was not answered.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// What is recorded cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The setup of this workload is none: a fault of this program.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// There are commands already, and their order is not known.
    #[error(
        "the session has {recorded} commands already: only a workload whose turns have an order (`in_turn`, --in-turn) can go on with one; use another directory"
    )]
    NotInTurn {
        /// Commands that are recorded.
        recorded: u64,
    },
    /// The session was recorded by something else.
    #[error(
        "command {command} of the session is not the one that this workload submits: use the seed and the number of commands that it was begun with, or another directory"
    )]
    Foreign {
        /// The first command that differs.
        command: Seq,
    },
}

impl Default for Workload {
    /// 51,001 commands of four producers.
    fn default() -> Self {
        Self { commands: 51_001, producers: 4, seed: 1, in_turn: false }
    }
}

impl Workload {
    /// The fewest commands of a workload.
    pub const COMMANDS_MIN: u64 = 100;

    /// The setup that a session of it is made with.
    #[must_use]
    pub fn setup() -> ExchangeSetup {
        course::setup()
    }

    /// Submits everything that the session does not have yet, and waits for the answers. `answered` is told of each command
    /// that was answered, from the thread that waited for it.
    ///
    /// # Errors
    /// [`WorkloadError`]: the first one that a thread met. All threads have ended then.
    ///
    /// # Panics
    /// If it has fewer than [`COMMANDS_MIN`](Self::COMMANDS_MIN) commands, or no producer: a programmer error.
    pub fn run<D: Disk>(
        &self,
        session: &Session<Exchange, D>,
        answered: impl Fn(Seq) + Sync,
    ) -> Result<(), WorkloadError> {
        assert!(self.commands >= Self::COMMANDS_MIN && self.producers > 0, "{self:?} is no workload");
        let clock_commands = (self.commands / CLOCK_EVERY).max(CLOCK_COMMANDS_MIN);
        let turns = Turns::new(self.commands, clock_commands, TRADERS, self.seed, self.in_turn);
        let mut clock = Seat::new(Submitter::Clock(course::commands(clock_commands).into_iter()));
        let mut traders = self.traders();
        self.catch_up(session, &turns, &mut clock, &mut traders)?;
        let mut producers: Vec<Vec<_>> = (0..self.producers).map(|_| Vec::new()).collect();
        for (index, trader) in traders.into_iter().enumerate() {
            producers[index % self.producers].push(trader);
        }
        let failed = Mutex::new(None);
        let note = |result: Result<(), SubmitError>| {
            if let Err(error) = result {
                turns.stop();
                failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| note(produce(session, &turns, Who::Clock, vec![clock], &answered)));
            for (index, seats) in producers.into_iter().enumerate() {
                let who = Who::Producer(index, self.producers);
                let (turns, note, answered) = (&turns, &note, &answered);
                scope.spawn(move || note(produce(session, turns, who, seats, answered)));
            }
        });
        let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn traders<D: Disk>(&self) -> Vec<Seat<D>> {
        let trader = |index| Trader::new(self.seed, index, course::setup().instruments);
        (0..TRADERS as u64).map(|index| Seat::new(Submitter::Trader(Box::new(trader(index))))).collect()
    }

    /// Goes through what the session has already: everybody does again what they did, and learns what they learned.
    fn catch_up<D: Disk>(
        &self,
        session: &Session<Exchange, D>,
        turns: &Turns,
        clock: &mut Seat<D>,
        traders: &mut [Seat<D>],
    ) -> Result<(), WorkloadError> {
        let end = session.durable_end(Side::Input);
        let recorded = Seq::new(1).until(end);
        if recorded > 0 && !self.in_turn {
            return Err(WorkloadError::NotInTurn { recorded });
        }
        let mut engine = Exchange::start(&Self::setup().to_bytes())?;
        let mut reader = session.reader(Side::Input, Seq::new(1));
        while let ReadStep::Records(batch) = reader.next_batch(Some(Duration::ZERO))? {
            for record in batch.records() {
                let Some(turn) = turns.take(Who::All) else {
                    return Err(WorkloadError::Foreign { command: record.seq });
                };
                let seat = match turn.due {
                    Due::Trader(trader) => &mut traders[trader],
                    Due::Clock | Due::AnyTrader => &mut *clock,
                };
                if seat.next_command(&|_| {})? != *record.payload {
                    return Err(WorkloadError::Foreign { command: record.seq });
                }
                let mut events = Events::default();
                engine.apply(record.seq, record.payload, &mut events);
                seat.was_answered(events);
            }
        }
        Ok(())
    }
}

/// Submits whatever is due of these, and waits for all answers.
fn produce<D: Disk>(
    session: &Session<Exchange, D>,
    turns: &Turns,
    who: Who,
    mut seats: Vec<Seat<D>>,
    answered: &(impl Fn(Seq) + Sync),
) -> Result<(), SubmitError> {
    // Without anybody to submit for, there is nothing to do.
    for mine in (0..seats.len()).cycle() {
        let Some(turn) = turns.take(who) else { break };
        let at = match (turn.due, who) {
            (Due::Trader(trader), Who::Producer(_, of)) => trader / of,
            _ => mine,
        };
        seats[at].submit(session, answered)?;
    }
    seats.iter_mut().try_for_each(|seat| seat.wait_for_all_but(0, answered))
}
