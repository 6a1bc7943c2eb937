//! What is no message of the schema is refused, and what a newer version adds is passed over.

use std::collections::BTreeMap;

use strandline_core::sbe::SbeError;
use strandline_sim::exchange::{
    CancelReason, Command, Event, ExchangeSetup, OrderKind, Phase, Refusal, Side, TimeInForce,
};

use crate::samples::{commands, decode_command, decode_event, decode_setup, events, messages, setup};

const HEADER: usize = 8;

fn with(bytes: &[u8], at: usize, to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

/// A length, of the two bytes there.
fn len_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

#[test]
fn a_foreign_schema_or_an_unknown_message() {
    let setup = setup().to_bytes();
    let samples = messages();
    let all = samples.iter().map(|sample| (&sample.bytes, sample.decode));
    for (bytes, decode) in all.chain([(&setup, decode_setup as _)]) {
        let foreign = Err(SbeError::Schema { found: 7_302, expected: 7_310 });
        assert_eq!(decode(&with(bytes, 4, &7_302_u16.to_le_bytes())), foreign);
        for template in [0, 2, 10, 17, 30, 40, u16::MAX] {
            let unknown = Err(SbeError::Template { template, version: 3, known: 0 });
            let bytes = with(&with(bytes, 2, &template.to_le_bytes()), 6, &[3, 0]);
            assert_eq!(decode(&bytes), unknown);
        }
    }
}

#[test]
fn commands_events_and_setups_are_not_taken_for_each_other() {
    let refused = |template| Err(SbeError::Template { template, version: 0, known: 0 });
    for command in commands() {
        assert_eq!(decode_event(&command.bytes), refused(command.layout.id));
        assert_eq!(decode_setup(&command.bytes), refused(command.layout.id));
    }
    for event in events() {
        assert_eq!(decode_command(&event.bytes), refused(event.layout.id));
        assert_eq!(decode_setup(&event.bytes), refused(event.layout.id));
    }
    let setup = setup().to_bytes();
    assert_eq!((decode_command(&setup), decode_event(&setup)), (refused(1), refused(1)));
}

#[test]
fn every_proper_prefix_is_too_short() {
    for sample in messages() {
        let block_end = HEADER + usize::from(sample.layout.block_len);
        let texts: Vec<_> = sample.layout.fields.iter().filter(|field| field.offset.is_none()).collect();
        for len in 0..sample.bytes.len() {
            // The first part that is not whole.
            let mut end = block_end;
            let text = texts.iter().find(|_| {
                end += 2 + len_at(&sample.bytes, end);
                end > len
            });
            let part = match len {
                0..HEADER => "header",
                len if len < block_end => "block",
                _ => text.unwrap().name,
            };
            let name = sample.layout.name;
            assert_eq!((sample.decode)(&sample.bytes[..len]), Err(SbeError::Short(part)), "{name} of {len}");
        }
    }
    let setup = setup().to_bytes();
    for len in 0..setup.len() {
        assert!(matches!(ExchangeSetup::decode(&setup[..len]), Err(SbeError::Short(_))), "{len}");
    }
}

#[test]
fn a_block_shorter_than_the_schemas() {
    for sample in messages() {
        for len in 0..sample.layout.block_len {
            let bytes = with(&sample.bytes, 0, &len.to_le_bytes());
            assert_eq!((sample.decode)(&bytes), Err(SbeError::Short("block")), "{}", sample.layout.name);
        }
    }
    let setup = setup().to_bytes();
    for len in 0..16_u16 {
        assert_eq!(decode_setup(&with(&setup, 0, &len.to_le_bytes())), Err(SbeError::Short("block")));
    }
    for len in 0..28_u16 {
        let bytes = with(&setup, HEADER + 16, &len.to_le_bytes());
        assert_eq!(decode_setup(&bytes), Err(SbeError::Short("instruments")));
    }
}

#[test]
fn every_number_that_an_enum_does_not_name() {
    let enums = BTreeMap::from([
        ("Side", Side::ALL.len()),
        ("OrderKind", OrderKind::ALL.len()),
        ("TimeInForce", TimeInForce::ALL.len()),
        ("Phase", Phase::ALL.len()),
        ("CancelReason", CancelReason::ALL.len()),
        ("Refusal", Refusal::ALL.len()),
    ]);
    let mut seen = Vec::new();
    for sample in messages() {
        for field in &sample.layout.fields {
            let Some(values) = enums.get(field.type_name) else { continue };
            let at = HEADER + usize::from(field.offset.unwrap());
            for value in 0..=u8::MAX {
                let read = (sample.decode)(&with(&sample.bytes, at, &[value]));
                // The schema numbers them from 1, without a gap.
                if (1..=*values).contains(&value.into()) {
                    assert!(read.is_ok(), "{}.{} is {value}", sample.layout.name, field.name);
                } else {
                    assert_eq!(read, Err(SbeError::Value { field: field.name, value }));
                }
            }
            seen.push(format!("{}.{}", sample.layout.name, field.name));
        }
    }
    let wanted = [
        "PlaceOrder.side",
        "PlaceOrder.kind",
        "PlaceOrder.time_in_force",
        "OrderAccepted.side",
        "OrderAccepted.kind",
        "OrderAccepted.time_in_force",
        "Trade.taker_side",
        "OrderCanceled.reason",
        "CommandRefused.refusal",
        "PhaseChanged.phase",
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_text_that_is_no_utf_8() {
    let mut seen = 0;
    for sample in messages() {
        let mut at = HEADER + usize::from(sample.layout.block_len);
        for field in sample.layout.fields.iter().filter(|field| field.offset.is_none()) {
            let len = len_at(&sample.bytes, at);
            let refused = Err(SbeError::Text(field.name));
            assert_eq!((sample.decode)(&with(&sample.bytes, at + 2, &[0xff])), refused);
            // The beginning of a character, and then the end.
            assert_eq!((sample.decode)(&with(&sample.bytes, at + 1 + len, &[0xc3])), refused);
            at += 2 + len;
            seen += 1;
        }
        assert_eq!(at, sample.bytes.len());
    }
    assert_eq!(seen, 10);
    let setup = setup().to_bytes();
    let gold = setup.windows(4).position(|four| four == b"GOLD").unwrap();
    for surrogate in [&b"\xff"[..], b"\xed\xa0\x80", b"\xc0\x80"] {
        assert_eq!(decode_setup(&with(&setup, gold, surrogate)), Err(SbeError::Text("symbol")));
    }
}

#[test]
fn a_newer_version_is_read() {
    for sample in messages() {
        let block_len = sample.layout.block_len;
        let mut newer = with(&sample.bytes, 6, &[1, 0]);
        let read = (sample.decode)(&sample.bytes);
        assert!(read.is_ok());
        assert_eq!((sample.decode)(&newer), read, "with nothing new");
        newer.splice(HEADER + usize::from(block_len)..HEADER + usize::from(block_len), *b"new");
        let longer = with(&newer, 0, &(block_len + 3).to_le_bytes());
        assert_eq!((sample.decode)(&longer), read, "with fields");
        assert_eq!((sample.decode)(&[&longer[..], b"\x04\0more"].concat()), read, "and a text");
    }
}

#[test]
fn a_newer_version_of_the_setup_is_read() {
    let old = setup();
    let mut bytes = with(&old.to_bytes(), 6, &[1, 0]);
    // From the end: a field of the last instrument, one of the first, one of the setup.
    let (group, of_instrument) = (HEADER + 16, 28);
    let first = group + 4 + of_instrument;
    let second = first + 2 + len_at(&bytes, first) + of_instrument;
    for at in [second, first, group] {
        bytes.splice(at..at, *b"new");
    }
    bytes = with(&bytes, 0, &19_u16.to_le_bytes());
    bytes = with(&bytes, group + 3, &31_u16.to_le_bytes());
    bytes.extend(b"\x04\0more");
    assert_eq!(ExchangeSetup::decode(&bytes), Ok(old));
}

#[test]
fn a_count_without_its_instruments() {
    let mut nothing = setup();
    nothing.instruments.clear();
    let bytes = nothing.to_bytes();
    assert_eq!(bytes.len(), HEADER + 16 + 4);
    for len in [0, 27, 29, u16::MAX] {
        let bytes = with(&bytes, HEADER + 16, &len.to_le_bytes());
        assert_eq!(ExchangeSetup::decode(&bytes), Ok(nothing.clone()), "{len} bytes each, of none");
    }
    let promised = with(&bytes, HEADER + 18, &u16::MAX.to_le_bytes());
    assert_eq!(ExchangeSetup::decode(&promised), Err(SbeError::Short("instruments")));
}

#[test]
fn nothing_and_noise() {
    for bytes in [&b""[..], &[0; 7], &[0; 8], &[0xff; 64]] {
        assert!(Command::decode(bytes).is_err() && Event::decode(bytes).is_err());
        assert!(ExchangeSetup::decode(bytes).is_err());
    }
}
