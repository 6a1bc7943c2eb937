//! A server of a test's own, over a bus in a directory of its own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use strandline::bus::{BusSettings, EventBus};
use strandline::{Directory, EventDraft};
use strandline_bus::{ConnectionLimits, Guard, Server, ServerSettings};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct Running {
    root: Arc<TempDir>,
    /// Kept open, so that nobody else gets the address while a server is away.
    listener: TcpListener,
    runtime: Runtime,
    pub(crate) bus: EventBus,
    pub(crate) address: SocketAddr,
    end: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self::with(BusSettings::default(), Guard::default())
    }

    pub(crate) fn with(settings: BusSettings, guard: Guard) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self::begin(Arc::new(TempDir::new().unwrap()), listener, settings, guard)
    }

    fn begin(root: Arc<TempDir>, listener: TcpListener, settings: BusSettings, guard: Guard) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (bus, _) = EventBus::open(&Directory::open(root.path()).unwrap(), settings).unwrap();
        let settings = ServerSettings { guard, ..ServerSettings::default() };
        let server = runtime.block_on(Server::new(bus.clone(), settings)).unwrap();
        let address = listener.local_addr().unwrap();
        let accepts = listener.try_clone().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let served = runtime.spawn(async move {
            let accepts = tokio::net::TcpListener::from_std(accepts).unwrap();
            server.serve(accepts, ConnectionLimits::default(), async { _ = ended.await }).await;
        });
        Self { root, listener, runtime, bus, address, end, served }
    }

    /// Ends the server and its bus.
    pub(crate) fn end(self) -> Ended {
        let Self { root, listener, runtime, bus, end, served, .. } = self;
        _ = end.send(());
        runtime.block_on(served).unwrap();
        bus.close().unwrap();
        Ended { root, listener }
    }

    /// Publishes plain JSON, and waits until it is durable; gives its number.
    pub(crate) fn publish(&self, event_type: &str, json: &str) -> u64 {
        let draft = EventDraft { domain: 1, event_type, source: "/test", payload: json.as_bytes() };
        self.bus.publish(draft).unwrap().get()
    }

    /// Connects a durable subscription, and goes away again.
    pub(crate) fn subscribe(&self, name: &str) {
        let request = format!(
            "GET /v1/events?subscription={name}&last_sequence=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // With the greeting it is subscribed.
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.bus.subscriptions().into_iter().filter_map(|status| status.name.map(String::from)).collect()
    }

    /// The head, in lower case, and the body of an answer.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_ascii_lowercase(), body.to_string())
    }
}

/// What a server leaves: its directory and its address.
pub(crate) struct Ended {
    root: Arc<TempDir>,
    listener: TcpListener,
}

impl Ended {
    /// Another server in the same place.
    pub(crate) fn begin_again(self) -> Running {
        Running::begin(self.root, self.listener, BusSettings::default(), Guard::default())
    }
}
