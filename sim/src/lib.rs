//! The proof: a simulated disk, an explorer that crashes a journal at every step, and an oracle that says
//! what must be true afterwards.
//!
//! A seed decides everything: the parameters of a journal ([`Settings`]), what an application does with it
//! ([`Script`]), the order of outstanding effects, and the survivors of power losses. The explorer drives the
//! same core, through the same interpreter of effects ([`strandline::Performer`]), as the real adapter does; only
//! the disk below is simulated.
//!
//! ```
//! use strandline_sim::{Options, Script, Settings, Trace, explore};
//!
//! let settings = Settings::from_seed(1, true);
//! let script = "append:5,60 drain".parse::<Script>()?;
//! let statistics = explore(&settings, &script, Options::default(), &mut Trace::silent())?;
//! assert!(statistics.states > 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod bus;
pub mod command;
pub mod disk;
mod driven;
pub mod exchange;
mod explorer;
mod interpreter;
#[cfg(feature = "network")]
pub mod network;
mod oracle;
pub mod session;
mod trace;
mod violation;
mod workload;

pub use explorer::{
    Application, BrokenPromise, Options, Promises, Statistics, exhaust, explore, explore_application, shrink,
    small_scopes,
};
pub use oracle::{Oracle, Recovered};
pub use trace::Trace;
pub use violation::{Broken, Check, CrashPoint, Loss, Violation};
pub use workload::{
    Forgery, Operation, Script, Settings, SimFraming, Submitted, SwarmFaults, UnknownOperation,
};
