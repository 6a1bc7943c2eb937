//! Streams: where they begin, what they say, and how they end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use serde_json::json;
use strandline::EventDraft;
use strandline_bus::client::{Client, ClientError, Connect, Delivered, Follow, Subscriber};
use strandline_bus::{ConnectionLimits, Server, ServerSettings};
use tokio::net::{TcpListener, TcpStream};

use crate::server::{Frames, Running, with_server};

fn event(n: u64) -> String {
    format!(r#"{{"specversion":"1.0","id":"{n}","source":"/s{}","type":"t{}","data":{n}}}"#, n % 2, n % 3)
}

/// Publishes events of these numbers.
async fn publish(running: &Running, numbers: std::ops::RangeInclusive<u64>) {
    for n in numbers {
        assert_eq!(running.publish(&event(n)).await.json(), json!({"sequence": n}));
    }
}

/// The ids of the next events.
async fn ids(frames: &mut Frames, count: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    while ids.len() < count {
        ids.extend(frames.event().await.0);
    }
    ids
}

#[test]
fn a_stream_begins_where_the_client_says() {
    with_server(|running| async move {
        publish(&running, 1..=5).await;
        let mut live = running.stream("", &[]).await;
        assert_eq!(ids(&mut running.stream("?last_sequence=0", &[]).await, 5).await, [1, 2, 3, 4, 5]);
        assert_eq!(ids(&mut running.stream("", &["Last-Event-ID: 3"]).await, 2).await, [4, 5]);
        let both = &mut running.stream("?last_sequence=1", &["Last-Event-ID: 4"]).await;
        assert_eq!(ids(both, 1).await, [5], "the header goes before the query");
        publish(&running, 6..=6).await;
        let (id, kind, data) = live.event().await;
        assert_eq!((id, &*kind, data), (Some(6), "t0", serde_json::from_str(&event(6)).unwrap()));
    });
}

#[test]
fn who_is_cut_off_before_the_first_event_misses_nothing() {
    with_server(|running| async move {
        publish(&running, 1..=2).await;
        drop(running.stream("", &[]).await);
        publish(&running, 3..=3).await;
        // As a client does by itself, with the number of the last event that it had: the one that said where it stands.
        assert_eq!(ids(&mut running.stream("", &["Last-Event-ID: 2"]).await, 1).await, [3]);
        let mut events = running.client().follow(Follow::live());
        let waits = tokio::time::timeout(std::time::Duration::from_millis(50), events.next());
        assert!(waits.await.is_err(), "nothing is new");
        publish(&running, 4..=4).await;
        assert!(matches!(events.next().await.unwrap(), Delivered::Event { sequence: 4, .. }));
    });
}

#[test]
fn what_is_no_sequence_number_is_refused() {
    with_server(|running| async move {
        for value in [
            "-1",
            "18446744073709551616",
            "18446744073709551615",
            "text",
            "1.5",
            "+1",
            "1 2",
            "0x1",
            "\u{7f}",
        ] {
            let header = format!("Last-Event-ID: {value}");
            let answer = running.send("GET", "/v1/events", &[&header], b"").await;
            assert_eq!(answer.status, 400, "{value}: {answer:?}");
        }
        let twice = running.send("GET", "/v1/events", &["Last-Event-ID: 1", "Last-Event-ID: 1"], b"").await;
        twice.refuses(400, "twice");
        let raw = [
            &b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nLast-Event-ID: \xff"[..],
            b"\r\n\r\n",
        ];
        running.raw(raw.concat()).await.refuses(400, "ASCII");
        let long = "9".repeat(10_000);
        let answer = running.get(&format!("/v1/events?last_sequence={long}")).await;
        answer.refuses(400, "no sequence number");
        assert!(answer.body.len() < 500, "{answer:?}");
        for (query, words) in [
            ("?last_sequence=", "no sequence number"),
            ("?subscription=", "no name"),
            ("?ack=yes", "ack=auto"),
            ("?last-sequence=1", "`last-sequence`"),
            ("?domain=x", "domain"),
        ] {
            running.get(&format!("/v1/events{query}")).await.refuses(400, words);
        }
    });
}

#[test]
fn a_filter_lets_through_what_it_names() {
    with_server(|running| async move {
        publish(&running, 1..=9).await;
        let of_types = &mut running.stream("?last_sequence=0&type=t1&type=t2&source=%2Fs0", &[]).await;
        assert_eq!(ids(of_types, 3).await, [2, 4, 8]);
    });
}

#[test]
fn a_durable_subscription_waits_for_acknowledgements_and_keeps_its_place() {
    with_server(|running| async move {
        publish(&running, 1..=3).await;
        let mut first = running.stream("?subscription=a%20b&last_sequence=0", &[]).await;
        assert_eq!(ids(&mut first, 3).await, [1, 2, 3]);
        let (id, kind, data) = first.event().await;
        assert_eq!((id, &*kind, data), (None, "strandline.awaiting", json!({"sequence": 3})));
        let acknowledge =
            |body: &'static str| running.send("POST", "/v1/subscriptions/a%20b/ack", &[], body.as_bytes());
        acknowledge("{}").await.refuses(400, "sequence");
        acknowledge("{\"sequence\":4}").await.refuses(409, "up to 3");
        assert_eq!(acknowledge("{\"sequence\":2}").await.status, 204);
        drop(first);
        let mut second = running.stream("?subscription=a%20b", &[]).await;
        assert_eq!(ids(&mut second, 1).await, [3], "it goes on behind what was acknowledged");

        let listed = running.get("/v1/subscriptions").await.json();
        let found =
            listed["subscriptions"].as_array().unwrap().iter().find(|one| one["name"] == "a b").unwrap();
        assert_eq!(
            (&found["pointer"], &found["pins"], &found["lag_events"]),
            (&json!(2), &json!(3), &json!(1))
        );
        // Another connection takes it over, and the first is told.
        assert_eq!(second.event().await.1, "strandline.awaiting");
        let _third = running.stream("?subscription=a%20b", &[]).await;
        assert_eq!(second.event().await.1, "strandline.ended");
        assert_eq!(second.next().await, None);
        assert_eq!(running.send("DELETE", "/v1/subscriptions/a%20b", &[], b"").await.status, 204);
        running.send("DELETE", "/v1/subscriptions/a%20b", &[], b"").await.refuses(404, "a b");
        acknowledge("{\"sequence\":3}").await.refuses(404, "a b");
    });
}

#[test]
fn acknowledging_by_itself_needs_nothing_of_the_client() {
    with_server(|running| async move {
        publish(&running, 1..=3).await;
        let mut stream = running.stream("?subscription=auto&ack=auto&last_sequence=0", &[]).await;
        assert_eq!(ids(&mut stream, 3).await, [1, 2, 3]);
        publish(&running, 4..=4).await;
        assert_eq!(ids(&mut stream, 1).await, [4], "live, without an acknowledgement in between");
        publish(&running, 5..=5).await;
        assert_eq!(ids(&mut stream, 1).await, [5]);
        let pointer = || running.bus.subscriptions().iter().map(|status| status.pointer.get()).max();
        // Once the connection asks for more.
        while pointer() != Some(5) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn more_than_a_replay_delivers_is_a_gap_and_moves_no_place() {
    with_server(|running| async move {
        let draft = |payload| EventDraft { domain: 1, event_type: "t", source: "s", payload };
        running.bus.publish_all((0..1_001).map(|_| draft(&b"{}"[..]))).unwrap();
        let mut stream = running.stream("?last_sequence=0", &[]).await;
        let (id, kind, data) = stream.event().await;
        assert_eq!((id, &*kind), (None, "strandline.gap"));
        let gap =
            json!({"from": 1, "to": 1_001, "count": 1_001, "reason": "too_many", "resume_after": 1_001});
        assert_eq!(data, gap);
        let states: Vec<_> = running.bus.subscriptions().iter().map(|status| status.state.label()).collect();
        assert_eq!(states, ["LIVE"], "nobody has to acknowledge it");
        running.bus.publish(draft(b"\"next\"")).unwrap();
        assert_eq!(ids(&mut stream, 1).await, [1_002]);
        let mut exact = running.stream("?last_sequence=2", &[]).await;
        assert_eq!(ids(&mut exact, 1_000).await, (3..=1_002).collect::<Vec<_>>(), "a thousand are delivered");
        let mut beyond = running.stream("?last_sequence=5000", &[]).await;
        assert_eq!(beyond.event().await.2["reason"], "beyond_the_end");
    });
}

/// Nobody knows whether a gap on a connection that broke was received; so it is told again, and acknowledged then.
#[test]
fn a_gap_is_acknowledged_on_the_connection_that_told_it() {
    with_server(|running| async move {
        let draft = |payload| EventDraft { domain: 1, event_type: "t", source: "s", payload };
        let acknowledge = || running.send("POST", "/v1/subscriptions/d/ack", &[], b"{\"sequence\":1001}");
        drop(running.stream("?subscription=d", &[]).await);
        let is_away = async || {
            let state = || running.bus.subscriptions().first().map(|status| status.state.label());
            while state() != Some("SUSPENDED") {
                tokio::task::yield_now().await;
            }
        };
        is_away().await;
        running.bus.publish_all((0..1_001).map(|_| draft(&b"{}"[..]))).unwrap();
        let mut first = running.stream("?subscription=d", &[]).await;
        assert_eq!(first.event().await.2["resume_after"], 1_001);
        drop(first);
        is_away().await;
        acknowledge().await.refuses(409, "Subscribe again");
        let mut second = running.stream("?subscription=d", &[]).await;
        assert_eq!(second.event().await.2["resume_after"], 1_001);
        assert_eq!(acknowledge().await.status, 204);
        running.bus.publish(draft(b"\"next\"")).unwrap();
        assert_eq!(ids(&mut second, 1).await, [1_002]);
    });
}

#[test]
fn what_is_in_the_journal_cannot_break_a_frame() {
    with_server(|running| async move {
        for payload in [&b"plain"[..], b"\xff\0", b"{\"a\":\n1,\r\n\"b\":\r2}\n\n", b"data: x\n\nid: 99\n\n"]
        {
            let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload };
            running.bus.publish(draft).unwrap();
        }
        let mut stream = running.stream("?last_sequence=0", &[]).await;
        let mut data = Vec::new();
        for id in 1..=4 {
            let (found, kind, wrapped) = stream.event().await;
            assert_eq!((found, &*kind), (Some(id), "t"));
            assert_eq!((&wrapped["id"], &wrapped["source"]), (&json!(id.to_string()), &json!("s")));
            data.push((wrapped["data"].clone(), wrapped["data_base64"].clone()));
        }
        let null = serde_json::Value::Null;
        assert_eq!(data[0], (null.clone(), json!("cGxhaW4=")));
        assert_eq!(data[1], (null.clone(), json!("/wA=")));
        assert_eq!(data[2], (json!({"a": 1, "b": 2}), null.clone()));
        assert_eq!(data[3], (null, json!("ZGF0YTogeAoKaWQ6IDk5Cgo=")));
    });
}

#[test]
fn the_end_of_the_server_is_told_and_clients_go_on_with_the_next() {
    with_server(|running| async move {
        publish(&running, 1..=2).await;
        let mut stream = running.stream("?last_sequence=1", &[]).await;
        assert_eq!(ids(&mut stream, 1).await, [2]);
        running.end().await;
        assert_eq!(stream.event().await.1, "strandline.shutdown");
        assert_eq!(stream.next().await, None);
    });
}

#[test]
fn a_client_goes_on_by_itself_and_repeats_nothing() {
    with_server(|running| async move {
        publish(&running, 1..=3).await;
        let client = running.client();
        let mut events = client.follow(Follow::durable("c").after(0));
        for sequence in 1..=3 {
            let delivered = events.next().await.unwrap();
            let data = event(sequence);
            let event_type = format!("t{}", sequence % 3);
            assert_eq!(delivered, Delivered::Event { sequence, event_type, data });
        }
        assert_eq!(events.next().await.unwrap(), Delivered::Awaiting { sequence: 3 });
        events.acknowledge(1).await.unwrap();
        // Somebody else has it for a moment.
        let mut other = client.follow(Follow::durable("c"));
        assert!(matches!(other.next().await.unwrap(), Delivered::Event { sequence: 2, .. }));
        assert!(matches!(events.next().await, Err(ClientError::Ended)));
        // It connects again, and is not given twice what it has not acknowledged.
        assert_eq!(events.next().await.unwrap(), Delivered::Awaiting { sequence: 3 });
        events.acknowledge(3).await.unwrap();
        publish(&running, 4..=4).await;
        assert!(matches!(events.next().await.unwrap(), Delivered::Event { sequence: 4, .. }));
        assert!(matches!(client.acknowledge("nobody", 1).await, Err(ClientError::Refused { .. })));
    });
}

/// A way to the server that can be closed for new connections.
#[derive(Clone, Debug)]
struct Door {
    address: Arc<Mutex<std::net::SocketAddr>>,
    is_closed: Arc<AtomicBool>,
    tried: Arc<AtomicUsize>,
}

impl Door {
    fn to(running: &Running) -> Self {
        let address = Arc::new(Mutex::new(running.address));
        Self { address, is_closed: Arc::default(), tried: Arc::default() }
    }

    fn lead_to(&self, running: &Running) {
        *self.address.lock().unwrap() = running.address;
    }
}

impl Connect for Door {
    type Connection = TcpStream;

    async fn connect(&self) -> std::io::Result<TcpStream> {
        self.tried.fetch_add(1, Ordering::SeqCst);
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        let address = *self.address.lock().unwrap();
        TcpStream::connect(address).await
    }
}

#[test]
fn what_could_not_be_acknowledged_is_while_the_stream_lives_on() {
    with_server(|running| async move {
        publish(&running, 1..=2).await;
        let door = Door::to(&running);
        let (is_closed, tried) = (Arc::clone(&door.is_closed), Arc::clone(&door.tried));
        let mut events = Client::on(door, "localhost").follow(Follow::durable("d").after(0));
        for sequence in 1..=2 {
            assert!(
                matches!(events.next().await.unwrap(), Delivered::Event { sequence: found, .. } if found == sequence)
            );
        }
        assert_eq!(events.next().await.unwrap(), Delivered::Awaiting { sequence: 2 });
        is_closed.store(true, Ordering::SeqCst);
        events.acknowledge(2).await.unwrap();
        publish(&running, 3..=3).await;
        // The server waits for the acknowledgement, and its stream is whole.
        let opens = async {
            while tried.load(Ordering::SeqCst) < 4 {
                tokio::task::yield_now().await;
            }
            is_closed.store(false, Ordering::SeqCst);
            std::future::pending::<()>().await;
        };
        let delivered =
            tokio::select! { delivered = events.next() => delivered, () = opens => unreachable!() };
        assert!(matches!(delivered.unwrap(), Delivered::Event { sequence: 3, .. }));
    });
}

/// What a client is given next, and acknowledges.
async fn taken(events: &mut Subscriber<Door>) -> Delivered {
    loop {
        let delivered = events.next().await.unwrap();
        let processed = match &delivered {
            Delivered::Event { sequence, .. } | Delivered::Awaiting { sequence } => *sequence,
            Delivered::Gap(gap) => gap.resume_after,
        };
        events.acknowledge(processed).await.unwrap();
        if !matches!(delivered, Delivered::Awaiting { .. }) {
            return delivered;
        }
    }
}

#[test]
fn a_client_that_is_ahead_of_a_journal_is_told_so() {
    with_server(|running| async move {
        publish(&running, 1..=4).await;
        let door = Door::to(&running);
        let mut events = Client::on(door.clone(), "localhost").follow(Follow::durable("w").after(0));
        for _ in 1..=4 {
            taken(&mut events).await;
        }
        let wiped = running.restart_after(|directory| std::fs::remove_dir_all(directory).unwrap()).await;
        publish(&wiped, 1..=2).await;
        door.lead_to(&wiped);
        let Delivered::Gap(gap) = taken(&mut events).await else {
            panic!("the numbers mean other events now")
        };
        assert_eq!((&*gap.reason, gap.resume_after), ("beyond_the_end", 2));
        publish(&wiped, 3..=3).await;
        assert!(matches!(taken(&mut events).await, Delivered::Event { sequence: 3, .. }));
    });
}

#[test]
fn a_client_whose_subscription_was_removed_goes_on_behind_what_it_was_given() {
    with_server(|running| async move {
        publish(&running, 1..=2).await;
        let door = Door::to(&running);
        let mut events = Client::on(door.clone(), "localhost").follow(Follow::durable("r").after(0));
        for _ in 1..=2 {
            taken(&mut events).await;
        }
        let again = running.restart().await;
        assert_eq!(again.send("DELETE", "/v1/subscriptions/r", &[], b"").await.status, 204);
        publish(&again, 3..=4).await;
        door.lead_to(&again);
        for expected in 3..=4 {
            assert!(
                matches!(taken(&mut events).await, Delivered::Event { sequence, .. } if sequence == expected)
            );
        }
    });
}

#[test]
fn a_bus_under_a_path_is_reached_by_its_client() {
    with_server(|running| async move {
        let server = Server::new(running.bus.clone(), ServerSettings::default()).await.unwrap();
        let router = Router::new().nest("/bus", server.router());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/bus/", listener.local_addr().unwrap());
        let client = Client::new(&address).unwrap();
        let serves =
            server.serve_router(router, listener, ConnectionLimits::default(), std::future::pending());
        let uses = async {
            assert_eq!(client.publish(&event(1)).await.unwrap(), 1);
            let mut events = client.follow(Follow::durable("n").after(0));
            assert!(matches!(events.next().await.unwrap(), Delivered::Event { sequence: 1, .. }));
            client.acknowledge("n", 1).await.unwrap();
        };
        tokio::select! { () = serves => unreachable!(), () = uses => {} }
    });
}

#[test]
fn what_is_no_address_is_refused() {
    for bad in [
        "http://localhost:99999",
        "http://localhost:",
        "http://a@localhost",
        "https://localhost",
        "localhost",
    ] {
        assert!(matches!(Client::new(bad), Err(ClientError::Address { .. })), "{bad}");
    }
    assert!(Client::new("http://localhost:1/?q").is_err() && Client::new("http://[::1]:1/").is_ok());
}
