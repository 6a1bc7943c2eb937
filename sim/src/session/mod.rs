//! A session, crashed at every step, resumed, and held against the one that nothing ever happens to.
//!
//! | invariant | |
//! |---|---|
//! | S1 | an answered command is there, and every command that is there is what was submitted |
//! | S2 | what is recorded of the events is the beginning of what the commands cause, byte for byte |
//! | S3 | resuming makes the log whole: the same events as without a crash, no more and no less |
//! | S4 | the replay check says so, with the digest of the session without a crash |
//! | S5 | the session goes on, and is the same again after another start |

mod machine;
mod story;

pub use story::SessionStory;
use strandline_core::Seq;
use strandline_core::session::{EventDigest, FIRST_EVENT, Side};

use strandline::Disk as _;

use crate::disk::SimDisk;
use crate::driven::Stopped;
use crate::explorer::{
    Application, BrokenPromise, Options, Promises, Statistics, explore_application, guarded,
};
use crate::violation::Broken;
use machine::Machine;
use story::{Limits, Step, command, reference};

/// More turns than any step takes.
const ALL: u32 = 100_000;

/// A command was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandAnswered {
    command: u64,
    /// One past its last event.
    end: u64,
}

impl Application for SessionStory {
    type Promise = CommandAnswered;

    fn run(&self, disk: SimDisk, promises: &mut Promises<CommandAnswered>) {
        let mut machine = Machine::open(&disk, self.limits).expect("an empty disk");
        let mut answered = |answer: strandline_core::session::Answered| {
            promises.promise(CommandAnswered { command: answer.command.get(), end: answer.end.get() });
        };
        for step in &self.steps {
            let done = match step {
                Step::Submit(commands) => (0..*commands).try_for_each(|_| machine.submit()),
                Step::Turns(turns) => machine.run(*turns, &mut answered),
                Step::Settle => machine.run(ALL, &mut answered),
                Step::DiskFull(full) => {
                    let used = disk.list().map_or(0, |entries| entries.iter().map(|entry| entry.len).sum());
                    disk.set_capacity(full.then_some(used));
                    Ok(())
                }
                Step::Restart => Err(Stopped("it is started again".into())),
            };
            if done.is_err() {
                // So does a session that finds no space for its events.
                disk.set_capacity(None);
                machine = Machine::open(&disk, self.limits).expect("a disk that only fills up");
            }
        }
    }

    fn check(&self, disk: SimDisk, promised: &[CommandAnswered]) -> Result<(), String> {
        disk.set_capacity(None);
        let mut machine = open(&disk, self.limits)?;
        let commands = machine.commands();
        let submitted = machine.records(Side::Input).map_err(|Stopped(why)| why)?;
        for (number, found) in (1..).zip(submitted.iter().skip(1)) {
            if *found != command(number) {
                return Err(format!("S1: command {number} is not what was submitted"));
            }
        }
        let whole = reference(commands);
        let recorded = machine.records(Side::Events).map_err(|Stopped(why)| why)?;
        if !whole.starts_with(&recorded) {
            return Err(format!(
                "S2: {} events are recorded, and are not what {commands} commands cause",
                recorded.len()
            ));
        }
        let last = promised.iter().max_by_key(|answer| answer.command);
        if last.is_some_and(|answer| answer.command > commands || answer.end > recorded.len() as u64 + 1) {
            return Err(format!(
                "S1: {last:?} was answered, {commands} commands and {} events are there",
                recorded.len()
            ));
        }
        same(&mut machine, commands)?;
        for _ in 0..2 {
            machine.submit().map_err(|Stopped(why)| format!("S5: {why}"))?;
        }
        same(&mut machine, commands + 2)?;
        drop(machine);
        same(&mut open(&disk, self.limits)?, commands + 2).map_err(|why| format!("S5: {why}"))
    }
}

fn open(disk: &SimDisk, limits: Limits) -> Result<Machine, String> {
    Machine::open(disk, limits).map_err(|Stopped(why)| format!("S3: {why}"))
}

/// Runs the session to its end, and holds it against the one that nothing happened to.
fn same(machine: &mut Machine, commands: u64) -> Result<(), String> {
    machine.run(ALL, |_| {}).map_err(|Stopped(why)| format!("S3: {why}"))?;
    let whole = reference(commands);
    if machine.records(Side::Events).map_err(|Stopped(why)| why)? != whole {
        return Err(format!("S3: the log is not what {commands} commands cause"));
    }
    let mut digest = EventDigest::default();
    for (number, event) in (FIRST_EVENT.get()..).zip(&whole) {
        digest.update(Seq::new(number), event);
    }
    let checked = machine.check().map_err(|Stopped(why)| format!("S4: {why}"))?;
    if (checked.commands, checked.events, checked.sha256) == (commands, whole.len() as u64, digest.finish()) {
        Ok(())
    } else {
        Err(format!("S4: {checked:?} of {commands} commands and {} events", whole.len()))
    }
}

/// Explores the session of one seed.
///
/// # Errors
/// The first invariant that a crash breaks.
pub fn explore_session(story: &SessionStory, options: Options) -> Result<Statistics, BrokenPromise> {
    // A check is long here, and as many crashes inside it would be most of the work.
    let options = Options { deeper_every: options.deeper_every * 64, ..options };
    let explored = guarded(|| Ok(explore_application(story, Limits::SECTOR_BYTES, options)));
    explored.unwrap_or_else(|Broken { detail, .. }| {
        Err(BrokenPromise { promised: 0, crashes: Vec::new(), detail })
    })
}
