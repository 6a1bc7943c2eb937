//! A disk whose syncs of files wait behind a gate.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use strandline::{Access, Disk, Entry};

/// The gate. Clones are handles of the same one.
#[derive(Clone)]
pub(super) struct Gate(Arc<(Mutex<State>, Condvar)>);

struct State {
    shut: bool,
    waiting: usize,
}

impl Gate {
    pub(super) fn open() -> Self {
        Self(Arc::new((Mutex::new(State { shut: false, waiting: 0 }), Condvar::new())))
    }

    pub(super) fn shut(&self) {
        self.0.0.lock().unwrap().shut = true;
    }

    pub(super) fn unshut(&self) {
        self.0.0.lock().unwrap().shut = false;
        self.0.1.notify_all();
    }

    /// Blocks until somebody waits at the gate.
    pub(super) fn wait_for_arrival(&self) {
        let (state, changed) = &*self.0;
        let arrived = changed.wait_while(state.lock().unwrap(), |state| state.waiting == 0);
        drop(arrived.unwrap());
    }

    fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        state.waiting += 1;
        changed.notify_all();
        let mut state = changed.wait_while(state, |state| state.shut).unwrap();
        state.waiting -= 1;
    }
}

/// The disk.
pub(super) struct Gated<D> {
    disk: D,
    gate: Gate,
}

impl<D> Gated<D> {
    pub(super) fn new(disk: D, gate: Gate) -> Self {
        Self { disk, gate }
    }
}

impl<D: Disk> Disk for Gated<D> {
    type File = D::File;

    fn list(&self) -> io::Result<Vec<Entry>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<D::File> {
        self.disk.create(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<D::File> {
        self.disk.open(name, access)
    }

    fn len(&self, file: &D::File) -> io::Result<u64> {
        self.disk.len(file)
    }

    fn read_at(&self, file: &D::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.read_at(file, offset, buffer)
    }

    fn write_at(&self, file: &D::File, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.disk.write_at(file, offset, data)
    }

    fn sync(&self, file: &D::File) -> io::Result<()> {
        self.gate.pass();
        self.disk.sync(file)
    }

    fn set_len(&self, file: &D::File, len: u64) -> io::Result<()> {
        self.disk.set_len(file, len)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }
}
