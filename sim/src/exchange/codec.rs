//! How messages are declared, written and read. A message is declared once, as it is in the schema
//! (`sim/schema/exchange.xml`): its type, its encoder, its decoder and the layout that a test holds against the schema follow.
//!
//! For messages of your own, copy this file with a schema id of your own. It needs `bytes`, `serde` and `strandline-core`; where
//! the macros are used, the names that `command.rs` imports have to be in scope. A repeating group is written by hand, as in
//! `setup.rs`. At least one message of an enum has a text.

use bytes::BufMut;
use strandline_core::sbe::{Fields, SbeError, Schema};

/// The schema of the exchange's messages.
pub const SCHEMA: Schema = Schema { id: 7310, version: 0 };

/// A field of fixed length.
pub(super) trait Field: Copy {
    const LEN: u16;
    /// The type's name in the schema.
    const TYPE: &'static str;

    fn put(self, out: &mut impl BufMut);

    fn read(from: &mut Fields<'_>, name: &'static str) -> Result<Self, SbeError>;
}

macro_rules! integers {
    ($($type:ident $len:literal $name:literal $put:ident),*) => {$(
        impl Field for $type {
            const LEN: u16 = $len;
            const TYPE: &'static str = $name;

            fn put(self, out: &mut impl BufMut) {
                out.$put(self);
            }

            fn read(from: &mut Fields<'_>, name: &'static str) -> Result<Self, SbeError> {
                from.$type(name)
            }
        }
    )*};
}

integers!(u16 2 "uint16" put_u16_le, u32 4 "uint32" put_u32_le, u64 8 "uint64" put_u64_le, i64 8 "int64" put_i64_le);

/// Where a field of a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// The field's name, as in Rust.
    pub name: &'static str,
    /// The name of its type in the schema.
    pub type_name: &'static str,
    /// Bytes before it in the message's block; none for a text, which stands behind the block.
    pub offset: Option<u16>,
}

/// A message as the codec has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLayout {
    /// The message's name.
    pub name: &'static str,
    /// Its id in the schema.
    pub id: u16,
    /// Bytes of its block.
    pub block_len: u16,
    /// Its fields and then its texts, in order.
    pub fields: Vec<FieldLayout>,
}

impl MessageLayout {
    pub(super) fn new(name: &'static str, id: u16) -> Self {
        Self { name, id, block_len: 0, fields: Vec::new() }
    }

    pub(super) fn field<T: Field>(mut self, name: &'static str) -> Self {
        self.fields.push(FieldLayout { name, type_name: T::TYPE, offset: Some(self.block_len) });
        self.block_len += T::LEN;
        self
    }

    pub(super) fn text(mut self, name: &'static str) -> Self {
        self.fields.push(FieldLayout { name, type_name: "varString", offset: None });
        self
    }
}

/// Appends a text with its length.
///
/// # Panics
/// If it is longer than 65,535 bytes, which its length cannot say: a programmer error.
pub(super) fn put_text(text: &str, out: &mut impl BufMut) {
    assert!(u16::try_from(text.len()).is_ok(), "a text of {} bytes does not fit into a message", text.len());
    strandline_core::sbe::put_data(text.as_bytes(), out);
}

/// Declares an enum of the schema, with the number of each value.
macro_rules! code {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $number:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$value_doc])* $value),* }

        impl $name {
            /// Every value, by its name in the schema and its number.
            pub const ALL: &[(&'static str, u8, Self)] = &[$((stringify!($value), $number, Self::$value)),*];

            /// Its number in the schema.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self { $(Self::$value => $number),* }
            }
        }

        impl Field for $name {
            const LEN: u16 = 1;
            const TYPE: &'static str = stringify!($name);

            fn put(self, out: &mut impl BufMut) {
                out.put_u8(self.number());
            }

            fn read(from: &mut Fields<'_>, name: &'static str) -> Result<Self, SbeError> {
                match from.u8(name)? {
                    $($number => Ok(Self::$value),)*
                    value => Err(SbeError::Value { field: name, value }),
                }
            }
        }
    };
}

/// Declares messages and the enum of them.
macro_rules! messages {
    (
        $(#[$doc:meta])*
        pub enum $all:ident {
            $(
                $(#[$message_doc:meta])*
                $name:ident $(<$life:lifetime>)? = $id:literal {
                    $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)?
                    $(; $($(#[$text_doc:meta])* $text:ident: $text_type:ty),* $(,)?)?
                }
            )*
        }
    ) => {
        $(
            $(#[$message_doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
            pub struct $name $(<$life>)? {
                $($(#[$field_doc])* pub $field: $type,)*
                $($($(#[$text_doc])* pub $text: $text_type,)*)?
            }

            impl $(<$life>)? $name $(<$life>)? {
                /// Its id, and the length of its block.
                pub const TEMPLATE: Template =
                    Template { id: $id, block_len: 0 $(+ <$type as Field>::LEN)* };
            }
        )*

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(tag = "message", rename_all = "snake_case")]
        #[allow(missing_docs, reason = "each message says what it is")]
        pub enum $all<'a> {
            $($name($name $(<$life>)?),)*
        }

        impl<'a> $all<'a> {
            const KNOWN: &'static [Template] = &[$($name::TEMPLATE),*];

            /// Which message it is.
            #[must_use]
            pub const fn template(&self) -> Template {
                match self { $(Self::$name(_) => $name::TEMPLATE),* }
            }

            /// Appends the message.
            ///
            /// # Panics
            /// If a text is longer than 65,535 bytes: a programmer error.
            pub fn encode(&self, out: &mut impl BufMut) {
                SCHEMA.put_header(self.template(), out);
                match *self {
                    $(Self::$name($name { $($field,)* $($($text,)*)? }) => {
                        $(Field::put($field, out);)*
                        $($(put_text($text, out);)*)?
                    })*
                }
            }

            /// The message's bytes.
            ///
            /// # Panics
            /// As [`encode`](Self::encode).
            #[must_use]
            pub fn to_bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                self.encode(&mut bytes);
                bytes
            }

            /// Reads a message.
            ///
            /// # Errors
            /// [`SbeError`] if it is none of these.
            pub fn decode(bytes: &'a [u8]) -> Result<Self, SbeError> {
                #[allow(unused_mut, unused_variables, reason = "not every message has texts")]
                let (template, mut block, mut rest) = SCHEMA.open(bytes, Self::KNOWN)?;
                match template.id {
                    $($id => Ok(Self::$name($name {
                        $($field: Field::read(&mut block, stringify!($field))?,)*
                        $($($text: rest.text(stringify!($text))?,)*)?
                    })),)*
                    template => Err(SbeError::Template { template, version: SCHEMA.version, known: SCHEMA.version }),
                }
            }

            /// What a test holds against the schema.
            #[must_use]
            pub fn layouts() -> Vec<MessageLayout> {
                vec![$(
                    MessageLayout::new(stringify!($name), $id)
                        $(.field::<$type>(stringify!($field)))*
                        $($(.text(stringify!($text)))*)?
                ),*]
            }
        }
    };
}

pub(super) use {code, messages};
