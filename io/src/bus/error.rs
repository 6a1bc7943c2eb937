//! Why the bus refused.

use strandline_core::bus::{AcknowledgeError, RestoreError, SubscribeError};
use strandline_core::{ReadError, Seq};

use crate::error::{AppendError, Poisoned};
use crate::journal::OpenError;

/// Why an operation on an open bus was refused, or failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EventBusError {
    /// The subscribe.
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    /// The acknowledgement.
    #[error(transparent)]
    Acknowledge(#[from] AcknowledgeError),
    /// There is no durable subscription of this name.
    #[error("there is no durable subscription `{name}`: look at the list of them")]
    UnknownName {
        /// The name.
        name: Box<str>,
    },
    /// What was to be recorded of the subscription found no space, or no file. It counts while the bus runs, and is recorded
    /// as soon as there is.
    #[error(
        "there was no space left, or too many files were open, to record the subscription: it counts, and is tried again; free some space, or raise the limit of open files (ulimit -n)"
    )]
    NoSpace,
    /// One of the two journals stopped.
    #[error(transparent)]
    Poisoned(#[from] Poisoned),
    /// The bus was closed.
    #[error("the bus is closed: open it again")]
    Closed,
}

impl EventBusError {
    /// What a refused record of a subscription means.
    pub(super) fn of_record(error: AppendError) -> Self {
        match error {
            AppendError::Poisoned(poisoned) => Self::Poisoned(poisoned),
            AppendError::Closed => Self::Closed,
            _ => Self::NoSpace,
        }
    }
}

/// Why a bus was not opened.
#[derive(Debug, thiserror::Error)]
pub enum BusOpenError {
    /// One of its journals.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The records of the journal `subscriptions` cannot be read back.
    #[error("journal `subscriptions`: {0}")]
    Read(#[from] ReadError),
    /// A record of the journal `subscriptions` cannot be understood.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The bound leaves no room for a bus.
    #[error("a bus within {bytes_max} bytes has no room to work: allow at least {least}")]
    TooSmall {
        /// The bound.
        bytes_max: u64,
        /// The least that works.
        least: u64,
    },
    /// To open it within its bound would drop events.
    #[error(
        "the journal `event-journal` has {bytes} bytes, the bus is to keep {bytes_max}: opening it would drop events before {keeps}; allow more, or run `compact` first to drop them knowingly"
    )]
    WouldDrop {
        /// Bytes that there are.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
        /// The first event that would be kept.
        keeps: Seq,
    },
    /// The first records found no space, or the disk failed.
    #[error(transparent)]
    Bus(#[from] EventBusError),
    /// The system gave no thread.
    #[error("no thread could be started for the bus: {0}")]
    Thread(std::io::Error),
}
