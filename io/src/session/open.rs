//! Making a session, and resuming one: what is recorded is gone through before anything new is taken.

use std::marker::PhantomData;
use std::sync::Arc;

use strandline_core::session::{FIRST_EVENT, Setup};
use strandline_core::{Config, Engine, JournalName, Listing, Pryj, Report, Seq, SyncPolicy};

use super::stage::{Stage, Stop};
use super::{Closer, EVENTS, INPUT, Inner, Queue, Session, SessionOpenError, SessionStopped};
use crate::directory::Directory;
use crate::disk::Disk;
use crate::error::AppendError;
use crate::journal::{Journal, OpenError, config};
use crate::listing::files_of;
use crate::sync::{Condvar, Mutex, thread};

/// The settings of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// The settings of the journal `input`. Its sync policy is `Always`, whatever this says.
    pub input: Config,
    /// The settings of the journal `events`, the same.
    pub events: Config,
    /// Commands in flight at most; who submits more waits. Default 4,096.
    pub unanswered_max: usize,
    /// Whether a journal `events` that is wholly missing is made again from the input. Default no: it may have been
    /// lost by mistake, and whoever has read it could hold it against the new one.
    pub rebuild_events: bool,
}

/// What resuming a session found and did.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// The journal `input`.
    pub input: Report,
    /// The journal `events`.
    pub events_report: Report,
    /// Commands that were applied again.
    pub commands: u64,
    /// Events that there are now.
    pub events: u64,
    /// Of these, events that were missing and were appended.
    pub appended: u64,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { input: config(), events: config(), unanswered_max: 4_096, rebuild_events: false }
    }
}

/// The longest [`Engine::ID`], in bytes.
const ENGINE_ID_BYTES_MAX: usize = 255;

/// Both journals, open.
struct Journals<D: Disk> {
    input: Journal<Pryj, D>,
    input_report: Report,
    events: Journal<Pryj, D>,
    events_report: Report,
}

impl<E: Engine + Send + 'static, D: Disk> Session<E, D> {
    /// Makes a session in a directory that holds none.
    ///
    /// # Errors
    /// [`SessionOpenError::AlreadyExists`] among others. A setup that the engine refuses makes no session.
    pub fn create_new(
        directory: &Directory<D>,
        setup: &[u8],
        settings: SessionSettings,
    ) -> Result<Self, SessionOpenError<E::Error>> {
        const { assert!(E::ID.len() <= ENGINE_ID_BYTES_MAX, "the ID of an engine has at most 255 bytes") };
        E::start(setup).map_err(SessionOpenError::Start)?;
        if !exists(directory, INPUT)? && exists(directory, EVENTS)? {
            return Err(SessionOpenError::InputMissing);
        }
        let (input, input_report) = open_input(directory, &settings)?;
        if input_report.end != Seq::ZERO {
            return Err(SessionOpenError::AlreadyExists { input: input_report.records(), events: 0 });
        }
        let journals = with_events(directory, &settings, (input, input_report))?;
        if journals.events_report.end != FIRST_EVENT {
            let events = journals.events_report.records();
            return Err(SessionOpenError::AlreadyExists { input: 0, events });
        }
        // The session exists once this is durable.
        journals.input.append(&Setup { engine: E::ID, setup }.encode())?;
        Self::start(journals, &settings).map(|(session, _)| session)
    }

    /// Opens a session and resumes it: every recorded command is applied to a fresh engine, every recorded event
    /// compared with what it emits, and events that are missing at the end are appended.
    ///
    /// # Errors
    /// [`SessionOpenError`]. Where the recorded events differ, nothing is appended.
    ///
    /// # Panics
    /// If the engine does.
    pub fn open(
        directory: &Directory<D>,
        settings: SessionSettings,
    ) -> Result<(Self, Resumed), SessionOpenError<E::Error>> {
        if !exists(directory, INPUT)? {
            let lost = exists(directory, EVENTS)?;
            return Err(if lost { SessionOpenError::InputMissing } else { SessionOpenError::NoSession });
        }
        let has_events = exists(directory, EVENTS)?;
        let journals = open_input(directory, &settings)?;
        let records = journals.1.records();
        if records == 0 {
            return Err(SessionOpenError::NoSession);
        }
        if !has_events && records > 1 && !settings.rebuild_events {
            return Err(SessionOpenError::EventsMissing { commands: records - 1 });
        }
        Self::start(with_events(directory, &settings, journals)?, &settings)
    }

    /// Opens the session of a directory, or makes one with this setup where there is none. What was recorded with
    /// another setup goes on with that. Says what resuming found, where there was one.
    ///
    /// # Errors
    /// [`SessionOpenError`], as [`open`](Self::open) and [`create_new`](Self::create_new) have it.
    ///
    /// # Panics
    /// If the engine does.
    pub fn open_or_create(
        directory: &Directory<D>,
        setup: &[u8],
        settings: SessionSettings,
    ) -> Result<(Self, Option<Resumed>), SessionOpenError<E::Error>> {
        match Self::open(directory, settings.clone()) {
            Err(SessionOpenError::NoSession) => {
                Self::create_new(directory, setup, settings).map(|session| (session, None))
            }
            opened => opened.map(|(session, resumed)| (session, Some(resumed))),
        }
    }

    fn start(
        journals: Journals<D>,
        settings: &SessionSettings,
    ) -> Result<(Self, Resumed), SessionOpenError<E::Error>> {
        let Journals { input, input_report, events, events_report } = journals;
        let inner = Arc::new(Inner {
            input,
            events,
            queue: Mutex::new(Queue::default()),
            room: Condvar::new(),
            unanswered_max: settings.unanswered_max.max(1),
            stage: Mutex::new(None),
        });
        let mut stage = Stage::<E, D>::new(Arc::clone(&inner));
        stage.resume().map_err(|stop| match stop {
            Stop::Playback(error) => SessionOpenError::Playback(error),
            Stop::Session(SessionStopped::Read(error)) => SessionOpenError::Read(error),
            Stop::Session(stopped) => SessionOpenError::Stopped(stopped),
        })?;
        let resumed = Resumed {
            input: input_report,
            events_report,
            commands: stage.commands,
            events: FIRST_EVENT.until(inner.events.durable_end()),
            appended: stage.appended,
        };
        let thread = thread::spawn("strandline-engine".into(), move || stage.run());
        let thread = thread.map_err(SessionOpenError::Thread)?;
        inner.lock().stage = Some(thread.thread().id());
        *inner.stage.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(thread);
        let closer = Arc::new(Closer { inner: Arc::clone(&inner) });
        Ok((Self { inner, _closer: closer, engine: PhantomData }, resumed))
    }
}

/// Whether a journal has files, and anything in them: an empty file is no more than a missing one.
fn exists<D: Disk, X>(directory: &Directory<D>, name: &str) -> Result<bool, SessionOpenError<X>> {
    let name = JournalName::parse(name).map_err(OpenError::from)?;
    let files = files_of(&**directory.disk(), &name)?;
    Ok(
        !matches!(files.listing, Listing::Segments(segments) if segments.iter().all(|segment| segment.len == 0)),
    )
}

type Input<D> = (Journal<Pryj, D>, Report);

fn open_input<D: Disk>(directory: &Directory<D>, settings: &SessionSettings) -> Result<Input<D>, OpenError> {
    Journal::open(directory, INPUT, of_a_session(&settings.input, Seq::ZERO))
}

fn with_events<D: Disk>(
    directory: &Directory<D>,
    settings: &SessionSettings,
    (input, input_report): Input<D>,
) -> Result<Journals<D>, OpenError> {
    let config = of_a_session(&settings.events, FIRST_EVENT);
    let (events, events_report) = Journal::open(directory, EVENTS, config)?;
    Ok(Journals { input, input_report, events, events_report })
}

/// Answers mean durable records, and nothing is ever trimmed, so that no room is worth waiting for.
fn of_a_session(settings: &Config, first: Seq) -> Config {
    Config { sync: SyncPolicy::Always, first_seq: Some(first), waits_for_room: false, ..settings.clone() }
}

impl SessionStopped {
    /// What stops a session whose events cannot be appended.
    pub(super) fn of(error: AppendError) -> Self {
        match error {
            AppendError::Poisoned(poisoned) => Self::Poisoned(poisoned),
            AppendError::Closed => Self::Closed,
            error => Self::Events(error),
        }
    }
}
