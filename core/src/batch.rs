//! A run of records, handed to a reader.

use core::marker::PhantomData;

use bytes::{Buf as _, Bytes};

use crate::{Bounds, Framing, Pryj, Seq};

/// A run of consecutive records. It owns its bytes, so that it outlives a lock or an await, and every
/// frame in it was verified when it was made; decoding it allocates nothing.
#[derive(Clone, Debug)]
pub struct Batch<F: Framing> {
    frames: Bytes,
    first: Seq,
    end: Seq,
    framing: PhantomData<fn() -> F>,
}

impl<F: Framing> Batch<F> {
    /// Records `first..end` of verified frames, which may hold marks and other records too.
    pub(crate) const fn new(frames: Bytes, first: Seq, end: Seq) -> Self {
        Self { frames, first, end, framing: PhantomData }
    }

    /// The same, without the records from `end` on.
    pub(crate) fn before(self, end: Seq) -> Self {
        Self { end: self.end.min(end), ..self }
    }

    /// The same, without the records before `first`.
    pub(crate) fn since(self, first: Seq) -> Self {
        Self { first: self.first.max(first), ..self }
    }

    /// The sequence number of the first record.
    #[must_use]
    pub const fn first(&self) -> Seq {
        self.first
    }

    /// One past the last record.
    #[must_use]
    pub const fn end(&self) -> Seq {
        self.end
    }

    /// How many records there are.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.first.until(self.end)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The records in order, borrowed from the batch.
    #[must_use]
    pub fn records(&self) -> Records<'_, F> {
        Records { rest: &self.frames, next: self.first, end: self.end, framing: PhantomData }
    }

    /// The bytes behind the batch, so that their buffer can be used again.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.frames
    }
}

impl Batch<Pryj> {
    /// Takes the first record out of the batch: its number and its payload, which is not copied.
    pub(crate) fn pop_first(&mut self) -> Option<(Seq, Bytes)> {
        let mut records = self.records();
        let record = records.next()?;
        let (seq, payload) = (record.seq, self.frames.slice_ref(record.payload));
        let taken = self.frames.len() - records.rest.len();
        self.frames.advance(taken);
        self.first = seq.next();
        Some((seq, payload))
    }
}

/// The records of a [`Batch`], in order.
#[derive(Clone, Debug)]
pub struct Records<'a, F: Framing> {
    rest: &'a [u8],
    next: Seq,
    end: Seq,
    framing: PhantomData<fn() -> F>,
}

impl<'a, F: Framing> Iterator for Records<'a, F> {
    type Item = F::Record<'a>;

    fn next(&mut self) -> Option<F::Record<'a>> {
        while self.next < self.end {
            let Bounds::Len(len) = F::bounds(self.rest) else { return None };
            let (frame, rest) = self.rest.split_at_checked(len)?;
            self.rest = rest;
            if let Some(record) = F::decode(frame).filter(|record| F::seq(*record) >= self.next) {
                self.next = self.next.next();
                return Some(record);
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.next.until(self.end)).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}
