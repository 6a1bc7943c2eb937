//! The process of a host: it can be killed, which closes its connections as an operating system does.

use std::cell::RefCell;
use std::future::{Future, pending};
use std::rc::Rc;

use tokio::sync::Notify;

use super::link::Connections;

/// A running process.
#[derive(Clone, Default)]
pub(super) struct Process {
    pub(super) connections: Connections,
    killed: Rc<Notify>,
}

impl Process {
    /// Does what it does until it is killed, or done.
    pub(super) async fn run(self, software: impl Future<Output = turmoil::Result>) -> turmoil::Result {
        tokio::select! {
            biased;
            () = self.killed.notified() => {
                self.connections.close();
                pending().await
            }
            ended = software => {
                self.connections.close();
                ended
            }
        }
    }
}

/// The place of a host's process, of which there is one after the other.
#[derive(Clone, Default)]
pub(super) struct Slot(Rc<RefCell<Process>>);

impl Slot {
    /// A new process.
    pub(super) fn start(&self) -> Process {
        let process = Process::default();
        *self.0.borrow_mut() = process.clone();
        process
    }

    /// Kills the process. Its connections are closed when the simulation takes its next step.
    pub(super) fn kill(&self) {
        self.0.borrow().killed.notify_one();
    }
}
