//! What the bus has promised before a crash, and what must be true after it.

/// One promise, or one thing that may have happened from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusPromise {
    /// Every event before `end` is durable.
    Published {
        /// Exclusive.
        end: u64,
    },
    /// A subscription is durable; it wants what comes behind `pointer`.
    Subscribed {
        /// Which one.
        who: usize,
        /// The last event that it had processed.
        pointer: u64,
    },
    /// An acknowledgement was asked for: it may be recorded from now on.
    Asked {
        /// Whose.
        who: usize,
        /// Of which event.
        sequence: u64,
    },
    /// The subscriber says that it has processed everything up to here, a gap included.
    Said {
        /// Who.
        who: usize,
        /// The last event.
        sequence: u64,
    },
    /// An acknowledgement is durable.
    Acknowledged {
        /// Whose.
        who: usize,
        /// Of which event.
        sequence: u64,
    },
    /// A gap was told that ends with this event.
    GapTold {
        /// Whom.
        who: usize,
        /// The number to acknowledge.
        resume_after: u64,
    },
}

/// What is known of one subscription when the crash comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The least that its pointer can be; none if it need not exist.
    pub(super) pointer_min: Option<u64>,
    /// The most.
    pub(super) pointer_max: u64,
    /// The end of a gap that was told and not acknowledged.
    pub(super) gap: Option<u64>,
    /// It asked to go on elsewhere than at its pointer, where more may be gone than anybody counted.
    pub(super) has_said: bool,
}

/// What all promises say of one subscription.
pub(super) fn known(promised: &[BusPromise], of: usize) -> Known {
    let mut known = Known::default();
    for promise in promised {
        match *promise {
            BusPromise::Subscribed { who, pointer } if who == of => {
                known.pointer_min = known.pointer_min.max(Some(pointer));
                known.pointer_max = known.pointer_max.max(pointer);
            }
            BusPromise::Asked { who, sequence } if who == of => {
                known.pointer_max = known.pointer_max.max(sequence);
                known.gap = known.gap.filter(|end| sequence < *end);
            }
            BusPromise::Said { who, sequence } if who == of => {
                known.pointer_max = known.pointer_max.max(sequence);
                (known.gap, known.has_said) = (None, true);
            }
            BusPromise::Acknowledged { who, sequence } if who == of => {
                known.pointer_min = known.pointer_min.max(Some(sequence));
            }
            BusPromise::GapTold { who, resume_after } if who == of => known.gap = Some(resume_after),
            _ => {}
        }
    }
    known
}

/// The end of what is durable.
pub(super) fn published(promised: &[BusPromise]) -> u64 {
    let ends = promised.iter().filter_map(|promise| match promise {
        BusPromise::Published { end } => Some(*end),
        _ => None,
    });
    ends.max().unwrap_or(1)
}
