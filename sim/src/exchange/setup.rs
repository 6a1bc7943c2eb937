//! What the exchange is configured by. It is the first record of a session, so that what is configured later changes no replay.

use std::collections::BTreeSet;

use bytes::BufMut;
use strandline_core::sbe::{SbeError, Template};

use super::codec::{MessageLayout, SCHEMA, put_text};

/// Seconds of a day.
pub const DAY_SECONDS: u32 = 86_400;

/// The exchange's instruments and hours.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ExchangeSetup {
    /// The clock at the beginning: nanoseconds since 1970, UTC.
    pub time: u64,
    /// Seconds of the day (UTC) at which the market opens, every day.
    pub opens_at: u32,
    /// Seconds of the day (UTC) at which it closes.
    pub closes_at: u32,
    /// What is traded.
    pub instruments: Vec<Instrument>,
}

/// Something that is traded, and the rules of its orders.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Instrument {
    /// Its number.
    pub instrument: u32,
    /// The price that the first day's band is around.
    pub reference: i64,
    /// How far a price may be from the reference.
    pub band: u64,
    /// Prices are multiples of it.
    pub tick: u32,
    /// Quantities are multiples of it.
    pub lot: u32,
    /// Its name.
    pub symbol: String,
}

/// Why an exchange cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// It is no setup of this schema.
    #[error("the setup cannot be read: {0}")]
    Sbe(#[from] SbeError),
    /// There are no hours like these.
    #[error(
        "the market opens at second {opens_at} and closes at {closes_at} of a day: open it earlier, and close it by {DAY_SECONDS}"
    )]
    Hours {
        /// When it opens.
        opens_at: u32,
        /// When it closes.
        closes_at: u32,
    },
    /// Two instruments have one number.
    #[error("there are two instruments {0}: give each a number of its own")]
    Twice(u32),
    /// A tick or lot is zero.
    #[error("instrument {0} has a tick or lot of zero: use 1 to allow every price or quantity")]
    Zero(u32),
}

const SETUP: Template = Template { id: 1, block_len: 16 };
const INSTRUMENT_LEN: u16 = 28;

impl ExchangeSetup {
    /// The setup's bytes.
    ///
    /// # Panics
    /// If there are more than 65,535 instruments, or a symbol is longer than that: programmer errors.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        SCHEMA.put_header(SETUP, &mut out);
        out.put_u64_le(self.time);
        out.put_u32_le(self.opens_at);
        out.put_u32_le(self.closes_at);
        out.put_u16_le(INSTRUMENT_LEN);
        let count = u16::try_from(self.instruments.len());
        assert!(count.is_ok(), "a setup has at most 65,535 instruments");
        out.put_u16_le(count.unwrap_or_default());
        for one in &self.instruments {
            out.put_u32_le(one.instrument);
            out.put_i64_le(one.reference);
            out.put_u64_le(one.band);
            out.put_u32_le(one.tick);
            out.put_u32_le(one.lot);
            put_text(&one.symbol, &mut out);
        }
        out
    }

    /// Reads a setup, whatever it says.
    ///
    /// # Errors
    /// [`SbeError`] if it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, SbeError> {
        let (_, mut block, mut rest) = SCHEMA.open(bytes, &[SETUP])?;
        let (time, opens_at) = (block.u64("time")?, block.u32("opens_at")?);
        let closes_at = block.u32("closes_at")?;
        let (len, count) = (rest.u16("instruments")?, rest.u16("instruments")?);
        // The length of no entry at all says nothing.
        if count > 0 && len < INSTRUMENT_LEN {
            return Err(SbeError::Short("instruments"));
        }
        let mut instruments = Vec::new();
        for _ in 0..count {
            let mut block = strandline_core::sbe::Fields::new(rest.take(len.into(), "instruments")?);
            instruments.push(Instrument {
                instrument: block.u32("instrument")?,
                reference: block.i64("reference")?,
                band: block.u64("band")?,
                tick: block.u32("tick")?,
                lot: block.u32("lot")?,
                symbol: rest.text("symbol")?.to_string(),
            });
        }
        Ok(Self { time, opens_at, closes_at, instruments })
    }

    /// Whether an exchange can begin with it.
    ///
    /// # Errors
    /// [`SetupError`] says what is wrong.
    pub fn check(&self) -> Result<(), SetupError> {
        let (opens_at, closes_at) = (self.opens_at, self.closes_at);
        if opens_at >= closes_at || closes_at > DAY_SECONDS {
            return Err(SetupError::Hours { opens_at, closes_at });
        }
        let mut seen = BTreeSet::new();
        for one in &self.instruments {
            if !seen.insert(one.instrument) {
                return Err(SetupError::Twice(one.instrument));
            }
            if one.tick == 0 || one.lot == 0 {
                return Err(SetupError::Zero(one.instrument));
            }
        }
        Ok(())
    }

    /// What a test holds against the schema: the setup, and the group of instruments in it.
    #[must_use]
    pub fn layouts() -> [MessageLayout; 2] {
        let setup = MessageLayout::new("Setup", SETUP.id).field::<u64>("time");
        let instruments = MessageLayout::new("instruments", 4).field::<u32>("instrument");
        [
            setup.field::<u32>("opens_at").field::<u32>("closes_at"),
            instruments
                .field::<i64>("reference")
                .field::<u64>("band")
                .field::<u32>("tick")
                .field::<u32>("lot")
                .text("symbol"),
        ]
    }
}
