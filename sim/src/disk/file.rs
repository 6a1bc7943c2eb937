//! One file: what the operating system holds, what the platter holds, and what lies between.

use std::sync::Arc;

/// A file of the simulated disk.
///
/// The cache is what reads see. The platter is what a power loss leaves if nothing unsynced
/// survives. `unsynced` lists, in order, the changes that have reached the cache but are not known
/// to have reached the platter. A sector is kept there as the whole sector looked in the cache after the
/// write, because a page cache writes back pages, not the bytes of one call: a later version of a
/// sector therefore always includes the earlier ones.
#[derive(Clone, Debug)]
pub(crate) struct FileState {
    sector_bytes: usize,
    cache: Vec<u8>,
    platter: Platter,
    unsynced: Vec<Unsynced>,
    /// Which sectors take up space; the others are holes that read as zeros.
    allocated: Vec<bool>,
}

/// Where the sectors of a write end up on the platter, for disks that lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Landing {
    /// Where they belong.
    Right,
    /// Nowhere, although the write and the next sync report success.
    Lost,
    /// This many sectors behind their place.
    Shifted(u64),
}

/// One change that a power loss may take or leave.
#[derive(Clone, Debug, Hash)]
struct Unsynced {
    /// Its place in the order of all changes of the disk.
    stamp: u64,
    change: Change,
}

#[derive(Clone, Debug, Hash)]
enum Change {
    /// The file was made longer, up to this length.
    Extend(u64),
    /// The file was cut to this length.
    Truncate(u64),
    /// A sector got these bytes; always a whole sector, zeros behind the end of the file.
    Sector { index: u64, bytes: Arc<[u8]> },
}

/// The durable contents. Bytes behind `len` have landed but cannot be seen until a length that
/// covers them lands too.
#[derive(Clone, Debug, Default, Hash)]
struct Platter {
    bytes: Vec<u8>,
    len: u64,
}

impl FileState {
    /// An empty file.
    pub(crate) fn new(sector_bytes: usize) -> Self {
        Self {
            sector_bytes,
            cache: Vec::new(),
            platter: Platter::default(),
            unsynced: Vec::new(),
            allocated: Vec::new(),
        }
    }

    /// Writes `piece`, which lies within one sector, at `offset`. Takes up to two stamps from `stamp` on.
    pub(crate) fn write_piece(&mut self, offset: u64, piece: &[u8], landing: Landing, stamp: u64) {
        let start = position(offset);
        let end = start + piece.len();
        let index = start / self.sector_bytes;
        debug_assert!(!piece.is_empty() && (end - 1) / self.sector_bytes == index, "within one sector");
        if end > self.cache.len() {
            self.cache.resize(end, 0);
            // The length comes first: a prefix of the changes then shows it without the bytes.
            self.unsynced.push(Unsynced { stamp, change: Change::Extend(end as u64) });
        }
        self.cache[start..end].copy_from_slice(piece);
        self.allocate(index);
        let index = index as u64;
        let landed = match landing {
            Landing::Lost => return,
            Landing::Right => index,
            Landing::Shifted(by) => index + by,
        };
        let bytes = self.cached_sector(index);
        self.unsynced.push(Unsynced { stamp: stamp + 1, change: Change::Sector { index: landed, bytes } });
    }

    /// Sets the length; takes one stamp. A file made longer gets a hole, which takes up no space.
    pub(crate) fn set_len(&mut self, len: u64, stamp: u64) {
        let before = self.len();
        if len == before {
            return;
        }
        self.cache.resize(position(len), 0);
        self.allocated.truncate(position(len).div_ceil(self.sector_bytes));
        let change = if len < before { Change::Truncate(len) } else { Change::Extend(len) };
        self.unsynced.push(Unsynced { stamp, change });
    }

    /// Brings every unsynced change to the platter.
    pub(crate) fn sync(&mut self) {
        for unsynced in self.unsynced.drain(..) {
            self.platter.apply(&unsynced.change, self.sector_bytes);
        }
    }

    /// A sync that fails: the changes that `keep` chooses reach the platter, and the pages are marked clean
    /// all the same, so that no later sync writes the others. Lengths are metadata and stay unsynced.
    ///
    /// Once a truncate is held back, so is everything behind it; otherwise bringing it to the platter with
    /// the next sync would wipe later bytes that had landed.
    pub(crate) fn fail_sync(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut held_back = false;
        for (rank, unsynced) in std::mem::take(&mut self.unsynced).into_iter().enumerate() {
            let keep = keep(rank);
            match unsynced.change {
                Change::Sector { .. } if keep && !held_back => {
                    self.platter.apply(&unsynced.change, self.sector_bytes);
                }
                Change::Sector { .. } => {}
                Change::Extend(_) | Change::Truncate(_) => {
                    held_back |= matches!(unsynced.change, Change::Truncate(_));
                    self.unsynced.push(unsynced);
                }
            }
        }
    }

    /// Flips a bit for good: in the cache and on the platter. Nothing happens behind the end.
    pub(crate) fn flip_bit(&mut self, offset: u64, bit: u8) {
        let at = position(offset);
        let mask = 1u8 << (bit & 7);
        for bytes in [&mut self.cache, &mut self.platter.bytes] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= mask;
            }
        }
    }

    /// What a power loss leaves of this file if of its unsynced changes those survive whose stamp `keep` chooses.
    pub(crate) fn after_power_loss(&self, keep: impl Fn(u64) -> bool) -> Self {
        let mut platter = self.platter.clone();
        for unsynced in self.unsynced.iter().filter(|unsynced| keep(unsynced.stamp)) {
            platter.apply(&unsynced.change, self.sector_bytes);
        }
        platter.bytes.resize(position(platter.len), 0);
        let mut allocated = self.allocated.clone();
        allocated.resize(platter.bytes.len().div_ceil(self.sector_bytes), true);
        Self {
            sector_bytes: self.sector_bytes,
            cache: platter.bytes.clone(),
            platter,
            unsynced: Vec::new(),
            allocated,
        }
    }

    /// Whether a power loss leaves the file just as it is.
    pub(crate) fn is_durable(&self) -> bool {
        self.unsynced.is_empty() && self.platter.len == self.len() && self.platter.bytes == self.cache
    }

    /// The length that the operating system reports, in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.cache.len() as u64
    }

    /// The contents that the operating system shows.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.cache
    }

    /// Reads at `offset`; returns how many bytes there were.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let start = position(offset).min(self.cache.len());
        let len = buffer.len().min(self.cache.len() - start);
        buffer[..len].copy_from_slice(&self.cache[start..start + len]);
        len
    }

    /// The stamps of the unsynced changes, ascending.
    pub(crate) fn stamps(&self) -> impl Iterator<Item = u64> {
        self.unsynced.iter().map(|unsynced| unsynced.stamp)
    }

    /// How many bytes the file takes up.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        (self.allocated.iter().filter(|&&taken| taken).count() * self.sector_bytes) as u64
    }

    /// Whether a write into the sector at `offset` needs new space.
    pub(crate) fn needs_space(&self, offset: u64) -> bool {
        !self.allocated.get(position(offset) / self.sector_bytes).copied().unwrap_or(false)
    }

    /// Feeds what decides the file's future into a hash: the cache, and the platter where it differs.
    pub(crate) fn hash_state(&self, hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash;
        self.cache.hash(hasher);
        self.unsynced.iter().for_each(|unsynced| unsynced.change.hash(hasher));
        if self.platter.bytes != self.cache {
            self.platter.hash(hasher);
        }
    }

    fn allocate(&mut self, index: usize) {
        if self.allocated.len() <= index {
            self.allocated.resize(index + 1, false);
        }
        self.allocated[index] = true;
    }

    fn cached_sector(&self, index: u64) -> Arc<[u8]> {
        let start = position(index) * self.sector_bytes;
        let end = (start + self.sector_bytes).min(self.cache.len());
        let mut sector = self.cache[start..end].to_vec();
        sector.resize(self.sector_bytes, 0);
        sector.into()
    }
}

impl Platter {
    fn apply(&mut self, change: &Change, sector_bytes: usize) {
        match change {
            Change::Extend(len) => self.len = *len,
            Change::Truncate(len) => {
                // What lay behind is freed, landed bytes included: it can never be seen again.
                self.bytes.truncate(position(*len));
                self.len = *len;
            }
            Change::Sector { index, bytes } => {
                let start = position(*index) * sector_bytes;
                let end = start + bytes.len();
                if self.bytes.len() < end {
                    self.bytes.resize(end, 0);
                }
                self.bytes[start..end].copy_from_slice(bytes);
            }
        }
    }
}

/// A place in a file as an index. The simulated disk holds everything in memory, so that a place
/// beyond the address space is an error of the caller.
fn position(offset: u64) -> usize {
    usize::try_from(offset).expect("simulated files fit into memory")
}
