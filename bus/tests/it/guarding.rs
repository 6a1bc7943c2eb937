//! Who may talk to the server, and what it does about too much.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use strandline::Directory;
use strandline::bus::{BusSettings, EventBus};
use strandline_bus::client::{Client, ClientError};
use strandline_bus::{ConnectionLimits, Guard, Listener, OwnSocket, Server, ServerSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::server::{with, with_server};

#[test]
fn only_this_machines_names_are_answered_without_a_token() {
    with_server(|running| async move {
        let status = async |host: &str| {
            running.raw(format!("GET /v1/journal HTTP/1.1\r\n{host}Connection: close\r\n\r\n")).await.status
        };
        for host in ["localhost", "LOCALHOST:7878", "127.0.0.1", "127.1.2.3:80", "[::1]:7878", "[::1]"] {
            assert_eq!(status(&format!("Host: {host}\r\n")).await, 200, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "127.0.0.1.evil.example",
            "",
            "[::1",
            "[::1]evil.example",
            "0.0.0.0",
        ] {
            assert_eq!(status(&format!("Host: {host}\r\n")).await, 421, "{host}");
        }
        assert_eq!(status("").await, 400);
        assert_eq!(status("Host: localhost\r\nHost: localhost\r\n").await, 400);
        assert_eq!(
            running.raw("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.status,
            200
        );
    });
}

#[test]
fn no_other_sites_page_is_let_through() {
    with_server(|running| async move {
        let status = async |header: &str| running.send("GET", "/v1/journal", &[header], b"").await.status;
        for own in ["Origin: http://localhost", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none"] {
            assert_eq!(status(own).await, 200, "{own}");
        }
        for foreign in [
            "Origin: http://evil.example",
            "Origin: null",
            "Origin: http://localhost:3000",
            "Origin: http://localhost.evil.example",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site",
        ] {
            assert_eq!(status(foreign).await, 403, "{foreign}");
        }
        // A link from elsewhere may lead to the page.
        let linked =
            running.send("GET", "/", &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], b"");
        assert_eq!(linked.await.status, 200);
    });
}

#[test]
fn a_token_is_asked_for_and_never_shown() {
    let token = "0123456789abcdef";
    let guard = Guard { token: Some(token.into()), any_host: false };
    assert!(!format!("{guard:?}").contains(token));
    let settings = ServerSettings { guard, ..ServerSettings::default() };
    with(settings, ConnectionLimits::default(), |running| async move {
        for shown in [
            "X: y",
            "Authorization: Bearer",
            "Authorization: Bearer 0123456789abcdee",
            "Authorization: Basic 0123456789abcdef",
        ] {
            let answer = running.send("GET", "/v1/journal", &[shown], b"").await;
            answer.refuses(401, "token");
            assert!(answer.head.contains("www-authenticate: bearer"), "{answer:?}");
        }
        let good = format!("Authorization: Bearer {token}");
        running.send("GET", "/v1/journal", &[&good, &good], b"").await.refuses(400, "twice");
        let lower = format!("Authorization: bearer {token}");
        assert_eq!(running.send("GET", "/v1/journal", &[&lower], b"").await.status, 200);
        assert_eq!(running.send("GET", "/metrics", &[&good], b"").await.status, 200);
        let event = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
        assert!(matches!(running.client().publish(event).await, Err(ClientError::Refused { .. })));
        assert_eq!(running.client().with_token(token).publish(event).await.unwrap(), 1);
        // The page asks for it, and has to be there to ask.
        assert_eq!(running.get("/").await.status, 200);
    });
}

#[test]
fn too_many_connections_are_told_to_come_again() {
    let limits = ConnectionLimits { connections_max: 2, ..ConnectionLimits::default() };
    with(ServerSettings::default(), limits, |running| async move {
        let first = running.stream("", &[]).await;
        let _second = running.stream("", &[]).await;
        let answer = running.get("/healthz").await;
        answer.refuses(503, "too many connections");
        assert!(answer.head.contains("retry-after"), "{answer:?}");
        assert!(answer.head.contains("application/problem+json"), "{answer:?}");
        drop(first);
        // It is noticed when the connection is.
        while running.get("/healthz").await.status != 200 {
            tokio::task::yield_now().await;
        }
        let metrics = loop {
            let answer = running.get("/metrics").await;
            if answer.status == 200 {
                break answer.body;
            }
        };
        assert!(metrics.contains("requests_refused_total{status=\"503\"} "), "{metrics}");
    });
}

/// One connection, and then no more.
struct One(Option<DuplexStream>);

impl Listener for One {
    type Connection = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        match self.0.take() {
            Some(connection) => Ok(connection),
            None => std::future::pending().await,
        }
    }
}

#[test]
fn a_client_that_takes_nothing_loses_its_connection_and_nothing_else() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path()).unwrap();
        let (bus, _) = EventBus::open(&directory, BusSettings::default()).unwrap();
        let server = Server::new(bus.clone(), ServerSettings::default()).await.unwrap();
        // Longer than what the connection holds, and than what is written at once.
        let router = Router::new().route("/long", get(|| async { vec![b'x'; 1 << 20] }));
        let (near, mut far) = duplex(1_000);
        let limits = ConnectionLimits::default();
        let began = Instant::now();
        let takes_nothing = async {
            far.write_all(b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            tokio::time::sleep(limits.write_timeout * 2).await;
            // It was let go when it had taken nothing for so long: what it can still read is what it was sent before.
            let mut all = Vec::new();
            far.read_to_end(&mut all).await.unwrap();
            assert_eq!((all.len(), began.elapsed()), (1_000, limits.write_timeout * 2));
        };
        server.serve_router(router, One(Some(near)), limits, takes_nothing).await;
        assert_eq!(began.elapsed(), limits.write_timeout * 2, "nobody is waited for");
        bus.close().unwrap();
    });
}

/// A listener out of files, which counts how often it is asked.
struct OutOfFiles(Arc<AtomicU64>);

impl Listener for OutOfFiles {
    type Connection = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(io::Error::from_raw_os_error(24))
    }
}

/// Counts warnings, and does nothing else.
struct Warnings(Arc<AtomicU64>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_server_out_of_files_asks_once_a_second_and_warns_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let (asked, warned) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let serves = async {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::open(root.path()).unwrap();
        let (bus, _) = EventBus::open(&directory, BusSettings::default()).unwrap();
        let server = Server::new(bus.clone(), ServerSettings::default()).await.unwrap();
        let day = tokio::time::sleep(Duration::from_secs(24 * 60 * 60));
        server.serve(OutOfFiles(Arc::clone(&asked)), ConnectionLimits::default(), day).await;
        bus.close().unwrap();
    };
    let counts = Warnings(Arc::clone(&warned));
    tracing::subscriber::with_default(counts, || runtime.unwrap().block_on(serves));
    assert_eq!(warned.load(Ordering::SeqCst), 1);
    let asked = asked.load(Ordering::SeqCst);
    assert!((86_400..86_410).contains(&asked), "{asked}");
}

#[test]
fn a_head_that_dawdles_or_is_too_long_ends_the_connection() {
    let limits = ConnectionLimits { head_timeout: Duration::from_millis(50), ..ConnectionLimits::default() };
    with(ServerSettings::default(), limits, |running| async move {
        let mut slow = TcpStream::connect(running.address).await.unwrap();
        slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
        let mut all = Vec::new();
        slow.read_to_end(&mut all).await.unwrap();
        assert!(all.is_empty() || all.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&all));
        let bomb = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(300_000));
        assert_eq!(running.raw(bomb).await.status, 431);
        let many = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "a: b\r\n".repeat(1_000));
        assert_eq!(running.raw(many).await.status, 431);
        assert_eq!(running.get("/healthz").await.status, 200);
    });
}

#[test]
fn a_unix_socket_is_its_owners_and_is_gone_afterwards() {
    with_server(|running| async move {
        use std::os::unix::fs::PermissionsExt as _;
        let path = running.root.path().join("bus.sock");
        let guard = Guard { token: None, any_host: true };
        let server = Server::new(running.bus.clone(), ServerSettings { guard, ..ServerSettings::default() });
        let server = server.await.unwrap();
        let socket = OwnSocket::bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(OwnSocket::bind(&path).is_err(), "somebody listens there");
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let client = Client::unix(&path);
        let served = server.serve(socket, ConnectionLimits::default(), async { _ = ended.await });
        let publishes = async {
            let event = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
            assert_eq!(client.publish(event).await.unwrap(), 1);
            end.send(()).unwrap();
        };
        tokio::join!(served, publishes);
        assert!(!path.exists());
        std::fs::write(&path, b"a file").unwrap();
        assert!(OwnSocket::bind(&path).is_err(), "a file is not replaced");
    });
}

#[test]
fn what_is_not_there_is_said_and_counted() {
    with_server(|running| async move {
        running.get("/nothing").await.refuses(404, "/nothing");
        running.send("DELETE", "/v1/subscriptions/%ff", &[], b"").await.refuses(400, "UTF-8");
        running
            .send("POST", "/v1/subscriptions/%ff/ack", &[], b"{\"sequence\":1}")
            .await
            .refuses(400, "UTF-8");
        running.get("/v1/events?subscription=%ff").await.refuses(400, "UTF-8");
        let put = running.send("PUT", "/v1/events", &[], b"").await;
        put.refuses(405, "PUT");
        assert!(put.head.contains("allow: get,head,post"), "{put:?}");
        assert_eq!(running.get("/readyz").await.status, 200);
        let journal = running.get("/v1/journal").await.json();
        assert_eq!((&journal["first"], &journal["next"]), (&serde_json::json!(1), &serde_json::json!(1)));
        let metrics = running.get("/metrics").await;
        assert!(metrics.body.contains("strandline_requests_refused_total{status=\"404\"} 1"), "{metrics:?}");
        assert!(metrics.body.ends_with("# EOF\n"), "{metrics:?}");
    });
}
