//! Opening a journal for writing: scan, verdict, cut, rewrite, mark.
//!
//! The order matters, and each step closes a loss:
//!
//! 1. Sync the directory, so that what is listed is what a power loss leaves.
//! 2. Scan, and judge the first bad byte. A refusal ends here; not one byte was changed.
//! 3. Remove what an interrupted create left behind.
//! 4. Keep a copy of a torn tail beside the segment, cut it off (reserved zeros too), sync.
//! 5. Write everything that no mark proves again, in place, verified as it is re-read, and sync. After a process kill,
//!    and after a failed sync, the page cache may hold what the disk never got.
//! 6. Only then write and sync a mark that states the end, unless the last frame is that mark, so that
//!    a crash loop does not grow the file.

mod plan;
mod rewrite;
mod steps;

use alloc::boxed::Box;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use steps::Stage;

use crate::{Answer, Config, Effect, Framing, IoFailure, Journal, Listing, Refusal, Report, SegmentId, Seq};

/// What a recovery wants next.
#[derive(Debug)]
pub enum RecoveryStep<F: Framing> {
    /// Perform this one effect and answer with [`Recovery::resume`].
    Perform(Effect, Box<Recovery<F>>),
    /// Nothing: the journal is open.
    Done(Box<Journal<F>>, Box<Report>),
}

/// Why a journal cannot be opened for writing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// The scan refused it; nothing was changed.
    #[error("{refusal}")]
    Refused {
        /// Why.
        refusal: Refusal,
        /// All that the scan found.
        report: Box<Report>,
    },
    /// A step failed. What was acknowledged is safe; opening again goes on from there.
    #[error(
        "recovery could not {step} segment {segment}: {failure}. Nothing acknowledged is lost; mend the cause and open again"
    )]
    Failed {
        /// What it was about to do.
        step: &'static str,
        /// Which segment.
        segment: SegmentId,
        /// What failed.
        failure: IoFailure,
    },
    /// Bytes that were valid a moment ago are not any more.
    #[error(
        "segment {segment}: the bytes at offset {offset} changed between two reads: check the disk; nothing was marked as durable"
    )]
    Unstable {
        /// The segment.
        segment: SegmentId,
        /// Where the reads differ.
        offset: u64,
    },
}

/// A recovery in progress: a coroutine that each step consumes.
///
/// ```
/// use strandline_core::{Answer, Completion, Config, Effect, Listing, Output, Pryj, Recovery, RecoveryStep, Timestamp};
///
/// // A world without files: every effect succeeds, and there is nothing to read.
/// let config = Config::new(42, Timestamp::from_millis(0));
/// let mut step = Recovery::<Pryj>::start(config, Listing::Segments(vec![]));
/// let mut journal = loop {
///     match step {
///         RecoveryStep::Perform(_, recovery) => step = recovery.resume(Answer::Done).unwrap(),
///         RecoveryStep::Done(journal, _) => break journal,
///     }
/// };
/// let accepted = journal.append(Timestamp::from_millis(1), b"hello").unwrap();
/// let mut durable = None;
/// while let Some(output) = journal.poll_output() {
///     match output {
///         Output::Effect { id, .. } => journal.handle_completion(Completion { id, result: Ok(()) }),
///         Output::Durable { end, commit } if commit == accepted.commit => durable = Some(end),
///         _ => {}
///     }
/// }
/// assert_eq!(durable, Some(accepted.seq.next()));
/// ```
#[derive(Debug)]
pub struct Recovery<F: Framing> {
    config: Config,
    salts: ChaCha8Rng,
    stage: Stage<F>,
}

impl<F: Framing> Recovery<F> {
    /// Begins to open the journal whose files are listed; without any, a new one is created.
    ///
    /// # Panics
    /// If the configured version is not 1 or 2, or the first number is one that no record can have: programmer
    /// errors.
    #[must_use]
    pub fn start(config: Config, listing: Listing) -> RecoveryStep<F> {
        assert!(matches!(config.version, 1 | 2), "format versions are 1 and 2");
        assert!(config.first_seq.is_none_or(|first| first <= Seq::LAST), "no record has this number");
        let salts = ChaCha8Rng::seed_from_u64(config.salt_seed);
        let recovery = Self { config, salts, stage: Stage::Directory(listing) };
        RecoveryStep::Perform(Effect::SyncDirectory, Box::new(recovery))
    }

    /// Goes on with the answer to the last effect.
    ///
    /// # Errors
    /// [`RecoveryError`]; a refusal has changed nothing.
    pub fn resume(mut self: Box<Self>, answer: Answer<'_>) -> Result<RecoveryStep<F>, RecoveryError> {
        match core::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Taken => Ok(RecoveryStep::Perform(Effect::SyncDirectory, self)),
            Stage::Directory(listing) => self.directory_synced(listing, answer),
            Stage::Scanning(scan) => self.scanned(scan, answer),
            Stage::Repairing(plan, step) => self.repaired(plan, step, answer),
            Stage::Rewriting(plan, rewrite) => self.rewritten(plan, rewrite, answer),
            Stage::Marking(plan, step) => self.marked(plan, step, answer),
            Stage::Creating(plan, segment) => self.created(plan, segment, answer),
        }
    }
}
