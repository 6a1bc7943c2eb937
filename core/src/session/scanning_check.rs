//! The replay check in one pass: what the scans of both journals verify is played back while they go on.

use bytes::Bytes;

use super::check::{CheckError, CheckStep, Checked, ReplayCheck};
use super::digest::Digester;
use super::error::Side;
use super::playback::{Playback, is_whole};
use super::source::FromScan;
use super::{FIRST_EVENT, SETUP};
use crate::{Engine, IoFailure, Listing, Pryj, ReadRequest, Report, View};

/// Two scans, and a replay check of the records that they hand on. Each byte is read and verified once, and the verdicts
/// are those of whole scans, whatever the check finds. Its memory does not grow with the session, the scans' sparse
/// indexes aside.
#[derive(Debug)]
pub struct ScanningCheck<E: Engine, D> {
    check: ReplayCheck<E, D, FromScan>,
    /// How the check ended, once it has.
    ended: Option<Ended<E>>,
}

#[derive(Debug)]
enum Ended<E: Engine> {
    Played(Result<Checked, CheckError<E::Error>>),
    GivenUp,
}

/// What a [`ScanningCheck`] found.
#[derive(Debug)]
pub struct Found<X> {
    /// The scan of the journal `input`.
    pub input: (View<Pryj>, Report),
    /// The scan of the journal `events`.
    pub events: (View<Pryj>, Report),
    /// The check of all records before the ends of both scans. It counts only where the verdicts say that these are all
    /// that there are. Nothing after [`ScanningCheck::give_up`].
    pub played: Option<Result<Checked, CheckError<X>>>,
}

impl<E: Engine, D: Digester> ScanningCheck<E, D> {
    /// A check at the beginning of these files.
    #[must_use]
    pub fn new(input: Listing, events: Listing, digest: D) -> Self {
        let playback = Playback::of(FromScan::new(input, SETUP), FromScan::new(events, FIRST_EVENT));
        Self { check: ReplayCheck::of(playback, digest), ended: None }
    }

    /// What to read next: hand it to [`handle_read`](Self::handle_read). Nothing once both journals were read to their
    /// ends; then [`finish`](Self::finish).
    ///
    /// # Panics
    /// If the engine does.
    pub fn poll(&mut self) -> Option<(Side, ReadRequest)> {
        if self.ended.is_none() {
            match self.check.go_on(|playback| playback.poll_from(|source, _| Ok(source.poll()))) {
                Ok(CheckStep::Read(side, request)) => return Some((side, request)),
                Ok(CheckStep::Same(checked)) => self.ended = Some(Ended::Played(Ok(checked))),
                Err(error) => self.ended = Some(Ended::Played(Err(error))),
            }
        }
        let playback = self.check.playback();
        [Side::Events, Side::Input].into_iter().find_map(|side| Some((side, playback.source(side).wants()?)))
    }

    /// Takes the bytes that were asked for, or the failure of the read, which a scan judges.
    ///
    /// # Panics
    /// If no read of this journal was asked for: a programmer error.
    pub fn handle_read(&mut self, side: Side, answer: Result<Bytes, IoFailure>) {
        self.check.playback_mut().source_mut(side).handle_read(answer);
    }

    /// Only scans from now on. For whoever has seen the engine panic.
    pub fn give_up(&mut self) {
        self.ended = Some(Ended::GivenUp);
    }

    /// Commands that were applied so far, and how many there are: guessed from bytes until the end was seen.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let of = self.check.playback().source(Side::Input).records().saturating_sub(1);
        (self.check.commands(), of)
    }

    /// What was found; nothing before both journals were read to their ends.
    #[must_use]
    pub fn finish(self) -> Option<Found<E::Error>> {
        let [input, events] = self.check.into_playback().into_sources().map(FromScan::finish);
        let (input, events) = (input?, events?);
        let played = match self.ended? {
            Ended::Played(played) => {
                Some(is_whole(&input.0, &events.0).map_err(CheckError::from).and(played))
            }
            Ended::GivenUp => None,
        };
        Some(Found { input, events, played })
    }
}
