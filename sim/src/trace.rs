//! The trace of a run: lines, and a running SHA-256 over them.

use std::io::Write;

use sha2::{Digest, Sha256};

/// Lines of a run, each printed with the beginning of the hash so far, so that two runs can be compared to
/// the first line that differs.
pub struct Trace {
    hasher: Sha256,
    out: Option<Box<dyn Write + Send>>,
}

impl Trace {
    /// A trace that is hashed and not shown.
    #[must_use]
    pub fn silent() -> Self {
        Self { hasher: Sha256::new(), out: None }
    }

    /// A trace that is shown. An output that cannot be written any more is not an error of the run.
    #[must_use]
    pub fn shown(out: impl Write + Send + 'static) -> Self {
        Self { hasher: Sha256::new(), out: Some(Box::new(out)) }
    }

    /// Adds a line.
    pub fn line(&mut self, line: &str) {
        self.hasher.update(line.as_bytes());
        self.hasher.update(b"\n");
        let hash = if self.out.is_some() { hex(&self.hasher.clone().finalize()) } else { String::new() };
        if let Some(out) = &mut self.out
            && writeln!(out, "{} {line}", hash.get(..8).unwrap_or_default()).is_err()
        {
            self.out = None;
        }
    }

    /// The hash over all lines, as 64 hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        hex(&self.hasher.clone().finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_lines() {
        let mut trace = Trace::silent();
        trace.line("abc");
        let mut shown = Trace::shown(std::io::sink());
        shown.line("abc");
        assert_eq!(trace.hash(), hex(&Sha256::digest(b"abc\n")));
        assert_eq!(trace.hash(), shown.hash());
    }
}
