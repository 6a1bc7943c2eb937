//! Durations as people write them: `50ms`, `2s`, `5m`, `1h`.

use crate::size::split_number;

/// Units in milliseconds.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000)];

/// Parses a duration into milliseconds.
///
/// # Errors
/// What is wrong with it, for a message.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    let (number, unit) = split_number(text);
    let factor = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name)).map(|(_, factor)| factor);
    let (Ok(number), Some(factor)) = (number.parse::<u64>(), factor) else {
        return Err("write a duration as a whole number and a unit, such as 50ms, 2s, 5m or 1h".to_string());
    };
    number.checked_mul(*factor).ok_or_else(|| "that is longer than can be counted".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, ms) in
            [("50ms", 50), ("2s", 2_000), ("5m", 300_000), ("5 min", 300_000), ("1h", 3_600_000), ("0ms", 0)]
        {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "50", "ms", "-1s", "1.5s", "1d", "18446744073709551615h"] {
            assert!(parse_ms(text).is_err(), "{text}");
        }
    }
}
