//! A disk in memory that knows what a power loss would leave, and at each of whose calls another thread may go on.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::panic::resume_unwind;
use std::sync::{Arc, PoisonError};

use crate::disk::{Access, Disk, Entry};
use crate::sync::thread::Injected;
use crate::sync::{Mutex, MutexGuard};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It fails with this error number.
    Error(i32),
    Panic,
}

#[derive(Clone, Default)]
pub(super) struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: Vec<Contents>,
    /// The directory as it is, and as it is after a power loss.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// How often the directory was synced, and which of those syncs made the durable names: of two that run side
    /// by side, the one that began first may end last, and takes nothing back.
    syncs_begun: usize,
    newest_sync: usize,
    faults: Vec<PlannedFault>,
    lists: usize,
}

/// Of the calls of this name on files whose names begin so, this many pass; then one meets the fault.
struct PlannedFault {
    files: &'static str,
    call: &'static str,
    passing: usize,
    fault: Fault,
}

#[derive(Default)]
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// A sync failed: what was not durable then never will be, whatever later syncs say.
    lost: bool,
}

pub(super) struct MemoryFile {
    index: usize,
    access: Access,
}

impl MemoryDisk {
    /// The call of this name ("write", "sync", ...) that comes after `passing` others meets the fault.
    pub(super) fn inject(&self, call: &'static str, passing: usize, fault: Fault) {
        self.inject_in("", call, passing, fault);
    }

    /// The same for the files whose names begin so.
    pub(super) fn inject_in(&self, files: &'static str, call: &'static str, passing: usize, fault: Fault) {
        self.state().faults.push(PlannedFault { files, call, passing, fault });
    }

    /// Gives up the faults that nothing has met.
    pub(super) fn mend(&self) {
        self.state().faults.clear();
    }

    /// Whether a power loss now would leave these bytes in some file.
    pub(super) fn is_durable(&self, bytes: &[u8]) -> bool {
        let state = self.state();
        let mut durable = state.durable_names.values().map(|index| &state.files[*index].durable);
        durable.any(|file| file.windows(bytes.len()).any(|window| window == bytes))
    }

    /// The disk after a power loss that takes all that it can.
    pub(super) fn after_power_loss(&self) -> Self {
        let state = self.state();
        let survive = |contents: &Contents| {
            let bytes = contents.durable.clone();
            Contents { now: bytes.clone(), durable: bytes, lost: false }
        };
        let left = State {
            files: state.files.iter().map(survive).collect(),
            names: state.durable_names.clone(),
            durable_names: state.durable_names.clone(),
            ..State::default()
        };
        Self { state: Arc::new(Mutex::new(left)) }
    }

    /// The names in the directory, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> usize {
        let state = self.state();
        state.names.values().map(|index| state.files[*index].now.len()).sum()
    }

    /// How often the directory was looked at.
    pub(super) fn lists(&self) -> usize {
        self.state().lists
    }

    /// Begins a call on a file, before which others may run; meets the faults that are due.
    fn call_on(&self, call: &str, file: &MemoryFile) -> io::Result<MutexGuard<'_, State>> {
        let named = |(name, index): (&String, &usize)| (*index == file.index).then(|| name.clone());
        let name = self.state().names.iter().find_map(named);
        // One that was removed is still open to whoever reads it.
        self.call(call, &name.unwrap_or_default())
    }

    fn call(&self, call: &str, name: &str) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        let mut met = None;
        state.faults.retain_mut(|planned| {
            if planned.call != call || !name.starts_with(planned.files) {
                return true;
            }
            let is_due = planned.passing == 0 && met.is_none();
            if is_due {
                met = Some(planned.fault);
            }
            planned.passing = planned.passing.saturating_sub(1);
            !is_due
        });
        match met {
            Some(Fault::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Fault::Panic) => {
                drop(state);
                // Past the hook that would take it for a failed test.
                resume_unwind(Box::new(Injected))
            }
            None => Ok(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn index(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<Entry>> {
        let mut state = self.call("list", "")?;
        state.lists += 1;
        let entry = |(name, index): (&String, &usize)| Entry {
            name: name.clone(),
            len: state.files[*index].now.len() as u64,
            is_file: true,
        };
        Ok(state.names.iter().map(entry).collect())
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let mut state = self.call("create", name)?;
        if state.names.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let index = state.files.len();
        state.files.push(Contents::default());
        state.names.insert(name.to_string(), index);
        Ok(MemoryFile { index, access: Access::ReadWrite })
    }

    fn open(&self, name: &str, access: Access) -> io::Result<MemoryFile> {
        Ok(MemoryFile { index: self.call("open", name)?.index(name)?, access })
    }

    fn len(&self, file: &MemoryFile) -> io::Result<u64> {
        Ok(self.call_on("len", file)?.files[file.index].now.len() as u64)
    }

    fn read_at(&self, file: &MemoryFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let state = self.call_on("read", file)?;
        let from = usize::try_from(offset).unwrap();
        let bytes = state.files[file.index].now.get(from..).unwrap_or_default();
        let n = bytes.len().min(buffer.len());
        buffer[..n].copy_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn write_at(&self, file: &MemoryFile, offset: u64, data: &[u8]) -> io::Result<usize> {
        assert_eq!(file.access, Access::ReadWrite);
        let mut state = self.call_on("write", file)?;
        let from = usize::try_from(offset).unwrap();
        let bytes = &mut state.files[file.index].now;
        if bytes.len() < from + data.len() {
            bytes.resize(from + data.len(), 0);
        }
        bytes[from..from + data.len()].copy_from_slice(data);
        Ok(data.len())
    }

    /// Covers what was written when it began, and nothing that is written meanwhile.
    fn sync(&self, file: &MemoryFile) -> io::Result<()> {
        let covered = self.state().files[file.index].now.clone();
        match self.call_on("sync", file) {
            Ok(mut state) => {
                let contents = &mut state.files[file.index];
                if !contents.lost {
                    contents.durable = covered;
                }
                Ok(())
            }
            Err(error) => {
                self.state().files[file.index].lost = true;
                Err(error)
            }
        }
    }

    fn set_len(&self, file: &MemoryFile, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap();
        self.call_on("set_len", file)?.files[file.index].now.resize(len, 0);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.call("rename", from)?;
        let index = state.index(from)?;
        state.names.remove(from);
        state.names.insert(to.to_string(), index);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.call("remove", name)?;
        state.index(name)?;
        state.names.remove(name);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let (covered, sync) = {
            let mut state = self.state();
            state.syncs_begun += 1;
            (state.names.clone(), state.syncs_begun)
        };
        let mut state = self.call("sync_directory", "")?;
        if sync > state.newest_sync {
            state.newest_sync = sync;
            state.durable_names = covered;
        }
        Ok(())
    }
}
