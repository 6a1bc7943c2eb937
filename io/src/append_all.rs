//! Many records in one call: one lock, one look at the clock, one wait.

use std::sync::Arc;

use strandline_core::{Framing, Seq};

use crate::clock::timestamp;
use crate::commit::CommitState;
use crate::disk::Disk;
use crate::error::AppendError;
use crate::shared::Shared;

/// Why not all of the records were appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{appended} records were appended, then: {source}")]
pub struct AppendAllError {
    /// So many, from the first on, were acknowledged.
    pub appended: u64,
    /// What stopped it. Of the records behind those, none is in the journal, except as
    /// [`AppendError::Poisoned`] says.
    pub source: AppendError,
}

/// Records of one call that went into the same commit.
struct Part {
    commit: Arc<CommitState>,
    records: u64,
    last: Seq,
}

pub(crate) fn append_all<'a, F: Framing, D: Disk>(
    shared: &Shared<F, D>,
    drafts: impl IntoIterator<Item = F::Draft<'a>>,
) -> Result<Option<Seq>, AppendAllError> {
    let mut parts = Vec::new();
    let refused = accept(shared, drafts.into_iter(), &mut parts);
    let mut appended = 0;
    let mut last = None;
    for part in parts {
        let outcome = shared.wait(shared.lock(), &part.commit);
        last = Some(outcome.into_result(part.last).map_err(|source| AppendAllError { appended, source })?);
        appended += part.records;
    }
    match refused {
        Ok(()) => Ok(last),
        Err(source) => Err(AppendAllError { appended, source }),
    }
}

/// Hands the records to the core, blocking for room where too much waits.
fn accept<'a, F: Framing, D: Disk>(
    shared: &Shared<F, D>,
    drafts: impl Iterator<Item = F::Draft<'a>>,
    parts: &mut Vec<Part>,
) -> Result<(), AppendError> {
    let mut state = shared.lock();
    let mut now = timestamp();
    for draft in drafts {
        loop {
            match state.append_at(now, draft) {
                Ok((seq, commit)) => {
                    note(parts, seq, commit);
                    break;
                }
                Err(refused @ AppendError::Full { .. }) => {
                    let oldest = state.commits.oldest().cloned().ok_or(refused)?;
                    let _ = shared.wait(state, &oldest);
                }
                Err(refused) => return Err(refused),
            }
            state = shared.lock();
            now = timestamp();
            check(parts)?;
        }
        if shared.leader_waits() {
            state = shared.give_way(state);
            check(parts)?;
        }
        if state.commits.has_full_one() && !state.leading {
            // Written by somebody else while this thread encodes what follows.
            shared.wake_housekeeping(&mut state);
            drop(state);
            state = shared.lock();
            check(parts)?;
        }
    }
    Ok(())
}

fn note(parts: &mut Vec<Part>, seq: Seq, commit: &Arc<CommitState>) {
    match parts.last_mut() {
        Some(part) if Arc::ptr_eq(&part.commit, commit) => {
            part.records += 1;
            part.last = seq;
        }
        _ => parts.push(Part { commit: Arc::clone(commit), records: 1, last: seq }),
    }
}

/// The lock was given up. A void takes back everything that waits, our newest records with it, and nothing may
/// follow records that are not there.
fn check(parts: &[Part]) -> Result<(), AppendError> {
    match parts.last().and_then(|part| part.commit.outcome().map(|outcome| outcome.into_result(part.last))) {
        Some(Err(failed)) => Err(failed),
        Some(Ok(_)) | None => Ok(()),
    }
}
