//! A subscriber that shares no code with the client of the bus: it speaks HTTP/1.1 by hand and reads the stream as a browser's
//! `EventSource` does.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_bus::Gap;
use strandline_bus::client::Connect as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

use super::ledger::SharedLedger;
use super::link::{Connection, Connections, ToServer};
use super::place::Place;
use super::story::FollowerPlan;

/// A stream is given up that says nothing for so long.
const SILENCE_MAX: Duration = Duration::from_secs(40);

/// What a subscriber has on its own disk.
#[derive(Clone)]
pub(super) struct EventSource {
    who: usize,
    plan: FollowerPlan,
    ledger: SharedLedger,
    /// The last id that it was given; none before the first one of a stream that begins live.
    last_id: Rc<Cell<Option<u64>>>,
    /// The last event, or the end of a gap.
    position: Rc<Cell<u64>>,
    starts: Rc<Cell<u64>>,
}

/// One message of a stream.
#[derive(Debug, Default)]
struct Message {
    id: Option<u64>,
    event: String,
    data: String,
}

impl EventSource {
    pub(super) fn new(who: usize, plan: FollowerPlan, ledger: SharedLedger) -> Self {
        let last_id = Rc::new(Cell::new((!plan.begins_live).then_some(0)));
        Self { who, plan, ledger, last_id, position: Rc::default(), starts: Rc::default() }
    }

    /// What it does from each of its starts on.
    pub(super) async fn run(self, connections: Connections) -> turmoil::Result {
        self.starts.set(self.starts.get() + 1);
        let mut choice = ChaCha8Rng::seed_from_u64(self.plan.seed ^ (self.starts.get() << 32));
        let server = ToServer { connections };
        loop {
            let (least, most) = (self.last_id.get().unwrap_or(0), self.position.get());
            self.ledger.lock().expect(self.who, |place| *place = Place { least, most, owes_gap: false });
            if let Err(error) = self.follow(&server, &mut choice).await {
                self.ledger.lock().note(format_args!("{} is cut off: {error}", self.plan.name));
            }
            sleep(Duration::from_millis(choice.random_range(500..1_500))).await;
        }
    }

    fn request(&self) -> String {
        let source = self.plan.source.map(|source| format!("source={source}&")).unwrap_or_default();
        let name = self.plan.subscription.as_ref();
        let name = name.map(|name| format!("subscription={name}&ack=auto")).unwrap_or_default();
        let last_id = self.last_id.get().map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        format!("GET /v1/events?{source}{name} HTTP/1.1\r\nHost: localhost\r\n{last_id}\r\n")
    }

    async fn follow(&self, server: &ToServer, choice: &mut ChaCha8Rng) -> io::Result<()> {
        let mut stream = server.connect().await?;
        stream.write_all(self.request().as_bytes()).await?;
        let mut bytes = Vec::new();
        let end_of_head = loop {
            read(&mut stream, &mut bytes).await?;
            if let Some(at) = find(&bytes, b"\r\n\r\n") {
                break at + 4;
            }
        };
        if !bytes.starts_with(b"HTTP/1.1 200 ") {
            let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
            return Err(io::Error::other(String::from_utf8_lossy(line).into_owned()));
        }
        bytes.drain(..end_of_head);
        let mut text = Vec::new();
        loop {
            unchunk(&mut bytes, &mut text)?;
            while let Some(end) = find(&text, b"\n\n") {
                let message = String::from_utf8_lossy(text.get(..end).unwrap_or_default()).into_owned();
                text.drain(..end + 2);
                self.take(&parse(&message));
                if self.plan.pause_ms > 0 {
                    sleep(Duration::from_millis(choice.random_range(0..2 * self.plan.pause_ms))).await;
                }
            }
            read(&mut stream, &mut bytes).await?;
        }
    }

    fn take(&self, message: &Message) {
        match (&*message.event, message.id) {
            ("strandline.gap", None) => {
                let gap: Gap = serde_json::from_str(&message.data).expect("a gap is JSON");
                self.ledger.lock().gap(self.who, &gap);
                self.ledger.lock().expect(self.who, |place| place.owes_gap = false);
                self.position.set(gap.resume_after);
            }
            (_, None) => {}
            ("strandline.live", Some(id)) => {
                self.ledger.lock().expect(self.who, |place| *place = Place::at(id));
                self.last_id.set(Some(id));
                self.position.set(id);
            }
            (_, Some(id)) => {
                self.ledger.lock().event(self.who, id, &message.data);
                self.last_id.set(Some(id));
                self.position.set(id);
            }
        }
    }
}

async fn read(stream: &mut Connection, bytes: &mut Vec<u8>) -> io::Result<()> {
    let silent = |_| io::Error::new(io::ErrorKind::TimedOut, "nothing was heard of it");
    match timeout(SILENCE_MAX, stream.read_buf(bytes)).await.map_err(silent)?? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Moves whole chunks of a chunked body to the text.
fn unchunk(bytes: &mut Vec<u8>, text: &mut Vec<u8>) -> io::Result<()> {
    while let Some(at) = find(bytes, b"\r\n") {
        let size = bytes.get(..at).and_then(|size| std::str::from_utf8(size).ok());
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| io::Error::other("no chunk"))?;
        if size == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(chunk) = bytes.get(at + 2..at + 2 + size).filter(|_| bytes.len() >= at + 4 + size) else {
            return Ok(());
        };
        text.extend_from_slice(chunk);
        bytes.drain(..at + 4 + size);
    }
    Ok(())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn parse(text: &str) -> Message {
    let mut message = Message::default();
    let mut data = Vec::new();
    for line in text.lines() {
        let (field, value) = line.split_once(": ").unwrap_or((line, ""));
        match field {
            "id" => message.id = value.parse().ok(),
            "event" => message.event = value.to_string(),
            "data" => data.push(value),
            _ => {}
        }
    }
    message.data = data.join("\n");
    message
}
