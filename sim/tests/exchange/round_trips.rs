//! What is written is read as it was, and what is read is written as it was.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::Index;
use strandline_sim::exchange::{Command, Event, ExchangeSetup, Halt, Instrument};

use crate::material::{LONGEST, command, event, material, setup};

const HEADER: usize = 8;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() }
}

/// Bytes of any kind: noise, noise behind a header that is right, and messages of which a few bytes were changed.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let noise = || vec(any::<u8>(), 0..200);
    let header = (0..=80_u16, 0..=40_u16, noise()).prop_map(|(block_len, id, noise)| {
        let header = [block_len, id, 7_310, 0].map(u16::to_le_bytes);
        [header.as_flattened(), &noise].concat()
    });
    let changes = vec((any::<Index>(), any::<u8>()), 0..4);
    let messages = prop_oneof![
        material().prop_map(|material| command(&material).to_bytes()),
        material().prop_map(|material| event(&material).to_bytes()),
        setup().prop_map(|setup| setup.to_bytes()),
    ];
    let changed = (messages, changes, vec(any::<u8>(), 0..4)).prop_map(|(mut bytes, changes, more)| {
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        bytes.extend(more);
        bytes
    });
    prop_oneof![noise(), header, changed]
}

/// What this version writes of a message: its own header, the part of the block that it knows, and the texts.
fn known_part(bytes: &[u8], block_len: u16, written: usize) -> Vec<u8> {
    let given = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let known = usize::from(block_len);
    let header = [&block_len.to_le_bytes()[..], &bytes[2..6], &[0, 0]].concat();
    let texts = &bytes[HEADER + given..][..written - HEADER - known];
    [&header, &bytes[HEADER..HEADER + known], texts].concat()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_command(material in material()) {
        let command = command(&material);
        let bytes = command.to_bytes();
        prop_assert_eq!(Command::decode(&bytes), Ok(command));
        let mut behind = b"before".to_vec();
        command.encode(&mut behind);
        prop_assert_eq!(behind, [b"before", &bytes[..]].concat());
    }

    #[test]
    fn an_event(material in material()) {
        let event = event(&material);
        let bytes = event.to_bytes();
        prop_assert_eq!(Event::decode(&bytes), Ok(event));
        let mut behind = b"before".to_vec();
        event.encode(&mut behind);
        prop_assert_eq!(behind, [b"before", &bytes[..]].concat());
    }

    #[test]
    fn a_setup(setup in setup()) {
        prop_assert_eq!(ExchangeSetup::decode(&setup.to_bytes()), Ok(setup));
    }

    #[test]
    fn any_bytes(bytes in bytes()) {
        let (command, event) = (Command::decode(&bytes), Event::decode(&bytes));
        let setup = ExchangeSetup::decode(&bytes);
        let read = [command.is_ok(), event.is_ok(), setup.is_ok()];
        prop_assert!(read.iter().filter(|read| **read).count() <= 1, "{:?}", read);
        if let Ok(command) = command {
            let again = command.to_bytes();
            let known = known_part(&bytes, command.template().block_len, again.len());
            prop_assert_eq!(&again, &known);
            prop_assert_eq!(Command::decode(&again), Ok(command));
        }
        if let Ok(event) = event {
            let again = event.to_bytes();
            let known = known_part(&bytes, event.template().block_len, again.len());
            prop_assert_eq!(&again, &known);
            prop_assert_eq!(Event::decode(&again), Ok(event));
        }
        if let Ok(setup) = setup {
            let again = setup.to_bytes();
            // A longer block of an instrument cannot be told from its texts so simply.
            if bytes[..2] == [16, 0] && bytes[HEADER + 16..][..2] == [28, 0] {
                prop_assert_eq!(&again, &known_part(&bytes, 16, again.len()));
            }
            prop_assert_eq!(ExchangeSetup::decode(&again), Ok(setup));
        }
    }
}

#[test]
fn the_longest_text_and_the_most_instruments() {
    for longest in ["x".repeat(LONGEST), "\u{800}".repeat(LONGEST / 3), "\0".repeat(LONGEST)] {
        assert_eq!(longest.len(), LONGEST);
        let halt = Command::Halt(Halt { instrument: 1, reason: &longest });
        assert_eq!(Command::decode(&halt.to_bytes()), Ok(halt));
    }
    let setup = many(65_535);
    assert_eq!(ExchangeSetup::decode(&setup.to_bytes()), Ok(setup));
}

#[test]
#[should_panic(expected = "a text of 65536 bytes does not fit into a message")]
fn a_longer_text_is_an_error_of_the_program() {
    let longer = "x".repeat(LONGEST + 1);
    let bytes = Command::Halt(Halt { instrument: 1, reason: &longer }).to_bytes();
    assert_eq!(bytes.len(), 0, "nothing is cut in silence");
}

#[test]
#[should_panic(expected = "a setup has at most 65,535 instruments")]
fn more_instruments_are_an_error_of_the_program() {
    assert_eq!(many(65_536).to_bytes().len(), 0, "nothing is left out in silence");
}

fn many(count: u32) -> ExchangeSetup {
    let instruments = (0..count).map(|instrument| Instrument {
        instrument,
        reference: 0,
        band: 0,
        tick: 1,
        lot: 1,
        symbol: String::new(),
    });
    ExchangeSetup { time: 0, opens_at: 0, closes_at: 1, instruments: instruments.collect() }
}
