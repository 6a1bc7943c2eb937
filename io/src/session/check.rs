//! The replay check over a directory, which it only reads.

mod digest;
#[cfg(all(test, not(strandline_shuttle)))]
mod tests;

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;

use strandline_core::session::{CheckError, CheckStep, Checked, Found, ReplayCheck, ScanningCheck, Side};
use strandline_core::{
    Engine, InvalidName, JournalName, Pryj, ReadError, Report, ScanOptions, Verdict, View,
};

use super::files::SessionFiles;
use super::{EVENTS, INPUT};
use crate::disk::Disk;
use crate::inspect::{InspectError, Inspection, TRIES, inspect_after, inspect_within, list, open_directory};
use crate::segment_reader::Target;
use digest::DigestThread;

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
            Self::Check(CheckError::Playback(super::PlaybackError::Differs(difference))) => Some(difference),
            _ => None,
        }
    }
}

/// Applies the recorded commands of a session to a fresh engine, and compares every recorded event with what it emits.
/// Changes nothing, and its memory does not grow with the session, but for 16 bytes for each 64 KiB. A torn tail of either journal, which opening would
/// cut, is left out. Beside a process that runs the session, what is recorded already is compared, and what is not
/// recorded yet is no difference.
///
/// Both journals are read once, and verified as a whole: whatever is told of them is told of undamaged ones. A thread
/// computes the digest meanwhile. Beside a process that runs the session they are verified first, and read again.
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
    // Held for no longer than it takes to see whether somebody has it.
    let runs = || disk.try_lock().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    check::<E, _>(&disk, runs, progress)
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
    check::<E, D>(&disk, || false, progress)
}

fn check<E: Engine, D: Disk>(
    disk: &Arc<D>,
    runs: impl Fn() -> bool,
    mut progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    // Beside a session that runs, the log must be looked at before the input, which then may have more commands than the
    // log has events, and not less. One pass looks at both at once.
    if runs() {
        return in_two_passes::<E, D>(disk, true, TRIES, progress);
    }
    let (Ok((events, _)), Ok((input, _))) = (list(&**disk, &target(EVENTS)?), list(&**disk, &target(INPUT)?))
    else {
        return in_two_passes::<E, D>(disk, false, TRIES, progress);
    };
    let check = ScanningCheck::new(input, events, DigestThread::default());
    match in_one_pass::<E, D>(disk, check, TRIES, &mut progress) {
        // It was begun meanwhile.
        Err(error) if error.difference().is_some() && runs() => {
            in_two_passes::<E, D>(disk, true, TRIES, progress)
        }
        checked => checked,
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
        return in_two_passes::<E, D>(disk, false, tries, progress);
    };
    let (events, events_stand) = settled(disk, Side::Events, events, tries)?;
    let (input, input_stands) = settled(disk, Side::Input, input, tries)?;
    match (events_stand && input_stands, panicked, played) {
        (true, Some(panic), _) => resume_unwind(panic),
        (true, None, Some(played)) => Ok(played?),
        _ => play_back::<E, D>(disk, events, input, false, progress),
    }
}

/// Scans both journals, then reads them again to play them back.
fn in_two_passes<E: Engine, D: Disk>(
    disk: &Arc<D>,
    runs: bool,
    tries: usize,
    progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let scan = |name| {
        let found =
            inspect_within::<Pryj, D>(Arc::clone(disk), target(name)?, ScanOptions::default(), tries)?;
        Ok::<_, ReplayCheckError<E::Error>>(found)
    };
    let events = readable(Side::Events, scan(EVENTS)?)?;
    let input = readable(Side::Input, scan(INPUT)?)?;
    play_back::<E, D>(disk, events, input, runs, progress)
}

fn play_back<E: Engine, D: Disk>(
    disk: &Arc<D>,
    events: Inspection<Pryj, D>,
    input: Inspection<Pryj, D>,
    runs: bool,
    mut progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    let of = input.report.records().saturating_sub(1);
    let mut files = SessionFiles::new(disk, input.target.clone(), events.target.clone());
    let [input, events] = [input, events].map(|found| found.view.as_recovered());
    let mut check = ReplayCheck::<E, _>::digested_by(DigestThread::default());
    loop {
        match check.poll(&input, &events) {
            Err(error) if runs && is_unrecorded(&error) => return Ok(check.compared()),
            Err(error) => return Err(error.into()),
            Ok(CheckStep::Same(checked)) => return Ok(checked),
            Ok(CheckStep::Read(side, request)) => {
                check.handle_read(side, files.read(side, request))?;
                progress(check.commands(), of);
            }
        }
    }
}

/// Whether the log ends before an event that is caused, and is the same up to there.
fn is_unrecorded<X>(error: &CheckError<X>) -> bool {
    let CheckError::Playback(super::PlaybackError::Differs(difference)) = error else { return false };
    difference.recorded.is_none()
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
