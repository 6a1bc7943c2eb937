//! Sessions: an engine whose commands are journaled before anybody is answered, and whose events can be caused again.
//!
//! Two journals in one directory. `input` has the [`Setup`] as record 0, then every command at its number; it is the
//! truth. `events` has every event at its number, from 1 on; it can be made again from the input. The engine is given
//! durable commands only, so that it is never ahead of the disk, and a command is answered once its events are durable.
//!
//! [`Playback`] is the one path for running, resuming and checking: it applies commands, and holds what the engine emits
//! against what is recorded. [`Session`] appends what is not recorded yet, and says when a command is answered.
//! [`ReplayCheck`] is the read-only form, with a digest.

mod check;
mod digest;
mod error;
mod live;
mod playback;
mod scanning_check;
mod setup;
mod source;

pub use check::{CheckError, CheckStep, Checked, ReplayCheck};
pub use digest::{Digester, EventDigest};
pub use error::{Difference, PlaybackError, Side};
pub use live::{Answered, Session, SessionStep};
pub use playback::{Play, Playback};
pub use scanning_check::{Found, ScanningCheck};
pub use setup::Setup;
pub use source::{FromScan, FromView};

use crate::Seq;

/// The number of the first event.
pub const FIRST_EVENT: Seq = Seq::new(1);

/// The number of the record that is the setup.
const SETUP: Seq = Seq::ZERO;
