//! Making a failing script shorter.

use super::{Options, explore};
use crate::trace::Trace;
use crate::violation::Violation;
use crate::workload::{Operation, Script};

/// How often a shorter script is tried at most.
const TRIES_MAX: usize = 400;

/// The shortest script that was found to break the same check, by leaving out operations, and records
/// of appends, for as long as that helps.
#[must_use]
pub fn shrink(violation: Violation, options: Options) -> Violation {
    let mut shrinking = Shrinking { best: violation, options, tries: 0 };
    // What comes behind the operation that failed plays no part.
    let failed_in = shrinking.best.operation;
    let mut head = shrinking.best.script.clone();
    head.operations.truncate(failed_in + 1);
    shrinking.accept(head);
    while shrinking.tries < TRIES_MAX && (shrinking.leave_out_operations() || shrinking.leave_out_records()) {
    }
    shrinking.best
}

struct Shrinking {
    best: Violation,
    options: Options,
    tries: usize,
}

impl Shrinking {
    /// Leaves out runs of operations, long ones first. Returns whether that got anywhere.
    fn leave_out_operations(&mut self) -> bool {
        let before = self.best.script.operations.len();
        let mut len = before.div_ceil(2);
        while len > 0 {
            let mut from = 0;
            while from < self.best.script.operations.len() {
                let mut script = self.best.script.clone();
                let to = (from + len).min(script.operations.len());
                script.operations.drain(from..to);
                if !self.accept(script) {
                    from += len;
                }
            }
            len /= 2;
        }
        self.best.script.operations.len() < before
    }

    /// Leaves out single records, and makes payloads shorter.
    fn leave_out_records(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.best.script.operations.len() {
            let mut record = 0;
            while let Some(Operation::Append(sizes)) = self.best.script.operations.get(at).cloned() {
                let Some(size) = sizes.get(record).copied() else { break };
                let fewer = (sizes.len() > 1).then(|| without(&sizes, record));
                let shorter = (size > 0).then(|| with(&sizes, record, size / 2));
                let accepted =
                    [fewer, shorter].into_iter().flatten().any(|sizes| self.accept_append(at, sizes));
                any |= accepted;
                record += usize::from(!accepted);
            }
        }
        any
    }

    fn accept_append(&mut self, at: usize, sizes: Vec<u32>) -> bool {
        let mut script = self.best.script.clone();
        if let Some(operation) = script.operations.get_mut(at) {
            *operation = Operation::Append(sizes);
        }
        self.accept(script)
    }

    /// Takes a script over if it breaks the same check.
    fn accept(&mut self, script: Script) -> bool {
        if script == self.best.script || self.tries >= TRIES_MAX {
            return false;
        }
        self.tries += 1;
        match explore(&self.best.settings, &script, self.options, &mut Trace::silent()) {
            Err(violation) if violation.broken.check == self.best.broken.check => {
                self.best = *violation;
                true
            }
            _ => false,
        }
    }
}

fn without(sizes: &[u32], record: usize) -> Vec<u32> {
    sizes.iter().enumerate().filter(|(at, _)| *at != record).map(|(_, size)| *size).collect()
}

fn with(sizes: &[u32], record: usize, size: u32) -> Vec<u32> {
    sizes.iter().enumerate().map(|(at, old)| if at == record { size } else { *old }).collect()
}
