//! Who trades with whom at which price, and who is refused.

use proptest::prelude::*;
use strandline_core::{Engine, Events, Seq};
use strandline_sim::exchange::{
    CancelOrder, Command, Event, Exchange, ExchangeSetup, ModifyOrder, OrderKind, PlaceOrder, SetupError,
    Side, Tick, TimeInForce,
};

use crate::floor::{Floor, HOUR, SECOND, buy, limit, sell, setup};
use crate::model::Model;

#[test]
fn the_best_price_goes_first_and_then_the_earliest() {
    let mut floor = Floor::open();
    let (dear, first, second) =
        (floor.rests(sell(5, 102)), floor.rests(sell(5, 101)), floor.rests(sell(5, 101)));
    let said = floor.place(buy(12, 103));
    assert_eq!(
        said,
        [
            "5 accepted",
            &format!("5 takes 5 of {first} at 101, left 7 and 0"),
            &format!("5 takes 5 of {second} at 101, left 2 and 0"),
            &format!("5 takes 2 of {dear} at 102, left 0 and 3"),
        ]
    );
    let (low, high) = (floor.rests(buy(1, 98)), floor.rests(buy(1, 99)));
    let said = floor.place(sell(3, 98));
    assert_eq!(
        said,
        [
            "8 accepted",
            &format!("8 takes 1 of {high} at 99, left 2 and 0"),
            &format!("8 takes 1 of {low} at 98, left 1 and 0"),
        ]
    );
    // What was left of it rests, and is the best.
    assert_eq!(floor.place(buy(1, 98)), ["9 accepted", "9 takes 1 of 8 at 98, left 0 and 0"]);
}

#[test]
fn what_is_not_to_rest_is_canceled() {
    let mut floor = Floor::open();
    floor.rests(sell(5, 104));
    let market = PlaceOrder { kind: OrderKind::Market, price: 0, ..buy(7, 0) };
    let said = floor.place(market);
    assert_eq!(said, ["3 accepted", "3 takes 5 of 2 at 104, left 2 and 0", "3 canceled 2: Unfilled"]);
    floor.rests(sell(5, 104));
    let at_once = PlaceOrder { time_in_force: TimeInForce::ImmediateOrCancel, ..buy(4, 103) };
    assert_eq!(floor.place(at_once), ["5 accepted", "5 canceled 4: Unfilled"]);
    let at_once = PlaceOrder { price: 104, ..at_once };
    assert_eq!(floor.place(at_once), ["6 accepted", "6 takes 4 of 4 at 104, left 0 and 1"]);
}

#[test]
fn less_keeps_its_place_and_everything_else_loses_it() {
    for (quantity, price, keeps) in [(2, 101, true), (3, 101, true), (4, 101, false), (3, 102, false)] {
        let mut floor = Floor::open();
        let (first, second) = (floor.rests(sell(3, 101)), floor.rests(sell(3, 101)));
        assert_eq!(floor.modify(first, quantity, price), [format!("{first} is {quantity} at {price}")]);
        let said = floor.place(buy(1, 101));
        let maker = if keeps { format!("of {first}") } else { format!("of {second}") };
        assert!(said[1].contains(&maker), "{quantity} at {price}: {said:?}");
    }
    let mut floor = Floor::open();
    let (ask, bid) = (floor.rests(sell(3, 105)), floor.rests(buy(5, 100)));
    let said = floor.modify(bid, 4, 105);
    assert_eq!(said, [format!("{bid} is 4 at 105"), format!("{bid} takes 3 of {ask} at 105, left 1 and 0")]);
    assert_eq!(floor.cancel(bid), [format!("{bid} canceled 1: Requested")]);
}

#[test]
fn an_order_is_canceled_once_and_by_its_trader() {
    let mut floor = Floor::open();
    let order = floor.rests(buy(5, 100));
    let theirs = Command::CancelOrder(CancelOrder { order, trader: "bob" });
    assert_eq!(floor.tell(theirs), ["refused: ForeignOrder"]);
    let theirs = Command::ModifyOrder(ModifyOrder { order, price: 101, quantity: 5, trader: "bob" });
    assert_eq!(floor.tell(theirs), ["refused: ForeignOrder"]);
    assert_eq!(floor.cancel(order), [format!("{order} canceled 5: Requested")]);
    assert_eq!(floor.cancel(order), ["refused: UnknownOrder"]);
    assert_eq!(floor.modify(order, 1, 100), ["refused: UnknownOrder"]);
    // One that traded is gone too.
    let order = floor.rests(buy(5, 100));
    floor.place(sell(5, 100));
    assert_eq!(floor.cancel(order), ["refused: UnknownOrder"]);
}

#[test]
fn an_order_that_breaks_a_rule_is_refused_and_changes_nothing() {
    let mut floor = Floor::open();
    let second = |quantity, price| PlaceOrder { instrument: 2, ..buy(quantity, price) };
    for (order, refusal) in [
        (PlaceOrder { instrument: 3, ..buy(1, 100) }, "UnknownInstrument"),
        (buy(1, 89), "PriceOutsideBand"),
        (sell(1, 111), "PriceOutsideBand"),
        (buy(1, i64::MIN), "PriceOutsideBand"),
        (buy(1, i64::MAX), "PriceOutsideBand"),
        (second(10, 1_001), "PriceOffTick"),
        (second(15, 1_000), "QuantityOffLot"),
        (second(0, 1_000), "QuantityOffLot"),
        (PlaceOrder { kind: OrderKind::Market, ..buy(1, 100) }, "PriceOfMarketOrder"),
    ] {
        assert_eq!(floor.place(order), [format!("refused: {refusal}")], "{order:?}");
    }
    floor.rests(buy(1, 90));
    let order = floor.rests(sell(1, 110));
    for (quantity, price, refusal) in [(1, 111, "PriceOutsideBand"), (0, 110, "QuantityOffLot")] {
        assert_eq!(floor.modify(order, quantity, price), [format!("refused: {refusal}")]);
    }
    assert_eq!(floor.cancel(order), [format!("{order} canceled 1: Requested")]);
    assert_eq!(floor.raw(b"no command"), ["refused: Unreadable"]);
    assert_eq!(floor.tick(HOUR), ["refused: TimeBackwards"]);
}

#[test]
fn the_market_opens_and_closes_with_the_clock() {
    let mut floor = Floor::closed();
    assert_eq!(floor.place(buy(1, 100)), ["refused: MarketClosed"]);
    assert_eq!(floor.tick(9 * HOUR - 1), [""; 0]);
    assert_eq!(floor.tick(9 * HOUR), ["open at 9h"]);
    let day = floor.rests(buy(3, 95));
    let lasting = |order| PlaceOrder { time_in_force: TimeInForce::GoodTillCancel, ..order };
    let (low, high) = (floor.rests(lasting(buy(2, 91))), floor.rests(lasting(sell(2, 110))));
    let ask = floor.rests(sell(1, 108));
    floor.place(buy(1, 108));
    assert_eq!(floor.tick(17 * HOUR - 1), [""; 0]);
    let said = floor.tick(17 * HOUR);
    let gone = [
        format!("{day} canceled 3: Expired"),
        "1 settled at 108".into(),
        format!("{low} canceled 2: OutsideBand"),
        "2 settled at 1000".into(),
        "closed at 17h".into(),
    ];
    assert_eq!(said, gone, "{ask}");
    for said in [floor.place(buy(1, 100)), floor.modify(high, 1, 110)] {
        assert_eq!(said, ["refused: MarketClosed"]);
    }
    assert_eq!(floor.tick(33 * HOUR), ["open at 33h"]);
    // The band is around yesterday's price, and what was to last has lasted.
    assert_eq!(floor.place(buy(1, 97)), ["refused: PriceOutsideBand"]);
    let said = floor.place(buy(1, 118));
    assert!(said[1].contains(&format!("of {high} at 110")), "{said:?}");
    // Over nights that no tick fell into, it closes and opens at once.
    let said = floor.tick((24 * 5 + 10) * HOUR);
    assert_eq!(said, ["1 settled at 110", "2 settled at 1000", "closed at 130h", "open at 130h"]);
    assert_eq!(floor.cancel(high), [format!("{high} canceled 1: Requested")]);
    assert_eq!(floor.tick(u64::MAX).last().unwrap(), "closed at 5124095h");
}

#[test]
fn while_an_instrument_is_halted_its_orders_can_only_be_canceled() {
    let mut floor = Floor::open();
    let (kept, canceled) = (floor.rests(buy(2, 100)), floor.rests(buy(2, 100)));
    assert_eq!(floor.halt(1), ["1 halted: news"]);
    assert_eq!(floor.halt(1), ["refused: InstrumentHalted"]);
    for said in [floor.place(sell(1, 100)), floor.modify(kept, 1, 100)] {
        assert_eq!(said, ["refused: InstrumentHalted"]);
    }
    assert_eq!(floor.cancel(canceled), [format!("{canceled} canceled 2: Requested")]);
    let second = PlaceOrder { instrument: 2, ..buy(10, 1_000) };
    floor.rests(second);
    assert_eq!(floor.resume(2), ["refused: NotHalted"]);
    assert_eq!(floor.halt(3), ["refused: UnknownInstrument"]);
    assert_eq!(floor.resume(1), ["1 resumed"]);
    let said = floor.place(sell(1, 100));
    assert!(said[1].contains(&format!("of {kept} at 100")), "{said:?}");
}

#[test]
fn a_setup_that_makes_no_sense_begins_no_exchange() {
    let begins = |change: fn(&mut ExchangeSetup)| {
        let mut setup = setup();
        change(&mut setup);
        Exchange::start(&setup.to_bytes()).err()
    };
    assert_eq!(begins(|_| {}), None);
    assert_eq!(begins(|setup| setup.closes_at = 86_400), None);
    let hours = |opens_at, closes_at| Some(SetupError::Hours { opens_at, closes_at });
    assert_eq!(begins(|setup| setup.closes_at = 86_401), hours(32_400, 86_401));
    assert_eq!(begins(|setup| setup.closes_at = 32_400), hours(32_400, 32_400));
    assert_eq!(begins(|setup| setup.instruments[1].instrument = 1), Some(SetupError::Twice(1)));
    assert_eq!(begins(|setup| setup.instruments[0].tick = 0), Some(SetupError::Zero(1)));
    assert_eq!(begins(|setup| setup.instruments[1].lot = 0), Some(SetupError::Zero(2)));
    assert!(matches!(Exchange::start(b"setup").err(), Some(SetupError::Sbe(_))));
}

#[test]
fn a_band_that_no_price_can_leave_is_none() {
    let mut wide = setup();
    wide.instruments[0].band = u64::MAX;
    let mut engine = Exchange::start(&wide.to_bytes()).unwrap();
    let mut said = Vec::new();
    let orders =
        [buy(1, i64::MIN), sell(1, i64::MAX), buy(1, i64::MAX), sell(1, i64::MIN), sell(1, i64::MIN)];
    let commands = [Command::Tick(Tick { time: 9 * HOUR + SECOND })].into_iter();
    for (seq, command) in (1..).zip(commands.chain(orders.map(Command::PlaceOrder))) {
        let mut events = Events::default();
        engine.apply(Seq::new(seq), &command.to_bytes(), &mut events);
        said.extend(events.iter().skip(1).map(|event| crate::floor::words(&Event::decode(event).unwrap())));
    }
    let trades = [
        format!("4 takes 1 of 3 at {}, left 0 and 0", i64::MAX),
        format!("5 takes 1 of 2 at {}, left 0 and 0", i64::MIN),
    ];
    assert_eq!(said, trades);
}

prop_compose! {
    fn an_order()(instrument in 1..=2_u32, is_buy: bool, is_market in prop::bool::weighted(0.1), lasts in 0..3_u8,
                  away in -11..=11_i64, lots in 0..=5_u64, trader in 0..2_usize) -> PlaceOrder<'static> {
        let side = if is_buy { Side::Buy } else { Side::Sell };
        let (price, quantity) = if instrument == 1 { (100 + away, lots) } else { (1_000 + 25 * away, 10 * lots) };
        let kind = if is_market { OrderKind::Market } else { OrderKind::Limit };
        PlaceOrder {
            instrument,
            kind,
            time_in_force: [TimeInForce::Day, TimeInForce::GoodTillCancel, TimeInForce::ImmediateOrCancel][usize::from(lasts)],
            price: if is_market { 0 } else { price },
            trader: ["ann", "bob"][trader],
            ..limit(side, quantity, 0)
        }
    }
}

fn a_command() -> impl Strategy<Value = Command<'static>> {
    let order = 1..60_u64;
    let trader = prop::sample::select(vec!["ann", "bob"]);
    prop_oneof![
        10 => an_order().prop_map(Command::PlaceOrder),
        2 => (order.clone(), trader.clone())
            .prop_map(|(order, trader)| Command::CancelOrder(CancelOrder { order, trader })),
        4 => (order, trader, an_order()).prop_map(|(order, trader, PlaceOrder { price, quantity, .. })| {
            Command::ModifyOrder(ModifyOrder { order, price, quantity, trader })
        }),
        1 => (0..60_u64).prop_map(|hours| Command::Tick(Tick { time: hours * HOUR })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_a_simple_model_does(commands in prop::collection::vec(a_command(), 1..80)) {
        let mut floor = Floor::open();
        let mut model = Model::new(&setup());
        model.tell(1, Command::Tick(Tick { time: 9 * HOUR }));
        for (seq, command) in (2..).zip(commands) {
            prop_assert_eq!(floor.tell(command), model.tell(seq, command), "{:?}", command);
        }
    }
}
