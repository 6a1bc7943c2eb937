//! What may be shown on a terminal.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};

use crate::output::{Format, OUTPUT_BUFFER_BYTES};

/// Standard output, with what is JSON made harmless for a terminal. Programs get it as it was recorded, and so does whoever asks for the
/// payload's bytes.
pub(crate) struct Output<W = BufWriter<StdoutLock<'static>>> {
    out: W,
    is_shown: bool,
}

impl Output {
    pub(crate) fn new(format: Format) -> Self {
        let out = io::stdout().lock();
        let is_shown = format == Format::Jsonl && out.is_terminal();
        Self { out: BufWriter::with_capacity(OUTPUT_BUFFER_BYTES, out), is_shown }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(data) {
            // JSON is written in pieces of text.
            Ok(text) if self.is_shown => self.out.write_all(harmless(text).as_bytes()).map(|()| data.len()),
            _ => self.out.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// JSON text in which every character that a terminal may obey stands as an escape, but for ends of lines. Within a string that is the same
/// character, and between values JSON allows no others than white space.
pub(crate) fn harmless(json: &str) -> Cow<'_, str> {
    if !json.contains(may_be_obeyed) {
        return json.into();
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            // Only white space: a string has them as escapes.
            '\t' | '\r' => shown.push(' '),
            c if may_be_obeyed(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    shown.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => shown.push(c),
        }
    }
    shown.into()
}

/// Whether a terminal does something else with it than to show it, or shows what is around it in another direction.
fn may_be_obeyed(c: char) -> bool {
    let is_direction =
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    (c.is_control() && c != '\n') || is_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "{\"a\":\t\"\u{9b}31m \u{7f} \u{202e} ä 😀 \\u001b\"\r\n}";

    #[test]
    fn what_a_terminal_may_obey_is_escaped_and_stays_the_same_string() {
        let shown = harmless(JSON);
        assert_eq!(shown, "{\"a\": \"\\u009b31m \\u007f \\u202e ä 😀 \\u001b\" \n}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(JSON));
    }

    #[test]
    fn only_a_terminal_is_shown_something_else() {
        for (is_shown, wanted) in [(true, harmless(JSON).into_owned()), (false, JSON.to_string())] {
            let mut output = Output { out: Vec::new(), is_shown };
            output.write_all(JSON.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(output.out).unwrap(), wanted);
        }
    }
}
