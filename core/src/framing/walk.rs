//! The one step that every reader takes: the frame at the front of some bytes.

use super::{Bounds, Frame, Framing, Layout};

/// What stands at the front of the bytes.
pub(crate) enum Front<'a, F: Framing> {
    /// The bytes end before the frame; it needs at least this many in all.
    Incomplete {
        /// Bytes needed, counted from the frame's start.
        need: usize,
    },
    /// No frame begins like this.
    Unreadable,
    /// A whole frame, checksum looked at.
    Whole {
        /// Its length in bytes.
        len: usize,
        /// What it is.
        frame: Frame<'a, F>,
    },
}

/// Looks at the frame at the front of `bytes`.
pub(crate) fn front<F: Framing>(layout: Layout, bytes: &[u8]) -> Front<'_, F> {
    let len = match F::bounds(bytes) {
        Bounds::Short => return Front::Incomplete { need: F::PREFIX_LEN },
        Bounds::Unreadable => return Front::Unreadable,
        Bounds::Len(len) => len,
    };
    match bytes.get(..len) {
        Some(whole) => Front::Whole { len, frame: F::check(layout, whole) },
        None => Front::Incomplete { need: len },
    }
}
