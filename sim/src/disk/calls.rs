//! What every call to the disk has in common: its steps, the snapshots before them, the crash point, faults.

use std::io;

use super::directory::Inode;
use super::faults::{EBADF, EIO, ENOSPC, Faults};
use super::file::Landing;
use super::{Call, Crashed, Detail, DiskState, Fault, SimFile, Snapshot, Survivors};

/// The disk behind its handles.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) state: DiskState,
    pub(super) faults: Faults,
    pub(super) steps: u64,
    pub(super) crash_at: Option<u64>,
    pub(super) crashed: bool,
    /// Whether a planned error has struck.
    pub(super) failed: bool,
    pub(super) recorder: Option<Recorder>,
}

/// Keeps a snapshot before every step that could make a difference.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) detail: Detail,
    pub(super) snapshots: Vec<Snapshot>,
    /// Whether the newest snapshot shows the disk as it still is.
    pub(super) is_current: bool,
}

/// The part of a write that lies within one sector.
struct Piece<'a> {
    inode: Inode,
    at: u64,
    bytes: &'a [u8],
    landing: Landing,
    /// How many bytes of the write came before.
    done: usize,
    /// How many bytes the write has.
    of: usize,
}

impl Inner {
    /// Takes the step of a call, unless it is refused; gives the fault that shapes it, if any.
    pub(super) fn call(&mut self, call: Call) -> io::Result<Option<Fault>> {
        self.snapshot(0, 0);
        if self.take_steps(1) == 0 {
            return Err(io::Error::other(Crashed));
        }
        let fault = self.next_fault(call);
        match fault.and_then(Fault::refusal) {
            Some(error) => Err(error),
            None => Ok(fault),
        }
    }

    /// The same for the two syncs, whose failure has an effect: the error, and what becomes durable.
    pub(super) fn sync_call(&mut self, call: Call) -> io::Result<Option<(io::Error, Survivors)>> {
        self.snapshot(0, 0);
        if self.take_steps(1) == 0 {
            return Err(io::Error::other(Crashed));
        }
        match self.next_fault(call) {
            Some(Fault::Error(survivors)) => Ok(Some((io::Error::from_raw_os_error(EIO), survivors))),
            Some(Fault::NoSpace) => Ok(Some((io::Error::from_raw_os_error(ENOSPC), Survivors::None))),
            Some(fault) => fault.refusal().map_or(Ok(None), Err),
            None => Ok(None),
        }
    }

    /// A write: its bytes are its steps (an empty one is one step).
    pub(super) fn write(&mut self, file: &SimFile, offset: u64, data: &[u8]) -> io::Result<usize> {
        if data.is_empty() || self.crashed {
            return self.call(Call::Write).map(|_| 0);
        }
        writable(file)?;
        let fault = self.next_fault(Call::Write);
        if let Some(error) = fault.and_then(Fault::refusal) {
            return if self.take_steps(1) == 0 { Err(io::Error::other(Crashed)) } else { Err(error) };
        }
        let (limit, landing) = match fault {
            Some(Fault::Short(len)) => (len.clamp(1, data.len()), Landing::Right),
            Some(Fault::LostWrite) => (data.len(), Landing::Lost),
            Some(Fault::MisdirectedWrite(by)) => (data.len(), Landing::Shifted(by)),
            _ => (data.len(), Landing::Right),
        };
        if limit < data.len() {
            self.state.note_torn();
        }
        if landing != Landing::Right {
            self.state.note_lie();
        }
        let mut done = 0;
        while done < limit {
            let at = offset + done as u64;
            if !self.state.has_space(file.inode, at) {
                let full = || io::Error::from_raw_os_error(ENOSPC);
                return if done == 0 { Err(full()) } else { Ok(done) };
            }
            let len = self.state.sector_rest(at).min(limit - done);
            let bytes = data.get(done..done + len).unwrap_or_default();
            self.write_piece(&Piece { inode: file.inode, at, bytes, landing, done, of: limit })?;
            done += len;
        }
        Ok(done)
    }

    fn write_piece(&mut self, piece: &Piece<'_>) -> io::Result<()> {
        let Piece { inode, at, bytes, landing, done, of } = *piece;
        self.snapshot(done, of);
        if let Some(recorder) = &mut self.recorder {
            for len in (1..bytes.len()).filter(|len| recorder.detail.shows(done + len, of)) {
                let mut state = self.state.clone();
                state.write_piece(inode, at, bytes.get(..len).unwrap_or_default(), landing);
                recorder.snapshots.push(Snapshot { step: self.steps + len as u64, state });
            }
        }
        let allowed = self.take_steps(bytes.len());
        self.change().write_piece(inode, at, bytes.get(..allowed).unwrap_or_default(), landing);
        if allowed < bytes.len() { Err(io::Error::other(Crashed)) } else { Ok(()) }
    }

    fn next_fault(&mut self, call: Call) -> Option<Fault> {
        let fault = self.faults.next(call);
        self.failed |= matches!(fault, Some(Fault::Error(_)));
        fault
    }

    /// Takes up to `wanted` steps; fewer, and the crash, where the crash point comes first.
    fn take_steps(&mut self, wanted: usize) -> usize {
        let left = match (self.crashed, self.crash_at) {
            (true, _) => 0,
            (false, None) => u64::MAX,
            (false, Some(crash_at)) => crash_at.saturating_sub(self.steps),
        };
        let taken = usize::try_from(left).map_or(wanted, |left| left.min(wanted));
        self.steps += taken as u64;
        self.crashed |= taken < wanted;
        taken
    }

    /// Keeps a snapshot of the disk as it is, with so many bytes of a write done; 0 before every call.
    fn snapshot(&mut self, done: usize, of: usize) {
        if let Some(recorder) = &mut self.recorder
            && !recorder.is_current
            && recorder.detail.shows(done, of)
        {
            recorder.is_current = true;
            recorder.snapshots.push(Snapshot { step: self.steps, state: self.state.clone() });
        }
    }

    /// The state, to be changed.
    pub(super) fn change(&mut self) -> &mut DiskState {
        if let Some(recorder) = &mut self.recorder {
            recorder.is_current = false;
        }
        &mut self.state
    }
}

impl Detail {
    /// Whether a snapshot is kept with so many bytes of a write done.
    fn shows(self, done: usize, of: usize) -> bool {
        self == Self::EveryStep || done <= 1 || done == of / 2 || done + 1 == of
    }
}

pub(super) fn writable(file: &SimFile) -> io::Result<()> {
    if file.writable { Ok(()) } else { Err(io::Error::from_raw_os_error(EBADF)) }
}
