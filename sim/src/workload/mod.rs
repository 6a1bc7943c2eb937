//! What runs in the simulation: parameters and a script of operations, both decided by a seed.

mod generate;
mod record;
mod script;
mod settings;

use rand::SeedableRng;

pub use record::{SimFraming, Submitted};
pub use script::{Forgery, Operation, Script, UnknownOperation};
pub(crate) use settings::EPOCH_MS;
pub use settings::{Settings, SwarmFaults};

/// The one source of randomness. Its output for a seed is fixed by its definition, not by a version.
pub(crate) type SimRng = rand_chacha::ChaCha8Rng;

/// Independent streams of randomness of one seed: what one draws does not move the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Settings = 1,
    Script = 2,
    Order = 3,
    /// What was added to the settings after seeds were first written down.
    Additions = 4,
    Damage = 5,
}

/// The given stream of a seed.
pub(crate) fn rng(seed: u64, stream: Stream) -> SimRng {
    let mut rng = SimRng::seed_from_u64(seed);
    rng.set_stream(stream as u64);
    rng
}
