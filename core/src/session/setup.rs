//! The first record of a session, in Simple Binary Encoding. The schema is `core/schema/session.xml`; a test holds every
//! offset, id and length in here against it.

use bytes::{BufMut, Bytes, BytesMut};

use crate::sbe::{SbeError, Schema, Template, put_data};

pub(crate) const SCHEMA: Schema = Schema { id: 7302, version: 0 };
pub(crate) const SETUP: Template = Template { id: 1, block_len: 0 };

/// What a session begins with: which engine it is of, and what that engine is configured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup<'a> {
    /// [`Engine::ID`](crate::Engine::ID).
    pub engine: &'a str,
    /// What [`Engine::start`](crate::Engine::start) is given.
    pub setup: &'a [u8],
}

impl<'a> Setup<'a> {
    /// The record's payload.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.engine.len() + self.setup.len() + 16);
        SCHEMA.put_header(SETUP, &mut out);
        put_data(self.engine.as_bytes(), &mut out);
        out.put_u32_le(u32::try_from(self.setup.len()).unwrap_or(u32::MAX));
        out.put_slice(self.setup);
        out.freeze()
    }

    /// Reads a record's payload.
    ///
    /// # Errors
    /// [`SbeError`] if it is no setup.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, SbeError> {
        let (_, _, mut rest) = SCHEMA.open(bytes, &[SETUP])?;
        let engine = rest.text("engine")?;
        let len = rest.u32("setup")?;
        let setup = rest.take(usize::try_from(len).unwrap_or(usize::MAX), "setup")?;
        Ok(Self { engine, setup })
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
