//! A server under attack: each attack gets a clear status or is cut off, the server stays small, and others are served.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::program::{Place, Running, feed, program};

/// More memory than at its start the server never takes: a body may have 17 MiB, and is copied once.
const GROWTH_KIB_MAX: u64 = 96 << 10;

/// A server, and where it listens.
struct Attacked {
    server: Running,
    listen: String,
}

impl Attacked {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.listen).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// The status line of the answer to these bytes. A server that answers before it has read all may close the connection.
    fn answer(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(request);
        status_line(&mut stream)
    }

    /// The most memory that the server ever had, in KiB.
    fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

fn status_line(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    while !bytes.contains(&b'\r') {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
    String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_string()
}

fn serve(place: &Place) -> (Attacked, Running) {
    let server = Running::start(program("serve").arg(&place.journal).args(["--listen", "127.0.0.1:0"]));
    let line = server.line();
    let address = line.strip_prefix("listening on ").unwrap().to_string();
    let follower = Running::start(program("sub").arg(&address).args(["--after", "0"]));
    let listen = address.strip_prefix("http://").unwrap().to_string();
    (Attacked { server, listen }, follower)
}

#[test]
fn a_server_under_attack_stays_small_and_serves_others() {
    let place = Place::new();
    let (attacked, follower) = serve(&place);
    let at_first = attacked.peak_kib();
    // Who sends half a head, and then nothing for as long as the others attack.
    let dawdlers: Vec<_> = (0..300).map(|_| attacked.connect()).collect();
    for mut dawdler in &dawdlers {
        dawdler.write_all(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    }
    connect_again_and_again(&attacked);
    refuses_long_bodies(&attacked);
    refuses_long_heads(&attacked);
    refuses_what_is_no_text(&attacked);
    refuses_what_is_no_number(&attacked);
    let address = format!("http://{}", attacked.listen);
    let event = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed"}"#;
    feed(program("pub").arg(&address), event.as_bytes()).succeeds();
    assert!(follower.line().contains("\"sequence\":1"), "who was there before is served");
    let peak = attacked.peak_kib();
    assert!(peak - at_first < GROWTH_KIB_MAX, "from {at_first} KiB to {peak} KiB");
    drop(dawdlers);
    let (code, _, said) = attacked.server.terminate();
    assert_eq!(code, 0, "{said}");
}

/// A thousand, or as many as are asked for.
fn connect_again_and_again(attacked: &Attacked) {
    let connects = std::env::var("STRANDLINE_CONNECTS").map_or(1_000, |connects| connects.parse().unwrap());
    for _ in 0..connects {
        drop(attacked.connect());
    }
    assert!(attacked.answer(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").contains(" 200 "));
}

fn refuses_long_bodies(attacked: &Attacked) {
    let head =
        "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents+json\r\n";
    let announced = format!("{head}Content-Length: {}\r\n\r\n", 1_u64 << 30);
    assert!(attacked.answer(announced.as_bytes()).contains(" 413 "));
    // One that does not say how long it is, and never ends.
    let mut stream = attacked.connect();
    stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let taken = (0..1 << 14).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(taken < 1 << 12, "{taken} chunks of 64 KiB were taken");
}

fn refuses_long_heads(attacked: &Attacked) {
    let long =
        format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(1 << 20));
    let many =
        format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X-Many: x\r\n".repeat(10_000));
    for request in [long, many] {
        let line = attacked.answer(request.as_bytes());
        // A connection that is closed over unread bytes may lose the answer on its way.
        assert!(line.is_empty() || line.contains(" 431 "), "{line}");
    }
}

fn refuses_what_is_no_text(attacked: &Attacked) {
    let head =
        b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents+json\r\n";
    let body = [head.as_slice(), b"Content-Length: 4\r\n\r\n{\xff\xfe}"].concat();
    assert!(attacked.answer(&body).contains(" 400 "));
    let path = b"DELETE /v1/subscriptions/%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert!(attacked.answer(path).contains(" 400 "));
    let raw = b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let line = attacked.answer(raw);
    assert!(line.contains(" 400 ") || line.contains(" 404 "), "{line}");
}

fn refuses_what_is_no_number(attacked: &Attacked) {
    for bad in ["-1", "18446744073709551616", "twelve", "1e3", "0x10"] {
        let request = format!("GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {bad}\r\n\r\n");
        assert!(attacked.answer(request.as_bytes()).contains(" 400 "), "{bad}");
    }
}
