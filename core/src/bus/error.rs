//! Why the bus refuses.

use alloc::boxed::Box;

use super::subscription::SubscriptionId;
use crate::Seq;
use crate::sbe::SbeError;

/// Why a subscribe is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The name cannot be one.
    #[error("`{name}` is no name for a subscription: 1 to {max} bytes, no control characters")]
    Name {
        /// What was given.
        name: Box<str>,
        /// The longest name, in bytes.
        max: usize,
    },
    /// The filter is too long to be recorded.
    #[error(
        "the filter of `{name}` has {len} bytes, the limit is {max}: subscribe to more and filter on arrival"
    )]
    Filter {
        /// The subscription.
        name: Box<str>,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// There is no room for another durable subscription.
    #[error(
        "{count} durable subscriptions take {bytes} bytes, the limit is {max}: remove those that nobody uses, then subscribe again"
    )]
    Full {
        /// How many there are.
        count: usize,
        /// What they take when they are all recorded again, in bytes.
        bytes: usize,
        /// The limit in bytes.
        max: usize,
    },
}

/// Why an acknowledgement is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeError {
    /// There is no such subscription.
    #[error(
        "there is no subscription {subscription}: it was removed, or was not durable and left; subscribe again"
    )]
    Unknown {
        /// The identity that was given.
        subscription: SubscriptionId,
    },
    /// The event was never delivered.
    #[error(
        "subscription {subscription} cannot acknowledge event {sequence}: it was given events up to {delivered}; acknowledge what was processed, or the `resume_after` of its gap"
    )]
    NeverDelivered {
        /// The subscription.
        subscription: SubscriptionId,
        /// What was to be acknowledged.
        sequence: Seq,
        /// The last event that it was given.
        delivered: Seq,
    },
    /// It is no event that was delivered, and may be the end of a gap that was not told since the subscriber connected.
    #[error(
        "subscription {subscription} cannot acknowledge event {sequence} yet: it was given events up to {delivered}, and has a gap that was not told since it connected. Subscribe again, receive the gap, and acknowledge its `resume_after` while connected; until then at most {delivered}"
    )]
    GapNotTold {
        /// The subscription.
        subscription: SubscriptionId,
        /// What was to be acknowledged.
        sequence: Seq,
        /// The last event that it was given.
        delivered: Seq,
    },
    /// There is no such event yet.
    #[error(
        "subscription {subscription} cannot acknowledge event {sequence}: the journal ends before {end}; acknowledge at most the event before that"
    )]
    BeyondEnd {
        /// The subscription.
        subscription: SubscriptionId,
        /// What was to be acknowledged.
        sequence: Seq,
        /// One past the last durable event.
        end: Seq,
    },
}

/// Why the records of the journal `subscriptions` cannot be taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "journal `subscriptions`, record {seq}: {cause}. Nothing was changed; set the journal's files aside to start without subscriptions"
)]
pub struct RestoreError {
    /// The record.
    pub seq: Seq,
    /// What is wrong with it.
    pub cause: SbeError,
}
