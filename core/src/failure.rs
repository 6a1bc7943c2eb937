//! What went wrong in the world: the core's own, comparable form of an input/output error.

use core::fmt;

/// The kind of system call that failed. It matters: lack of space in a write is no poison, but a
/// failed sync always is, whatever its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOperation {
    /// Opening or creating a file.
    Open,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Making a file's contents durable.
    Sync,
    /// Making the directory's entries durable.
    SyncDirectory,
    /// Setting a file's length.
    Truncate,
    /// Renaming a file into place.
    Rename,
    /// Removing a file.
    Remove,
    /// Listing the directory.
    List,
}

impl fmt::Display for IoOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::SyncDirectory => "directory sync",
            Self::Truncate => "truncate",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::List => "directory listing",
        })
    }
}

/// Why it failed, as far as the journal's behaviour depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoCause {
    /// No space, quota or file-size limit left (ENOSPC, EDQUOT, EFBIG).
    NoSpace,
    /// The file does not exist.
    NotFound,
    /// The file exists already.
    AlreadyExists,
    /// Permission denied, or a read-only file system.
    Denied,
    /// No file can be opened for now: the process, or the system, has too many open (EMFILE, ENFILE).
    TooManyFiles,
    /// The file ended before the bytes that the journal knows it has.
    EndOfFile,
    /// Anything else.
    Other,
}

impl fmt::Display for IoCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSpace => "no space left",
            Self::NotFound => "no such file",
            Self::AlreadyExists => "the file exists already",
            Self::Denied => "permission denied",
            Self::TooManyFiles => "too many open files, raise the limit (ulimit -n)",
            Self::EndOfFile => "unexpected end of file",
            Self::Other => "input/output error",
        })
    }
}

/// What there was too little of for a record. It passes, and does not stop a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shortage {
    /// Space: of the disk, of the quota, or of what the journal may take.
    Space,
    /// Files that may be open at once.
    Files,
}

/// A failed operation: what, why, and the operating system's error number where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub struct IoFailure {
    /// What failed.
    pub operation: IoOperation,
    /// Why.
    pub cause: IoCause,
    /// The operating system's error number, for the message only.
    pub code: Option<i32>,
}

impl IoFailure {
    /// A failure without an error number.
    #[must_use]
    pub const fn new(operation: IoOperation, cause: IoCause) -> Self {
        Self { operation, cause, code: None }
    }

    /// Whether this is lack of space that left everything else intact, so that the journal can go
    /// on once there is space again. A sync that reports lack of space is not: what it covered is
    /// unknown.
    #[must_use]
    pub const fn is_no_space(&self) -> bool {
        matches!(self.cause, IoCause::NoSpace)
            && !matches!(self.operation, IoOperation::Sync | IoOperation::SyncDirectory)
    }

    /// Whether no file could be opened for what was to be done, so that nothing of it was.
    #[must_use]
    pub const fn is_no_file(&self) -> bool {
        matches!((self.operation, self.cause), (IoOperation::Open, IoCause::TooManyFiles))
    }

    /// What there was too little of, if that is why it failed: everything else is intact, and the journal can go on.
    #[must_use]
    pub const fn shortage(&self) -> Option<Shortage> {
        if self.is_no_space() {
            Some(Shortage::Space)
        } else if self.is_no_file() {
            Some(Shortage::Files)
        } else {
            None
        }
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.operation, self.cause)?;
        match self.code {
            Some(code) => write!(f, " (os error {code})"),
            None => Ok(()),
        }
    }
}
