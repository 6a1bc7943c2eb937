//! Golden bytes, made by hand from the schema: they are what is written, and what is read is what they say.

use std::collections::BTreeSet;

use strandline_sim::exchange::{
    CancelOrder, CancelReason, Command, CommandRefused, Event, ExchangeSetup, Halt, Halted, Instrument,
    ModifyOrder, OrderAccepted, OrderCanceled, OrderKind, OrderModified, Phase, PhaseChanged, PlaceOrder,
    Refusal, Resume, Resumed, Settled, Side, Tick, TimeInForce, Trade,
};

/// Bytes, and what they are.
type Annotated = &'static [(&'static [u8], &'static str)];

const PLACE_ORDER: Annotated = &[
    (b"\x17\x00", "blockLength: 23 = 4 + 1 + 1 + 1 + 8 + 8"),
    (b"\x0c\x00", "templateId: 12, PlaceOrder"),
    (b"\x8e\x1c", "schemaId: 7310 = 0x1c8e"),
    (b"\x00\x00", "version: 0"),
    (b"\x04\x03\x02\x01", "instrument: 0x01020304"),
    (b"\x02", "side: Sell"),
    (b"\x01", "kind: Limit"),
    (b"\x03", "timeInForce: ImmediateOrCancel"),
    (b"\xfe\xff\xff\xff\xff\xff\xff\xff", "price: -2"),
    (b"\x08\x07\x06\x05\x04\x03\x02\x01", "quantity: 0x0102030405060708"),
    (b"\x03\x00", "trader: 3 bytes"),
    (b"Ann", "trader"),
    (b"\x07\x00", "reference: 7 bytes"),
    (b"gr\xc3\xb6\xc3\x9fe", "reference: größe, UTF-8"),
];

const TRADE: Annotated = &[
    (b"\x45\x00", "blockLength: 69 = 8 + 8 + 4 + 8 + 8 + 1 + 4 * 8"),
    (b"\x20\x00", "templateId: 32, Trade"),
    (b"\x8e\x1c", "schemaId"),
    (b"\x00\x00", "version"),
    (b"\x01\x00\x00\x00\x00\x00\x00\x00", "trade: 1"),
    (b"\x00\x00\x64\xa7\xb3\xb6\xe0\x0d", "time: 1,000,000,000,000,000,000"),
    (b"\x07\x00\x00\x00", "instrument: 7"),
    (b"\x9c\xff\xff\xff\xff\xff\xff\xff", "price: -100"),
    (b"\xff\xff\xff\xff\xff\xff\xff\x7f", "quantity: 2^63 - 1"),
    (b"\x01", "takerSide: Buy"),
    (b"\x03\x01\x00\x00\x00\x00\x00\x00", "taker: 259"),
    (b"\x00\x00\x00\x00\x00\x00\x00\x00", "takerLeft: 0"),
    (b"\x02\x01\x00\x00\x00\x00\x00\x00", "maker: 258"),
    (b"\x00\x00\x00\x00\x00\x00\x00\x80", "makerLeft: 2^63"),
];

const COMMAND_REFUSED: Annotated = &[
    (b"\x0b\x00", "blockLength: 11 = 2 + 1 + 8"),
    (b"\x23\x00", "templateId: 35, CommandRefused"),
    (b"\x8e\x1c", "schemaId"),
    (b"\x00\x00", "version"),
    (b"\x0d\x00", "command: 13, CancelOrder"),
    (b"\x0c", "refusal: ForeignOrder"),
    (b"\x00\x01\x00\x00\x00\x00\x00\x00", "order: 256"),
    (b"\x04\x00", "trader: 4 bytes"),
    (b"\xf0\x9d\x84\x9e", "trader: U+1D11E, UTF-8"),
    (b"\x00\x00", "reference: empty"),
];

const SETUP: Annotated = &[
    (b"\x10\x00", "blockLength: 16 = 8 + 4 + 4"),
    (b"\x01\x00", "templateId: 1, Setup"),
    (b"\x8e\x1c", "schemaId"),
    (b"\x00\x00", "version"),
    (b"\x05\x00\x00\x00\x00\x00\x00\x00", "time: 5"),
    (b"\x80\x70\x00\x00", "opensAt: 28,800, 8 o'clock"),
    (b"\x70\xf8\x00\x00", "closesAt: 63,600, 17:40"),
    (b"\x1c\x00", "instruments, blockLength: 28 = 4 + 8 + 8 + 4 + 4"),
    (b"\x02\x00", "instruments, numInGroup: 2"),
    (b"\x01\x00\x00\x00", "instrument: 1"),
    (b"\x10\x27\x00\x00\x00\x00\x00\x00", "reference: 10,000"),
    (b"\xf4\x01\x00\x00\x00\x00\x00\x00", "band: 500"),
    (b"\x05\x00\x00\x00", "tick: 5"),
    (b"\x0a\x00\x00\x00", "lot: 10"),
    (b"\x04\x00", "symbol: 4 bytes"),
    (b"GOLD", "symbol"),
    (b"\xff\xff\xff\xff", "instrument: 2^32 - 1"),
    (b"\xff\xff\xff\xff\xff\xff\xff\xff", "reference: -1"),
    (b"\xff\xff\xff\xff\xff\xff\xff\xff", "band: 2^64 - 1"),
    (b"\x01\x00\x00\x00", "tick: 1"),
    (b"\x00\x00\x00\x01", "lot: 2^24"),
    (b"\x00\x00", "symbol: empty"),
];

/// The other commands: header, block, texts.
const COMMANDS: [(&str, Command<'_>); 5] = [
    ("0800 0b00 8e1c 0000  0807060504030201", Command::Tick(Tick { time: 0x0102_0304_0506_0708 })),
    (
        "0800 0d00 8e1c 0000  0100000000000000  0100 42",
        Command::CancelOrder(CancelOrder { order: 1, trader: "B" }),
    ),
    (
        "1800 0e00 8e1c 0000  0201000000000000 ffffffffffffffff 0a00000000000000  0200 4242",
        Command::ModifyOrder(ModifyOrder { order: 258, price: -1, quantity: 10, trader: "BB" }),
    ),
    ("0400 0f00 8e1c 0000  09000000  0300 776879", Command::Halt(Halt { instrument: 9, reason: "why" })),
    ("0400 1000 8e1c 0000  04030201", Command::Resume(Resume { instrument: 0x0102_0304 })),
];

/// The other events.
const EVENTS: [(&str, Event<'_>); 7] = [
    (
        "1f00 1f00 8e1c 0000  0300000000000000 07000000 01 02 02 0000000000000000 0500000000000000  0100 41 0200 3a29",
        Event::OrderAccepted(OrderAccepted {
            order: 3,
            instrument: 7,
            side: Side::Buy,
            kind: OrderKind::Market,
            time_in_force: TimeInForce::GoodTillCancel,
            price: 0,
            quantity: 5,
            trader: "A",
            reference: ":)",
        }),
    ),
    (
        "1800 2100 8e1c 0000  0300000000000000 feffffffffffffff 0600000000000000",
        Event::OrderModified(OrderModified { order: 3, price: -2, quantity: 6 }),
    ),
    (
        "1100 2200 8e1c 0000  0300000000000000 04 0600000000000000",
        Event::OrderCanceled(OrderCanceled { order: 3, reason: CancelReason::OutsideBand, quantity: 6 }),
    ),
    (
        "0900 2400 8e1c 0000  0100000000000000 02",
        Event::PhaseChanged(PhaseChanged { time: 1, phase: Phase::Open }),
    ),
    (
        "0c00 2500 8e1c 0000  07000000 0000000000000080",
        Event::Settled(Settled { instrument: 7, reference: i64::MIN }),
    ),
    ("0400 2600 8e1c 0000  07000000  0000", Event::Halted(Halted { instrument: 7, reason: "" })),
    ("0400 2700 8e1c 0000  000000ff", Event::Resumed(Resumed { instrument: 0xff00_0000 })),
];

fn bytes(annotated: Annotated) -> Vec<u8> {
    annotated.iter().flat_map(|(bytes, _)| *bytes).copied().collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Whatever stands in the golden bytes, its place is told with it.
fn assert_golden(written: &[u8], annotated: Annotated) {
    let mut at = 0;
    for (bytes, what) in annotated {
        assert_eq!(written.get(at..at + bytes.len()), Some(*bytes), "{what}, at byte {at}");
        at += bytes.len();
    }
    assert_eq!(written.len(), at, "nothing follows");
}

#[test]
fn an_order_a_trade_a_refusal() {
    let order = Command::PlaceOrder(PlaceOrder {
        instrument: 0x0102_0304,
        side: Side::Sell,
        kind: OrderKind::Limit,
        time_in_force: TimeInForce::ImmediateOrCancel,
        price: -2,
        quantity: 0x0102_0304_0506_0708,
        trader: "Ann",
        reference: "größe",
    });
    assert_golden(&order.to_bytes(), PLACE_ORDER);
    assert_eq!(Command::decode(&bytes(PLACE_ORDER)), Ok(order));
    let trade = Event::Trade(Trade {
        trade: 1,
        time: 1_000_000_000_000_000_000,
        instrument: 7,
        price: -100,
        quantity: (1 << 63) - 1,
        taker_side: Side::Buy,
        taker: 259,
        taker_left: 0,
        maker: 258,
        maker_left: 1 << 63,
    });
    assert_golden(&trade.to_bytes(), TRADE);
    assert_eq!(Event::decode(&bytes(TRADE)), Ok(trade));
    let refused = Event::CommandRefused(CommandRefused {
        command: 13,
        refusal: Refusal::ForeignOrder,
        order: 256,
        trader: "\u{1d11e}",
        reference: "",
    });
    assert_golden(&refused.to_bytes(), COMMAND_REFUSED);
    assert_eq!(Event::decode(&bytes(COMMAND_REFUSED)), Ok(refused));
}

#[test]
fn a_setup_of_two_instruments() {
    let gold =
        Instrument { instrument: 1, reference: 10_000, band: 500, tick: 5, lot: 10, symbol: "GOLD".into() };
    let nameless = Instrument {
        instrument: u32::MAX,
        reference: -1,
        band: u64::MAX,
        tick: 1,
        lot: 1 << 24,
        symbol: String::new(),
    };
    let setup =
        ExchangeSetup { time: 5, opens_at: 28_800, closes_at: 63_600, instruments: vec![gold, nameless] };
    assert_golden(&setup.to_bytes(), SETUP);
    assert_eq!(ExchangeSetup::decode(&bytes(SETUP)), Ok(setup));
}

#[test]
fn every_other_message() {
    let mut ids = BTreeSet::from([1, 12, 32, 35]);
    for (golden, command) in COMMANDS {
        assert_eq!(command.to_bytes(), hex(golden), "{command:?}");
        assert_eq!(Command::decode(&hex(golden)), Ok(command));
        ids.insert(command.template().id);
    }
    for (golden, event) in EVENTS {
        assert_eq!(event.to_bytes(), hex(golden), "{event:?}");
        assert_eq!(Event::decode(&hex(golden)), Ok(event));
        ids.insert(event.template().id);
    }
    let setup = ExchangeSetup::layouts()[0].id;
    let all = Command::layouts().into_iter().chain(Event::layouts()).map(|layout| layout.id);
    assert_eq!(ids, all.chain([setup]).collect(), "every message has golden bytes");
}
