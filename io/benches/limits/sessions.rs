//! Sessions: two syncs stand behind each answer, and every event is compared by a check.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use strandline::session::{Session, SessionSettings, SessionTicket, replay_check};
use strandline::{Directory, Engine, Events, Seq};

use crate::Figures;
use crate::raw;
use crate::workloads::{Sizes, THREADS, append_in_threads, done, megabytes, per_second};

const COMMAND: [u8; 256] = [0x5a; 256];
const PRODUCERS: usize = 4;
/// Of each producer.
const IN_FLIGHT: usize = 64;

/// Says what it was told.
struct Echo;

impl Engine for Echo {
    const ID: &'static str = "echo/1";
    type Error = Infallible;

    fn start(_: &[u8]) -> Result<Self, Infallible> {
        Ok(Self)
    }

    fn apply(&mut self, _: Seq, command: &[u8], events: &mut Events) {
        events.push(command);
    }
}

/// Answered commands, beside durable appends of sixteen threads to a plain journal.
pub(crate) fn answers(root: &Path, sizes: &Sizes) -> Figures {
    let count = sizes.appends * 4;
    let plain = done(append_in_threads(root, count / THREADS));
    let path = root.join("session");
    let ours = done(answered(&path, count / PRODUCERS));
    done(fs::remove_dir_all(path));
    Figures { ours: per_second(count, ours), raw: per_second(count, plain) }
}

/// MB of events that a check compares in a second; raw: read().
pub(crate) fn checked(root: &Path, sizes: &Sizes) -> Figures {
    let (count, path) = (sizes.appends * 16, root.join("session"));
    done(answered(&path, count / PRODUCERS));
    let (bytes, raw) = done(raw::read_files(&path));
    let started = Instant::now();
    done(replay_check::<Echo>(&path, |_, _| {}));
    let ours = started.elapsed();
    done(fs::remove_dir_all(path));
    // Half of the bytes are commands.
    let half = megabytes(bytes / 2);
    Figures { ours: per_second(half, ours), raw: per_second(half, raw) }
}

/// How long it takes until all commands are answered.
fn answered(root: &Path, each: usize) -> Result<Duration, Box<dyn Error>> {
    let directory = Directory::open(root)?;
    let session = Session::<Echo>::create_new(&directory, b"", SessionSettings::default())?;
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| {
                let mut in_flight = VecDeque::new();
                for _ in 0..each {
                    if in_flight.len() == IN_FLIGHT
                        && let Some(oldest) = in_flight.pop_front()
                    {
                        done(SessionTicket::wait(oldest));
                    }
                    in_flight.push_back(done(session.submit(&COMMAND)));
                }
                for ticket in in_flight {
                    done(ticket.wait());
                }
            });
        }
    });
    let elapsed = started.elapsed();
    session.close()?;
    Ok(elapsed)
}
