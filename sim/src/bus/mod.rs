//! The event bus, crashed at every step: subscribers that stall, leave, come back and acknowledge late, twice or not
//! at all; clocks that step; retention at its bounds; no space.
//!
//! | invariant | |
//! |---|---|
//! | B1 | an event that was published is there, or retention dropped it; what is there is what was published |
//! | B2 | a pointer never passes what was acknowledged, and is never behind an acknowledgement that was durable |
//! | B3 | every event that a subscriber wants is delivered, or covered by one gap, or still to come |
//! | B4 | a gap is told until it is acknowledged, also across crashes |
//! | B5 | replay to live neither skips nor repeats beyond what was not acknowledged |
//! | B6 | the files of the directory stay within the bound at every step |
//! | B8 | retention drops nothing that a durable subscription needs while there is room |
//! | B7 | a subscription that was told to be durable is there after any crash |

pub(crate) mod machine;
mod promise;
pub(crate) mod story;
mod work;

pub use story::BusStory;

use crate::explorer::{BrokenPromise, Options, Statistics, explore_application, guarded};
use crate::violation::Broken;

/// Explores the bus's work of one seed.
///
/// # Errors
/// The first invariant that a crash breaks.
pub fn explore_bus(story: &BusStory, options: Options) -> Result<Statistics, BrokenPromise> {
    // A check is long here, and as many crashes inside it would be most of the work.
    let options = Options { deeper_every: options.deeper_every * 16, ..options };
    let explored = guarded(|| Ok(explore_application(story, story.sector_bytes(), options)));
    explored.unwrap_or_else(|Broken { detail, .. }| {
        Err(BrokenPromise { promised: 0, crashes: Vec::new(), detail })
    })
}
