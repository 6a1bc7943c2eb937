//! One message of each kind, with its layout. Texts have several bytes, so that they can be cut and spoilt.

use strandline_core::sbe::SbeError;
use strandline_sim::exchange::{Command, Event, ExchangeSetup, Instrument, MessageLayout};

use crate::material::{COMMANDS, EVENTS, Material, command, event};

/// A message, what it looks like, and who reads it.
pub(crate) struct Sample {
    pub(crate) layout: MessageLayout,
    pub(crate) bytes: Vec<u8>,
    /// Whether they are read, and as the message that they are.
    pub(crate) decode: fn(&[u8]) -> Result<String, SbeError>,
}

pub(crate) fn material(kind: usize) -> Material {
    Material {
        kind,
        codes: 1,
        unsigned: [0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666],
        small: [0x77, 0x88, 0x99],
        price: -3,
        texts: ["größer".into(), "als".into()],
    }
}

pub(crate) fn setup() -> ExchangeSetup {
    let instrument = |instrument, symbol: &str| Instrument {
        instrument,
        reference: -7,
        band: 8,
        tick: 9,
        lot: 10,
        symbol: symbol.to_owned(),
    };
    let instruments = vec![instrument(1, "GOLD"), instrument(2, "ÖL")];
    ExchangeSetup { time: 1, opens_at: 2, closes_at: 3, instruments }
}

pub(crate) fn decode_command(bytes: &[u8]) -> Result<String, SbeError> {
    Command::decode(bytes).map(|command| format!("{command:?}"))
}

pub(crate) fn decode_event(bytes: &[u8]) -> Result<String, SbeError> {
    Event::decode(bytes).map(|event| format!("{event:?}"))
}

pub(crate) fn decode_setup(bytes: &[u8]) -> Result<String, SbeError> {
    ExchangeSetup::decode(bytes).map(|setup| format!("{setup:?}"))
}

pub(crate) fn commands() -> Vec<Sample> {
    let bytes = (0..COMMANDS).map(|kind| command(&material(kind)).to_bytes());
    let sample = |(layout, bytes)| Sample { layout, bytes, decode: decode_command };
    Command::layouts().into_iter().zip(bytes).map(sample).collect()
}

pub(crate) fn events() -> Vec<Sample> {
    let bytes = (0..EVENTS).map(|kind| event(&material(kind)).to_bytes());
    let sample = |(layout, bytes)| Sample { layout, bytes, decode: decode_event };
    Event::layouts().into_iter().zip(bytes).map(sample).collect()
}

/// Every command and every event.
pub(crate) fn messages() -> Vec<Sample> {
    commands().into_iter().chain(events()).collect()
}

#[test]
fn there_is_a_sample_of_every_message() {
    assert_eq!((commands().len(), events().len()), (Command::layouts().len(), Event::layouts().len()));
    for sample in messages() {
        assert_eq!(sample.bytes[2..4], sample.layout.id.to_le_bytes(), "{}", sample.layout.name);
        assert!((sample.decode)(&sample.bytes).unwrap().starts_with(sample.layout.name));
    }
    assert_eq!((COMMANDS, EVENTS), (Command::layouts().len(), Event::layouts().len()));
}
