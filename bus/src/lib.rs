//! The event bus over HTTP.

#![forbid(unsafe_code)]

pub mod client;
pub mod cloud_event;
mod frame;
mod gap;
mod guard;
mod intake;
mod listen;
mod measured;
mod metrics;
mod page;
mod parameters;
mod problem;
mod publish;
mod server;
mod shell;
mod status;
mod stream;

pub use gap::Gap;
pub use guard::Guard;
pub use listen::{ConnectionLimits, Listener, OwnSocket};
pub use measured::{DiskMeasures, MeasuredDisk};
pub use problem::Problem;
pub use server::{Server, ServerSettings};
pub use shell::{Accepted, JournalStatus, SegmentStatus, Shell, Subscriber, ThreadedSubscriber};
pub use status::{FilterDescription, SubscriptionDescription, SubscriptionDocument};
