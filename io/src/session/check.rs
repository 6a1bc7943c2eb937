//! The replay check over a directory, which it only reads.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use strandline_core::session::{CheckError, CheckStep, Checked, ReplayCheck, Side};
use strandline_core::{Engine, InvalidName, JournalName, Pryj, ReadError, Report, ScanOptions, Verdict};

use super::files::SessionFiles;
use super::{EVENTS, INPUT};
use crate::disk::Disk;
use crate::inspect::{InspectError, Inspection, inspect_on, open_directory};
use crate::segment_reader::Target;

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
/// Changes nothing, and its memory does not grow with the session. A torn tail of either journal, which opening would
/// cut, is left out. Beside a process that runs the session, what is recorded already is compared, and what is not
/// recorded yet is no difference.
///
/// `progress` is told how many commands were applied, of how many.
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
    let disk = open_directory(path.as_ref())?;
    // Held for no longer than it takes to see whether somebody has it.
    let runs = disk.try_lock().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    check::<E, _>(&Arc::new(disk), runs, progress)
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
    check::<E, D>(&disk, false, progress)
}

fn check<E: Engine, D: Disk>(
    disk: &Arc<D>,
    runs: bool,
    mut progress: impl FnMut(u64, u64),
) -> Result<Checked, ReplayCheckError<E::Error>> {
    // The log first: a session that runs meanwhile may then have more commands than the log has events, and not less.
    let events = found::<E, D>(disk, EVENTS, Side::Events)?;
    let input = found::<E, D>(disk, INPUT, Side::Input)?;
    let of = input.report.records().saturating_sub(1);
    let mut files = SessionFiles::new(disk, input.target.clone(), events.target.clone());
    let [input, events] = [input, events].map(|found| found.view.as_recovered());
    let mut check = ReplayCheck::<E>::new();
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

fn found<E: Engine, D: Disk>(
    disk: &Arc<D>,
    name: &str,
    side: Side,
) -> Result<Inspection<Pryj, D>, ReplayCheckError<E::Error>> {
    let target = Target::Journal(JournalName::parse(name)?);
    let found = inspect_on::<Pryj, D>(Arc::clone(disk), target, ScanOptions::default())?;
    match found.report.verdict {
        // A writer was at work while it was read: what was read is whole.
        Verdict::Refused(_) if found.in_flight => Ok(found),
        Verdict::Refused(_) => Err(ReplayCheckError::Damaged { side, report: Box::new(found.report) }),
        Verdict::Sound | Verdict::Cut(_) => Ok(found),
    }
}
