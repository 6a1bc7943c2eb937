//! Simple Binary Encoding, the standard of the FIX Trading Community: what the codecs of all schemas share. Fields stand
//! at fixed offsets in a fixed order, so that equal messages are equal bytes.
//!
//! A codec is written by hand against its schema, and a test holds every offset, id, length and enum value in it against the XML.

use bytes::BufMut;

/// A schema's id, and the version that this program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Told apart by it.
    pub id: u16,
    /// Grows when fields are added.
    pub version: u16,
}

/// A message's id in its schema, and the length of its fixed fields in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// `id` of the message.
    pub id: u16,
    /// `blockLength` of the message.
    pub block_len: u16,
}

/// Why bytes are no message of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SbeError {
    /// The message ends before its fields do.
    #[error("it ends within its {0}")]
    Short(&'static str),
    /// It belongs to another schema.
    #[error("it is of schema {found}, not of {expected}: it was not written by this program")]
    Schema {
        /// What it says.
        found: u16,
        /// The schema that is read.
        expected: u16,
    },
    /// The message is unknown.
    #[error(
        "it is a message {template} of version {version}, this program knows version {known}: use a newer one"
    )]
    Template {
        /// The message's id.
        template: u16,
        /// The schema version that it was written with.
        version: u16,
        /// The schema version of this program.
        known: u16,
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

impl Schema {
    /// Begins a message.
    pub fn put_header(self, template: Template, out: &mut impl BufMut) {
        out.put_u16_le(template.block_len);
        out.put_u16_le(template.id);
        out.put_u16_le(self.id);
        out.put_u16_le(self.version);
    }

    /// Reads a message's header: which of the known messages it is, its fixed fields, and what follows them. A newer
    /// version may have more fields at the end of the block, which are passed over. A shorter block is refused: whoever adds
    /// a field says here what it means where it is missing.
    ///
    /// # Errors
    /// [`SbeError`] if it is too short, of another schema or unknown.
    pub fn open<'a>(
        self,
        bytes: &'a [u8],
        known: &[Template],
    ) -> Result<(Template, Fields<'a>, Fields<'a>), SbeError> {
        let mut rest = Fields::new(bytes);
        let (block_len, template) = (usize::from(rest.u16("header")?), rest.u16("header")?);
        let (schema, version) = (rest.u16("header")?, rest.u16("header")?);
        if schema != self.id {
            return Err(SbeError::Schema { found: schema, expected: self.id });
        }
        let Some(known) = known.iter().find(|known| known.id == template) else {
            return Err(SbeError::Template { template, version, known: self.version });
        };
        if block_len < usize::from(known.block_len) {
            return Err(SbeError::Short("block"));
        }
        let block = Fields::new(rest.take(block_len, "block")?);
        Ok((*known, block, rest))
    }
}

/// Appends variable-length data with a length of 16 bits; what is longer than that can say is cut.
pub fn put_data(data: &[u8], out: &mut impl BufMut) {
    let data = data.get(..usize::from(u16::MAX)).unwrap_or(data);
    out.put_u16_le(u16::try_from(data.len()).unwrap_or(u16::MAX));
    out.put_slice(data);
}

/// Fields in order, none of them trusted to be there. Each call names the field, for the error.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the types of the standard, read in order")]
pub struct Fields<'a> {
    rest: &'a [u8],
}

#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "the types of the standard; too short is the only error"
)]
impl<'a> Fields<'a> {
    /// The fields in these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], SbeError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(SbeError::Short(field))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], SbeError> {
        self.take(N, field)?.first_chunk().copied().ok_or(SbeError::Short(field))
    }

    pub fn u8(&mut self, field: &'static str) -> Result<u8, SbeError> {
        self.array(field).map(u8::from_le_bytes)
    }

    pub fn u16(&mut self, field: &'static str) -> Result<u16, SbeError> {
        self.array(field).map(u16::from_le_bytes)
    }

    pub fn u32(&mut self, field: &'static str) -> Result<u32, SbeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, field: &'static str) -> Result<u64, SbeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub fn i64(&mut self, field: &'static str) -> Result<i64, SbeError> {
        self.array(field).map(i64::from_le_bytes)
    }

    /// Variable-length data with a length of 16 bits.
    pub fn data(&mut self, field: &'static str) -> Result<&'a [u8], SbeError> {
        let len = self.u16(field)?;
        self.take(usize::from(len), field)
    }

    /// Variable-length UTF-8 with a length of 16 bits.
    ///
    /// # Errors
    /// [`SbeError::Text`] beside [`SbeError::Short`].
    pub fn text(&mut self, field: &'static str) -> Result<&'a str, SbeError> {
        core::str::from_utf8(self.data(field)?).map_err(|_| SbeError::Text(field))
    }
}
