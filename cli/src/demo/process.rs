//! A process of the demo, seen from the story: started, told, listened to, and ended in any case.

use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::wire;
use crate::outcome::Failure;

/// Whoever waits longer than this waits in vain.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a wait looks whether the demo was interrupted.
const LOOK: Duration = Duration::from_millis(50);
/// Messages that were read and not asked for. Few, so that a publisher which is not listened to comes to a halt.
const MESSAGES_MAX: usize = 64;

/// A process that tells things of type `T` on its standard output. It is killed when this goes.
pub(super) struct Process<T> {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<T>,
    interrupted: Arc<AtomicBool>,
}

impl<T: DeserializeOwned + Send + 'static> Process<T> {
    /// Starts this program with other arguments.
    pub(super) fn start(
        name: &str,
        arguments: &[&std::ffi::OsStr],
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::cannot_run(error).context(format!("{name} cannot be started"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (sender, messages) = sync_channel(MESSAGES_MAX);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        thread::spawn(move || {
            let Some(stdout) = stdout else { return };
            let mut stdout = BufReader::new(stdout);
            while let Ok(Some(message)) = wire::receive(&mut stdout) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Self { name: name.to_string(), child, stdin, messages, interrupted: Arc::clone(interrupted) })
    }

    /// Its number with the operating system.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives it an order.
    pub(super) fn order(&mut self, order: &str) -> Result<(), Failure> {
        let written =
            self.stdin.as_mut().map(|stdin| writeln!(stdin, "{order}").and_then(|()| stdin.flush()));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.failed(format_args!("does not take the order {order:?}"))),
        }
    }

    /// What it tells next.
    pub(super) fn next(&self, awaited: &str) -> Result<T, Failure> {
        self.next_or_end()?.ok_or_else(|| self.failed(format_args!("ended before {awaited}")))
    }

    fn next_or_end(&self) -> Result<Option<T>, Failure> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if self.interrupted.load(Ordering::SeqCst) {
                return Err(Failure::problem(anyhow::anyhow!("the demo was interrupted")));
            }
            match self.messages.recv_timeout(LOOK) {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Err(self.failed(format_args!("told nothing for {} seconds", PATIENCE.as_secs())))
    }

    /// Kills it with SIGKILL; gives what it told before and was not listened to.
    pub(super) fn kill(mut self) -> Result<Vec<T>, Failure> {
        self.child.kill().map_err(Failure::problem)?;
        self.child.wait().map_err(Failure::problem)?;
        Ok(self.messages.iter().collect())
    }

    /// Closes its standard input, whereupon it ends in good order; gives what it told before.
    pub(super) fn leave(mut self) -> Result<Vec<T>, Failure> {
        drop(self.stdin.take());
        let mut told = Vec::new();
        while let Some(message) = self.next_or_end()? {
            told.push(message);
        }
        let status = self.child.wait().map_err(Failure::problem)?;
        if status.success() { Ok(told) } else { Err(self.failed(format_args!("ended with {status}"))) }
    }

    fn failed(&self, what: std::fmt::Arguments<'_>) -> Failure {
        Failure::problem(anyhow::anyhow!("{} (process {}) {what}", self.name, self.id()))
    }
}

impl<T> Drop for Process<T> {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
