//! The thread of a session's engine: durable commands in, durable events out, then answers.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use strandline_core::session::{Session, SessionStep, Side};
use strandline_core::{Engine, Events, Pryj, ReadRequest, View};

use super::files::SessionFiles;
use super::{Answer, Inner, SessionStopped};
use crate::disk::Disk;
use crate::journal::Journal;
use crate::segment_reader::Target;
use crate::sync::Instant;

/// Events gather up to so many bytes before they are committed, though commands follow...
const GATHERED_BYTES_MAX: usize = 1 << 20;
/// ... and no longer than this, so that an engine that takes its time answers while it works.
const GATHERED_FOR_MAX: Duration = Duration::from_millis(2);
/// What an event takes beside its bytes.
const EVENT_OVERHEAD: usize = 32;

/// The engine, and what it works with.
pub(super) struct Stage<E: Engine, D: Disk> {
    inner: Arc<Inner<D>>,
    session: Session<E>,
    /// The log as it was when the session was opened: only that much is compared.
    recorded: View<Pryj>,
    files: SessionFiles<D>,
    /// Events that are not appended yet.
    gathered: Events,
    gathered_bytes: usize,
    /// When the oldest command was applied that is not answered.
    gathered_since: Option<Instant>,
    /// The events of commands that were applied and are not answered, in order, for their answers to tell.
    applied: VecDeque<Events>,
    /// Somebody waits for answers.
    answers: bool,
    /// The voids of the input that whoever waits to submit was told of.
    voids: u64,
    /// Events that were appended.
    pub(super) appended: u64,
    /// Commands that were applied.
    pub(super) commands: u64,
}

/// What the stage does next.
enum Next {
    Read(Side, ReadRequest),
    Apply,
    Gather,
    Commit,
    /// Something may have happened.
    Look,
    /// There will be no more commands.
    End,
}

impl<E: Engine, D: Disk> Stage<E, D> {
    pub(super) fn new(inner: Arc<Inner<D>>) -> Self {
        let target = |journal: &Journal<Pryj, D>| Target::Journal(journal.name().clone());
        let disk = inner.input.shared().performer.disk();
        let files = SessionFiles::new(disk, target(&inner.input), target(&inner.events));
        Self {
            recorded: inner.events.view(),
            inner,
            session: Session::new(),
            files,
            gathered: Events::default(),
            gathered_bytes: 0,
            gathered_since: None,
            applied: VecDeque::new(),
            answers: false,
            voids: 0,
            appended: 0,
            commands: 0,
        }
    }

    /// Goes through what is recorded, and appends what is missing.
    pub(super) fn resume(&mut self) -> Result<(), Stop<E>> {
        loop {
            match self.next(false)? {
                Next::Look | Next::End => break,
                next => self.perform(next)?,
            }
        }
        // Of what was recorded nothing is left to be answered.
        self.commit()?;
        self.answers = true;
        Ok(())
    }

    /// Answers commands until there will be no more.
    pub(super) fn run(mut self) {
        let mut dying = Dying { inner: Arc::clone(&self.inner), is_over: false };
        let stopped = loop {
            let done = match self.next(true) {
                Ok(Next::End) => break self.end(),
                Ok(Next::Apply) => self.apply_guarded(),
                Ok(next) => self.perform(next),
                Err(stop) => Err(stop),
            };
            match done {
                Ok(()) => {}
                Err(Stop::Session(stopped)) => break stopped,
                Err(Stop::Playback(error)) => break SessionStopped::Playback(error.to_string().into()),
            }
        };
        dying.is_over = true;
        self.inner.stop(stopped);
    }

    /// Why there are no more commands.
    fn end(&self) -> SessionStopped {
        self.inner.input.poisoned().map_or(SessionStopped::Closed, SessionStopped::Poisoned)
    }

    fn next(&mut self, waits: bool) -> Result<Next, Stop<E>> {
        let shared = Arc::clone(self.inner.input.shared());
        let state = shared.lock();
        let step = self.session.poll(state.view(), &self.recorded).map_err(Stop::Playback)?;
        Ok(match step {
            SessionStep::Read(side, request) => Next::Read(side, request),
            SessionStep::Append if self.gathered_bytes >= GATHERED_BYTES_MAX => Next::Commit,
            SessionStep::Apply if self.has_gathered_enough() => Next::Commit,
            SessionStep::Append => Next::Gather,
            SessionStep::Apply => Next::Apply,
            SessionStep::CaughtUp if !self.gathered.is_empty() || !self.applied.is_empty() => Next::Commit,
            SessionStep::CaughtUp if state.is_over() => Next::End,
            SessionStep::CaughtUp => {
                // A void that came since it looked is looked at before it sleeps.
                let voids = std::mem::replace(&mut self.voids, state.voids);
                if waits && voids == state.voids {
                    drop(shared.wait_for_progress(state, None));
                }
                Next::Look
            }
        })
    }

    fn perform(&mut self, next: Next) -> Result<(), Stop<E>> {
        match next {
            Next::Read(side, request) => self.read(side, request),
            Next::Apply => {
                self.apply();
                Ok(())
            }
            Next::Gather => {
                self.gather();
                Ok(())
            }
            Next::Commit => self.commit(),
            Next::Look => {
                self.inner.make_room();
                Ok(())
            }
            Next::End => Ok(()),
        }
    }

    fn read(&mut self, side: Side, request: ReadRequest) -> Result<(), Stop<E>> {
        let answer = self.files.read(side, request);
        self.session.handle_read(side, answer).map_err(|error| Stop::Session(SessionStopped::Read(error)))
    }

    fn apply(&mut self) {
        self.gathered_since.get_or_insert_with(Instant::now);
        let (_, events) = self.session.apply();
        self.commands += 1;
        if self.answers {
            self.applied.push_back(events.clone());
        }
    }

    fn apply_guarded(&mut self) -> Result<(), Stop<E>> {
        let command = self.session.command().unwrap_or_default();
        // The engine is not used again after a panic.
        catch_unwind(AssertUnwindSafe(|| self.apply()))
            .map_err(|_| Stop::Session(SessionStopped::Panicked { command }))
    }

    fn gather(&mut self) {
        if let Some((_, event)) = self.session.event() {
            self.gathered.push(event);
            self.gathered_bytes += event.len() + EVENT_OVERHEAD;
            self.session.handle_appended();
        }
    }

    fn has_gathered_enough(&self) -> bool {
        let for_long = self.gathered_since.is_some_and(|since| since.elapsed() >= GATHERED_FOR_MAX);
        for_long || self.gathered_bytes >= GATHERED_BYTES_MAX
    }

    /// Makes the gathered events durable, and answers the commands that they belong to.
    fn commit(&mut self) -> Result<(), Stop<E>> {
        if !self.gathered.is_empty() {
            let committed = self.inner.events.append_all(self.gathered.iter());
            committed.map_err(|error| Stop::Session(SessionStopped::of(error.source)))?;
            self.appended += self.gathered.len() as u64;
            self.gathered.clear();
            self.gathered_bytes = 0;
        }
        self.gathered_since = None;
        let durable_end = self.inner.events.durable_end();
        let mut answers = Vec::new();
        while let Some(answered) = self.session.poll_answered(durable_end) {
            // None while the session is resumed.
            if let Some(events) = self.applied.pop_front() {
                answers.push(Answer { command: answered.command, first_event: answered.first, events });
            }
        }
        self.inner.answer(answers);
        Ok(())
    }
}

/// Tells everybody if the engine's thread ends in another way than it should.
struct Dying<D: Disk> {
    inner: Arc<Inner<D>>,
    is_over: bool,
}

impl<D: Disk> Drop for Dying<D> {
    fn drop(&mut self) {
        if !self.is_over {
            self.inner.stop(SessionStopped::Poisoned(crate::error::Poisoned::Abandoned));
        }
    }
}

/// Why a stage goes on no more.
pub(super) enum Stop<E: Engine> {
    Playback(strandline_core::session::PlaybackError<E::Error>),
    Session(SessionStopped),
}
