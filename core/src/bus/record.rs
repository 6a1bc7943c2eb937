//! The records of the journal `subscriptions`, in Simple Binary Encoding. The schema is
//! `core/schema/subscriptions.xml`; a test holds every offset, id, length and enum value in here against it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};

use super::gap::{GapReason, RecordedGap};
use super::subscription::SubscriptionId;
use crate::{Filter, Seq, Timestamp};

pub(crate) const SCHEMA_ID: u16 = 7301;
pub(crate) const SCHEMA_VERSION: u16 = 0;
/// What an optional unsigned field holds in place of a value.
const NULL: u64 = u64::MAX;

/// A message's id in the schema, and the length of its fixed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) id: u16,
    pub(crate) block_len: u16,
}

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

/// Why a record of the journal `subscriptions` cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record ends before its fields do.
    #[error("it ends within its {0}")]
    Short(&'static str),
    /// It belongs to another schema.
    #[error("it is of schema {0}, not of {SCHEMA_ID}: it was not written by this program")]
    Schema(u16),
    /// The message is unknown.
    #[error(
        "it is a message {template} of version {version}, this program knows version {SCHEMA_VERSION}: use a newer one"
    )]
    Template {
        /// The message's id.
        template: u16,
        /// The schema version that it was written with.
        version: u16,
    },
    /// An enum value is unknown.
    #[error("its {field} is {value}, which the schema does not name")]
    Value {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: u8,
    },
    /// A text is no UTF-8.
    #[error("its {0} is no text")]
    Text(&'static str),
}

impl Record {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(128);
        match self {
            Self::NextId(next) => {
                put_header(NEXT_ID, &mut out);
                out.put_u64_le(*next);
            }
            Self::Subscription(subscription) => subscription.encode(&mut out),
            Self::Pointer { id, pointer, passed } => {
                put_header(POINTER, &mut out);
                out.put_u64_le(id.get());
                out.put_u64_le(pointer.get());
                out.put_u64_le(passed.get());
            }
            Self::Removed(id) => {
                put_header(REMOVED, &mut out);
                out.put_u64_le(id.get());
            }
        }
        out.freeze()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut header = Fields { rest: bytes };
        let block_len = usize::from(header.u16("header")?);
        let (template, schema) = (header.u16("header")?, header.u16("header")?);
        let version = header.u16("header")?;
        if schema != SCHEMA_ID {
            return Err(RecordError::Schema(schema));
        }
        // A newer version may have more fields at the end of the block; a shorter one than ours lacks some.
        let known = [NEXT_ID, SUBSCRIPTION, POINTER, REMOVED].into_iter().find(|known| known.id == template);
        let Some(known) = known else { return Err(RecordError::Template { template, version }) };
        if block_len < usize::from(known.block_len) {
            return Err(RecordError::Short("block"));
        }
        let mut block = Fields { rest: header.take(block_len, "block")? };
        match known {
            NEXT_ID => Ok(Self::NextId(block.u64("nextId")?)),
            SUBSCRIPTION => Recorded::decode(&mut block, &mut header).map(Self::Subscription),
            POINTER => {
                let (id, pointer, passed) = (block.id()?, block.seq("pointer")?, block.seq("passed")?);
                Ok(Self::Pointer { id, pointer, passed })
            }
            _ => Ok(Self::Removed(block.id()?)),
        }
    }
}

impl Recorded {
    fn encode(&self, out: &mut BytesMut) {
        put_header(SUBSCRIPTION, out);
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

    fn decode(block: &mut Fields<'_>, rest: &mut Fields<'_>) -> Result<Self, RecordError> {
        let (id, pointer, passed) = (block.id()?, block.seq("pointer")?, block.seq("passed")?);
        let since = Timestamp::from_millis(block.i64("since")?);
        let presence = Presence::of(block.u8("presence")?)?;
        let reason = reason_of(block.u8("gapReason")?)?;
        let (from, end) = (block.seq("gapFrom")?, block.seq("gapEnd")?);
        let count = Some(block.u64("gapCount")?).filter(|count| *count != NULL);
        let gap = reason.map(|reason| RecordedGap { from, end, count, reason });
        let mut filter = Filter::all();
        for source in rest.group("sources")? {
            filter = filter.source(&source);
        }
        for event_type in rest.group("eventTypes")? {
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

    fn of(value: u8) -> Result<Self, RecordError> {
        let all = [Self::Connected, Self::Suspended, Self::Expired];
        let field = "presence";
        all.into_iter().find(|known| known.value() == value).ok_or(RecordError::Value { field, value })
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

fn reason_of(value: u8) -> Result<Option<GapReason>, RecordError> {
    let all = [None, Some(GapReason::TooMany), Some(GapReason::Expired), Some(GapReason::Beyond)];
    let field = "gapReason";
    all.into_iter().find(|known| reason_value(*known) == value).ok_or(RecordError::Value { field, value })
}

fn put_header(template: Template, out: &mut BytesMut) {
    out.put_u16_le(template.block_len);
    out.put_u16_le(template.id);
    out.put_u16_le(SCHEMA_ID);
    out.put_u16_le(SCHEMA_VERSION);
}

/// A group without fixed fields, of one text each. The filter's limits keep its size within the field.
fn put_group<'a>(texts: impl ExactSizeIterator<Item = &'a str>, out: &mut BytesMut) {
    out.put_u16_le(0);
    out.put_u16_le(u16::try_from(texts.len()).unwrap_or(u16::MAX));
    for text in texts.take(usize::from(u16::MAX)) {
        put_data(text.as_bytes(), out);
    }
}

fn put_data(data: &[u8], out: &mut BytesMut) {
    let data = data.get(..usize::from(u16::MAX)).unwrap_or(data);
    out.put_u16_le(u16::try_from(data.len()).unwrap_or(u16::MAX));
    out.put_slice(data);
}

/// Fields in order, none of them trusted to be there.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(RecordError::Short(field))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], RecordError> {
        self.take(N, field)?.first_chunk().copied().ok_or(RecordError::Short(field))
    }

    fn u8(&mut self, field: &'static str) -> Result<u8, RecordError> {
        self.array(field).map(u8::from_le_bytes)
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, RecordError> {
        self.array(field).map(u16::from_le_bytes)
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, RecordError> {
        self.array(field).map(u64::from_le_bytes)
    }

    fn i64(&mut self, field: &'static str) -> Result<i64, RecordError> {
        self.array(field).map(i64::from_le_bytes)
    }

    fn seq(&mut self, field: &'static str) -> Result<Seq, RecordError> {
        self.u64(field).map(Seq::new)
    }

    fn id(&mut self) -> Result<SubscriptionId, RecordError> {
        self.u64("id").map(SubscriptionId::new)
    }

    fn data(&mut self, field: &'static str) -> Result<&'a [u8], RecordError> {
        let len = self.u16(field)?;
        self.take(usize::from(len), field)
    }

    fn text(&mut self, field: &'static str) -> Result<&'a str, RecordError> {
        core::str::from_utf8(self.data(field)?).map_err(|_| RecordError::Text(field))
    }

    fn group(&mut self, field: &'static str) -> Result<Vec<String>, RecordError> {
        let (block_len, count) = (usize::from(self.u16(field)?), self.u16(field)?);
        let mut texts = Vec::new();
        for _ in 0..count {
            self.take(block_len, field)?;
            texts.push(self.text(field)?.into());
        }
        Ok(texts)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
