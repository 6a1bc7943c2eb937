//! The replay check over a directory, which it only reads.

mod digest;
#[cfg(all(test, not(strandline_shuttle)))]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use strandline_core::session::{CheckError, CheckStep, Checked, Found, ReplayCheck, ScanningCheck, Side};
use strandline_core::{
    Engine, InvalidName, JournalName, Pryj, ReadError, Report, ScanOptions, Verdict, View,
};

use super::files::SessionFiles;
use super::{EVENTS, INPUT, PlaybackError};
use crate::disk::Disk;
use crate::inspect::{InspectError, Inspection, TRIES, inspect_after, inspect_within, list, open_directory};
use crate::segment_reader::Target;
use crate::std_disk::StdDisk;
use digest::DigestThread;

/// After so many looks at which nobody was at work and nothing had changed, nothing will.
const QUIET_LOOKS: u32 = 3;
/// Pauses in which a session that runs records what is in flight: doubled each time, five seconds in all.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(if cfg!(test) { 40 } else { 2_560 });

/// Why a replay check did not find the same events.
#[derive(Debug, thiserror::Error)]
pub enum ReplayCheckError<E> {
    /// The events differ, or the session cannot be played back.
    #[error(transparent)]
    Check(#[from] CheckError<E>),
    /// A journal is damaged: the scan refuses it.
    #[error("journal `{side}` is damaged, nothing is compared: {}", .report.verdict)]
    Damaged {
        /// Which.
        side: Side,
        /// What the scan found.
        report: Box<Report>,
    },
    /// There is no such journal, or it cannot be read.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The journal's name is none.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Reading failed on the way.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl<E> ReplayCheckError<E> {
    /// The first event that differs, if that is what was found.
    #[must_use]
    pub fn difference(&self) -> Option<&super::Difference> {
        match self {
            Self::Check(CheckError::Playback(PlaybackError::Differs(difference))) => Some(difference),
            _ => None,
        }
    }
}

/// Applies the recorded commands of a session to a fresh engine, and compares every recorded event with what it emits.
/// Changes nothing, and its memory does not grow with the session, but for 16 bytes for each 64 KiB. A torn tail of either journal, which opening would
/// cut, is left out. A process may run the session meanwhile: compared are the commands that are recorded when it begins or a
/// little later, with their events, which are waited for.
///
/// Both journals are read once, and verified as a whole: whatever is told of them is told of undamaged ones. A thread
/// computes the digest meanwhile. Where only their ends do not fit they are looked at again, one after the other.
///
/// `progress` is told how many commands were applied, of how many; a guess from bytes, until the last one was read.
///
/// # Errors
/// [`ReplayCheckError`]: the first [difference](ReplayCheckError::difference), or why there was nothing to compare.
///
/// # Panics
/// If the engine does.
pub fn replay_check<E: Engine>(
    path: impl AsRef<Path>,
    progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let disk = Arc::new(open_directory(path.as_ref())?);
    let mut progress = progress;
    match at_once::<E, _>(&disk, &mut progress) {
        Err(error) if is_of_the_end(&error) => beside::<E>(&disk, progress),
        checked => checked,
    }
}

/// [`replay_check`] on a disk of the caller's, beside which nobody runs the session.
///
/// # Errors
/// The same.
///
/// # Panics
/// If the engine does.
pub fn replay_check_on<E: Engine, D: Disk>(
    disk: Arc<D>,
    progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    at_once::<E, D>(&disk, progress)
}

/// Looks at both journals at once.
fn at_once<E: Engine, D: Disk>(
    disk: &Arc<D>,
    progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let (Ok((events, _)), Ok((input, _))) = (list(&**disk, &target(EVENTS)?), list(&**disk, &target(INPUT)?))
    else {
        return in_two_passes::<E, D>(disk, TRIES, progress);
    };
    let check = ScanningCheck::new(input, events, DigestThread::default());
    in_one_pass::<E, D>(disk, check, TRIES, progress)
}

/// Looks again where only the ends do not fit: a session may run, or have run meanwhile. What is compared is the input as it
/// was first, with the log as it is after that, and after pauses in which a session that runs has recorded what is in
/// flight. A log that stays too short although nobody works on it, or for longer than any commit takes, is short.
fn beside<E: Engine>(
    disk: &Arc<StdDisk>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let input = readable(Side::Input, scanned(disk, INPUT, TRIES)?)?;
    let (mut seen, mut quiet, mut pause) = (None, 0, PAUSE_MIN);
    // Who cannot be asked is taken to be at work.
    let is_free = || matches!(disk.is_locked(), Ok(false));
    loop {
        let was_free = is_free();
        let events = readable(Side::Events, scanned(disk, EVENTS, TRIES)?)?;
        let end = events.report.end;
        // A command is there before its events are.
        let has_more = || {
            let now = scanned::<E::Error, _>(disk, INPUT, TRIES);
            now.is_ok_and(|now| now.report.end > input.report.end)
        };
        let checked = play_back::<E, _>(disk, &events, &input, has_more, &mut progress);
        let Err(error) = checked else { return checked };
        // A session may have come and gone between two looks.
        quiet = if seen == Some(end) && was_free && is_free() { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS || !is_of_the_end(&error) || pause > PAUSE_MAX {
            return Err(error);
        }
        seen = Some(end);
        thread::sleep(pause);
        pause *= 2;
    }
}

/// Scans both journals and plays back what the scans hand on. Its result counts if both verdicts allow it. Where a
/// second look finds another end than the first, there is a second playback. A bad end is looked at `tries` times at most.
fn in_one_pass<E: Engine, D: Disk>(
    disk: &Arc<D>,
    mut check: ScanningCheck<E, DigestThread>,
    tries: usize,
    mut progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let mut files = SessionFiles::new(disk, target(INPUT)?, target(EVENTS)?);
    let mut panicked = None;
    loop {
        // Damage is told even where the engine panics at a record before it.
        let asked = catch_unwind(AssertUnwindSafe(|| check.poll())).unwrap_or_else(|panic| {
            panicked = Some(panic);
            check.give_up();
            check.poll()
        });
        let Some((side, request)) = asked else { break };
        check.handle_read(side, files.read(side, request));
        let (commands, of) = check.progress();
        progress(commands, of);
    }
    let Some(Found { input, events, played }) = check.finish() else {
        return in_two_passes::<E, D>(disk, tries, progress);
    };
    let (events, events_stand) = settled(disk, Side::Events, events, tries)?;
    let (input, input_stands) = settled(disk, Side::Input, input, tries)?;
    match (events_stand && input_stands, panicked, played) {
        (true, Some(panic), _) => resume_unwind(panic),
        (true, None, Some(played)) => Ok(played?),
        _ => play_back::<E, D>(disk, &events, &input, || false, progress),
    }
}

/// Scans both journals, then reads them again to play them back.
fn in_two_passes<E: Engine, D: Disk>(
    disk: &Arc<D>,
    tries: usize,
    progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let events = readable(Side::Events, scanned(disk, EVENTS, tries)?)?;
    let input = readable(Side::Input, scanned(disk, INPUT, tries)?)?;
    play_back::<E, D>(disk, &events, &input, || false, progress)
}

fn scanned<X, D: Disk>(
    disk: &Arc<D>,
    name: &str,
    tries: usize,
) -> Result<Inspection<Pryj, D>, ReplayCheckError<X>> {
    Ok(inspect_within::<Pryj, D>(Arc::clone(disk), target(name)?, ScanOptions::default(), tries)?)
}

/// Plays back what was found. Where the input `has_more` commands by now, the log may have events of those.
fn play_back<E: Engine, D: Disk>(
    disk: &Arc<D>,
    events: &Inspection<Pryj, D>,
    input: &Inspection<Pryj, D>,
    has_more: impl Fn() -> bool,
    mut progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let of = input.report.records().saturating_sub(1);
    let mut files = SessionFiles::new(disk, input.target.clone(), events.target.clone());
    let [input, events] = [input, events].map(|found| found.view.clone().as_recovered());
    let mut check = ReplayCheck::<E, _>::digested_by(DigestThread::default());
    loop {
        match check.poll(&input, &events) {
            Err(CheckError::Playback(PlaybackError::Differs(found)))
                if found.replayed.is_none() && has_more() =>
            {
                return Ok(check.compared());
            }
            Err(error) => return Err(error.into()),
            Ok(CheckStep::Same(checked)) => return Ok(checked),
            Ok(CheckStep::Read(side, request)) => {
                check.handle_read(side, files.read(side, request))?;
                progress(check.commands(), of);
            }
        }
    }
}

/// Whether one of the journals has less than the other, and everything is the same up to there.
fn is_of_the_end<X>(error: &ReplayCheckError<X>) -> bool {
    error.difference().is_some_and(|found| found.recorded.is_none() || found.replayed.is_none())
}

/// What an inspection comes to that began with this scan, and whether it is the same.
fn settled<X, D: Disk>(
    disk: &Arc<D>,
    side: Side,
    first: (View<Pryj>, Report),
    tries: usize,
) -> Result<(Inspection<Pryj, D>, bool), ReplayCheckError<X>> {
    let (end, verdict) = (first.1.end, first.1.verdict.clone());
    let name = match side {
        Side::Input => INPUT,
        Side::Events => EVENTS,
    };
    let found = inspect_after(first, Arc::clone(disk), target(name)?, ScanOptions::default(), tries)?;
    let found = readable(side, found)?;
    let stands = !found.in_flight && end == found.report.end && verdict == found.report.verdict;
    Ok((found, stands))
}

/// The journal up to its end, unless the scan refuses it.
fn readable<X, D: Disk>(
    side: Side,
    found: Inspection<Pryj, D>,
) -> Result<Inspection<Pryj, D>, ReplayCheckError<X>> {
    match found.report.verdict {
        // A writer was at work while it was read: what was read is whole.
        Verdict::Refused(_) if found.in_flight => Ok(found),
        Verdict::Refused(_) => Err(ReplayCheckError::Damaged { side, report: Box::new(found.report) }),
        Verdict::Sound | Verdict::Cut(_) => Ok(found),
    }
}

fn target(name: &str) -> Result<Target, InvalidName> {
    JournalName::parse(name).map(Target::Journal)
}
