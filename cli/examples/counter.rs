//! The smallest session that can be checked: it counts letters, and its history can be run again.
//!
//! ```sh
//! printf 'one\nthree\n' | cargo run --release -p strandline-cli --example counter -- count ./count
//! cargo run --release -p strandline-cli --example counter -- ./count
//! ```

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, BufRead as _};
use std::path::Path;
use std::process::ExitCode;

use strandline::session::{Session, SessionSettings};
use strandline::{Directory, Engine, Events, Seq};

/// How many letters there were in all commands.
struct Counter(u64);

impl Engine for Counter {
    const ID: &'static str = "counter/1";
    type Error = Infallible;

    fn start(_: &[u8]) -> Result<Self, Infallible> {
        Ok(Self(0))
    }

    fn apply(&mut self, _: Seq, command: &[u8], events: &mut Events) {
        self.0 += command.len() as u64;
        events.push(self.0.to_string().as_bytes());
    }
}

/// `count DIR` records a session; everything else is for the check, whose whole program is the last line.
fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let [command, directory] = &arguments[..]
        && command == "count"
    {
        return match count(directory.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("counter: {error}");
                ExitCode::FAILURE
            }
        };
    }
    strandline_cli::replay_check::main::<Counter>()
}

/// Counts the letters of each line of standard input. Each answer is durable before it is printed.
fn count(directory: &Path) -> Result<(), Box<dyn Error>> {
    let directory = Directory::open(directory)?;
    let (session, _) = Session::<Counter>::open_or_create(&directory, b"", SessionSettings::default())?;
    for line in io::stdin().lock().lines() {
        let answer = session.submit(line?.as_bytes())?.wait()?;
        for event in answer.events.iter() {
            println!("{}", String::from_utf8_lossy(event));
        }
    }
    Ok(session.close()?)
}
