//! A process that writes a journal and says on stdout, with one write for each, which records were acknowledged.
//!
//! `strandline-writer DIRECTORY PROCESS run THREADS` appends from several threads until it is killed, or until every
//! thread has appended `STRANDLINE_WRITER_RECORDS`. `strandline-writer DIRECTORY PROCESS obey` does what it reads
//! from stdin, line by line: `append N`, `fill` (until there is no space), `trim SEQ`, `close`.
//!
//! It says `SEQ <PROCESS.THREAD.N>` for a record, else `nospace`, `poisoned` or `done`.

mod payload;

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::thread;

use strandline::{AppendError, Config, Directory, Journal, Pryj, Seq, config};

use payload::{marker, payload};

const JOURNAL: &str = "a";
/// So many records go out at once where a thread does not wait for each.
const AT_ONCE: u64 = 4;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("DIRECTORY PROCESS (run THREADS | obey)");
    let (directory, process) = (next()?, next()?.parse()?);
    let mode = next()?;
    // Small, so that segments follow one another, and with little reserved space, so that it runs out.
    let segment_bytes =
        std::env::var("STRANDLINE_WRITER_SEGMENT").map_or(Ok(32 * 1024), |bytes| bytes.parse())?;
    let settings = Config { segment_bytes, reserve_bytes: segment_bytes / 4, ..config() };
    let (journal, _) = Directory::open(directory)?.journal::<Pryj>(JOURNAL, settings)?;
    match mode.as_str() {
        "run" => {
            let records = std::env::var("STRANDLINE_WRITER_RECORDS").map_or(Ok(u64::MAX), |n| n.parse())?;
            append_from_threads(&journal, process, next()?.parse()?, records);
            Ok(())
        }
        _ => obey(&journal, process),
    }
}

/// Each thread appends in one of three ways, and has at most [`AT_ONCE`] records that it was not told of.
fn append_from_threads(journal: &Journal<Pryj>, process: u64, threads: u64, records: u64) {
    thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut n = 0;
                while n < records {
                    let appended = match thread % 3 {
                        0 => one(journal, process, thread, n),
                        1 => tickets(journal, process, thread, n),
                        _ => many(journal, process, thread, n),
                    };
                    match appended {
                        Ok(next) => n = next,
                        Err(error) => {
                            say(&outcome(error));
                            break;
                        }
                    }
                }
            });
        }
    });
}

fn one(journal: &Journal<Pryj>, process: u64, thread: u64, n: u64) -> Result<u64, AppendError> {
    acknowledged(journal.append(&payload(process, thread, n))?, process, thread, n);
    Ok(n + 1)
}

fn tickets(journal: &Journal<Pryj>, process: u64, thread: u64, n: u64) -> Result<u64, AppendError> {
    let ticket = |n| journal.append_nowait(&payload(process, thread, n));
    let tickets = (n..n + AT_ONCE).map(ticket).collect::<Result<Vec<_>, _>>()?;
    for (n, ticket) in (n..).zip(tickets) {
        acknowledged(ticket.wait()?, process, thread, n);
    }
    Ok(n + AT_ONCE)
}

fn many(journal: &Journal<Pryj>, process: u64, thread: u64, n: u64) -> Result<u64, AppendError> {
    let drafts: Vec<_> = (n..n + AT_ONCE).map(|n| payload(process, thread, n)).collect();
    let last = journal.append_all(drafts.iter().map(|draft| &draft[..])).map_err(|error| error.source)?;
    // Others may have come between: only the last one's number is known.
    if let Some(last) = last {
        acknowledged(last, process, thread, n + AT_ONCE - 1);
    }
    Ok(n + AT_ONCE)
}

fn obey(journal: &Journal<Pryj>, process: u64) -> Result<(), Box<dyn Error>> {
    let mut n = 0;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (command, argument) = line.split_once(' ').unwrap_or((&line, "0"));
        let argument: u64 = argument.parse()?;
        let result = match command {
            "append" => (0..argument).try_for_each(|_| {
                n += 1;
                one(journal, process, 0, n - 1).map(|_| ())
            }),
            "fill" => loop {
                n += 1;
                if let Err(error) = one(journal, process, 0, n - 1) {
                    break Err(error);
                }
            },
            "trim" => journal.trim_to(Seq::new(argument)).map_err(AppendError::from),
            "close" => journal.close().map_err(AppendError::from),
            _ => return Err(format!("{command} is no command").into()),
        };
        say(&result.map_or_else(outcome, |()| "done".to_string()));
    }
    Ok(())
}

fn outcome(error: AppendError) -> String {
    match error {
        AppendError::NoSpace => "nospace".to_string(),
        AppendError::Poisoned(_) => "poisoned".to_string(),
        other => other.to_string(),
    }
}

fn acknowledged(seq: Seq, process: u64, thread: u64, n: u64) {
    say(&format!("{seq} {}", marker(process, thread, n)));
}

/// One write, so that a kill leaves whole lines.
fn say(line: &str) {
    let written = io::stdout().lock().write_all(format!("{line}\n").as_bytes());
    if written.is_err() {
        // Nobody listens any more.
        std::process::exit(1);
    }
}
