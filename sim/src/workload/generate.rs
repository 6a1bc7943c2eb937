//! Drawing a script from a seed.

use rand::Rng;

use super::{Forgery, Operation, Script, Settings, SimRng, Stream, SwarmFaults};
use crate::disk::Survivors;

impl Script {
    /// The script that belongs to the settings' seed.
    #[must_use]
    pub fn generate(settings: &Settings) -> Self {
        let rng = &mut super::rng(settings.seed, Stream::Script);
        Self { operations: (0..settings.operations).map(|_| operation(rng, settings)).collect() }
    }
}

/// How often an operation is a fault, in a run that has any kind of fault.
const FAULT_PROBABILITY: f64 = 0.25;

fn operation(rng: &mut SimRng, settings: &Settings) -> Operation {
    if rng.random_bool(FAULT_PROBABILITY)
        && let Some(fault) = fault(rng, settings.faults)
    {
        return fault;
    }
    match rng.random_range(0..20u32) {
        0..=6 => Operation::Append(sizes(rng, settings.payload_bytes_max)),
        7..=10 => Operation::Drain,
        11..=13 => Operation::Step,
        14 => Operation::Tick(rng.random_range(1..=120)),
        15 => Operation::Sync,
        16 => Operation::Trim(rng.random_range(0..=6)),
        17 => Operation::Read,
        18 => Operation::Reopen,
        _ => Operation::Kill,
    }
}

/// Draws one fault of a kind.
type Draw = fn(&mut SimRng) -> Operation;

/// A fault of a kind that this run has, each kind as often as the others; none if it has none.
fn fault(rng: &mut SimRng, faults: SwarmFaults) -> Option<Operation> {
    let kinds: [(bool, Draw); 9] = [
        (faults.crashes, |rng| Operation::PowerLoss(survivors(rng))),
        (faults.space, |rng| match rng.random_range(0..3u32) {
            0 => Operation::SpaceBack,
            _ => Operation::Space(rng.random_range(0..=400)),
        }),
        (faults.syncs, |rng| match rng.random_range(0..3u32) {
            0 => Operation::FailDirectorySync(survivors(rng)),
            _ => Operation::FailSync(survivors(rng)),
        }),
        (faults.errors, |rng| match rng.random_range(0..2u32) {
            0 => Operation::FailRemove,
            _ => Operation::FailWrite,
        }),
        (faults.short, |rng| Operation::Short(rng.random_range(1..=80))),
        (faults.clock, |rng| Operation::Clock(rng.random_range(-5_000..=5_000))),
        (faults.reads, |_| Operation::FailRead),
        (faults.lies, |rng| match rng.random_range(0..2u32) {
            0 => Operation::LoseWrite,
            _ => Operation::MisdirectWrite(rng.random_range(1..=3)),
        }),
        (faults.damage, |rng| match rng.random_range(0..6u32) {
            0 => Operation::Forge(Forgery::Nothing),
            1 => Operation::Forge(Forgery::Salt),
            2 => Operation::Forge(Forgery::Offset),
            3 => Operation::Forge(Forgery::Ahead),
            _ => Operation::Rot(rng.random_range(0..1_000u64)),
        }),
    ];
    let drawn: Vec<_> = kinds.iter().filter(|(has, _)| *has).map(|(_, kind)| kind).collect();
    let last = u32::try_from(drawn.len()).ok()?.checked_sub(1)?;
    let kind = drawn.get(usize::try_from(rng.random_range(0..=last)).ok()?)?;
    Some(kind(rng))
}

/// A few records; most are small, some are empty, some fill segments.
fn sizes(rng: &mut SimRng, payload_bytes_max: u32) -> Vec<u32> {
    let count = rng.random_range(1..=4u32);
    let size = |rng: &mut SimRng| match rng.random_range(0..8u32) {
        0 => 0,
        1 => payload_bytes_max,
        2..=4 => rng.random_range(0..=payload_bytes_max.min(20)),
        _ => rng.random_range(0..=payload_bytes_max),
    };
    (0..count).map(|_| size(rng)).collect()
}

fn survivors(rng: &mut SimRng) -> Survivors {
    let rank = |rng: &mut SimRng| usize::try_from(rng.random_range(0..8u32)).unwrap_or(0);
    match rng.random_range(0..5u32) {
        0 => Survivors::None,
        1 => Survivors::All,
        2 => Survivors::Prefix(rank(rng)),
        3 => Survivors::AllBut(rank(rng)),
        _ => Survivors::Random(rng.random_range(0..1_000u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_means_the_same_run() {
        for seed in [0, 1, u64::MAX] {
            let settings = Settings::from_seed(seed, false);
            assert_eq!(settings, Settings::from_seed(seed, false));
            assert_eq!(Script::generate(&settings), Script::generate(&settings));
            assert_eq!(Script::generate(&settings).operations.len(), settings.operations);
        }
        assert_ne!(Settings::from_seed(0, false), Settings { seed: 0, ..Settings::from_seed(1, false) });
    }

    #[test]
    fn seeds_reach_every_operation_and_leave_faults_out_where_the_swarm_does() {
        let mut verbs = std::collections::BTreeSet::new();
        for seed in 0..300 {
            let settings = Settings::from_seed(seed, false);
            let script = Script::generate(&settings);
            for operation in &script.operations {
                let text = operation.to_string();
                verbs.insert(text.split(':').next().unwrap_or_default().to_owned());
                assert!(settings.faults.space || !matches!(operation, Operation::Space(_)));
            }
            assert_eq!(script.to_string().parse(), Ok(script));
        }
        assert_eq!(verbs.len(), 23, "{verbs:?}");
    }
}
