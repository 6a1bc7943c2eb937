//! What the simulated application submits: records that can be told apart, with bytes that are hard on a journal.

use strandline_core::{Event, EventDraft, Framing, Pcpj, Pryj, PryjRecord, Timestamp};

/// One record or event as it was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Counts submissions in a run; never given out twice, unlike sequence numbers.
    pub id: u64,
    /// When it was submitted.
    pub at: Timestamp,
    /// Event domain; unused by opaque records.
    pub domain: u8,
    /// Event type; unused by opaque records.
    pub event_type: String,
    /// Event source; unused by opaque records.
    pub source: String,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Submitted {
    /// The submission numbered `id`, whose payload has `len` bytes. `recent` are bytes that the journal wrote
    /// before: some payloads repeat them, real marks included, to be taken for what they imitate.
    #[must_use]
    pub fn new(id: u64, at: Timestamp, len: usize, recent: &[u8]) -> Self {
        let mut payload: Vec<u8> = match id % 5 {
            // Zeros look like reserved space.
            0 => vec![0; len],
            1 => recent.iter().rev().take(len).rev().copied().collect(),
            // Ends in zeros: a torn write does too.
            2 => (0..len).map(|at| if at > len / 2 { 0 } else { filler(id, at) }).collect(),
            _ => (0..len).map(|at| filler(id, at)).collect(),
        };
        payload.resize(len, 0);
        // What makes payloads of the same length differ, as far as there is room for it.
        for (to, from) in payload.iter_mut().zip(id.to_le_bytes()) {
            *to = from;
        }
        Self {
            id,
            at,
            domain: u8::try_from(id % 255).map_or(1, |domain| domain + 1),
            event_type: format!("type-{}", id % 3),
            source: "s".repeat(1 + usize::try_from(id % 7).unwrap_or(0)),
            payload,
        }
    }

    /// Whether no other submission has these bytes: the payload holds the whole id, or the event's other
    /// fields could not tell it from another.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.payload.len() >= 8
    }
}

/// A framing that the simulator can submit to and compare with.
pub trait SimFraming: Framing {
    /// The submission as this framing's draft.
    fn draft(record: &Submitted) -> Self::Draft<'_>;

    /// Whether a record that was read back is this submission, byte for byte.
    fn matches(read: Self::Record<'_>, record: &Submitted) -> bool;

    /// The payload of a record that was read back.
    fn payload(read: Self::Record<'_>) -> Vec<u8>;
}

impl SimFraming for Pryj {
    fn draft(record: &Submitted) -> &[u8] {
        &record.payload
    }

    fn matches(read: PryjRecord<'_>, record: &Submitted) -> bool {
        read.payload == record.payload
    }

    fn payload(read: PryjRecord<'_>) -> Vec<u8> {
        read.payload.to_vec()
    }
}

impl SimFraming for Pcpj {
    fn draft(record: &Submitted) -> EventDraft<'_> {
        EventDraft {
            domain: record.domain,
            event_type: &record.event_type,
            source: &record.source,
            payload: &record.payload,
        }
    }

    fn matches(read: Event<'_>, record: &Submitted) -> bool {
        (read.timestamp, read.domain) == (record.at, record.domain)
            && (read.event_type, read.source) == (&*record.event_type, &*record.source)
            && read.payload == record.payload
    }

    fn payload(read: Event<'_>) -> Vec<u8> {
        read.payload.to_vec()
    }
}

/// A byte that depends on the record and the place, and is never zero.
fn filler(id: u64, at: usize) -> u8 {
    let mixed =
        (id + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (at as u64 + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed.wrapping_mul(0xBF58_476D_1CE4_E5B9).to_be_bytes()[0] | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_the_length_asked_for_and_differ_where_there_is_room() {
        let now = Timestamp::from_millis(7);
        let mut seen = std::collections::BTreeSet::new();
        for id in 0..40 {
            for len in [0, 1, 7, 8, 100] {
                let record = Submitted::new(id, now, len, b"recently written");
                assert_eq!(record.payload.len(), len);
                assert!(record.domain > 0);
                if record.is_unique() {
                    assert!(seen.insert(record.payload));
                }
            }
        }
    }

    #[test]
    fn what_was_read_back_is_compared_in_every_field() {
        let record = Submitted::new(3, Timestamp::from_millis(7), 20, b"");
        let read = Event {
            seq: strandline_core::Seq::new(9),
            timestamp: record.at,
            domain: record.domain,
            event_type: &record.event_type,
            source: &record.source,
            payload: &record.payload,
        };
        assert!(Pcpj::matches(read, &record));
        assert!(!Pcpj::matches(Event { timestamp: Timestamp::from_millis(8), ..read }, &record));
        assert!(!Pcpj::matches(Event { domain: record.domain + 1, ..read }, &record));
        assert!(!Pcpj::matches(Event { event_type: "x", ..read }, &record));
        assert!(!Pcpj::matches(Event { source: "x", ..read }, &record));
        assert!(!Pcpj::matches(Event { payload: b"x", ..read }, &record));
    }
}
