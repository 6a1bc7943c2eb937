//! Short texts that people and other programs write: sizes, durations, names, scripts.

use strandline::core::{FileKind, JournalName, SegmentId};
use strandline_cli::{duration, size};
use strandline_sim::Script;

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    sizes(&text);
    durations(&text);
    names(&text);
    files(&text);
    scripts(&text);
}

/// A number that can be read is read exactly, and none is made up.
fn sizes(text: &str) {
    match size::parse(text) {
        Ok(bytes) => {
            assert_eq!(size::parse(&bytes.to_string()), Ok(bytes), "bytes are the unit of a plain number");
            let (number, unit) = number_and_unit(text);
            let factor: u128 = match unit.as_str() {
                "" | "b" => 1,
                "k" | "kib" => 1 << 10,
                "kb" => 1_000,
                "m" | "mib" => 1 << 20,
                "mb" => 1_000_000,
                "g" | "gib" => 1 << 30,
                "gb" => 1_000_000_000,
                other => panic!("{other:?} is no unit"),
            };
            assert_eq!(u128::from(bytes), number * factor, "{text:?}");
        }
        Err(reason) => {
            assert!(!reason.is_empty());
            assert!(text.parse::<u64>().is_err() || text.starts_with('+'), "{text:?} is a plain number");
        }
    }
}

fn durations(text: &str) {
    if let Ok(ms) = duration::parse_ms(text) {
        let (number, unit) = number_and_unit(text);
        let factor: u128 = match unit.as_str() {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            other => panic!("{other:?} is no unit"),
        };
        assert_eq!(u128::from(ms), number * factor, "{text:?}");
    }
}

fn number_and_unit(text: &str) -> (u128, String) {
    let digits: String = text.trim().chars().take_while(char::is_ascii_digit).collect();
    let unit = text.trim()[digits.len()..].trim().to_ascii_lowercase();
    (digits.parse().expect("a number was read"), unit)
}

fn names(text: &str) {
    let is_name = (1..=64).contains(&text.len())
        && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric());
    match JournalName::parse(text) {
        Ok(name) => {
            assert!(is_name, "{text:?}");
            assert_eq!((name.as_str(), name.to_string().as_str()), (text, text));
        }
        Err(error) => assert!(!is_name && error.0 == text, "{text:?}"),
    }
}

/// A file is a segment only under the very name that the segment is given.
fn files(text: &str) {
    let kind = FileKind::of(text);
    if let FileKind::Segment { journal, segment } = &kind {
        assert_eq!(journal.segment_file(*segment), text);
        assert!(*segment < SegmentId(u64::MAX.into()), "no record has this number");
        assert!(!FileKind::is_doubtful(text, journal));
    }
    // Of whatever journal the text is the name, its own segments are its own and nobody else's.
    if let Ok(name) = JournalName::parse(text) {
        let file = name.segment_file(SegmentId(7.into()));
        assert_eq!(FileKind::of(&file), FileKind::Segment { journal: name, segment: SegmentId(7.into()) });
    }
    if let Some((name, _)) = text.split_once('-')
        && let Ok(journal) = JournalName::parse(name)
        && text.ends_with(".seg")
    {
        let is_own = matches!(&kind, FileKind::Segment { .. });
        assert!(is_own || FileKind::is_doubtful(text, &journal), "{text:?} is passed over in silence");
    }
}

fn scripts(text: &str) {
    if let Ok(script) = text.parse::<Script>() {
        assert_eq!(script.operations.len(), text.split_whitespace().count());
        assert_eq!(script.to_string().parse(), Ok(script), "the text form names the same script");
    }
}
