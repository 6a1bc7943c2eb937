//! Somebody who submits commands, and has some of them in flight.

use std::collections::VecDeque;

use strandline::Disk;
use strandline::session::{Answer, Session, SessionTicket, SubmitError};
use strandline_core::{Events, Seq};

use super::super::command::Command;
use super::super::engine::Exchange;
use super::trader::Trader;

/// Commands that everybody has in flight at most. They learn from an answer when they submit so many commands later, no
/// earlier, so that what they do does not depend on how fast the answers come.
pub(super) const IN_FLIGHT_MAX: usize = 16;

/// A trader, or the clock.
#[derive(Debug)]
pub(super) enum Submitter {
    Trader(Box<Trader>),
    /// What is left of its course.
    Clock(std::vec::IntoIter<Command<'static>>),
}

/// Somebody with commands in flight.
pub(super) struct Seat<D: Disk> {
    submitter: Submitter,
    in_flight: VecDeque<InFlight<D>>,
}

enum InFlight<D: Disk> {
    Submitted(SessionTicket<D>),
    /// It was recorded and answered before.
    Recorded(Events),
}

impl<D: Disk> Seat<D> {
    pub(super) fn new(submitter: Submitter) -> Self {
        Self { submitter, in_flight: VecDeque::new() }
    }

    /// Submits the next command; where commands have an order, as this one.
    pub(super) fn submit(
        &mut self,
        session: &Session<Exchange, D>,
        number: Option<Seq>,
        answered: &(impl Fn(Seq) + Sync),
    ) -> Result<(), SubmitError> {
        let command = self.next_command(answered)?;
        let ticket = match number {
            Some(number) => session.submit_at(number, &command),
            None => session.submit(&command),
        };
        self.in_flight.push_back(InFlight::Submitted(ticket?));
        Ok(())
    }

    /// The next command. Learns first from what was submitted long enough ago.
    pub(super) fn next_command(&mut self, answered: &(impl Fn(Seq) + Sync)) -> Result<Vec<u8>, SubmitError> {
        self.wait_for_all_but(IN_FLIGHT_MAX - 1, answered)?;
        Ok(match &mut self.submitter {
            Submitter::Trader(trader) => trader.next_command(),
            Submitter::Clock(course) => course.next().map(|command| command.to_bytes()).unwrap_or_default(),
        })
    }

    /// The command was submitted in an earlier run, and these are its events.
    pub(super) fn was_answered(&mut self, events: Events) {
        self.in_flight.push_back(InFlight::Recorded(events));
    }

    /// Waits until no more than so many commands are in flight.
    pub(super) fn wait_for_all_but(
        &mut self,
        in_flight: usize,
        answered: &(impl Fn(Seq) + Sync),
    ) -> Result<(), SubmitError> {
        while self.in_flight.len() > in_flight {
            let events = match self.in_flight.pop_front() {
                Some(InFlight::Submitted(ticket)) => {
                    let Answer { command, events, .. } = ticket.wait()?;
                    answered(command);
                    events
                }
                Some(InFlight::Recorded(events)) => events,
                None => break,
            };
            if let Submitter::Trader(trader) = &mut self.submitter {
                trader.learn(&events);
            }
        }
        Ok(())
    }
}
