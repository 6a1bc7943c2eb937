//! The exchange's messages are those of somebody else's code generator, from the same schema: in both directions.

#[path = "../../../sim/tests/exchange/material.rs"]
mod material;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::sample::Index;
use strandline::core::sbe::SbeError;
use strandline_ergo as ergo;
use strandline_sim::exchange::{
    CancelOrder, CancelReason, Command, CommandRefused, Event, ExchangeSetup, Halt, Halted, Instrument,
    ModifyOrder, OrderAccepted, OrderCanceled, OrderKind, OrderModified, Phase, PhaseChanged, PlaceOrder,
    Refusal, Resume, Resumed, Settled, Side, Tick, TimeInForce, Trade,
};

use material::{COMMANDS, EVENTS, command, event, material};

const HEADER: usize = 8;

/// A message of ours is read by theirs, field by field; theirs, of the same fields, is the same bytes.
macro_rules! agree {
    ($bytes:ident is $domain:ident of $encoder:ident and $fixed:ident
     { $($field:ident: $value:expr),* } $(, $text:ident: $text_value:expr)*) => {{
        let read = ergo::$domain::try_from_slice_with_header($bytes, 0);
        assert_eq!(read, Ok(ergo::$domain { $($field: $value,)* $($text: $text_value.as_bytes().to_vec()),* }));
        // What theirs does not write is not ours by chance.
        let mut written = vec![0xa5; $bytes.len()];
        let encoder = ergo::$encoder::try_wrap_and_apply_header(&mut written, 0).unwrap();
        let encoder = encoder.fixed(&ergo::$fixed { $($field: $value),* });
        $(let encoder = encoder.$text($text_value.as_bytes()).unwrap();)*
        assert_eq!(encoder.encoded_length() + HEADER, $bytes.len());
        assert_eq!(written, $bytes);
    }};
}

/// An enum of ours as theirs.
macro_rules! theirs {
    ($($ours:ident $name:ident),*) => {$(
        fn $name(ours: $ours) -> ergo::$ours {
            match ergo::$ours::from_raw(ours.number()) {
                ergo::$ours::NullVal => panic!("{ours:?} is unknown to theirs"),
                theirs => theirs,
            }
        }
    )*};
}

theirs!(Side side, OrderKind kind, TimeInForce time_in_force, Phase phase, CancelReason cancel_reason, Refusal refusal);

fn a_command(command: Command<'_>) {
    let bytes = &*command.to_bytes();
    match command {
        Command::Tick(Tick { time }) => {
            agree!(bytes is TickDomain of TickEncoder and TickFixedFields { time: time });
        }
        Command::PlaceOrder(of) => place_order(bytes, of),
        Command::CancelOrder(CancelOrder { order, trader }) => {
            agree!(bytes is CancelOrderDomain of CancelOrderEncoder and CancelOrderFixedFields
                { order: order }, trader: trader);
        }
        Command::ModifyOrder(ModifyOrder { order, price, quantity, trader }) => {
            agree!(bytes is ModifyOrderDomain of ModifyOrderEncoder and ModifyOrderFixedFields
                { order: order, price: price, quantity: quantity }, trader: trader);
        }
        Command::Halt(Halt { instrument, reason }) => {
            agree!(bytes is HaltDomain of HaltEncoder and HaltFixedFields
                { instrument: instrument }, reason: reason);
        }
        Command::Resume(Resume { instrument }) => {
            agree!(bytes is ResumeDomain of ResumeEncoder and ResumeFixedFields { instrument: instrument });
        }
    }
}

fn place_order(bytes: &[u8], of: PlaceOrder<'_>) {
    agree!(bytes is PlaceOrderDomain of PlaceOrderEncoder and PlaceOrderFixedFields {
        instrument: of.instrument,
        side: side(of.side),
        kind: kind(of.kind),
        time_in_force: time_in_force(of.time_in_force),
        price: of.price,
        quantity: of.quantity
    }, trader: of.trader, reference: of.reference);
}

fn an_event(event: Event<'_>) {
    let bytes = &*event.to_bytes();
    match event {
        Event::OrderAccepted(of) => order_accepted(bytes, of),
        Event::Trade(of) => trade(bytes, of),
        Event::OrderModified(OrderModified { order, price, quantity }) => {
            agree!(bytes is OrderModifiedDomain of OrderModifiedEncoder and OrderModifiedFixedFields
                { order: order, price: price, quantity: quantity });
        }
        Event::OrderCanceled(OrderCanceled { order, reason, quantity }) => {
            agree!(bytes is OrderCanceledDomain of OrderCanceledEncoder and OrderCanceledFixedFields
                { order: order, reason: cancel_reason(reason), quantity: quantity });
        }
        Event::CommandRefused(CommandRefused { command, refusal: why, order, trader, reference }) => {
            agree!(bytes is CommandRefusedDomain of CommandRefusedEncoder and CommandRefusedFixedFields
                { command: command, refusal: refusal(why), order: order }, trader: trader, reference: reference);
        }
        Event::PhaseChanged(PhaseChanged { time, phase: now }) => {
            agree!(bytes is PhaseChangedDomain of PhaseChangedEncoder and PhaseChangedFixedFields
                { time: time, phase: phase(now) });
        }
        Event::Settled(Settled { instrument, reference }) => {
            agree!(bytes is SettledDomain of SettledEncoder and SettledFixedFields
                { instrument: instrument, reference: reference });
        }
        Event::Halted(Halted { instrument, reason }) => {
            agree!(bytes is HaltedDomain of HaltedEncoder and HaltedFixedFields
                { instrument: instrument }, reason: reason);
        }
        Event::Resumed(Resumed { instrument }) => {
            agree!(bytes is ResumedDomain of ResumedEncoder and ResumedFixedFields { instrument: instrument });
        }
    }
}

fn order_accepted(bytes: &[u8], of: OrderAccepted<'_>) {
    agree!(bytes is OrderAcceptedDomain of OrderAcceptedEncoder and OrderAcceptedFixedFields {
        order: of.order,
        instrument: of.instrument,
        side: side(of.side),
        kind: kind(of.kind),
        time_in_force: time_in_force(of.time_in_force),
        price: of.price,
        quantity: of.quantity
    }, trader: of.trader, reference: of.reference);
}

fn trade(bytes: &[u8], of: Trade) {
    agree!(bytes is TradeDomain of TradeEncoder and TradeFixedFields {
        trade: of.trade,
        time: of.time,
        instrument: of.instrument,
        price: of.price,
        quantity: of.quantity,
        taker_side: side(of.taker_side),
        taker: of.taker,
        taker_left: of.taker_left,
        maker: of.maker,
        maker_left: of.maker_left
    });
}

fn a_setup(setup: &ExchangeSetup) {
    let bytes = setup.to_bytes();
    let ExchangeSetup { time, opens_at, closes_at, ref instruments } = *setup;
    let theirs = ergo::SetupDomain {
        time,
        opens_at,
        closes_at,
        instruments: instruments.iter().map(an_instrument).collect(),
    };
    assert_eq!(ergo::SetupDomain::try_from_slice_with_header(&bytes, 0), Ok(theirs));
    let mut written = vec![0xa5; bytes.len()];
    let encoder = ergo::SetupEncoder::try_wrap_and_apply_header(&mut written, 0).unwrap();
    let encoder = encoder.fixed(&ergo::SetupFixedFields { time, opens_at, closes_at });
    let count = instruments.len().try_into().unwrap();
    let encoder = encoder.instruments(count, |group| -> Result<(), ergo::sbe_rt::EncodeError> {
        instruments.iter().try_for_each(|of| {
            group.add(|mut entry| {
                entry.instrument(of.instrument).reference(of.reference).band(of.band);
                entry.tick(of.tick).lot(of.lot);
                entry.symbol(of.symbol.as_bytes())
            })
        })
    });
    assert_eq!(encoder.unwrap().encoded_length() + HEADER, bytes.len());
    assert_eq!(written, bytes);
}

fn an_instrument(of: &Instrument) -> ergo::SetupInstrumentsEntryDomain {
    let Instrument { instrument, reference, band, tick, lot, ref symbol } = *of;
    let symbol = symbol.as_bytes().to_vec();
    ergo::SetupInstrumentsEntryDomain { instrument, reference, band, tick, lot, symbol }
}

/// Whatever message of theirs it is, as text.
fn read_by_theirs(bytes: &[u8]) -> Option<String> {
    macro_rules! first {
        ($($decoder:ident $domain:ident)*) => {{
            $(
                let read = ergo::$decoder::try_decode(bytes, 0).and_then(ergo::$domain::try_from_decoder);
                if let Ok(read) = read {
                    return Some(format!("{read:?}"));
                }
            )*
            None
        }};
    }
    first!(
        SetupDecoder SetupDomain TickDecoder TickDomain PlaceOrderDecoder PlaceOrderDomain
        CancelOrderDecoder CancelOrderDomain ModifyOrderDecoder ModifyOrderDomain HaltDecoder HaltDomain
        ResumeDecoder ResumeDomain OrderAcceptedDecoder OrderAcceptedDomain TradeDecoder TradeDomain
        OrderModifiedDecoder OrderModifiedDomain OrderCanceledDecoder OrderCanceledDomain
        CommandRefusedDecoder CommandRefusedDomain PhaseChangedDecoder PhaseChangedDomain
        SettledDecoder SettledDomain HaltedDecoder HaltedDomain ResumedDecoder ResumedDomain
    )
}

/// Whatever message of ours it is, as this version writes it.
fn read_by_ours(bytes: &[u8]) -> Result<Vec<u8>, SbeError> {
    match Command::decode(bytes) {
        Err(SbeError::Template { .. }) => {}
        other => return other.map(|command| command.to_bytes()),
    }
    match Event::decode(bytes) {
        Err(SbeError::Template { .. }) => ExchangeSetup::decode(bytes).map(|setup| setup.to_bytes()),
        other => other.map(|event| event.to_bytes()),
    }
}

/// What a message says of its block.
fn block_len(bytes: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// Both read the same of these bytes, or both nothing. Theirs takes enums and texts as they are, and reads a field that
/// stands beyond its block; ours does not.
fn read_alike(bytes: &[u8]) {
    let beginning = &bytes[..bytes.len().min(64)];
    match read_by_ours(bytes) {
        Ok(known) => {
            let theirs = read_by_theirs(bytes);
            assert!(theirs.is_some(), "{beginning:?}");
            assert!(theirs == read_by_theirs(&known), "{beginning:?}");
        }
        Err(SbeError::Value { .. } | SbeError::Text(_)) => {}
        Err(SbeError::Short("block")) if bytes.len() >= HEADER + block_len(bytes) => {}
        Err(error) => assert!(read_by_theirs(bytes).is_none(), "{error}: {beginning:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_command(mut material in material()) {
        for kind in 0..COMMANDS {
            material.kind = kind;
            a_command(command(&material));
        }
    }

    #[test]
    fn every_event(mut material in material()) {
        for kind in 0..EVENTS {
            material.kind = kind;
            an_event(event(&material));
        }
    }

    #[test]
    fn every_setup(setup in material::setup()) {
        a_setup(&setup);
    }

    #[test]
    fn spoilt_bytes(
        material in material(),
        setup in material::setup(),
        changes in vec((any::<Index>(), any::<u8>()), 1..4),
        end in any::<Index>(),
    ) {
        let all = [command(&material).to_bytes(), event(&material).to_bytes(), setup.to_bytes()];
        for mut bytes in all {
            read_alike(&bytes[..end.index(bytes.len())]);
            for (at, to) in &changes {
                // Lengths, counts and ids stand in front.
                let at = at.index(bytes.len().min(60));
                bytes[at] = *to;
                read_alike(&bytes);
            }
        }
    }
}

#[test]
fn every_enum_value_has_the_same_name() {
    macro_rules! same {
        ($($of:ident),*) => {$(
            for (name, number, ours) in $of::ALL {
                assert_eq!((ours.number(), ergo::$of::from_raw(*number).as_str()), (*number, *name));
            }
            let unknown = |number: &u8| matches!(ergo::$of::from_raw(*number), ergo::$of::NullVal);
            assert_eq!((0..=255).filter(|number| !unknown(number)).count(), $of::ALL.len());
        )*};
    }
    same!(Side, OrderKind, TimeInForce, Phase, CancelReason, Refusal);
}
