//! The whole state of a simulated disk at one moment, and what a power loss makes of it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Survivors;
use super::directory::{Directory, Inode};
use super::file::{FileState, Landing};

/// Stamps that one change may take; see [`FileState::write_piece`].
const STAMPS_PER_CHANGE: u64 = 2;

/// A disk at one moment: every file and entry, as the operating system shows them and as a power loss would
/// leave them. Cheap to clone: files are shared until one of the copies changes them.
#[derive(Clone, Debug)]
pub struct DiskState {
    sector_bytes: usize,
    /// Every file in order of its inode, removed ones included: a handle may still be open on them.
    files: Vec<(Inode, Arc<FileState>)>,
    directory: Arc<Directory>,
    next_inode: Inode,
    next_stamp: u64,
    capacity: Option<u64>,
    /// A write came out short once because it was told to.
    has_torn: bool,
    /// How many writes were reported as done that did not reach their place; the cache still hides it.
    lies: u32,
    /// How many there were before the last power loss, unless somebody has seen what they cost.
    exposed_lies: u32,
}

impl DiskState {
    /// An empty directory on a disk with sectors of this many bytes.
    ///
    /// # Panics
    /// If `sector_bytes` is zero.
    #[must_use]
    pub fn new(sector_bytes: usize) -> Self {
        assert!(sector_bytes > 0, "a sector has at least one byte");
        Self {
            sector_bytes,
            files: Vec::new(),
            directory: Arc::default(),
            next_inode: 1,
            next_stamp: 0,
            capacity: None,
            has_torn: false,
            lies: 0,
            exposed_lies: 0,
        }
    }

    /// The disk after a power loss. What survives is all there is: nothing of it is unsynced.
    #[must_use]
    pub fn power_loss(&self, survivors: Survivors) -> Self {
        let stamps = self.unsynced_stamps();
        let kept = |stamp: &u64| survivors.keeps(stamps.partition_point(|other| other < stamp));
        let mut in_order = true;
        let directory = self.directory.after_power_loss(|stamp| {
            let keep = in_order && kept(&stamp);
            in_order = keep || !survivors.orders_directory();
            keep
        });
        let listed: Vec<Inode> = directory.entries().map(|(_, inode)| inode).collect();
        let survives = |file: &Arc<FileState>| match file.is_durable() {
            true => Arc::clone(file),
            false => Arc::new(file.after_power_loss(|stamp| kept(&stamp))),
        };
        let files = self.files.iter().filter(|(inode, _)| listed.contains(inode));
        let files = files.map(|(inode, file)| (*inode, survives(file))).collect();
        let exposed_lies = self.exposed_lies + self.lies;
        Self { files, directory: Arc::new(directory), lies: 0, exposed_lies, ..*self }
    }

    /// Flips one bit of a file, in the cache and on the platter, as if it had rotted and been read back.
    /// Returns whether there is such a byte.
    pub fn flip_bit(&mut self, name: &str, offset: u64, bit: u8) -> bool {
        let Some(inode) = self.directory.inode(name) else { return false };
        let file = self.file_mut(inode);
        file.flip_bit(offset, bit);
        offset < file.len()
    }

    /// Whether a write came out short for a [`Fault::Short`](super::Fault::Short), so that its bytes reached the
    /// disk in two versions of one sector.
    #[must_use]
    pub const fn has_torn(&self) -> bool {
        self.has_torn
    }

    /// Whether a write was lost or misdirected ([`Fault::LostWrite`](super::Fault::LostWrite),
    /// [`Fault::MisdirectedWrite`](super::Fault::MisdirectedWrite)): what was synced may be gone after a power loss.
    #[must_use]
    pub const fn has_lied(&self) -> bool {
        self.lies + self.exposed_lies > 0
    }

    pub(crate) const fn exposed_lies(&self) -> u32 {
        self.exposed_lies
    }

    /// How many unsynced changes there are: the ranks that [`Survivors`] choose from.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        let files = self.files.iter().map(|(_, file)| file.stamps().count()).sum::<usize>();
        files + self.directory.stamps().count()
    }

    /// Whether a power loss leaves the disk just as it is. Not the same as nothing unsynced: a failed sync
    /// marks pages clean that the platter never got.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.unsynced() == 0 && self.files.iter().all(|(_, file)| file.is_durable())
    }

    /// The names and contents that the operating system shows, by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.directory.entries().filter_map(|(name, inode)| Some((name, self.find(inode)?.bytes())))
    }

    /// The contents of one file, as the operating system shows them.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.find(self.directory.inode(name)?).map(FileState::bytes)
    }

    /// How many bytes of space are taken.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        let listed = self.directory.entries().filter_map(|(_, inode)| self.find(inode));
        listed.map(FileState::allocated_bytes).sum()
    }

    /// A hash of everything that decides what can be seen of this disk from now on. Equal for disks
    /// that no reader, and no later power loss, can tell apart. For telling states apart within a
    /// run; not stable between versions of the standard library.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (name, inode) in self.directory.entries() {
            name.hash(&mut hasher);
            self.find(inode).into_iter().for_each(|file| file.hash_state(&mut hasher));
        }
        if self.unsynced() > 0 {
            self.directory.hash_unsynced(&mut hasher);
            let listed: Vec<Inode> = self.directory.entries().map(|(_, inode)| inode).collect();
            for inode in self.directory.reachable().filter(|inode| !listed.contains(inode)) {
                self.find(inode).into_iter().for_each(|file| file.hash_state(&mut hasher));
            }
        }
        (self.capacity, self.has_torn, self.lies, self.exposed_lies).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn set_capacity(&mut self, capacity: Option<u64>) {
        self.capacity = capacity;
    }

    pub(super) fn note_lie(&mut self) {
        self.lies += 1;
    }

    pub(super) fn forget_lies(&mut self, count: u32) {
        self.exposed_lies = self.exposed_lies.saturating_sub(count);
    }

    pub(super) fn note_torn(&mut self) {
        self.has_torn = true;
    }

    pub(crate) fn lift_limit(&mut self) {
        self.capacity = None;
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.capacity.is_some()
    }

    pub(super) fn inode(&self, name: &str) -> Option<Inode> {
        self.directory.inode(name)
    }

    pub(super) fn list(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files().map(|(name, bytes)| (name, bytes.len() as u64))
    }

    pub(super) fn create(&mut self, name: &str) -> Inode {
        let inode = self.next_inode;
        self.next_inode += 1;
        let stamp = self.stamp();
        self.directory_mut().create(name, inode, stamp);
        self.files.push((inode, Arc::new(FileState::new(self.sector_bytes))));
        inode
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> bool {
        let stamp = self.stamp();
        self.directory_mut().rename(from, to, stamp)
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        let stamp = self.stamp();
        self.directory_mut().remove(name, stamp)
    }

    pub(super) fn sync_directory(&mut self) {
        self.directory_mut().sync();
    }

    /// See [`Fault::Error`](super::Fault::Error): a prefix of the operations becomes durable.
    pub(super) fn fail_sync_directory(&mut self, survivors: Survivors) {
        let count = self.directory.stamps().count();
        let durable = (0..count).take_while(|&rank| survivors.keeps(rank)).count();
        self.directory_mut().fail_sync(durable);
    }

    pub(super) fn sync(&mut self, inode: Inode) {
        self.file_mut(inode).sync();
    }

    /// See [`Fault::Error`](super::Fault::Error): some changes become durable, all pages are marked clean.
    pub(super) fn fail_sync(&mut self, inode: Inode, survivors: Survivors) {
        self.file_mut(inode).fail_sync(|rank| survivors.keeps(rank));
    }

    pub(super) fn set_len(&mut self, inode: Inode, len: u64) {
        let stamp = self.stamp();
        self.file_mut(inode).set_len(len, stamp);
    }

    /// Writes bytes that lie within one sector.
    pub(super) fn write_piece(&mut self, inode: Inode, offset: u64, piece: &[u8], landing: Landing) {
        if !piece.is_empty() {
            let stamp = self.stamp();
            self.file_mut(inode).write_piece(offset, piece, landing, stamp);
        }
    }

    /// How many bytes there are from `offset` to the end of its sector.
    pub(super) fn sector_rest(&self, offset: u64) -> usize {
        let sector = self.sector_bytes as u64;
        usize::try_from(sector - offset % sector).expect("a sector fits into memory")
    }

    /// Whether the sector at `offset` can be written.
    pub(super) fn has_space(&self, inode: Inode, offset: u64) -> bool {
        let Some(capacity) = self.capacity else { return true };
        let needed = if self.file_state(inode).needs_space(offset) { self.sector_bytes as u64 } else { 0 };
        needed == 0 || self.allocated_bytes() + needed <= capacity
    }

    pub(super) fn file_state(&self, inode: Inode) -> &FileState {
        self.find(inode).expect("a handle of this disk")
    }

    fn find(&self, inode: Inode) -> Option<&FileState> {
        let at = self.files.binary_search_by_key(&inode, |(inode, _)| *inode).ok()?;
        self.files.get(at).map(|(_, file)| &**file)
    }

    fn directory_mut(&mut self) -> &mut Directory {
        Arc::make_mut(&mut self.directory)
    }

    fn file_mut(&mut self, inode: Inode) -> &mut FileState {
        let at = self.files.binary_search_by_key(&inode, |(inode, _)| *inode).ok();
        let file = at.and_then(|at| self.files.get_mut(at)).expect("a handle of this disk");
        Arc::make_mut(&mut file.1)
    }

    fn stamp(&mut self) -> u64 {
        let stamp = self.next_stamp;
        self.next_stamp += STAMPS_PER_CHANGE;
        stamp
    }

    fn unsynced_stamps(&self) -> Vec<u64> {
        let files = self.files.iter().flat_map(|(_, file)| file.stamps());
        let mut stamps: Vec<u64> = files.chain(self.directory.stamps()).collect();
        stamps.sort_unstable();
        stamps
    }
}
