//! The entries of the directory: what the operating system lists, and what a power loss leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Identity of a file, whatever its name.
pub(crate) type Inode = u64;

/// The directory of the simulated disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    listed: BTreeMap<Arc<str>, Inode>,
    synced: BTreeMap<Arc<str>, Inode>,
    unsynced: Vec<(u64, EntryChange)>,
}

/// One entry operation that a power loss may take or leave.
#[derive(Clone, Debug)]
enum EntryChange {
    Create { name: Arc<str>, inode: Inode },
    Rename { from: Arc<str>, to: Arc<str>, inode: Inode },
    Remove { name: Arc<str> },
}

impl Directory {
    /// Adds an entry; the caller has checked that the name is free.
    pub(crate) fn create(&mut self, name: &str, inode: Inode, stamp: u64) {
        self.change(stamp, EntryChange::Create { name: name.into(), inode });
    }

    /// Renames an entry over whatever `to` was; returns whether `from` existed.
    pub(crate) fn rename(&mut self, from: &str, to: &str, stamp: u64) -> bool {
        let Some(inode) = self.inode(from) else { return false };
        if from != to {
            self.change(stamp, EntryChange::Rename { from: from.into(), to: to.into(), inode });
        }
        true
    }

    /// Removes an entry; returns whether it existed.
    pub(crate) fn remove(&mut self, name: &str, stamp: u64) -> bool {
        let exists = self.inode(name).is_some();
        if exists {
            self.change(stamp, EntryChange::Remove { name: name.into() });
        }
        exists
    }

    /// Makes every entry operation durable.
    pub(crate) fn sync(&mut self) {
        self.unsynced.clear();
        self.synced.clone_from(&self.listed);
    }

    /// A directory sync that fails: the first `durable` operations reach the platter; the others stay
    /// unsynced, as in a journaled file system whose transaction did not commit.
    pub(crate) fn fail_sync(&mut self, durable: usize) {
        for (_, change) in self.unsynced.drain(..durable.min(self.unsynced.len())) {
            change.apply(&mut self.synced);
        }
    }

    /// The entries that a power loss leaves if those unsynced operations survive whose stamp `keep` chooses.
    pub(crate) fn after_power_loss(&self, mut keep: impl FnMut(u64) -> bool) -> Self {
        let mut synced = self.synced.clone();
        for (stamp, change) in &self.unsynced {
            if keep(*stamp) {
                change.apply(&mut synced);
            }
        }
        Self { listed: synced.clone(), synced, unsynced: Vec::new() }
    }

    /// The file of this name.
    pub(crate) fn inode(&self, name: &str) -> Option<Inode> {
        self.listed.get(name).copied()
    }

    /// Every entry that the operating system lists, by name.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, Inode)> {
        self.listed.iter().map(|(name, inode)| (&**name, *inode))
    }

    /// The stamps of the unsynced operations, ascending.
    pub(crate) fn stamps(&self) -> impl Iterator<Item = u64> {
        self.unsynced.iter().map(|(stamp, _)| *stamp)
    }

    /// Every file that an entry leads to, or may lead to again after a power loss.
    pub(crate) fn reachable(&self) -> impl Iterator<Item = Inode> {
        let unsynced = self.unsynced.iter().filter_map(|(_, change)| change.inode());
        self.listed.values().copied().chain(self.synced.values().copied()).chain(unsynced)
    }

    /// Feeds what a power loss could make of the entries into a hash.
    pub(crate) fn hash_unsynced(&self, hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash;
        self.synced.keys().for_each(|name| name.hash(hasher));
        self.unsynced.iter().for_each(|(_, change)| change.hash_names(hasher));
    }

    fn change(&mut self, stamp: u64, change: EntryChange) {
        change.apply(&mut self.listed);
        self.unsynced.push((stamp, change));
    }
}

impl EntryChange {
    fn apply(&self, entries: &mut BTreeMap<Arc<str>, Inode>) {
        match self {
            Self::Create { name, inode } => {
                entries.insert(Arc::clone(name), *inode);
            }
            Self::Rename { from, to, inode } => {
                // Atomic even where the create of `from` was lost: the target then leads to the file.
                entries.remove(from);
                entries.insert(Arc::clone(to), *inode);
            }
            Self::Remove { name } => {
                entries.remove(name);
            }
        }
    }

    fn hash_names(&self, hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash;
        match self {
            Self::Create { name, .. } => (0u8, name).hash(hasher),
            Self::Rename { from, to, .. } => (1u8, from, to).hash(hasher),
            Self::Remove { name } => (2u8, name).hash(hasher),
        }
    }

    fn inode(&self) -> Option<Inode> {
        match self {
            Self::Create { inode, .. } | Self::Rename { inode, .. } => Some(*inode),
            Self::Remove { .. } => None,
        }
    }
}
