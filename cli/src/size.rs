//! Sizes as people write them: `65536`, `64KiB`, `50MiB`, `1GB`.

/// Units in bytes. One letter means the power of two, as in most tools that split files.
const UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
];

/// Parses a size into bytes.
///
/// # Errors
/// What is wrong with it, for a message.
pub fn parse(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    let factor = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name)).map(|(_, factor)| factor);
    let (Ok(number), Some(factor)) = (number.parse::<u64>(), factor) else {
        return Err("write a size as a whole number and a unit, such as 64KiB, 50MiB or 1GB".to_string());
    };
    number.checked_mul(*factor).ok_or_else(|| "that is more than 16 EiB".to_string())
}

/// Leading digits, and what follows them without the space between.
pub(crate) fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    (number, unit.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65_536),
            ("64KiB", 65_536),
            ("64 kib", 65_536),
            ("64k", 65_536),
            ("64KB", 64_000),
            ("50MiB", 52_428_800),
            ("1GB", 1_000_000_000),
            ("2g", 2_147_483_648),
            ("7B", 7),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "KiB", "-1", "1.5MiB", "1 000", "10TiBs", "+5", "99999999999999999999", "20000000000GiB"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
