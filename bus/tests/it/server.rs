//! A server of a test's own, and a client that sends what it is told, byte for byte.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use strandline::bus::{BusSettings, EventBus};
use strandline::{Directory, Disk, StdDisk};
use strandline_bus::client::Client;
use strandline_bus::{ConnectionLimits, Server, ServerSettings};
use tempfile::TempDir;
use tokio::io::AsyncBufReadExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Whoever waits longer than this waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server over a bus in a directory of its own.
pub(crate) struct Running<D: Disk = StdDisk> {
    pub(crate) root: Arc<TempDir>,
    pub(crate) bus: EventBus<D>,
    pub(crate) address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// Runs a test that needs a server.
pub(crate) fn with_server<T: Future<Output = ()>>(test: impl FnOnce(Running) -> T) {
    with(ServerSettings::default(), ConnectionLimits::default(), test);
}

pub(crate) fn with<T: Future<Output = ()>>(
    settings: ServerSettings,
    limits: ConnectionLimits,
    test: impl FnOnce(Running) -> T,
) {
    with_disk(settings, limits, |disk| disk, test);
}

/// The same over a layer of the disk.
pub(crate) fn with_disk<D: Disk, T: Future<Output = ()>>(
    settings: ServerSettings,
    limits: ConnectionLimits,
    layer: impl FnOnce(StdDisk) -> D,
    test: impl FnOnce(Running<D>) -> T,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let root = Arc::new(TempDir::new().unwrap());
        test(Running::begin(root, settings, limits, layer).await).await;
    });
    runtime.shutdown_timeout(PATIENCE);
}

impl Running {
    /// Ends the server and its bus, and begins another in the same directory.
    pub(crate) async fn restart(self) -> Self {
        self.restart_after(|_| {}).await
    }

    /// The same; something happens to the directory in between.
    pub(crate) async fn restart_after(self, happens: impl FnOnce(&Path)) -> Self {
        let root = Arc::clone(&self.root);
        self.end().await;
        happens(root.path());
        Self::begin(root, ServerSettings::default(), ConnectionLimits::default(), |disk| disk).await
    }
}

impl<D: Disk> Running<D> {
    async fn begin(
        root: Arc<TempDir>,
        settings: ServerSettings,
        limits: ConnectionLimits,
        layer: impl FnOnce(StdDisk) -> D,
    ) -> Self {
        let directory = Directory::open_through(root.path(), layer).unwrap();
        let (bus, report) = EventBus::open(&directory, BusSettings::default()).unwrap();
        let settings = ServerSettings { opened: Some(report), ..settings };
        let server = Server::new(bus.clone(), settings).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let served = tokio::spawn(async move {
            server.serve(listener, limits, async { _ = ended.await }).await;
        });
        Self { root, bus, address, end: Some(end), served }
    }

    /// Ends the server, and then its bus.
    pub(crate) async fn end(mut self) {
        _ = self.end.take().unwrap().send(());
        timeout(PATIENCE, &mut self.served).await.unwrap().unwrap();
        let bus = self.bus;
        tokio::task::spawn_blocking(move || bus.close().unwrap()).await.unwrap();
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.address)).unwrap()
    }

    /// A connection on which nothing was said yet.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes, and reads until the server closes or the answer is whole.
    pub(crate) async fn raw(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // It may have answered, and not read on.
        _ = stream.write_all(request.as_ref()).await;
        Answer::read(BufReader::new(stream)).await
    }

    /// A request with a body, to this machine's own name.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for header in headers {
            request.push_str(header);
            request.push_str("\r\n");
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.raw([request.as_bytes(), body].concat()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"").await
    }

    /// Publishes a CloudEvent.
    pub(crate) async fn publish(&self, event: &str) -> Answer {
        let structured = ["Content-Type: application/cloudevents+json"];
        self.send("POST", "/v1/events", &structured, event.as_bytes()).await
    }

    /// Opens a stream of events.
    pub(crate) async fn stream(&self, query: &str, headers: &[&str]) -> Frames {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let request = format!("GET /v1/events{query} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut frames = Frames { stream: BufReader::new(stream) };
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(frames.stream.read_line(&mut head).await.unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: text/event-stream"), "{head}");
        assert_eq!(frames.next().await.as_deref(), Some("retry: 1000"));
        if !query.contains("last_sequence")
            && !query.contains("subscription")
            && !headers.contains("Last-Event-ID")
        {
            let last = self.bus.events().durable_end().previous().get();
            let live =
                (Some(last), "strandline.live".to_string(), serde_json::json!({"last_sequence": last}));
            assert_eq!(frames.event().await, live);
        }
        frames
    }
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) async fn read(mut stream: BufReader<TcpStream>) -> Self {
        let mut all = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut all)).await.unwrap().unwrap();
        let all = String::from_utf8(all).unwrap();
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_string() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Holds the status, and that the reason says these words.
    pub(crate) fn refuses(&self, status: u16, words: &str) {
        assert_eq!(self.status, status, "{self:?}");
        let detail = self.json()["detail"].as_str().unwrap().to_string();
        assert!(detail.contains(words), "{words:?} is not in {detail:?}");
        assert_eq!(self.json()["status"], status);
    }
}

/// A stream, frame by frame.
pub(crate) struct Frames {
    stream: BufReader<TcpStream>,
}

impl Frames {
    /// The next frame without the empty line behind it; nothing at the end. How the answer is cut into chunks is passed over.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let mut frame = String::new();
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.stream.read_line(&mut line)).await.unwrap();
            if read.unwrap_or(0) == 0 {
                return None;
            }
            let is_chunk = line.ends_with("\r\n");
            match line.trim_end_matches(['\r', '\n']) {
                // The length of a chunk, or its end.
                "0" if is_chunk => return None,
                _ if is_chunk => {}
                "" => return Some(frame.trim_end().to_string()),
                text => {
                    frame.push_str(text);
                    frame.push('\n');
                }
            }
        }
    }

    /// The next frame's id, kind and data.
    pub(crate) async fn event(&mut self) -> (Option<u64>, String, Value) {
        let frame = self.next().await.expect("the stream goes on");
        let field = |name: &str| {
            let lines = frame.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            lines.collect::<Vec<_>>().join("\n")
        };
        let data = serde_json::from_str(&field("data")).unwrap_or_else(|error| panic!("{error}: {frame}"));
        (field("id").parse().ok(), field("event"), data)
    }
}
