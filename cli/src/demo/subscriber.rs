//! The demo's subscriber process: it is connected to the publisher's by a Unix socket, and acknowledges what it
//! has told the story.

use std::io::{self, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use clap::Args;

use super::wire::{SubscriberTells, ToPublisher, ToSubscriber, receive, send};
use crate::outcome::{Ended, Failure};

#[derive(Args)]
pub(crate) struct Flags {
    socket: PathBuf,
    name: String,
}

/// Receives and acknowledges until standard input ends, or the publisher does.
pub(crate) fn run(flags: &Flags) -> Result<Ended, Failure> {
    let failed = |error| Failure::cannot_run(error).context(flags.socket.display().to_string());
    let stream = UnixStream::connect(&flags.socket).map_err(failed)?;
    let mut input = BufReader::new(stream.try_clone().map_err(failed)?);
    let mut to_publisher = stream.try_clone().map_err(failed)?;
    thread::spawn(move || {
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = stream.shutdown(Shutdown::Both);
    });
    // A publisher that is gone is noticed by the next receive.
    let mut say = |message: &ToPublisher| {
        let _ = send(&mut to_publisher, message);
    };
    say(&ToPublisher::Subscribe(flags.name.clone()));
    let mut acknowledged = 0;
    while let Ok(Some(message)) = receive(&mut input) {
        match message {
            ToSubscriber::Subscribed => tell(&SubscriberTells::Subscribed)?,
            ToSubscriber::Events(events) => {
                let last = events.last().map(|event| event.sequence);
                for event in events {
                    tell(&SubscriberTells::Received(event))?;
                }
                last.into_iter().for_each(|last| say(&ToPublisher::Acknowledge(last)));
            }
            ToSubscriber::Gap(gap) => {
                let resume_after = gap.resume_after;
                tell(&SubscriberTells::Gap(gap))?;
                say(&ToPublisher::Acknowledge(resume_after));
            }
            ToSubscriber::Awaiting(sequence) if sequence > acknowledged => {
                say(&ToPublisher::Acknowledge(sequence));
            }
            ToSubscriber::Awaiting(_) => {}
            ToSubscriber::Acknowledged(sequence) => {
                acknowledged = sequence;
                tell(&SubscriberTells::Acknowledged(sequence))?;
            }
        }
    }
    Ok(Ended::Sound)
}

fn tell(message: &SubscriberTells) -> Result<(), Failure> {
    Ok(send(&mut io::stdout().lock(), message)?)
}
