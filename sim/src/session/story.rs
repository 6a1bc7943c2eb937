//! What a seed decides: the sizes of files, and what happens in a session.

use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_core::{Config, Engine, Events, Seq, Timestamp};

/// Numbers every command with what came before it, and emits up to three events for it.
#[derive(Debug)]
pub(super) struct Teller(u64);

impl Engine for Teller {
    const ID: &'static str = "teller/1";
    type Error = std::convert::Infallible;

    fn start(setup: &[u8]) -> Result<Self, Self::Error> {
        Ok(Self(setup.len() as u64))
    }

    fn apply(&mut self, seq: Seq, command: &[u8], events: &mut Events) {
        for byte in command {
            self.0 = self.0.wrapping_mul(31).wrapping_add(u64::from(*byte));
        }
        for n in 0..self.0 % 4 {
            let event = [self.0.to_le_bytes(), seq.get().to_le_bytes()].concat();
            let len = usize::try_from(self.0 >> 8 & 15).unwrap_or_default()
                + usize::try_from(n).unwrap_or_default();
            events.push(event.get(..len).unwrap_or_default());
        }
    }
}

/// What the engine is configured by.
pub(super) const SETUP: &[u8] = b"setup";

/// The command of a number.
pub(super) fn command(seq: u64) -> Vec<u8> {
    let len = usize::try_from(seq.wrapping_mul(13) % 29).unwrap_or_default();
    seq.to_le_bytes().iter().copied().cycle().take(len).collect()
}

/// What so many commands cause, in a session that nothing ever happens to.
pub(super) fn reference(commands: u64) -> Vec<Vec<u8>> {
    let Ok(mut engine) = Teller::start(SETUP);
    let (mut emitted, mut events) = (Events::default(), Vec::new());
    for seq in 1..=commands {
        emitted.clear();
        engine.apply(Seq::new(seq), &command(seq), &mut emitted);
        events.extend(emitted.iter().map(<[u8]>::to_vec));
    }
    events
}

/// Sizes of files, and whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    input_segment: u64,
    log_segment: u64,
    reserve: bool,
    pub(super) turns: u64,
    salt: u64,
}

impl Limits {
    pub(super) const SECTOR_BYTES: usize = 64;

    fn config(&self, first: Seq, segment_bytes: u64) -> Config {
        Config {
            first_seq: Some(first),
            segment_bytes,
            reserve_bytes: if self.reserve { segment_bytes } else { 0 },
            tail_bytes_max: 150,
            commit_bytes_max: 300,
            block_bytes: Self::SECTOR_BYTES as u64,
            ..Config::new(self.salt, Timestamp::from_millis(0))
        }
    }

    pub(super) fn input(&self) -> Config {
        self.config(Seq::ZERO, self.input_segment)
    }

    pub(super) fn log(&self) -> Config {
        self.config(strandline_core::session::FIRST_EVENT, self.log_segment)
    }
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Submit(u64),
    /// So many turns are taken, of whomever the seed decides.
    Turns(u32),
    /// Everything that is submitted is answered.
    Settle,
    Restart,
    DiskFull(bool),
}

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStory {
    seed: u64,
    pub(super) limits: Limits,
    pub(super) steps: Vec<Step>,
}

impl SessionStory {
    /// The story of a seed; a shorter one for a smoke run.
    #[must_use]
    pub fn from_seed(seed: u64, smoke: bool) -> Self {
        let mut choice = ChaCha8Rng::seed_from_u64(seed);
        let limits = Limits {
            input_segment: choice.random_range(200..500),
            log_segment: choice.random_range(200..500),
            reserve: choice.random_bool(0.5),
            turns: choice.random(),
            salt: choice.random(),
        };
        let len = if smoke { choice.random_range(4..12) } else { choice.random_range(12..40) };
        let steps = (0..len).map(|_| step(&mut choice)).collect();
        Self { seed, limits, steps }
    }
}

fn step(choice: &mut ChaCha8Rng) -> Step {
    match choice.random_range(0..100) {
        0..45 => Step::Submit(choice.random_range(1..8)),
        45..70 => Step::Turns(choice.random_range(1..20)),
        70..85 => Step::Settle,
        85..92 => Step::Restart,
        _ => Step::DiskFull(choice.random_bool(0.5)),
    }
}

impl fmt::Display for SessionStory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { input_segment, log_segment, reserve, turns, .. } = &self.limits;
        writeln!(f, "seed              {}", self.seed)?;
        writeln!(f, "sector bytes      {}", Limits::SECTOR_BYTES)?;
        writeln!(f, "segments          input {input_segment}, events {log_segment}, reserve {reserve}")?;
        writeln!(f, "turns             {turns:#018x}")?;
        write!(f, "steps             {:?}", self.steps)
    }
}
