//! Scripts: what the simulated application and its machine do, one operation after the other.
//!
//! A script has a text form, so that a failing one can be replayed and made shorter:
//! `append:0,17 drain tick:60 reopen`.

use std::fmt;
use std::str::FromStr;

use crate::disk::Survivors;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Append a record of each of these payload sizes; nothing is written yet.
    Append(Vec<u32>),
    /// Perform effects until nothing is left to do.
    Drain,
    /// Perform one outstanding effect.
    Step,
    /// Let this many milliseconds pass.
    Tick(u32),
    /// Ask for a sync.
    Sync,
    /// Trim so many records from the logical start on.
    Trim(u32),
    /// Move the wall clock by this many milliseconds.
    Clock(i32),
    /// Read everything with a cursor, as a subscriber would.
    Read,
    /// Close and open again.
    Reopen,
    /// Kill the process and open again.
    Kill,
    /// Lose power with these survivors, and open again.
    PowerLoss(Survivors),
    /// Leave this much space, in bytes.
    Space(u32),
    /// Give back all space.
    SpaceBack,
    /// The next sync of a file fails, with these survivors.
    FailSync(Survivors),
    /// The next sync of the directory fails, with these survivors.
    FailDirectorySync(Survivors),
    /// The next write fails with EIO.
    FailWrite,
    /// The next removal fails with EIO.
    FailRemove,
    /// The next write is interrupted, and the one after it comes out short.
    Short(u32),
    /// The next read fails with EIO.
    FailRead,
    /// The next write is reported as done and never reaches the platter.
    LoseWrite,
    /// The next write is reported as done and lands on the platter so many sectors behind its place.
    MisdirectWrite(u32),
    /// Flip single bits, drawn from this seed, each in a copy of the disk, and open the copies.
    Rot(u64),
    /// Put a whole mark behind the last frame of a copy of the disk, and open the copy.
    Forge(Forgery),
}

/// What is wrong with a forged mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// Nothing.
    Nothing,
    /// The salt is another segment's.
    Salt,
    /// It was written for another place.
    Offset,
    /// It states more records than there are.
    Ahead,
}

impl Forgery {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Salt, Self::Offset, Self::Ahead];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Salt => "salt",
            Self::Offset => "offset",
            Self::Ahead => "ahead",
        }
    }
}

/// Operations in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The operations.
    pub operations: Vec<Operation>,
}

/// Text that is no operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no operation of a script: see the text forms in the documentation of Operation")]
pub struct UnknownOperation(pub String);

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append(sizes) => {
                let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
                write!(f, "append:{}", sizes.join(","))
            }
            Self::Drain => f.write_str("drain"),
            Self::Step => f.write_str("step"),
            Self::Tick(ms) => write!(f, "tick:{ms}"),
            Self::Sync => f.write_str("sync"),
            Self::Trim(records) => write!(f, "trim:{records}"),
            Self::Clock(ms) => write!(f, "clock:{ms}"),
            Self::Read => f.write_str("read"),
            Self::Reopen => f.write_str("reopen"),
            Self::Kill => f.write_str("kill"),
            Self::PowerLoss(survivors) => write!(f, "power-loss:{survivors}"),
            Self::Space(bytes) => write!(f, "space:{bytes}"),
            Self::SpaceBack => f.write_str("space-back"),
            Self::FailSync(survivors) => write!(f, "fail-sync:{survivors}"),
            Self::FailDirectorySync(survivors) => write!(f, "fail-directory-sync:{survivors}"),
            Self::FailWrite => f.write_str("fail-write"),
            Self::FailRemove => f.write_str("fail-remove"),
            Self::Short(bytes) => write!(f, "short:{bytes}"),
            Self::FailRead => f.write_str("fail-read"),
            Self::LoseWrite => f.write_str("lose-write"),
            Self::MisdirectWrite(sectors) => write!(f, "misdirect-write:{sectors}"),
            Self::Rot(seed) => write!(f, "rot:{seed}"),
            Self::Forge(forgery) => write!(f, "forge:{}", forgery.name()),
        }
    }
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(text: &str) -> Result<Self, UnknownOperation> {
        let (verb, argument) = text.split_once(':').unwrap_or((text, ""));
        let parsed = match (verb, argument) {
            ("drain", "") => Some(Self::Drain),
            ("step", "") => Some(Self::Step),
            ("sync", "") => Some(Self::Sync),
            ("read", "") => Some(Self::Read),
            ("reopen", "") => Some(Self::Reopen),
            ("kill", "") => Some(Self::Kill),
            ("space-back", "") => Some(Self::SpaceBack),
            ("fail-write", "") => Some(Self::FailWrite),
            ("fail-remove", "") => Some(Self::FailRemove),
            ("fail-read", "") => Some(Self::FailRead),
            ("lose-write", "") => Some(Self::LoseWrite),
            ("append", sizes) => {
                sizes.split(',').map(str::parse).collect::<Result<_, _>>().ok().map(Self::Append)
            }
            ("tick", ms) => ms.parse().ok().map(Self::Tick),
            ("trim", records) => records.parse().ok().map(Self::Trim),
            ("clock", ms) => ms.parse().ok().map(Self::Clock),
            ("space", bytes) => bytes.parse().ok().map(Self::Space),
            ("misdirect-write", sectors) => sectors.parse().ok().map(Self::MisdirectWrite),
            ("rot", seed) => seed.parse().ok().map(Self::Rot),
            ("forge", what) => Forgery::ALL.into_iter().find(|f| f.name() == what).map(Self::Forge),
            ("short", bytes) => bytes.parse().ok().map(Self::Short),
            ("power-loss", survivors) => survivors.parse().ok().map(Self::PowerLoss),
            ("fail-sync", survivors) => survivors.parse().ok().map(Self::FailSync),
            ("fail-directory-sync", survivors) => survivors.parse().ok().map(Self::FailDirectorySync),
            _ => None,
        };
        parsed.ok_or_else(|| UnknownOperation(text.to_owned()))
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<String> = self.operations.iter().map(Operation::to_string).collect();
        f.write_str(&operations.join(" "))
    }
}

impl FromStr for Script {
    type Err = UnknownOperation;

    fn from_str(text: &str) -> Result<Self, UnknownOperation> {
        let operations = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: &str = "append:0,17 append:3 drain step tick:60 sync trim:3 clock:-5 read reopen kill power-loss:all-but:2 \
        space:128 space-back fail-sync:prefix:1 fail-directory-sync:none fail-write fail-remove short:3 \
        fail-read lose-write misdirect-write:2 rot:7 forge:nothing forge:salt forge:offset forge:ahead";

    #[test]
    fn the_text_form_names_the_same_script() {
        let script: Script = EVERY.parse().unwrap();
        assert_eq!(script.operations.len(), 27);
        assert_eq!(script.to_string(), EVERY.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(script.to_string().parse(), Ok(script));
        assert_eq!("".parse(), Ok(Script::default()));
    }

    #[test]
    fn other_text_is_refused_by_name() {
        for bad in ["drian", "append:", "append:x", "tick:-1", "drain:1", "power-loss:", "space"] {
            assert_eq!(bad.parse::<Script>(), Err(UnknownOperation(bad.to_owned())));
        }
    }
}
