//! A ledger over a session: every posting is journaled before it is answered, and the whole history can be checked.
//!
//! ```sh
//! printf 'deposit ann 100\ntransfer ann bob 30\ntransfer bob ann 99\n' | cargo run --release -p strandline-cli --example ledger -- post ./ledger
//! cargo run --release -p strandline-cli --example ledger -- check ./ledger
//! ```

use std::collections::BTreeMap;
use std::io::{self, BufRead as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use strandline::session::{Session, SessionSettings};
use strandline::{Directory, Engine, Events, Seq};
use strandline_cli::replay_check;

/// Balances by name. A map in order, so that nothing depends on where it keeps its entries.
struct Ledger {
    balances: BTreeMap<String, u64>,
    /// Nobody may have more; from the setup, so that it is the same in every replay.
    balance_max: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the setup is the highest balance in digits, not {0:?}")]
struct BadSetup(String);

impl Engine for Ledger {
    const ID: &'static str = "ledger/1";
    type Error = BadSetup;

    fn start(setup: &[u8]) -> Result<Self, BadSetup> {
        let text = String::from_utf8_lossy(setup);
        let balance_max = text.parse().map_err(|_| BadSetup(text.into_owned()))?;
        Ok(Self { balances: BTreeMap::new(), balance_max })
    }

    fn apply(&mut self, _: Seq, command: &[u8], events: &mut Events) {
        let command = String::from_utf8_lossy(command);
        let event = match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["deposit", name, amount] => self.post(None, name, amount),
            ["transfer", from, to, amount] => self.post(Some(from), to, amount),
            _ => Err("not understood"),
        };
        match event {
            Ok(event) => events.push(event.as_bytes()),
            Err(why) => events.push(format!("refused: {why}").as_bytes()),
        }
    }
}

impl Ledger {
    fn post(&mut self, from: Option<&str>, to: &str, amount: &str) -> Result<String, &'static str> {
        let amount: u64 = amount.parse().map_err(|_| "no amount")?;
        let balance = |name: &str| self.balances.get(name).copied().unwrap_or(0);
        let left = from.map(|from| balance(from).checked_sub(amount).ok_or("not enough")).transpose()?;
        // What somebody transfers to themselves is taken off first.
        let has = if from == Some(to) { left.unwrap_or(0) } else { balance(to) };
        let has = has.checked_add(amount).filter(|sum| *sum <= self.balance_max).ok_or("too much")?;
        if let (Some(from), Some(left)) = (from, left) {
            self.balances.insert(from.to_string(), left);
        }
        self.balances.insert(to.to_string(), has);
        Ok(format!("{to} has {has}"))
    }
}

#[derive(Parser)]
enum Command {
    /// Post the lines of standard input
    Post { directory: PathBuf },
    /// Check that the recorded events follow from the recorded postings
    Check(replay_check::Flags),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Check(flags) => replay_check::run::<Ledger>(&flags),
        Command::Post { directory } => match post(directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("ledger: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

fn post(directory: PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    let directory = Directory::open(directory)?;
    let (session, _) = Session::<Ledger>::open_or_create(&directory, b"1000000", SessionSettings::default())?;
    for line in io::stdin().lock().lines() {
        let answer = session.submit(line?.as_bytes())?.wait()?;
        for event in answer.events.iter() {
            println!("{}: {}", answer.command, String::from_utf8_lossy(event));
        }
    }
    Ok(session.close()?)
}
