//! Reading everything back with a cursor, as a subscriber does.

use bytes::Bytes;
use strandline::Performer;
use strandline_core::{Cursor, ReadError, ReadUpTo, Replay, Seq, View};

use super::machine::{Machine, read_into};
use crate::interpreter::Interpreter;
use crate::oracle::Recovered;
use crate::violation::{Broken, Check};
use crate::workload::SimFraming;

/// How often a failed read is tried again.
const RETRIES: usize = 4;

/// Reads all records of a view, and compares each with what was submitted; there must be exactly
/// those that were found.
pub(crate) fn read_all<F: SimFraming, D: Interpreter>(
    machine: &Machine<'_, F, D>,
    performer: &Performer<D>,
    view: &View<F>,
    found: Recovered,
) -> Result<(), Broken> {
    let end = read(machine, performer, view, ReadUpTo::Written)?;
    if view.first() == found.first && end == found.end {
        return Ok(());
    }
    let detail =
        format!("the cursor read {}..{end}, recovery found {}..{}", view.first(), found.first, found.end);
    Err(Check::EveryReaderAgrees.broken(detail))
}

/// Reads from the logical start on, and compares each record with what was submitted. Returns where
/// the records end.
pub(crate) fn read<F: SimFraming, D: Interpreter>(
    machine: &Machine<'_, F, D>,
    performer: &Performer<D>,
    view: &View<F>,
    until: ReadUpTo,
) -> Result<Seq, Broken> {
    let buffer = &mut *machine.buffer.borrow_mut();
    let mut cursor = Cursor::<F>::new(view.first(), until);
    let mut next = view.first();
    let mut retries = RETRIES;
    loop {
        match cursor.poll(view) {
            Replay::Records(batch) => {
                for record in batch.records() {
                    if F::seq(record) != next {
                        let detail = format!("the cursor gave record {} instead of {next}", F::seq(record));
                        return Err(Check::EveryReaderAgrees.broken(detail));
                    }
                    machine.world.oracle.check_record::<F>(record)?;
                    next = next.next();
                }
            }
            Replay::Read(request) => {
                let answer = read_into(performer, request, buffer).map(Bytes::copy_from_slice);
                match cursor.handle_read(answer) {
                    Ok(()) => {}
                    // Polling again asks for the same bytes; a planned fault does not strike twice.
                    Err(ReadError::Failed { .. }) if retries > 0 && machine.disk.has_failed() => retries -= 1,
                    Err(error) => {
                        return Err(Check::EveryReaderAgrees.broken(format!("the cursor: {error}")));
                    }
                }
            }
            Replay::CaughtUp => return Ok(next),
            Replay::Trimmed { first } => {
                return Err(Check::EveryReaderAgrees.broken(format!("the cursor says trimmed to {first}")));
            }
            Replay::Beyond { end } => {
                return Err(Check::EveryReaderAgrees.broken(format!("the cursor says the end is {end}")));
            }
        }
    }
}
