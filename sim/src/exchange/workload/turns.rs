//! Whose turn it is to submit.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_core::Seq;

/// Hands out turns, one for each command.
#[derive(Debug)]
pub(super) struct Turns {
    commands: u64,
    clock_commands: u64,
    traders: usize,
    in_turn: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    next: u64,
    due: Due,
    order: ChaCha8Rng,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Clock,
    Trader(usize),
    AnyTrader,
}

/// Who asks for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Clock,
    /// A producer, of so many; the traders are dealt out to them in order.
    Producer(usize, usize),
    /// Whoever it is.
    All,
}

/// A turn. Where commands have an order, the next one begins when this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) due: Due,
    /// The number of its command, where commands have an order.
    pub(super) number: Option<Seq>,
    /// None where the next turn was begun already.
    turns: Option<&'a Turns>,
}

impl Turns {
    pub(super) fn new(commands: u64, clock_commands: u64, traders: usize, seed: u64, in_turn: bool) -> Self {
        let state = State { next: 0, due: Due::AnyTrader, order: ChaCha8Rng::seed_from_u64(seed) };
        let turns = Self {
            commands,
            clock_commands,
            traders,
            in_turn,
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        let due = turns.due(0, &mut turns.lock().order);
        turns.lock().due = due;
        turns
    }

    /// Waits for a turn of this one; none if there are no more.
    pub(super) fn take(&self, who: Who) -> Option<Turn<'_>> {
        let mut state = self.lock();
        loop {
            if state.next >= self.commands {
                return None;
            }
            if state.due.is_of(who) {
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let due = state.due;
        if self.in_turn {
            // The first command has number 1.
            let number = Some(Seq::new(state.next + 1));
            return Some(Turn { due, number, turns: Some(self) });
        }
        self.advance(state);
        Some(Turn { due, number: None, turns: None })
    }

    /// Nobody gets another turn.
    pub(super) fn stop(&self) {
        self.lock().next = self.commands;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self, mut state: MutexGuard<'_, State>) {
        state.next = state.next.saturating_add(1);
        state.due = self.due(state.next, &mut state.order);
        drop(state);
        self.changed.notify_all();
    }

    /// The clock's turns are spread evenly.
    fn due(&self, turn: u64, order: &mut ChaCha8Rng) -> Due {
        let clock_before =
            |turn: u64| u128::from(turn) * u128::from(self.clock_commands) / u128::from(self.commands);
        if clock_before(turn.saturating_add(1)) > clock_before(turn) {
            Due::Clock
        } else if self.in_turn {
            Due::Trader(order.random_range(0..self.traders))
        } else {
            Due::AnyTrader
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.advance(turns.lock());
        }
    }
}

impl Due {
    fn is_of(self, who: Who) -> bool {
        match (self, who) {
            (_, Who::All) | (Self::Clock, Who::Clock) | (Self::AnyTrader, Who::Producer(..)) => true,
            (Self::Trader(trader), Who::Producer(index, of)) => trader % of == index,
            (Self::Clock, Who::Producer(..)) | (Self::Trader(_) | Self::AnyTrader, Who::Clock) => false,
        }
    }
}
