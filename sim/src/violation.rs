//! What a run can find wrong, and how to see it again.

use std::fmt;

use crate::disk::Survivors;
use crate::workload::{Script, Settings};

/// The checks of the oracle, each one a promise of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// What was acknowledged is there after the crash that it was promised to survive.
    AcknowledgedIsRecovered,
    /// What is there is a prefix of what was submitted, byte for byte.
    RecoveredIsSubmittedPrefix,
    /// A record that was told void or was cut never returns, also after another crash.
    NothingUndead,
    /// A sequence number is given out again only after its record was told void or was cut; the logical start
    /// never moves back.
    NumbersNeverRestart,
    /// Opening again finds nothing to cut and changes nothing.
    SecondOpenIsClean,
    /// What a crash alone leaves behind is never refused.
    NeverRefusedAfterPlainCrash,
    /// A refusal changes no byte of any file.
    RefusalChangesNothing,
    /// A reader that asked for durable records is given all of them, and none that can be lost.
    ReadersSeeOnlyDurable,
    /// The scan, recovery and the cursor tell the same records and the same verdict.
    EveryReaderAgrees,
    /// An announced watermark covers every commit that it releases.
    WatermarkCoversCommit,
    /// At most one effect of the commit path, one reserve and one removal are outstanding.
    EffectsAreBounded,
    /// A close comes to its end, with everything durable.
    CloseCompletes,
    /// Work that needs no space, or has it, gets done; only a fault of the disk is an excuse.
    WorkCompletes,
    /// What was durable before the newest commit is proven so by a mark or by a later segment.
    DurableIsProven,
    /// Damage to what was proven durable is refused; damage to the rest is cut, and said.
    DamageIsNoticed,
    /// The verdict on a file is the one of the table.
    VerdictIsTheTables,
    /// Nothing panics.
    NeverPanics,
}

impl Check {
    /// Every check.
    pub const ALL: [Self; 17] = [
        Self::AcknowledgedIsRecovered,
        Self::RecoveredIsSubmittedPrefix,
        Self::NothingUndead,
        Self::NumbersNeverRestart,
        Self::SecondOpenIsClean,
        Self::NeverRefusedAfterPlainCrash,
        Self::RefusalChangesNothing,
        Self::ReadersSeeOnlyDurable,
        Self::EveryReaderAgrees,
        Self::WatermarkCoversCommit,
        Self::EffectsAreBounded,
        Self::CloseCompletes,
        Self::WorkCompletes,
        Self::DurableIsProven,
        Self::DamageIsNoticed,
        Self::VerdictIsTheTables,
        Self::NeverPanics,
    ];

    /// The name under which the check is listed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AcknowledgedIsRecovered => "acknowledged_is_recovered",
            Self::RecoveredIsSubmittedPrefix => "recovered_is_submitted_prefix",
            Self::NothingUndead => "nothing_undead",
            Self::NumbersNeverRestart => "numbers_never_restart",
            Self::SecondOpenIsClean => "second_open_is_clean",
            Self::NeverRefusedAfterPlainCrash => "verdict_is_never_refuse_after_plain_crash",
            Self::RefusalChangesNothing => "refusal_changes_nothing",
            Self::ReadersSeeOnlyDurable => "readers_see_only_durable",
            Self::EveryReaderAgrees => "every_reader_agrees",
            Self::WatermarkCoversCommit => "watermark_covers_commit",
            Self::EffectsAreBounded => "effects_are_bounded",
            Self::CloseCompletes => "close_completes",
            Self::WorkCompletes => "work_completes",
            Self::DurableIsProven => "durable_is_proven",
            Self::DamageIsNoticed => "damage_is_noticed",
            Self::VerdictIsTheTables => "verdict_is_the_tables",
            Self::NeverPanics => "never_panics",
        }
    }

    /// This check, broken in this way.
    pub(crate) fn broken(self, detail: impl Into<String>) -> Broken {
        Broken { check: self, detail: detail.into() }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A check that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {detail}")]
pub struct Broken {
    /// Which.
    pub check: Check,
    /// What was found, and what was expected.
    pub detail: String,
}

/// Why a machine goes no further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stop {
    /// A check does not hold.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The journal refused what a disk that lied left of it, which is as it should be.
    #[error("the journal refused what a disk that lied left of it")]
    Refused,
}

/// How the machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The process was killed; the operating system lives on.
    Kill,
    /// The power went, with these survivors.
    Power(Survivors),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill => f.write_str("kill"),
            Self::Power(survivors) => write!(f, "power loss, survivors {survivors}"),
        }
    }
}

/// A crash that the explorer added to the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPoint {
    /// After how many steps of the disk since it was last started.
    pub step: u64,
    /// How.
    pub loss: Loss,
}

/// A check that did not hold, with everything that it takes to see it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The parameters of the run.
    pub settings: Settings,
    /// The script of the run.
    pub script: Script,
    /// The operation in or after which it was found, from 0; the script's length stands for the final close.
    pub operation: usize,
    /// The crashes, the second one inside the recovery from the first. None if it needed no crash
    /// beside those of the script.
    pub crashes: Vec<CrashPoint>,
    /// What did not hold.
    pub broken: Broken,
}

impl Violation {
    /// The command that shows it again.
    #[must_use]
    pub fn replay(&self) -> String {
        let Self { settings, script, .. } = self;
        format!("cargo run --release -p strandline-sim -- --seed {} --script \"{script}\"", settings.seed)
    }
}

impl std::error::Error for Violation {}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "violation of {}", self.broken.check)?;
        writeln!(f, "  {}", self.broken.detail)?;
        let operation = self.script.operations.get(self.operation);
        let operation = operation.map_or("the final close".to_owned(), ToString::to_string);
        writeln!(f, "  in operation {} ({operation})", self.operation)?;
        for (depth, crash) in self.crashes.iter().enumerate() {
            writeln!(f, "  crash {} at step {}: {}", depth + 1, crash.step, crash.loss)?;
        }
        write!(f, "  replay: {}", self.replay())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Script;

    #[test]
    fn every_check_has_its_own_name() {
        let names: std::collections::BTreeSet<&str> = Check::ALL.iter().map(|check| check.name()).collect();
        assert_eq!(names.len(), Check::ALL.len());
    }

    #[test]
    fn a_violation_says_where_and_how_to_see_it_again() {
        let violation = Violation {
            settings: Settings::from_seed(5, true),
            script: "append:3 drain".parse::<Script>().unwrap(),
            operation: 1,
            crashes: vec![CrashPoint { step: 9, loss: Loss::Power(Survivors::Prefix(2)) }],
            broken: Check::NothingUndead.broken("record 4 is back"),
        };
        let text = violation.to_string();
        for part in [
            "violation of nothing_undead",
            "record 4 is back",
            "operation 1 (drain)",
            "crash 1 at step 9: power loss, survivors prefix:2",
            "--seed 5 --script \"append:3 drain\"",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert!(text.ends_with(&violation.replay()));
    }
}
