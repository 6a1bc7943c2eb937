//! A disk whose syncs of files wait behind a gate.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use strandline::{Disk, DiskLayer};

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

impl<D: Disk> DiskLayer for Gated<D> {
    type Below = D;

    fn below(&self) -> &D {
        &self.disk
    }

    fn sync(&self, file: &D::File) -> io::Result<()> {
        self.gate.pass();
        self.disk.sync(file)
    }
}
