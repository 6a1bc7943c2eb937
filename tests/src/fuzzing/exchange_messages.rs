//! The messages of the reference exchange, and the exchange itself under any commands.

use arbitrary::{Result, Unstructured};
use strandline::core::{Engine, Events, Seq};
use strandline_sim::exchange::{
    CancelOrder, Command, Event, Exchange, ExchangeSetup, Halt, Instrument, ModifyOrder, OrderKind,
    PlaceOrder, Resume, Side, Tick, TimeInForce,
};

const SECOND: u64 = 1_000_000_000;
/// Enough for days of trading.
const COMMANDS_MAX: usize = 1_000;
const TRADERS: [&str; 4] = ["ann", "bob", "", "zoë\0"];

pub(super) fn run(bytes: &[u8]) {
    messages(bytes);
    let mut input = Unstructured::new(bytes);
    if let Ok(setup) = setup(&mut input) {
        exchange(&setup, &mut input);
    }
}

/// What can be read is written as a message that says the same.
fn messages(bytes: &[u8]) {
    let (command, event) = (Command::decode(bytes), Event::decode(bytes));
    let setup = ExchangeSetup::decode(bytes);
    let read = usize::from(command.is_ok()) + usize::from(event.is_ok()) + usize::from(setup.is_ok());
    assert!(read <= 1, "it is one message, not {read}");
    if let Ok(command) = command {
        assert_eq!(Command::decode(&command.to_bytes()), Ok(command));
    }
    if let Ok(event) = event {
        assert_eq!(Event::decode(&event.to_bytes()), Ok(event));
    }
    if let Ok(setup) = setup {
        let again = setup.to_bytes();
        assert_eq!(Exchange::start(&again).err(), setup.check().err(), "what is read is what is checked");
        assert_eq!(ExchangeSetup::decode(&again), Ok(setup));
    }
}

/// Eight bytes: hours, the clock, and two instruments.
fn setup(input: &mut Unstructured<'_>) -> Result<ExchangeSetup> {
    let [opens, closes, time, numbers, reference, band, tick, lot]: [u8; 8] = input.arbitrary()?;
    let instrument = |instrument, other: u8| Instrument {
        instrument,
        reference: pick(reference.wrapping_add(other), [1_000, 0, -1_000, i64::MAX, i64::MIN, i64::MIN + 1]),
        band: pick(band.wrapping_add(other), [100, u64::MAX, 0, 1, 1 << 63]),
        tick: pick(tick.wrapping_add(other), [1, 5, u32::MAX, 0]),
        lot: pick(lot.wrapping_add(other), [1, 10, u32::MAX, 0]),
        symbol: "ÖL".into(),
    };
    Ok(ExchangeSetup {
        time: pick(time, [0, 1_700_000_000 * SECOND, u64::MAX, u64::MAX - 100_000 * SECOND]),
        opens_at: u32::from(opens) * 338,
        closes_at: 86_400 - u32::from(closes) * 338,
        instruments: vec![instrument(7, 0), instrument(if numbers == 1 { 7 } else { u32::MAX }, numbers)],
    })
}

fn pick<T: Copy, const N: usize>(byte: u8, choices: [T; N]) -> T {
    choices[usize::from(byte) % N]
}

/// Two exchanges say the same about any commands.
fn exchange(setup: &ExchangeSetup, input: &mut Unstructured<'_>) {
    let started = (Exchange::start(&setup.to_bytes()), Exchange::start(&setup.to_bytes()));
    let (Ok(mut one), Ok(mut other)) = started else {
        assert!(setup.check().is_err(), "what is allowed starts");
        return;
    };
    let mut trades = 0;
    let mut time = setup.time;
    for seq in (1..).map(Seq::new).take(COMMANDS_MAX) {
        if input.is_empty() {
            break;
        }
        let Ok(bytes) = next_command(input, setup, seq, &mut time) else { break };
        let (mut said, mut repeated) = (Events::default(), Events::default());
        one.apply(seq, &bytes, &mut said);
        other.apply(seq, &bytes, &mut repeated);
        assert!(said.iter().eq(repeated.iter()), "the same commands give the same events");
        let events: Vec<_> =
            said.iter().map(|event| Event::decode(event).expect("an event is one")).collect();
        answers(&bytes, &events);
        for event in events {
            if let Event::Trade(trade) = event {
                trades += 1;
                assert_eq!(trade.trade, trades, "trades are counted");
            }
        }
    }
}

/// What is refused has no other effect, and what is no command is refused.
fn answers(bytes: &[u8], events: &[Event<'_>]) {
    let refused = events.iter().filter(|event| matches!(event, Event::CommandRefused(_))).count();
    assert!(refused == 0 || events.len() == 1, "{events:?}");
    match (Command::decode(bytes), events.first()) {
        (Err(_), Some(Event::CommandRefused(refused))) => assert_eq!(refused.command, 0),
        (Err(error), _) => panic!("{error}, but {events:?}"),
        (Ok(command), Some(Event::CommandRefused(refused))) => {
            assert_eq!(refused.command, command.template().id);
        }
        (Ok(Command::Tick(_)), _) => {}
        (Ok(command), first) => assert!(first.is_some(), "{command:?} is not answered"),
    }
}

/// Four bytes: which, and with what. Noise and what is spoilt take more.
fn next_command(
    input: &mut Unstructured<'_>,
    setup: &ExchangeSetup,
    seq: Seq,
    time: &mut u64,
) -> Result<Vec<u8>> {
    let [what, a, b, c]: [u8; 4] = input.arbitrary()?;
    let order = u64::from(b) % seq.get();
    let trader = pick(a >> 6, TRADERS);
    let instrument = &setup.instruments[usize::from(a & 1)];
    let away = i64::from(i8::from_le_bytes([b])).saturating_mul(instrument.tick.into());
    let price = instrument.reference.saturating_add(away);
    let quantity = u64::from(c).saturating_mul(instrument.lot.into());
    let number = if what & 0x80 == 0 { instrument.instrument } else { b.into() };
    let command = match what % 16 {
        0..=5 => {
            let kind = if a & 4 == 0 { OrderKind::Limit } else { OrderKind::Market };
            Command::PlaceOrder(PlaceOrder {
                instrument: number,
                side: if a & 2 == 0 { Side::Buy } else { Side::Sell },
                kind,
                time_in_force: pick(a >> 3, [0, 1, 2].map(|at| TimeInForce::ALL[at].2)),
                price: if kind == OrderKind::Market && c != 1 { 0 } else { price },
                quantity: if c == u8::MAX { u64::MAX } else { quantity },
                trader,
                reference: "mine",
            })
        }
        6 => Command::CancelOrder(CancelOrder { order, trader }),
        7 => {
            let price = instrument.reference.saturating_add(i64::from(a >> 4));
            Command::ModifyOrder(ModifyOrder { order, price, quantity, trader })
        }
        8..=11 => {
            let seconds = u64::from(a) * pick(what >> 4, [1, 60, 3_600, 86_400]);
            *time = time.saturating_add(seconds.saturating_mul(SECOND));
            Command::Tick(Tick { time: pick(c, [*time, *time, *time, time.wrapping_sub(1)]) })
        }
        12 => Command::Halt(Halt { instrument: number, reason: trader }),
        13 => Command::Resume(Resume { instrument: number }),
        14 => {
            let mut bytes = Command::CancelOrder(CancelOrder { order, trader }).to_bytes();
            let at = usize::from(a) % bytes.len();
            bytes[at] = c;
            return Ok(bytes);
        }
        _ => return input.bytes(usize::from(a).min(input.len())).map(<[u8]>::to_vec),
    };
    Ok(command.to_bytes())
}
