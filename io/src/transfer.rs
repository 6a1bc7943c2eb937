//! Moving bytes whole: loops over short reads, short writes and interrupts.

use std::io::{self, ErrorKind};

use crate::disk::Disk;

/// Zeros for reserved space. It lies in the program's zero-initialised memory and costs nothing until used.
static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];

/// Writes all of `data`.
pub(crate) fn write_all<D: Disk>(
    disk: &D,
    file: &D::File,
    mut offset: u64,
    mut data: &[u8],
) -> io::Result<()> {
    while !data.is_empty() {
        match disk.write_at(file, offset, data) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => {
                data = data.get(n..).ok_or(ErrorKind::InvalidInput)?;
                offset += n as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes zeros over `from..to`. Real ones: space that is only allocated is slower to write into than none.
pub(crate) fn write_zeros<D: Disk>(disk: &D, file: &D::File, from: u64, to: u64) -> io::Result<()> {
    let mut offset = from;
    while offset < to {
        let len = usize::try_from(to - offset).unwrap_or(usize::MAX).min(ZEROS.len());
        write_all(disk, file, offset, ZEROS.get(..len).unwrap_or(&ZEROS))?;
        offset += len as u64;
    }
    Ok(())
}

/// Fills the buffer; returns fewer bytes than its length only at the end of the file.
pub(crate) fn read_full<D: Disk>(
    disk: &D,
    file: &D::File,
    offset: u64,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match disk.read_at(file, offset + filled as u64, rest) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
