//! Exhaustive small scope: every sequence of a few operations, crashed everywhere.
//!
//! A sequence of which only the last operation is new is crashed only there: what was before has been looked at
//! with the shorter one. All sequences of one run share the states that were seen.

use std::iter;

use strandline_core::{FramingKind, Pcpj, Pryj, SyncPolicy};

use super::crash::Crashes;
use super::machine::shared_buffer;
use super::{Options, Statistics, run_script};
use crate::disk::{Detail, SimDisk};
use crate::trace::Trace;
use crate::violation::Violation;
use crate::workload::{Operation, Script, Settings, SimFraming};

/// Segments longer than this have more bytes to crash at than they have edges.
const SEGMENT_BYTES_MAX: u64 = 256;

/// Long enough for an idle mark and for any interval.
const TICK_MS: u32 = 120;

/// How many operations there are to choose from.
const CHOICES: usize = 7;

/// The settings of seeds, the first of each framing, version and kind of sync policy whose segments are small.
#[must_use]
pub fn small_scopes() -> Vec<Settings> {
    let kind = |settings: &Settings| match settings.sync {
        SyncPolicy::Always => 0,
        SyncPolicy::Interval { .. } => 1,
        SyncPolicy::Never => 2,
    };
    let mut scopes: Vec<Settings> = Vec::new();
    // Two framings, two versions, three policies; a seed in a few dozen has each.
    let mut seeds = (0..).map(|seed| Settings::from_seed(seed, true));
    while scopes.len() < 2 * 2 * 3 {
        let Some(settings) = seeds.next() else { break };
        let is_known = scopes.iter().any(|known| {
            (known.framing, known.version, kind(known))
                == (settings.framing, settings.version, kind(&settings))
        });
        if settings.segment_bytes <= SEGMENT_BYTES_MAX && !is_known {
            scopes.push(settings);
        }
    }
    scopes
}

/// Runs every sequence of up to `length` operations out of append, commit, roll, trim, tick, close (and open
/// again), and open again without a close; each is crashed at every byte and call, once. `progress` is told how many
/// of how many sequences are done.
///
/// # Errors
/// The first violation.
pub fn exhaust(
    settings: &Settings,
    length: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Statistics, Box<Violation>> {
    match settings.framing {
        FramingKind::Pryj => exhaust_as::<Pryj>(settings, length, progress),
        FramingKind::Pcpj => exhaust_as::<Pcpj>(settings, length, progress),
    }
}

fn exhaust_as<F: SimFraming>(
    settings: &Settings,
    length: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Statistics, Box<Violation>> {
    let options = Options {
        detail: Detail::EveryStep,
        random_subsets: 1,
        deeper_every: 0,
        depth_max: 1,
        faults_every: 0,
        canary: false,
    };
    let mut crashes = Crashes::<F, SimDisk>::new(settings, options, shared_buffer());
    let all = sequences(length).count() as u64;
    for (sequence, done) in sequences(length).zip(0..) {
        progress(done, all);
        let (script, last) = script(settings, &sequence);
        run_script(&mut crashes, &script, last, &mut Trace::silent())?;
    }
    progress(all, all);
    Ok(crashes.statistics)
}

/// Every sequence of choices, shorter ones first.
fn sequences(length: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..=length).flat_map(|length| {
        let first = Some(vec![0; length]);
        iter::successors(first, |sequence| {
            let mut next = sequence.clone();
            let turned = next.iter().rposition(|choice| choice + 1 < CHOICES)?;
            next[turned] += 1;
            next[turned + 1..].fill(0);
            Some(next)
        })
    })
}

/// The script of a sequence, and where its last choice begins.
fn script(settings: &Settings, sequence: &[usize]) -> (Script, usize) {
    let whole_segment = u32::try_from(settings.segment_bytes).unwrap_or(u32::MAX);
    let operations = |choice: &usize| match choice {
        0 => vec![Operation::Append(vec![9])],
        1 => vec![Operation::Drain],
        // A record that fills a segment does not fit behind another one.
        2 => vec![Operation::Append(vec![whole_segment]), Operation::Drain],
        3 => vec![Operation::Trim(1)],
        4 => vec![Operation::Tick(TICK_MS), Operation::Drain],
        5 => vec![Operation::Reopen],
        _ => vec![Operation::Kill],
    };
    let before = sequence.split_last().map_or(0, |(_, before)| before.iter().flat_map(operations).count());
    (Script { operations: sequence.iter().flat_map(operations).collect() }, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_comes_once() {
        let all: Vec<Vec<usize>> = sequences(3).collect();
        assert_eq!(all.len(), 1 + CHOICES + CHOICES.pow(2) + CHOICES.pow(3));
        let once: std::collections::BTreeSet<&Vec<usize>> = all.iter().collect();
        assert_eq!(once.len(), all.len());
    }

    #[test]
    fn the_scopes_cover_every_framing_version_and_policy() {
        let scopes = small_scopes();
        assert_eq!(scopes.len(), 12);
        assert!(
            scopes.iter().all(|scope| *scope == Settings::from_seed(scope.seed, true)),
            "seeds replay them"
        );
    }

    #[test]
    fn only_the_last_choice_is_crashed() {
        let settings = Settings::from_seed(0, true);
        let (of_two, last) = script(&settings, &[2, 0]);
        assert_eq!((of_two.operations.len(), last), (3, 2));
        assert_eq!(script(&settings, &[]), (Script::default(), 0));
    }
}
