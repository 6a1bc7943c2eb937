//! A simulated disk: one directory that forgets what was not synced, fails where it is told to, and stops at any
//! chosen step.
//!
//! # The model
//!
//! Per file there is what the operating system holds (the cache, which reads see) and what the platter
//! holds; per directory the entries that are listed and those that are durable. What lies between is a
//! list of *unsynced changes*, ordered over the whole disk: whole sectors, lengths, entry operations.
//!
//! - **Power loss** ([`DiskState::power_loss`]): any subset of the unsynced changes survives, as
//!   [`Survivors`] choose; the survivors are applied to the platter in order. Lengths survive apart
//!   from the sectors they make visible, so that a file can end up long and empty, or short although
//!   its sectors landed. Of one sector the latest surviving version counts; a later version always includes the
//!   earlier ones. Contents are reachable only through entries that survive.
//! - A **truncate** that survives wipes what lay behind it: a later extension shows zeros. A truncate that is
//!   lost leaves the old bytes, over which later sectors may have landed all the same.
//! - **Process kill**: take [`SimDisk::state`] and go on with it. The cache survives whole; what was
//!   unsynced stays so, and a later power loss can still take it.
//! - **Failed sync** ([`Fault::Error`] at [`Call::Sync`]): chosen sectors reach the platter, and *all* pages
//!   are marked clean, so that a later successful sync does not write the others although reads show them. Lengths
//!   and entry operations stay unsynced until a later sync succeeds.
//! - **Space** ([`SimDisk::set_capacity`]): a sector takes up space when it is first written; a write
//!   comes out short where space ends and then fails with ENOSPC. Overwriting needs none, nor does
//!   lengthening by `set_len` (a hole), but writing into the hole does. Removing and cutting give space back.
//! - **Crash point** ([`SimDisk::crash_after`]): every call is a step, and every byte of a write is one. Once the
//!   steps are used up each call fails and nothing changes any more; a write that is under way leaves its first bytes.
//!
//! Nothing here is random: the same calls give the same states.

mod calls;
mod directory;
mod faults;
mod file;
mod state;
mod survivors;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strandline::{Access, Disk, Entry};

use calls::{Inner, Recorder, writable};
use directory::Inode;
use faults::Faults;

pub use faults::{Call, Fault};
pub use state::DiskState;
pub use survivors::{Survivors, UnknownSurvivors};

/// A simulated disk. Clones are handles of the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    inner: Arc<Mutex<Inner>>,
}

/// An open file of a [`SimDisk`].
#[derive(Clone, Debug)]
pub struct SimFile {
    inode: Inode,
    writable: bool,
}

/// The disk as it was after so many steps, before the next one.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// How many steps had been taken.
    pub step: u64,
    /// What a crash at this moment leaves to whoever opens the disk next.
    pub state: DiskState,
}

/// At which steps snapshots are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// At all.
    #[default]
    EveryStep,
    /// At calls, and at the first, middle and last byte of a write.
    Landmarks,
}

/// The error of every call after the crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulated machine has crashed; open its disk state in a new disk")]
pub struct Crashed;

impl SimDisk {
    /// An empty disk with sectors of this many bytes.
    ///
    /// # Panics
    /// If `sector_bytes` is zero.
    #[must_use]
    pub fn new(sector_bytes: usize) -> Self {
        Self::from_state(DiskState::new(sector_bytes))
    }

    /// The disk of a machine that starts with this state: after a power loss, or after a process kill.
    #[must_use]
    pub fn from_state(state: DiskState) -> Self {
        let inner = Inner {
            state,
            faults: Faults::default(),
            steps: 0,
            crash_at: None,
            crashed: false,
            failed: false,
            recorder: None,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Limits the space to this many bytes, or lifts the limit.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.inner().state.set_capacity(capacity);
    }

    /// The disk of a machine that starts with this state, and on which the faults are still to come that are planned
    /// here: what ails a disk outlives the process.
    #[must_use]
    pub fn restarted(&self, state: DiskState) -> Self {
        let disk = Self::from_state(state);
        disk.inner().faults = self.inner().faults.clone();
        disk
    }

    /// Somebody has seen all that the first so many lies have cost: the platter holds what reads show.
    pub(crate) fn forget_lies(&self, count: u32) {
        self.inner().state.forget_lies(count);
    }

    /// Plans a fault for the call of this kind that follows `after` others of its kind; from there on for
    /// ever if it `repeats`.
    pub fn plan_fault(&self, call: Call, after: u64, repeats: bool, fault: Fault) {
        self.inner().faults.plan(call, after, repeats, fault);
    }

    /// Forgets the faults that have not struck yet.
    pub fn clear_faults(&self) {
        self.inner().faults.clear();
    }

    /// Whether the disk is to blame for a failure: a call has failed for a planned error, or there was too little
    /// space. Forgets that, lifts the limit, and leaves the faults that are still to come.
    pub fn relieve(&self) -> bool {
        let mut inner = self.inner();
        let blamed = inner.failed || inner.state.is_limited();
        inner.failed = false;
        inner.state.set_capacity(None);
        blamed
    }

    /// Whether a call has failed for a planned [`Fault::Error`].
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.inner().failed
    }

    /// Whether a call has failed for a planned [`Fault::Error`] since this was last asked.
    pub fn take_failure(&self) -> bool {
        std::mem::take(&mut self.inner().failed)
    }

    /// Crashes after this many further steps.
    pub fn crash_after(&self, steps: u64) {
        let mut inner = self.inner();
        inner.crash_at = Some(inner.steps + steps);
    }

    /// Starts to keep a snapshot before each step.
    pub fn record(&self, detail: Detail) {
        self.inner().recorder = Some(Recorder { detail, ..Recorder::default() });
    }

    /// The snapshots since the last call, oldest first. Call it whenever something outside the disk
    /// has changed that a crash would make count, such as what was acknowledged: the next step then
    /// gives a snapshot even if the disk is as it was.
    #[must_use]
    pub fn take_snapshots(&self) -> Vec<Snapshot> {
        let mut inner = self.inner();
        let Some(recorder) = &mut inner.recorder else { return Vec::new() };
        recorder.is_current = false;
        std::mem::take(&mut recorder.snapshots)
    }

    /// Flips one bit of a file; see [`DiskState::flip_bit`].
    #[must_use]
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u8) -> bool {
        self.inner().state.flip_bit(name, offset, bit)
    }

    /// Whether the crash point has been reached.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.inner().crashed
    }

    /// How many steps have been taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.inner().steps
    }

    /// The disk as it is now.
    #[must_use]
    pub fn state(&self) -> DiskState {
        self.inner().state.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut inner = self.inner();
        inner.call(Call::List)?;
        let entry = |(name, len): (&str, u64)| Entry { name: name.to_owned(), len, is_file: true };
        Ok(inner.state.list().map(entry).collect())
    }

    fn create(&self, name: &str) -> io::Result<SimFile> {
        let mut inner = self.inner();
        inner.call(Call::Create)?;
        if inner.state.inode(name).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(SimFile { inode: inner.change().create(name), writable: true })
    }

    fn open(&self, name: &str, access: Access) -> io::Result<SimFile> {
        let mut inner = self.inner();
        inner.call(Call::Open)?;
        let inode = inner.state.inode(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(SimFile { inode, writable: access == Access::ReadWrite })
    }

    fn len(&self, file: &SimFile) -> io::Result<u64> {
        let mut inner = self.inner();
        inner.call(Call::Len)?;
        Ok(inner.state.file_state(file.inode).len())
    }

    fn read_at(&self, file: &SimFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut inner = self.inner();
        let limit = match inner.call(Call::Read)? {
            Some(Fault::Short(len)) => len.max(1).min(buffer.len()),
            _ => buffer.len(),
        };
        let buffer = buffer.get_mut(..limit).unwrap_or_default();
        Ok(inner.state.file_state(file.inode).read(offset, buffer))
    }

    fn write_at(&self, file: &SimFile, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.inner().write(file, offset, data)
    }

    fn sync(&self, file: &SimFile) -> io::Result<()> {
        let mut inner = self.inner();
        match inner.sync_call(Call::Sync)? {
            None => inner.change().sync(file.inode),
            Some((error, survivors)) => {
                inner.change().fail_sync(file.inode, survivors);
                return Err(error);
            }
        }
        Ok(())
    }

    fn set_len(&self, file: &SimFile, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        inner.call(Call::SetLen)?;
        writable(file)?;
        inner.change().set_len(file.inode, len);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.call(Call::Rename)?;
        if inner.change().rename(from, to) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.call(Call::Remove)?;
        if inner.change().remove(name) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut inner = self.inner();
        match inner.sync_call(Call::SyncDirectory)? {
            None => inner.change().sync_directory(),
            Some((error, survivors)) => {
                inner.change().fail_sync_directory(survivors);
                return Err(error);
            }
        }
        Ok(())
    }
}
