//! Damage that no crash does: rotten bits and forged marks, each in a copy of the disk, so that the run goes on
//! as if nothing had happened.

use rand::Rng;
use strandline::{Access, Disk};
use strandline_core::verdict::Row;
use strandline_core::{Mark, ReadUpTo, RecoveryError, Refusal, Report, Seq, Timestamp, Verdict};

use super::machine::{Machine, journal_name};
use super::opening::{Outcome, check_agreement};
use super::reading::read;
use crate::disk::{DiskState, SimDisk, Survivors};
use crate::interpreter::Interpreter;
use crate::violation::{Broken, Check};
use crate::workload::{Forgery, SimFraming, Stream};

/// How many bits are flipped, each in a copy of its own.
const FLIPS: u32 = 24;

/// By how many bytes a forged mark misses its place.
const ASTRAY: u64 = 64;

/// The undamaged disk, and what is in it.
struct Sound {
    state: DiskState,
    report: Report,
}

/// Flips bits, each in a copy of the disk. Whatever a mark of another place proves must then be there or
/// be refused; whatever is cut must be said to be cut; and no wrong record may be read.
///
/// # Errors
/// The first check that does not hold.
pub(super) fn rot<F: SimFraming, D: Interpreter>(
    machine: &Machine<'_, F, D>,
    seed: u64,
) -> Result<(), Broken> {
    let Some(sound) = sound(machine)?.filter(|_| machine.settings.notices_damage()) else { return Ok(()) };
    let rng = &mut crate::workload::rng(seed, Stream::Damage);
    let files: Vec<(&str, &[u8])> =
        sound.state.files().filter(|(name, bytes)| name.ends_with(".seg") && !bytes.is_empty()).collect();
    for _ in 0..FLIPS {
        let file = rng.random_range(0..u32::try_from(files.len()).unwrap_or(u32::MAX));
        let Some((name, bytes)) = usize::try_from(file).ok().and_then(|at| files.get(at)) else { continue };
        let offset = rng.random_range(0..bytes.len() as u64);
        let bit = rng.random_range(0..8u32);
        let mut rotten = sound.state.clone();
        if rotten.flip_bit(name, offset, u8::try_from(bit).unwrap_or(0)) {
            let is_last = files.last().is_some_and(|(last, _)| last == name);
            let proven =
                if is_last { proven_without::<F>(&sound.report, bytes, offset) } else { sound.report.end };
            check_rotten(machine, rotten, &sound.report, proven).map_err(|broken| {
                let detail = format!("bit {bit} of byte {offset} of {name} flipped: {}", broken.detail);
                Broken { detail, ..broken }
            })?;
        }
    }
    Ok(())
}

/// Puts a mark behind the last frame of a copy of the disk, and holds the verdict against the table.
///
/// # Errors
/// [`Check::VerdictIsTheTables`].
pub(super) fn forge<F: SimFraming, D: Interpreter>(
    machine: &Machine<'_, F, D>,
    forgery: Forgery,
) -> Result<(), Broken> {
    let Some(sound) = sound(machine)? else { return Ok(()) };
    let Some(last) = sound.report.segments.last().filter(|last| last.version >= 2) else { return Ok(()) };
    let name = journal_name().segment_file(last.id);
    let bytes = sound.state.file(&name).unwrap_or_default();
    let Some(first) = bytes.get(F::HEADER_LEN..).and_then(F::parse_mark) else { return Ok(()) };
    let (durable_end, offset) = (sound.report.end, last.bytes);
    let honest = Mark { durable_end, offset, salt: first.salt, first: sound.report.first };
    let (mark, row) = match forgery {
        Forgery::Nothing => (honest, None),
        Forgery::Salt => (Mark { salt: !honest.salt, ..honest }, Some(Row::V)),
        Forgery::Offset => (Mark { offset: offset + ASTRAY, ..honest }, Some(Row::V)),
        Forgery::Ahead => (Mark { durable_end: durable_end.next(), ..honest }, Some(Row::B)),
    };
    let mut data = vec![0; F::MARK_LEN];
    F::encode_mark(&mark, Timestamp::default(), &mut data);
    let forged = written(&sound.state, &name, offset, &data);
    let verdict = scanned(machine, forged)?.map(|report| report.verdict);
    let as_expected = match (&verdict, row) {
        (Some(Verdict::Sound), None) => true,
        (Some(Verdict::Refused(refusal)), Some(row)) => refusal.row() == Some(row),
        _ => false,
    };
    if as_expected {
        return Ok(());
    }
    let detail = format!(
        "a mark forged in {forgery:?} behind the last frame: expected row {row:?}, found {verdict:?}"
    );
    Err(Check::VerdictIsTheTables.broken(detail))
}

/// The disk as a power loss with all survivors leaves it, if there is nothing to cut.
fn sound<F: SimFraming, D: Interpreter>(machine: &Machine<'_, F, D>) -> Result<Option<Sound>, Broken> {
    let state = machine.disk.state().power_loss(Survivors::All);
    if state.has_lied() {
        return Ok(None);
    }
    let report = scanned(machine, state.clone())?;
    Ok(report.filter(|report| report.verdict == Verdict::Sound).map(|report| Sound { state, report }))
}

/// What a scan says of a disk.
fn scanned<F: SimFraming, D: Interpreter>(
    machine: &Machine<'_, F, D>,
    state: DiskState,
) -> Result<Option<Report>, Broken> {
    let copy = on_copy(machine, state);
    Ok(copy.scan(copy.settings.recovery)?.map(|(_, report)| report))
}

/// Opens a rotten copy.
fn check_rotten<F: SimFraming, D: Interpreter>(
    machine: &Machine<'_, F, D>,
    rotten: DiskState,
    sound: &Report,
    proven: Seq,
) -> Result<(), Broken> {
    let before = rotten.clone();
    let mut copy = on_copy(machine, rotten);
    let policy = copy.settings.recovery;
    let scan = copy.scan(policy)?.map(|(_, report)| report);
    let outcome: Outcome<F> = copy.recover(policy)?;
    let (journal, report) = match outcome {
        Ok(opened) => opened,
        Err(RecoveryError::Refused { refusal, .. }) => {
            return check_refusal(&before, &copy.disk.state(), &refusal, scan.as_ref());
        }
        Err(error) => return Err(Check::WorkCompletes.broken(error.to_string())),
    };
    check_agreement(&journal, &report, scan.as_ref())?;
    let end = journal.view().written_end();
    if end < proven || end > sound.end {
        let detail =
            format!("records up to {} were there, {proven} were proven, opened with {end}", sound.end);
        return Err(Check::DamageIsNoticed.broken(detail));
    }
    if end < sound.end && !matches!(report.verdict, Verdict::Cut(_)) {
        let detail = format!("records from {end} to {} were dropped without a word", sound.end);
        return Err(Check::DamageIsNoticed.broken(detail));
    }
    let read_to = read(&copy, &copy.performer(), journal.view(), ReadUpTo::Durable)?;
    if read_to == end {
        return Ok(());
    }
    Err(Check::EveryReaderAgrees
        .broken(format!("the cursor read up to {read_to}, recovery found up to {end}")))
}

/// A refusal has changed nothing, and the scan refuses for the same reason.
fn check_refusal(
    before: &DiskState,
    after: &DiskState,
    refusal: &Refusal,
    scan: Option<&Report>,
) -> Result<(), Broken> {
    if !before.files().eq(after.files()) {
        return Err(Check::RefusalChangesNothing.broken(format!("a refusal changed files: {refusal}")));
    }
    match scan.map(|scan| &scan.verdict) {
        Some(Verdict::Refused(seen)) if seen == refusal => Ok(()),
        seen => Err(Check::EveryReaderAgrees.broken(format!("recovery says {refusal:?}, the scan {seen:?}"))),
    }
}

/// What the marks of the last segment prove, without the one that the damaged byte lies in. Told by the
/// bytes alone: a mark names its own place, and its segment's salt.
fn proven_without<F: SimFraming>(report: &Report, bytes: &[u8], damaged: u64) -> Seq {
    let Some(last) = report.segments.last() else { return report.first };
    let salt = bytes.get(F::HEADER_LEN..).and_then(F::parse_mark).map(|first| first.salt);
    let frames = bytes.get(..usize::try_from(last.bytes).unwrap_or(usize::MAX)).unwrap_or(bytes);
    let marks = frames.windows(F::MARK_LEN).zip(0u64..).filter_map(|(window, at)| {
        let mark = F::parse_mark(window).filter(|mark| mark.offset == at && Some(mark.salt) == salt)?;
        let touched = (at..at + F::MARK_LEN as u64).contains(&damaged);
        (!touched).then_some(mark.durable_end)
    });
    marks.max().unwrap_or(last.first).max(last.first)
}

/// A machine of its own, with this disk.
fn on_copy<'a, F: SimFraming, D: Interpreter>(
    machine: &Machine<'a, F, D>,
    state: DiskState,
) -> Machine<'a, F, D> {
    Machine::start(machine.settings, state, machine.world.clone(), machine.buffer.clone())
}

/// The disk with these bytes written into one of its files.
fn written(state: &DiskState, name: &str, offset: u64, data: &[u8]) -> DiskState {
    let mut state = state.clone();
    state.lift_limit();
    let disk = SimDisk::from_state(state);
    let file = disk.open(name, Access::ReadWrite).expect("a file that was scanned");
    let done = disk.write_at(&file, offset, data).expect("a disk without faults");
    assert_eq!(done, data.len(), "a disk without faults writes all");
    disk.state()
}
