//! What the clock and operations do: a day and a half of trading.

use super::super::command::{Command, Halt, Resume, Tick};
use super::super::setup::{ExchangeSetup, Instrument};

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
/// Monday, 5 January 2026, at midnight.
const MIDNIGHT: u64 = 1_767_571_200 * SECOND;
/// The course: until which hour behind midnight the clock has come, after how many thousandths of its ticks. Most ticks are
/// in trading hours; two of the trading days' ends, and one beginning, are within it.
const HOURS: [(u64, u64); 5] = [(0, 8), (20, 9), (600, 17), (630, 24 + 9), (1_000, 24 + 18)];
/// The instrument that is halted, and the thousandths of the ticks between which it is.
const HALTED: (u32, u64, u64) = (2, 300, 360);

/// The setup of the exchange that the workload trades on.
pub(super) fn setup() -> ExchangeSetup {
    let instrument = |instrument, symbol: &str, reference, tick, lot| Instrument {
        instrument,
        reference,
        band: u64::try_from(reference / 10).unwrap_or_default(),
        tick,
        lot,
        symbol: symbol.to_string(),
    };
    ExchangeSetup {
        time: MIDNIGHT + HOURS[0].1 * HOUR,
        opens_at: 9 * 3_600,
        closes_at: 17 * 3_600,
        instruments: vec![
            instrument(1, "ÆTHER", 10_000, 5, 1),
            instrument(2, "BRASS", 2_500, 1, 10),
            instrument(3, "銅", 400_000, 50, 2),
        ],
    }
}

/// So many commands of the clock, a halt and its end among them.
pub(super) fn commands(count: u64) -> Vec<Command<'static>> {
    let ticks = count.saturating_sub(2);
    let at = |thousandths: u64| ticks * thousandths / 1_000;
    let (instrument, from, until) = HALTED;
    let mut commands = Vec::new();
    for n in 0..ticks {
        commands.push(Command::Tick(Tick { time: time(n + 1, ticks) }));
        if n == at(from) {
            commands.push(Command::Halt(Halt { instrument, reason: "order imbalance – 注文の偏り" }));
        }
        if n == at(until) {
            commands.push(Command::Resume(Resume { instrument }));
        }
    }
    commands
}

/// The time of the `n`th tick of `ticks`.
fn time(n: u64, ticks: u64) -> u64 {
    let at = n * 1_000_000 / ticks;
    let mut before = HOURS[0];
    for after in HOURS {
        let (from, until) = (before.0 * 1_000, after.0 * 1_000);
        if at <= until && until > from {
            let hours = (after.1 - before.1) * HOUR;
            return MIDNIGHT + before.1 * HOUR + hours / (until - from) * (at - from);
        }
        before = after;
    }
    MIDNIGHT + before.1 * HOUR
}
