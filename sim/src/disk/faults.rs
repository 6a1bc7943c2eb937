//! Faults that the disk is told to show, each at a chosen call.

use std::io;

use super::Survivors;

/// The kinds of disk call, as far as faults tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `list`.
    List,
    /// `create`.
    Create,
    /// `open`.
    Open,
    /// `len`.
    Len,
    /// `read_at`.
    Read,
    /// `write_at`.
    Write,
    /// `sync`.
    Sync,
    /// `set_len`.
    SetLen,
    /// `rename`.
    Rename,
    /// `remove`.
    Remove,
    /// `sync_directory`.
    SyncDirectory,
}

/// What goes wrong in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with EIO. A read, write or entry operation then has no effect. A sync makes the given
    /// survivors durable (of a directory sync: as many operations, from the first) and, for a file, marks all
    /// its pages clean.
    Error(Survivors),
    /// It fails with ENOSPC and has no effect, however much space there is. Where a call is a sync it acts as
    /// [`Fault::Error`] with no survivors, with that error.
    NoSpace,
    /// It fails with EMFILE and has no effect: too many files are open.
    NoFile,
    /// It is interrupted (EINTR) before it has any effect.
    Interrupted,
    /// A read or write stops after this many bytes (at least 1); other calls succeed as ever.
    Short(usize),
    /// A write reports success and can be read back, but never reaches the platter.
    LostWrite,
    /// A write reports success and can be read back, but on the platter its sectors lie this many sectors
    /// further on.
    MisdirectedWrite(u64),
}

/// The error numbers of the simulated operating system; those of Linux.
pub(crate) const EINTR: i32 = 4;
pub(crate) const EIO: i32 = 5;
pub(crate) const EBADF: i32 = 9;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOSPC: i32 = 28;

/// The faults that are still to come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    plan: Vec<Planned>,
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    call: Call,
    /// So many calls of this kind pass before it.
    after: u64,
    repeats: bool,
    fault: Fault,
}

impl Faults {
    /// Plans a fault for the call of this kind that follows `after` others; for ever from there on if it `repeats`.
    pub(crate) fn plan(&mut self, call: Call, after: u64, repeats: bool, fault: Fault) {
        self.plan.push(Planned { call, after, repeats, fault });
    }

    /// Forgets what is still to come.
    pub(crate) fn clear(&mut self) {
        self.plan.clear();
    }

    /// The fault of a call of this kind that happens now.
    pub(crate) fn next(&mut self, call: Call) -> Option<Fault> {
        let mut due = None;
        self.plan.retain_mut(|planned| {
            if planned.call != call {
                return true;
            }
            if planned.after > 0 {
                planned.after -= 1;
                return true;
            }
            if due.is_some() {
                return true;
            }
            due = Some(planned.fault);
            planned.repeats
        });
        due
    }
}

impl Fault {
    /// The error with which the call fails before it has any effect, if that is what this fault does.
    pub(crate) fn refusal(self) -> Option<io::Error> {
        match self {
            Self::Error(_) => Some(io::Error::from_raw_os_error(EIO)),
            Self::NoSpace => Some(io::Error::from_raw_os_error(ENOSPC)),
            Self::NoFile => Some(io::Error::from_raw_os_error(EMFILE)),
            Self::Interrupted => Some(io::Error::from_raw_os_error(EINTR)),
            Self::Short(_) | Self::LostWrite | Self::MisdirectedWrite(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planned_fault_waits_for_its_call_and_strikes_once_or_for_ever() {
        let mut faults = Faults::default();
        faults.plan(Call::Write, 1, false, Fault::Interrupted);
        faults.plan(Call::Sync, 0, true, Fault::NoSpace);
        assert_eq!(faults.next(Call::Write), None, "one passes before");
        assert_eq!(faults.next(Call::Read), None, "another kind");
        assert_eq!(faults.next(Call::Write), Some(Fault::Interrupted));
        assert_eq!(faults.next(Call::Write), None, "only once");
        assert_eq!(faults.next(Call::Sync), Some(Fault::NoSpace));
        assert_eq!(faults.next(Call::Sync), Some(Fault::NoSpace), "for ever");
        faults.clear();
        assert_eq!(faults.next(Call::Sync), None);
    }
}
