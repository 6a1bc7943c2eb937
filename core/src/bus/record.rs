//! The records of the journal `subscriptions`, in Simple Binary Encoding. The schema is
//! `core/schema/subscriptions.xml`; a test holds every offset, id, length and enum value in here against it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};

use super::gap::{GapReason, RecordedGap};
use super::subscription::SubscriptionId;
use crate::sbe::{Fields, SbeError, Schema, Template, put_data};
use crate::{Filter, Seq, Timestamp};

pub(crate) const SCHEMA: Schema = Schema { id: 7301, version: 0 };
/// What an optional unsigned field holds in place of a value.
const NULL: u64 = u64::MAX;

pub(crate) const NEXT_ID: Template = Template { id: 1, block_len: 8 };
pub(crate) const SUBSCRIPTION: Template = Template { id: 2, block_len: 58 };
pub(crate) const POINTER: Template = Template { id: 3, block_len: 24 };
pub(crate) const REMOVED: Template = Template { id: 4, block_len: 8 };

/// Whether the subscriber is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Connected,
    Suspended,
    Expired,
}

/// All that is recorded of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) id: SubscriptionId,
    pub(crate) name: Box<str>,
    pub(crate) filter: Filter,
    /// The last event that was acknowledged.
    pub(crate) pointer: Seq,
    /// Every event before it was acknowledged, or is not wanted.
    pub(crate) passed: Seq,
    pub(crate) presence: Presence,
    pub(crate) since: Timestamp,
    pub(crate) gap: Option<RecordedGap>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    NextId(u64),
    Subscription(Recorded),
    Pointer { id: SubscriptionId, pointer: Seq, passed: Seq },
    Removed(SubscriptionId),
}

impl Record {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(128);
        match self {
            Self::NextId(next) => {
                SCHEMA.put_header(NEXT_ID, &mut out);
                out.put_u64_le(*next);
            }
            Self::Subscription(subscription) => subscription.encode(&mut out),
            Self::Pointer { id, pointer, passed } => {
                SCHEMA.put_header(POINTER, &mut out);
                out.put_u64_le(id.get());
                out.put_u64_le(pointer.get());
                out.put_u64_le(passed.get());
            }
            Self::Removed(id) => {
                SCHEMA.put_header(REMOVED, &mut out);
                out.put_u64_le(id.get());
            }
        }
        out.freeze()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, SbeError> {
        let known = [NEXT_ID, SUBSCRIPTION, POINTER, REMOVED];
        let (known, mut block, mut rest) = SCHEMA.open(bytes, &known)?;
        match known {
            NEXT_ID => Ok(Self::NextId(block.u64("nextId")?)),
            SUBSCRIPTION => Recorded::decode(&mut block, &mut rest).map(Self::Subscription),
            POINTER => {
                let (id, pointer, passed) =
                    (id(&mut block)?, seq(&mut block, "pointer")?, seq(&mut block, "passed")?);
                Ok(Self::Pointer { id, pointer, passed })
            }
            _ => Ok(Self::Removed(id(&mut block)?)),
        }
    }
}

impl Recorded {
    fn encode(&self, out: &mut BytesMut) {
        SCHEMA.put_header(SUBSCRIPTION, out);
        out.put_u64_le(self.id.get());
        out.put_u64_le(self.pointer.get());
        out.put_u64_le(self.passed.get());
        out.put_i64_le(self.since.as_millis());
        out.put_u8(self.presence.value());
        out.put_u8(reason_value(self.gap.map(|gap| gap.reason)));
        out.put_u64_le(self.gap.map_or(0, |gap| gap.from.get()));
        out.put_u64_le(self.gap.map_or(0, |gap| gap.end.get()));
        out.put_u64_le(self.gap.and_then(|gap| gap.count).unwrap_or(NULL));
        put_group(self.filter.sources(), out);
        put_group(self.filter.event_types(), out);
        put_data(self.name.as_bytes(), out);
        let domains: Vec<u8> = self.filter.domains().collect();
        put_data(&domains, out);
    }

    fn decode(block: &mut Fields<'_>, rest: &mut Fields<'_>) -> Result<Self, SbeError> {
        let (id, pointer, passed) = (id(block)?, seq(block, "pointer")?, seq(block, "passed")?);
        let since = Timestamp::from_millis(block.i64("since")?);
        let presence = Presence::of(block.u8("presence")?)?;
        let reason = reason_of(block.u8("gapReason")?)?;
        let (from, end) = (seq(block, "gapFrom")?, seq(block, "gapEnd")?);
        let count = Some(block.u64("gapCount")?).filter(|count| *count != NULL);
        let gap = reason.map(|reason| RecordedGap { from, end, count, reason });
        let mut filter = Filter::all();
        for source in group(rest, "sources")? {
            filter = filter.source(&source);
        }
        for event_type in group(rest, "eventTypes")? {
            filter = filter.event_type(&event_type);
        }
        let name = rest.text("name")?.into();
        for domain in rest.data("domains")? {
            filter = filter.domain(*domain);
        }
        Ok(Self { id, name, filter, pointer, passed, presence, since, gap })
    }
}

impl Presence {
    pub(crate) const fn value(self) -> u8 {
        match self {
            Self::Connected => 1,
            Self::Suspended => 2,
            Self::Expired => 3,
        }
    }

    fn of(value: u8) -> Result<Self, SbeError> {
        let all = [Self::Connected, Self::Suspended, Self::Expired];
        let field = "presence";
        all.into_iter().find(|known| known.value() == value).ok_or(SbeError::Value { field, value })
    }
}

pub(crate) const fn reason_value(reason: Option<GapReason>) -> u8 {
    match reason {
        None => 0,
        Some(GapReason::TooMany) => 1,
        Some(GapReason::Expired) => 2,
        Some(GapReason::Beyond) => 3,
    }
}

fn reason_of(value: u8) -> Result<Option<GapReason>, SbeError> {
    let all = [None, Some(GapReason::TooMany), Some(GapReason::Expired), Some(GapReason::Beyond)];
    let field = "gapReason";
    all.into_iter().find(|known| reason_value(*known) == value).ok_or(SbeError::Value { field, value })
}

/// A group without fixed fields, of one text each. The filter's limits keep its size within the field.
fn put_group<'a>(texts: impl ExactSizeIterator<Item = &'a str>, out: &mut BytesMut) {
    out.put_u16_le(0);
    out.put_u16_le(u16::try_from(texts.len()).unwrap_or(u16::MAX));
    for text in texts.take(usize::from(u16::MAX)) {
        put_data(text.as_bytes(), out);
    }
}

fn seq(block: &mut Fields<'_>, field: &'static str) -> Result<Seq, SbeError> {
    block.u64(field).map(Seq::new)
}

fn id(block: &mut Fields<'_>) -> Result<SubscriptionId, SbeError> {
    block.u64("id").map(SubscriptionId::new)
}

fn group(rest: &mut Fields<'_>, field: &'static str) -> Result<Vec<String>, SbeError> {
    let (block_len, count) = (usize::from(rest.u16(field)?), rest.u16(field)?);
    let mut texts = Vec::new();
    for _ in 0..count {
        rest.take(block_len, field)?;
        texts.push(rest.text(field)?.into());
    }
    Ok(texts)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
