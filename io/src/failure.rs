//! From the operating system's errors to the core's comparable ones.

use std::io::{self, ErrorKind};

use strandline_core::{IoCause, IoFailure, IoOperation};

/// What the journal has to know of an error of the operating system.
#[must_use]
pub fn io_failure(operation: IoOperation, error: &io::Error) -> IoFailure {
    /// ENFILE and EMFILE, for which there is no kind.
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    let cause = match error.kind() {
        _ if error.raw_os_error().is_some_and(|code| TOO_MANY_FILES.contains(&code)) => IoCause::TooManyFiles,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => IoCause::NoSpace,
        ErrorKind::NotFound => IoCause::NotFound,
        ErrorKind::AlreadyExists => IoCause::AlreadyExists,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => IoCause::Denied,
        ErrorKind::UnexpectedEof => IoCause::EndOfFile,
        _ => IoCause::Other,
    };
    IoFailure { operation, cause, code: error.raw_os_error() }
}

/// For `map_err`: the failure of one operation.
pub(crate) fn failed(operation: IoOperation) -> impl Fn(io::Error) -> IoFailure {
    move |error| io_failure(operation, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_have_their_causes() {
        let cause = |code| io_failure(IoOperation::Write, &io::Error::from_raw_os_error(code)).cause;
        for (code, expected) in [
            (28, IoCause::NoSpace),  // ENOSPC
            (122, IoCause::NoSpace), // EDQUOT
            (27, IoCause::NoSpace),  // EFBIG
            (2, IoCause::NotFound),
            (17, IoCause::AlreadyExists),
            (13, IoCause::Denied),       // EACCES
            (1, IoCause::Denied),        // EPERM
            (30, IoCause::Denied),       // EROFS
            (23, IoCause::TooManyFiles), // ENFILE
            (24, IoCause::TooManyFiles), // EMFILE
            (5, IoCause::Other),         // EIO
        ] {
            assert_eq!(cause(code), expected, "error number {code}");
        }
    }
}
