//! Who may talk to the server, and what it does about too much.

use std::time::Duration;

use strandline_bus::client::{Client, ClientError};
use strandline_bus::{ConnectionLimits, Guard, OwnSocket, Server, ServerSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.head.contains("retry-after"), "{answer:?}");
        drop(first);
        // It is noticed when the connection is.
        while running.get("/healthz").await.status != 200 {
            tokio::task::yield_now().await;
        }
    });
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
