//! The two framings: how a record, an event and a mark stand in a file. The bytes are described in
//! `core/FORMAT.md`; nothing outside this module knows them.

mod fields;
mod pcpj;
mod pryj;
mod walk;

use core::fmt::Debug;

use bytes::BytesMut;

pub use pcpj::{Event, EventDraft, Pcpj};
pub use pryj::{Pryj, PryjRecord};
pub(crate) use walk::{Front, front};

use crate::{Seq, Timestamp};

/// A framing: a family of file layouts that share a magic number.
///
/// Implemented by [`Pryj`] (opaque records) and [`Pcpj`] (events); everything else in the crate is generic
/// over it. The functions are pure and never panic on any bytes.
pub trait Framing: Copy + Debug + Default + Send + Sync + Sized + 'static {
    /// What append takes.
    type Draft<'a>: Copy;
    /// What decoding gives, borrowed from the bytes.
    type Record<'a>: Copy + Debug;

    /// The framing's name, for messages.
    const LABEL: &'static str;
    /// The first four bytes of a file.
    const MAGIC: [u8; 4];
    /// The first sequence number of a journal, unless its settings say otherwise.
    const FIRST_SEQ: Seq;
    /// Bytes of the file header; 0 where files have none.
    const HEADER_LEN: usize;
    /// Bytes of a mark.
    const MARK_LEN: usize;
    /// Bytes of the shortest frame.
    const FRAME_LEN_MIN: usize;
    /// Bytes of a frame from which its bounds can be read.
    const PREFIX_LEN: usize;

    /// The layout that a version begins with.
    fn layout(version: u8) -> Layout;

    /// The version that the first bytes of a file state, if they reach that far.
    fn stated_version(head: &[u8]) -> Option<u16>;

    /// Appends the file header.
    fn encode_header(version: u8, first: Seq, out: &mut BytesMut);

    /// The sequence number that the first bytes of a file state, if they reach that far. Used only
    /// for a file without a number in its name.
    fn stated_first(head: &[u8]) -> Option<Seq>;

    /// Checks a draft and gives the length of its frame.
    ///
    /// # Errors
    /// [`DraftError`] says what cannot be stored.
    fn measure(draft: Self::Draft<'_>, payload_bytes_max: usize) -> Result<usize, DraftError>;

    /// Appends the frame of a measured draft.
    fn encode(layout: Layout, seq: Seq, now: Timestamp, draft: Self::Draft<'_>, out: &mut BytesMut);

    /// Writes a mark into exactly [`MARK_LEN`](Self::MARK_LEN) bytes.
    ///
    /// # Panics
    /// If `out` has another length: a programmer error.
    fn encode_mark(mark: &Mark, now: Timestamp, out: &mut [u8]);

    /// Where the frame that begins here ends, judged by its first [`PREFIX_LEN`](Self::PREFIX_LEN) bytes.
    fn bounds(prefix: &[u8]) -> Bounds;

    /// Decodes a frame of exactly the length that its bounds state, checksum verified.
    fn check(layout: Layout, frame: &[u8]) -> Frame<'_, Self>;

    /// Decodes a frame that was verified before; nothing for a mark.
    fn decode(frame: &[u8]) -> Option<Self::Record<'_>>;

    /// The fields of a mark that begins here, if these bytes have the shape of one. The checksum
    /// is not looked at.
    fn parse_mark(bytes: &[u8]) -> Option<Mark>;

    /// The sequence number of a record.
    fn seq(record: Self::Record<'_>) -> Seq;

    /// The record as an event, if the framing is one of events.
    fn as_event<'a>(record: Self::Record<'a>) -> Option<Event<'a>>;
}

/// Which framing a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FramingKind {
    /// Opaque records in segments.
    Pryj,
    /// Self-delimiting event entries.
    Pcpj,
}

impl FramingKind {
    /// Tells a file's framing by its first four bytes.
    #[must_use]
    pub fn detect(head: &[u8]) -> Option<Self> {
        match head.first_chunk::<4>() {
            Some(magic) if *magic == Pryj::MAGIC => Some(Self::Pryj),
            Some(magic) if *magic == Pcpj::MAGIC => Some(Self::Pcpj),
            _ => None,
        }
    }

    /// The framing's name.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pryj => Pryj::LABEL,
            Self::Pcpj => Pcpj::LABEL,
        }
    }
}

/// How the frames of one segment are laid out. A segment has one version throughout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The format version, 1 or 2.
    pub version: u8,
    /// The checksum in use. Only version 1 events leave a choice.
    pub checksum: Checksum,
}

impl Layout {
    /// Whether segments of this layout carry marks.
    #[must_use]
    pub const fn has_marks(self) -> bool {
        self.version >= 2
    }
}

/// The checksum of a segment's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32C (Castagnoli).
    Castagnoli,
    /// CRC-32/ISO-HDLC, what version 1 events are written with.
    IsoHdlc,
    /// No event read so far tells the two apart.
    Undecided,
}

/// A mark: a control frame that carries proof of durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When the mark was written, every record with a lower number was on stable storage.
    pub durable_end: Seq,
    /// The segment's salt, so that a payload cannot imitate a mark.
    pub salt: u64,
    /// The mark's own position in the file.
    pub offset: u64,
    /// The journal's logical start when the mark was written.
    pub first: Seq,
}

impl Mark {
    /// Whether both state the same, wherever they stand.
    #[must_use]
    pub fn states_same(&self, other: &Self) -> bool {
        self.durable_end == other.durable_end && self.first == other.first
    }
}

/// The end of a frame, as far as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// Fewer than [`Framing::PREFIX_LEN`] bytes were given.
    Short,
    /// No frame begins like this.
    Unreadable,
    /// The frame has this many bytes.
    Len(usize),
}

/// A frame after its checksum was looked at.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a, F: Framing> {
    /// A record, and what is now known of the segment's layout.
    Record(F::Record<'a>, Layout),
    /// A mark. Whether its salt and offset fit is for the reader to say.
    Mark(Mark),
    /// The checksum is right, but this version knows no such frame.
    Foreign,
    /// The checksum is wrong.
    Damaged,
}

/// What cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// The payload is longer than the limit.
    #[error(
        "the payload has {len} bytes, the limit is {max}: split it, or store it elsewhere and append a reference"
    )]
    PayloadTooLong {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The event type or source is empty or too long.
    #[error("the event's {field} has {len} bytes, it needs 1 to {max}")]
    LabelLength {
        /// `type` or `source`.
        field: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The event type or source holds a control character.
    #[error("the event's {field} holds a control character at byte {at}: remove it")]
    LabelControl {
        /// `type` or `source`.
        field: &'static str,
        /// Where it stands.
        at: usize,
    },
    /// Domain 0 belongs to the journal.
    #[error("event domain 0 is reserved for the journal: use 1 to 255")]
    DomainReserved,
}
