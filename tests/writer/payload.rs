//! What the writer appends: every record says of itself which one it is.

/// The payload of the `n`-th record of one thread of one process. No other record's payload contains its marker.
pub(crate) fn payload(process: u64, thread: u64, n: u64) -> Vec<u8> {
    let mut payload = marker(process, thread, n).into_bytes();
    // Some are so long that a kill can hit the middle of their write.
    let len_max = if thread % 3 == 2 && n.is_multiple_of(4) { 300_000 } else { 700 };
    let filler = (7_919 * process + 31 * thread + 5_003 * n) % len_max;
    payload.extend((0..filler).map(|i| b'a' + u8::try_from((i + n) % 26).unwrap_or_default()));
    payload
}

/// How the payload begins.
pub(crate) fn marker(process: u64, thread: u64, n: u64) -> String {
    format!("<{process}.{thread}.{n}>")
}
