//! What an application and its machine do, as bytes: the simulator crashes it everywhere.

use arbitrary::{Result, Unstructured};
use strandline::core::{FramingKind, RecoveryPolicy, Seq, SyncPolicy};
use strandline_sim::disk::Survivors;
use strandline_sim::{Forgery, Operation, Options, Script, Settings, Trace, explore};

/// More take seconds, since each is crashed at every step.
const OPERATIONS_MAX: usize = 6;

pub(super) fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let Ok(settings) = settings(&mut input) else { return };
    let mut script = Script::default();
    while !input.is_empty() && script.operations.len() < OPERATIONS_MAX {
        let Ok(operation) = operation(&mut input, settings.payload_bytes_max) else { break };
        script.operations.push(operation);
    }
    // The simulator's own runs go deeper; here it is the variety of scripts that counts.
    let options =
        Options { random_subsets: 0, deeper_every: 64, depth_max: 2, faults_every: 16, ..Options::smoke() };
    if let Err(violation) = explore(&settings, &script, options, &mut Trace::silent()) {
        panic!("{violation}\nscript {script}\n{settings}");
    }
}

/// Eight bytes: the values that seeds draw from too.
fn settings(input: &mut Unstructured<'_>) -> Result<Settings> {
    let [seed, kind, sync, segment, reserve, commit, tail, payload]: [u8; 8] = input.arbitrary()?;
    let bit = |n: u8| kind & (1 << n) != 0;
    Ok(Settings {
        framing: if bit(0) { FramingKind::Pcpj } else { FramingKind::Pryj },
        version: if bit(1) && bit(2) { 1 } else { 2 },
        recovery: if bit(3) { RecoveryPolicy::Strict } else { RecoveryPolicy::Standard },
        first_seq: Seq::new(pick(kind >> 4, [0, 1, 1_000])),
        sync: match sync % 4 {
            0 => SyncPolicy::Interval { ms: 1 + u64::from(sync / 4) },
            1 => SyncPolicy::Never,
            _ => SyncPolicy::Always,
        },
        segment_bytes: pick(segment, [160, 256, 384, 512, 1_024, 4_096]),
        reserve_bytes: pick(reserve, [0, 64, 96, 128, 256, 512]),
        commit_bytes_max: pick(commit, [1, 64, 200, 1_000]),
        tail_bytes_max: pick(tail, [0, 100, 10_000]),
        payload_bytes_max: pick(payload, [8, 40, 150, 200]),
        ..Settings::from_seed(seed.into(), true)
    })
}

fn pick<T: Copy, const N: usize>(byte: u8, choices: [T; N]) -> T {
    choices[usize::from(byte) % N]
}

/// Three bytes: which, and with what.
fn operation(input: &mut Unstructured<'_>, payload_bytes_max: u32) -> Result<Operation> {
    let [what, a, b]: [u8; 3] = input.arbitrary()?;
    let (few, many) = (u32::from(a % 8), u32::from(a));
    Ok(match what % 32 {
        0..=7 => {
            let size = |byte: u8| (u32::from(byte) * 3).min(payload_bytes_max);
            let count = 1 + usize::from(b % 3);
            Operation::Append([a, b, a ^ b].into_iter().take(count).map(size).collect())
        }
        8..=11 => Operation::Drain,
        12..=14 => Operation::Step,
        15 => Operation::Tick(1 + many / 2),
        16 => Operation::Sync,
        17 => Operation::Trim(few),
        18 => Operation::Read,
        19 => Operation::Reopen,
        20 => Operation::Kill,
        21 => Operation::PowerLoss(survivors(a, b)),
        22 if b % 2 == 0 => Operation::SpaceBack,
        22 => Operation::Space(many * 2),
        23 => Operation::FailSync(survivors(a, b)),
        24 => Operation::FailDirectorySync(survivors(a, b)),
        25 if b % 2 == 0 => Operation::FailRemove,
        25 => Operation::FailWrite,
        26 => Operation::Short(1 + many / 3),
        27 => Operation::Clock((i32::from(a) - 128) * 40),
        28 => Operation::FailRead,
        29 if b % 2 == 0 => Operation::LoseWrite,
        29 => Operation::MisdirectWrite(1 + few % 3),
        30 => Operation::Rot(many.into()),
        _ => Operation::Forge(pick(a, Forgery::ALL)),
    })
}

fn survivors(a: u8, b: u8) -> Survivors {
    let rank = usize::from(b % 8);
    match a % 5 {
        0 => Survivors::None,
        1 => Survivors::All,
        2 => Survivors::Prefix(rank),
        3 => Survivors::AllBut(rank),
        _ => Survivors::Random(b.into()),
    }
}
