//! Lines of an input that is trusted with nothing: whatever comes, no more than one line's limit is held.

use std::io::{BufRead, ErrorKind};

/// One line, without its line feed and the carriage return before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Its bytes.
    Whole(&'a [u8]),
    /// It is longer than the limit. The rest of it is skipped when the next one is asked for.
    TooLong,
}

/// Splits an input into lines.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    bytes_max: usize,
    number: u64,
    /// The rest of a line that was too long is still in the input.
    skip_rest: bool,
}

impl<R: BufRead> Lines<R> {
    /// Lines of at most `bytes_max` bytes.
    #[must_use]
    pub const fn new(input: R, bytes_max: usize) -> Self {
        Self { input, line: Vec::new(), bytes_max, number: 0, skip_rest: false }
    }

    /// The number of the line given last, from 1 on.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The next line; nothing at the end of the input. A last line needs no line feed.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn next_line(&mut self) -> std::io::Result<Option<Line<'_>>> {
        if std::mem::take(&mut self.skip_rest) {
            self.input.skip_until(b'\n')?;
        }
        self.line.clear();
        // One byte more tells a line that just fits, and its carriage return, from one that does not.
        let held_max = self.bytes_max + 1;
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                break;
            }
            let feed = available.iter().position(|byte| *byte == b'\n');
            let piece = available.get(..feed.unwrap_or(available.len())).unwrap_or(available);
            if self.line.len() + piece.len() > held_max {
                self.number += 1;
                self.skip_rest = true;
                return Ok(Some(Line::TooLong));
            }
            grow(&mut self.line, piece.len(), held_max);
            self.line.extend_from_slice(piece);
            let used = piece.len() + usize::from(feed.is_some());
            self.input.consume(used);
            if feed.is_some() {
                self.number += 1;
                return Ok(Some(self.finish()));
            }
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(self.finish()))
    }

    fn finish(&self) -> Line<'_> {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        if line.len() > self.bytes_max { Line::TooLong } else { Line::Whole(line) }
    }
}

/// Makes room for `more` bytes by doubling, as a vector does, but never beyond `max`.
fn grow(line: &mut Vec<u8>, more: usize, max: usize) {
    let needed = line.len() + more;
    if needed > line.capacity() {
        let capacity = line.capacity().saturating_mul(2).clamp(needed, max.max(needed));
        line.reserve_exact(capacity - line.len());
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(input: &[u8], bytes_max: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        // A tiny buffer, so that lines span several reads.
        let mut lines = Lines::new(BufReader::with_capacity(3, input), bytes_max);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            let bytes = match line {
                Line::Whole(bytes) => Some(bytes.to_vec()),
                Line::TooLong => None,
            };
            found.push((lines.number(), bytes));
        }
        found
    }

    #[test]
    fn lines_lose_their_ends_and_nothing_else() {
        let some = |text: &[u8]| Some(text.to_vec());
        assert_eq!(
            all(b"one\r\n\n two \r\r\n\xff\0last", 10),
            [(1, some(b"one")), (2, some(b"")), (3, some(b" two \r")), (4, some(b"\xff\0last"))]
        );
        assert_eq!(all(b"", 10), []);
        assert_eq!(all(b"a\n", 10), [(1, some(b"a"))]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_skipped_and_never_held() {
        let some = |text: &[u8]| Some(text.to_vec());
        assert_eq!(
            all(b"12345\n123456\n12345\r\n123456\r\nabcdefghijklmn\nx", 5),
            [(1, some(b"12345")), (2, None), (3, some(b"12345")), (4, None), (5, None), (6, some(b"x"))]
        );
        let long = vec![b'x'; 10_000];
        let mut lines = Lines::new(BufReader::new(&*long), 100);
        assert_eq!(lines.next_line().unwrap(), Some(Line::TooLong));
        assert!(lines.line.capacity() <= 101, "{}", lines.line.capacity());
        assert_eq!(lines.next_line().unwrap(), None);
    }
}
