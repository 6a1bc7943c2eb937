//! What the core asks of the world, and how the world answers.
//!
//! The core emits only effects whose prerequisites are complete, so that whatever is outstanding
//! may run in any order. What "done" means for each effect is a promise of the interpreter.

use bytes::Bytes;

use crate::{IoFailure, SegmentId};

/// One thing for the world to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Create a segment. Done: the file exists under its name with `head` at its beginning and zeros behind
    /// it, up to a length of `reserve`, all durable, its directory entry durable too. Until then it exists
    /// only under a temporary name. The zeros may be prepared in advance; where there is no space
    /// for all of them, there may be fewer or none. An empty file of the same name is replaced.
    Create {
        /// The segment to create.
        segment: SegmentId,
        /// The first bytes of the file: header and first mark.
        head: Bytes,
        /// The length of the file with its reserved zeros; at least the head's length.
        reserve: u64,
    },
    /// Append zeros to the end of a segment. Done: bytes `from..to` read as zeros. They become durable with
    /// the next sync. May run beside any other effect; nothing else touches `from..to` meanwhile.
    Reserve {
        /// The segment to extend.
        segment: SegmentId,
        /// Where the reserved space ends now.
        from: u64,
        /// Where it shall end.
        to: u64,
    },
    /// Write bytes. Done: all of them are with the operating system; the interpreter loops over
    /// short writes and interrupts.
    Write {
        /// The segment to write to.
        segment: SegmentId,
        /// Where the bytes go in the file.
        offset: u64,
        /// The bytes.
        data: Bytes,
    },
    /// Done: every earlier write and truncate of this file is durable.
    Sync {
        /// The segment to sync.
        segment: SegmentId,
    },
    /// Done: the file has this length; durable after the next sync.
    Truncate {
        /// The segment to cut.
        segment: SegmentId,
        /// Its new length.
        len: u64,
    },
    /// Keep a copy of bytes that are about to be cut, beside the segment. Done: the copy is
    /// durable, or an identical one existed already.
    SetAside {
        /// The segment that holds the bytes.
        segment: SegmentId,
        /// Where they begin.
        offset: u64,
        /// How many there are.
        len: u64,
    },
    /// Done: the segment's file is gone, and durably gone from the directory. A file that does not
    /// exist is gone.
    Remove {
        /// The segment to remove.
        segment: SegmentId,
    },
    /// Done: every earlier create, rename and removal in the directory is durable.
    SyncDirectory,
    /// Remove files that an interrupted create left behind under temporary names. Best effort.
    RemoveTemporaries,
    /// Read bytes. Only recovery emits it; the answer is [`Answer::Bytes`].
    Read(ReadRequest),
}

impl Effect {
    /// Whether this effect is off the commit path: nobody waits for it, and it may run on another
    /// thread beside the others.
    #[must_use]
    pub const fn is_background(&self) -> bool {
        matches!(self, Self::Reserve { .. } | Self::Remove { .. })
    }
}

/// A read: the answer is the bytes there, fewer than asked only at the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The segment to read.
    pub segment: SegmentId,
    /// The first byte's place in the file.
    pub offset: u64,
    /// How many bytes; at most [`ReadRequest::LEN_MAX`] unless a single frame is larger.
    pub len: usize,
}

impl ReadRequest {
    /// What a reader's buffer has to hold for all but oversized frames: 256 KiB.
    pub const LEN_MAX: usize = 256 * 1024;
}

/// The identity of an emitted effect; its completion carries the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub(crate) u64);

/// The world's answer to one effect of a running journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which effect.
    pub id: EffectId,
    /// How it ended.
    pub result: Result<(), IoFailure>,
}

/// The world's answer to one effect of a recovery. The buffer is lent for the call.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The effect is done.
    Done,
    /// The bytes of an [`Effect::Read`].
    Bytes(&'a [u8]),
    /// It failed.
    Failed(IoFailure),
}
