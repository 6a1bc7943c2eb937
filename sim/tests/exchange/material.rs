//! What messages are made of: any numbers, the ends of their ranges more often than not, and any texts.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::sample::select;
use strandline_sim::exchange::{
    CancelOrder, CancelReason, Command, CommandRefused, Event, ExchangeSetup, Halt, Halted, Instrument,
    ModifyOrder, OrderAccepted, OrderCanceled, OrderKind, OrderModified, Phase, PhaseChanged, PlaceOrder,
    Refusal, Resume, Resumed, Settled, Side, Tick, TimeInForce, Trade,
};

/// How many commands and events there are.
pub(crate) const COMMANDS: usize = 6;
pub(crate) const EVENTS: usize = 9;

/// Enough for any message.
#[derive(Clone, Debug)]
pub(crate) struct Material {
    /// Which message it becomes, of those that there are.
    pub(crate) kind: usize,
    /// Which value each of its enums has.
    pub(crate) codes: usize,
    pub(crate) unsigned: [u64; 6],
    pub(crate) small: [u32; 3],
    pub(crate) price: i64,
    pub(crate) texts: [String; 2],
}

pub(crate) fn material() -> impl Strategy<Value = Material> {
    let texts = [text(), text()];
    (any::<[usize; 2]>(), [(); 6].map(|()| u64s()), [(); 3].map(|()| u32s()), i64s(), texts).prop_map(
        |([kind, codes], unsigned, small, price, texts)| Material {
            kind,
            codes,
            unsigned,
            small,
            price,
            texts,
        },
    )
}

pub(crate) fn setup() -> impl Strategy<Value = ExchangeSetup> {
    let instrument = (u32s(), i64s(), u64s(), u32s(), u32s(), text()).prop_map(
        |(instrument, reference, band, tick, lot, symbol)| Instrument {
            instrument,
            reference,
            band,
            tick,
            lot,
            symbol,
        },
    );
    (u64s(), u32s(), u32s(), vec(instrument, 0..5)).prop_map(|(time, opens_at, closes_at, instruments)| {
        ExchangeSetup { time, opens_at, closes_at, instruments }
    })
}

fn u64s() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), select(vec![0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1])]
}

fn u32s() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), select(vec![0, 1, u32::MAX, u32::MAX - 1, 1 << 31])]
}

fn i64s() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), select(vec![0, 1, -1, i64::MAX, i64::MIN, i64::MIN + 1])]
}

/// Texts as people write them, as they seldom do, and as long as a message takes.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let special =
        ["", "\0", "a\0b", "e\u{301}\u{323}", "\u{1d11e}\u{10ffff}", "\u{feff}\u{202e}שלום", "\u{fffd}"];
    prop_oneof![
        6 => vec(any::<char>(), 0..40).prop_map(String::from_iter),
        3 => select(special.map(str::to_owned).to_vec()),
        1 => select(vec!["x", "ß", "\u{800}", "\u{1d11e}"]).prop_map(|one| {
            let many = one.repeat(LONGEST / one.len());
            "x".repeat(LONGEST - many.len()) + &many
        }),
    ]
}

/// Bytes of the longest text.
pub(crate) const LONGEST: usize = 65_535;

fn pick<T: Copy>(of: &[(&str, u8, T)], code: usize) -> T {
    of[code % of.len()].2
}

pub(crate) fn command(of: &Material) -> Command<'_> {
    let Material { kind, codes, unsigned: [a, b, ..], small: [instrument, ..], price, ref texts } = *of;
    let [trader, reference] = [&*texts[0], &*texts[1]];
    match kind % COMMANDS {
        0 => Command::Tick(Tick { time: a }),
        1 => Command::PlaceOrder(PlaceOrder {
            instrument,
            side: pick(Side::ALL, codes),
            kind: pick(OrderKind::ALL, codes / 2),
            time_in_force: pick(TimeInForce::ALL, codes / 4),
            price,
            quantity: a,
            trader,
            reference,
        }),
        2 => Command::CancelOrder(CancelOrder { order: a, trader }),
        3 => Command::ModifyOrder(ModifyOrder { order: a, price, quantity: b, trader }),
        4 => Command::Halt(Halt { instrument, reason: trader }),
        _ => Command::Resume(Resume { instrument }),
    }
}

pub(crate) fn event(of: &Material) -> Event<'_> {
    let Material {
        kind,
        codes,
        unsigned: [a, b, c, d, e, f],
        small: [instrument, other, _],
        price,
        ref texts,
    } = *of;
    let [trader, reference] = [&*texts[0], &*texts[1]];
    match kind % EVENTS {
        0 => Event::OrderAccepted(OrderAccepted {
            order: b,
            instrument,
            side: pick(Side::ALL, codes),
            kind: pick(OrderKind::ALL, codes / 2),
            time_in_force: pick(TimeInForce::ALL, codes / 4),
            price,
            quantity: a,
            trader,
            reference,
        }),
        1 => Event::Trade(Trade {
            trade: a,
            time: b,
            instrument,
            price,
            quantity: c,
            taker_side: pick(Side::ALL, codes),
            taker: d,
            taker_left: e,
            maker: f,
            maker_left: a ^ b,
        }),
        2 => Event::OrderModified(OrderModified { order: a, price, quantity: b }),
        3 => Event::OrderCanceled(OrderCanceled {
            order: a,
            reason: pick(CancelReason::ALL, codes),
            quantity: b,
        }),
        4 => Event::CommandRefused(CommandRefused {
            command: u16::try_from(other >> 16).unwrap(),
            refusal: pick(Refusal::ALL, codes),
            order: a,
            trader,
            reference,
        }),
        5 => Event::PhaseChanged(PhaseChanged { time: a, phase: pick(Phase::ALL, codes) }),
        6 => Event::Settled(Settled { instrument, reference: price }),
        7 => Event::Halted(Halted { instrument, reason: trader }),
        _ => Event::Resumed(Resumed { instrument }),
    }
}
