//! A session over the simulated disk: two journals and an engine, driven by one thread, their turns in an order that the
//! seed decides.

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use strandline_core::session::{
    Answered, CheckStep, Checked, ReplayCheck, Session, SessionStep, Setup, Side,
};
use strandline_core::{Engine as _, Output, Pryj, Seq, Timestamp, View};

use super::story::{Limits, SETUP, Teller, command};
use crate::disk::SimDisk;
use crate::driven::{Driven, Stopped, stopped};

/// The process that runs the session.
pub(super) struct Machine {
    input: Driven<Pryj>,
    log: Driven<Pryj>,
    /// The log as it was when it was opened.
    recorded: View<Pryj>,
    session: Session<Teller>,
    turns: ChaCha8Rng,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Input,
    Log,
    Engine,
}

impl Machine {
    /// Opens what is on the disk, or begins a session there. Nothing is resumed yet.
    pub(super) fn open(disk: &SimDisk, limits: Limits) -> Result<Self, Stopped> {
        let input = Driven::open(disk, "input", limits.input())?;
        let log = Driven::<Pryj>::open(disk, "events", limits.log())?;
        let recorded = log.journal.view().clone();
        let turns = ChaCha8Rng::seed_from_u64(limits.turns);
        let mut machine = Self { input, log, recorded, session: Session::new(), turns };
        if machine.input.journal.view().written_end() == Seq::ZERO {
            machine.append(&Setup { engine: Teller::ID, setup: SETUP }.encode())?;
        }
        Ok(machine)
    }

    /// Submits the next command.
    pub(super) fn submit(&mut self) -> Result<(), Stopped> {
        let next = self.input.journal.next_seq().get();
        self.append(&command(next))
    }

    fn append(&mut self, record: &[u8]) -> Result<(), Stopped> {
        self.input.journal.append(Timestamp::from_millis(1), record).map(drop).map_err(stopped)
    }

    /// Takes turns, at most so many, until nobody has anything to do. Gives the commands that were answered after each
    /// of them to `answered`.
    pub(super) fn run(&mut self, turns: u32, mut answered: impl FnMut(Answered)) -> Result<(), Stopped> {
        let all = [Turn::Input, Turn::Log, Turn::Engine];
        let mut awake = all.to_vec();
        for _ in 0..turns {
            let Some(turn) = awake.choose(&mut self.turns).copied() else { return Ok(()) };
            let did_something = match turn {
                Turn::Input => self.input.step()?.is_some(),
                Turn::Log => self.step_log()?,
                Turn::Engine => self.step_engine()?,
            };
            while let Some(command) = self.session.poll_answered(self.log.journal.view().durable_end()) {
                answered(command);
            }
            if did_something {
                awake = all.to_vec();
            } else {
                awake.retain(|other| *other != turn);
            }
        }
        Ok(())
    }

    fn step_log(&mut self) -> Result<bool, Stopped> {
        match self.log.step()? {
            Some(Some(Output::Void { .. })) => Err(Stopped("there is no space for events".into())),
            told => Ok(told.is_some()),
        }
    }

    fn step_engine(&mut self) -> Result<bool, Stopped> {
        match self.session.poll(self.input.journal.view(), &self.recorded).map_err(stopped)? {
            SessionStep::CaughtUp => return Ok(false),
            SessionStep::Apply => drop(self.session.apply()),
            SessionStep::Append => {
                let Some((seq, event)) = self.session.event() else { return Ok(false) };
                let accepted = self.log.journal.append(Timestamp::from_millis(1), event).map_err(stopped)?;
                if accepted.seq != seq {
                    return Err(Stopped(format!("event {seq} would be recorded as {}", accepted.seq)));
                }
                self.session.handle_appended();
            }
            SessionStep::Read(side, request) => {
                let bytes = self.journal(side).read(request)?;
                self.session.handle_read(side, Ok(bytes)).map_err(stopped)?;
            }
        }
        Ok(true)
    }

    fn journal(&self, side: Side) -> &Driven<Pryj> {
        match side {
            Side::Input => &self.input,
            Side::Events => &self.log,
        }
    }

    /// Commands that are durable.
    pub(super) fn commands(&self) -> u64 {
        self.input.journal.view().durable_end().get().saturating_sub(1)
    }

    /// Every durable record of a journal.
    pub(super) fn records(&self, side: Side) -> Result<Vec<Vec<u8>>, Stopped> {
        let mut records = Vec::new();
        let driven = self.journal(side);
        driven.each(driven.journal.view().first(), |record| {
            records.push(record.payload.to_vec());
            Ok(())
        })?;
        Ok(records)
    }

    /// The replay check over the journals as they are.
    pub(super) fn check(&self) -> Result<Checked, Stopped> {
        let mut check = ReplayCheck::<Teller>::new();
        loop {
            match check.poll(self.input.journal.view(), self.log.journal.view()).map_err(stopped)? {
                CheckStep::Same(checked) => return Ok(checked),
                CheckStep::Read(side, request) => {
                    let bytes = self.journal(side).read(request)?;
                    check.handle_read(side, Ok(bytes)).map_err(stopped)?;
                }
            }
        }
    }
}
