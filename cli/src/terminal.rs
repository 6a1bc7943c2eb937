//! What may be shown on a terminal.

/// JSON text in which every character that a terminal may obey stands as an escape. Within a string that is the same character, and JSON
/// allows control characters nowhere else.
pub(crate) fn harmless(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || is_direction(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether it changes the direction in which text is shown, so that what is read is not what is there.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_may_obey_is_escaped_and_stays_the_same_string() {
        let json = "{\"a\": \"\u{9b}31m \u{7f} \u{202e} ä 😀 \\u001b\"}";
        let shown = harmless(json);
        assert_eq!(shown, r#"{"a": "\u009b31m \u007f \u202e ä 😀 \u001b"}"#);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(json));
    }
}
