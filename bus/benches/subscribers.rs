//! A served bus with many subscribers: what one costs in memory, whether a thousand are kept up with, and what a hundred do to
//! whoever publishes.
//!
//! ```sh
//! cargo bench -p strandline-bus
//! ```
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strandline::Directory;
use strandline::bus::{BusSettings, EventBus};
use strandline_bus::{ConnectionLimits, Server, ServerSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// Publishers, each with one event in flight.
const PUBLISHERS: u64 = 8;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match arguments.next().as_deref() {
        Some("--server") => serve(),
        _ => runtime().block_on(measure()),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The server, in a process of its own so that its memory can be told apart.
fn serve() {
    let root = tempfile::tempdir().unwrap();
    let (bus, _) = EventBus::open(&Directory::open(root.path()).unwrap(), BusSettings::default()).unwrap();
    runtime().block_on(async {
        let server = Server::new(bus.clone(), ServerSettings::default()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
        server.serve(listener, ConnectionLimits::default(), async { _ = end.await }).await;
    });
    bus.close().unwrap();
}

struct Served {
    process: Child,
    address: SocketAddr,
}

impl Served {
    fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("--server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, address: line.trim().parse().unwrap() }
    }

    /// Its resident memory in bytes.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    fn end(mut self) {
        writeln!(self.process.stdin.take().unwrap(), "end").unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

/// A subscriber that counts events, and panics at a hole.
async fn subscribe(address: SocketAddr, received: Arc<AtomicU64>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let (mut buffer, mut text, mut last) = (vec![0; 4_096], String::new(), None);
    loop {
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for id in text[..whole].lines().filter_map(|line| line.strip_prefix("id: ")) {
            let id: u64 = id.parse().unwrap();
            assert!(last.is_none_or(|last| id == last + 1), "event {id} came behind {last:?}");
            last = Some(id);
            received.fetch_add(1, Ordering::Relaxed);
        }
        text.drain(..whole);
    }
}

/// Publishes so many events at this rate; gives the time that each took to be answered, in order of length.
async fn publish(address: SocketAddr, events: u64, per_second: u64, run: &str) -> Vec<Duration> {
    let tasks: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let run = run.to_string();
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut ticks = interval(Duration::from_nanos(1_000_000_000 * PUBLISHERS / per_second));
                ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
                let mut took = Vec::new();
                let mut answer = vec![0; 1_024];
                for n in 0..events / PUBLISHERS {
                    let due = ticks.tick().await;
                    let body = format!(
                        r#"{{"specversion":"1.0","id":"{run}-{publisher}-{n}","source":"/bench","type":"t","data":"{}"}}"#,
                        "x".repeat(100)
                    );
                    let request = format!(
                        "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents+json\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    stream.write_all(request.as_bytes()).await.unwrap();
                    let read = stream.read(&mut answer).await.unwrap();
                    assert!(answer[..read].starts_with(b"HTTP/1.1 201"), "{:?}", &answer[..read]);
                    // From when it was due: whoever falls behind is late.
                    took.push(due.elapsed());
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.unwrap());
    }
    took.sort_unstable();
    took
}

fn percentile(sorted: &[Duration], per_mille: usize) -> f64 {
    sorted[(sorted.len() * per_mille / 1_000).min(sorted.len() - 1)].as_secs_f64() * 1e3
}

/// Waits until everybody has received this many events.
async fn received(received: &AtomicU64, wanted: u64) -> Duration {
    let begun = Instant::now();
    while received.load(Ordering::Relaxed) < wanted {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} of {wanted}",
            received.load(Ordering::Relaxed)
        );
        sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
}

async fn measure() {
    let server = Served::start();
    let count = Arc::new(AtomicU64::new(0));
    publish(server.address, 800, 2_000, "warm").await;
    let before = server.memory();
    for _ in 0..1_000 {
        tokio::spawn(subscribe(server.address, Arc::clone(&count)));
    }
    sleep(Duration::from_secs(3)).await;
    let each = (server.memory().saturating_sub(before)) as f64 / 1_000.0 / 1_024.0;
    println!("H1 memory of an idle subscriber, of 1,000: {each:.1} KiB (aim 32)");
    let took = publish(server.address, 2_000, 200, "many").await;
    let late = received(&count, 2_000 * 1_000).await;
    println!(
        "H2 1,000 subscribers, 200 events/s: all 2,000,000 delivered in order, the last {:.0} ms behind the last answer; a publish takes {:.2} ms (median), {:.2} ms (p99)",
        late.as_secs_f64() * 1e3,
        percentile(&took, 500),
        percentile(&took, 990)
    );
    server.end();

    let server = Served::start();
    publish(server.address, 800, 2_000, "warm").await;
    let count = Arc::new(AtomicU64::new(0));
    let alone = publish(server.address, 10_000, 2_000, "alone").await;
    for _ in 0..100 {
        tokio::spawn(subscribe(server.address, Arc::clone(&count)));
    }
    sleep(Duration::from_secs(1)).await;
    let beside = publish(server.address, 10_000, 2_000, "beside").await;
    received(&count, 10_000 * 100).await;
    let [alone, beside] = [alone, beside].map(|took| percentile(&took, 990));
    println!(
        "H3 2,000 events/s: p99 of a publish {alone:.2} ms without subscribers, {beside:.2} ms with 100: {:.2} times (aim 3)",
        beside / alone
    );
    server.end();
}
