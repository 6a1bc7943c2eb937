//! What is taken, what is refused and why, and each event once.

use serde_json::json;

use strandline_bus::{ConnectionLimits, Guard, ServerSettings};
use tokio::io::{AsyncWriteExt as _, BufReader};

use crate::server::{Answer, Running, with, with_server};

const STRUCTURED: &str = "Content-Type: application/cloudevents+json";
const BATCH: &str = "Content-Type: application/cloudevents-batch+json";
const PLAIN: &str = "Content-Type: application/json";

fn event(id: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/shop","type":"order.placed"}}"#)
}

/// The payload of an event, as the journal has it.
fn stored(running: &Running, seq: u64) -> String {
    use strandline::{ReadStep, ReadUpTo, Seq};
    let mut reader = running.bus.events().reader(Seq::new(seq), ReadUpTo::Durable);
    let ReadStep::Records(batch) = reader.next_batch(Some(std::time::Duration::ZERO)).unwrap() else {
        panic!("event {seq} is not there")
    };
    String::from_utf8(batch.records().next().unwrap().payload.to_vec()).unwrap()
}

#[test]
fn a_structured_event_is_kept_byte_for_byte() {
    with_server(|running| async move {
        let text = r#" {"specversion":"1.0","id":"é1","source":"/shop","type":"order.placed","subject":"s","time":"2026-11-30T12:00:00+01:00","n":7,"flag":true,"data":{"x":1.50}} "#;
        let answer = running.publish(text).await;
        assert_eq!((answer.status, answer.json()), (201, json!({"sequence": 1})));
        assert_eq!(stored(&running, 1), text);
    });
}

#[test]
fn a_batch_is_published_in_order_and_whole() {
    with_server(|running| async move {
        let batch = format!("[{},{},{}]", event("1"), event("2"), event("1"));
        let answer = running.send("POST", "/v1/events?domain=7", &[BATCH], batch.as_bytes()).await;
        assert_eq!((answer.status, answer.json()), (201, json!({"sequences": [1, 2, 1]})));
        let answer = running.send("POST", "/v1/events", &[BATCH], b"[]").await;
        assert_eq!((answer.status, answer.json()), (200, json!({"sequences": []})));
        let bad = format!("[{},{{}}]", event("9"));
        let answer = running.send("POST", "/v1/events", &[BATCH], bad.as_bytes()).await;
        answer.refuses(400, "event 1 of the batch");
        assert_eq!(running.bus.events().next_seq().get(), 3, "nothing of it was published");
    });
}

#[test]
fn attributes_in_headers_and_data_of_any_kind_survive() {
    with_server(|running| async move {
        let attributes = [
            "ce-specversion: 1.0",
            "ce-id: 1",
            "ce-source: /shop",
            "ce-type: t",
            "ce-subject: Euro%20%E2%82%AC",
            "ce-time: 2026-11-30T12:00:00Z",
            "ce-comexample: x",
        ];
        let mut expected = json!({"specversion": "1.0", "id": "1", "source": "/shop", "type": "t", "subject": "Euro €",
            "time": "2026-11-30T12:00:00Z", "comexample": "x"});
        for (id, content_type, body, member, data) in [
            ("1", Some("application/json"), &b" [1.50] "[..], "data", json!([1.50])),
            ("2", Some("text/plain; charset=utf-8"), "hä".as_bytes(), "data", json!("hä")),
            ("3", Some("application/octet-stream"), b"\0\xff", "data_base64", json!("AP8=")),
            ("4", None, b"{\"a\":1}", "data", json!({"a": 1})),
        ] {
            let id_header = format!("ce-id: {id}");
            let mut headers = attributes.to_vec();
            headers[1] = &id_header;
            let content = content_type.map(|content_type| format!("Content-Type: {content_type}"));
            headers.extend(content.as_deref());
            let answer = running.send("POST", "/v1/events", &headers, body).await;
            assert_eq!(answer.status, 201, "{answer:?}");
            let seq = answer.json()["sequence"].as_u64().unwrap();
            let mut wanted = expected.clone();
            wanted["id"] = json!(id);
            if let Some(content_type) = content_type {
                wanted["datacontenttype"] = json!(content_type);
            }
            wanted[member] = data;
            let found: serde_json::Value = serde_json::from_str(&stored(&running, seq)).unwrap();
            assert_eq!(found, wanted);
        }
        expected["id"] = json!("5");
        let mut headers = attributes.to_vec();
        headers[1] = "ce-id: 5";
        let answer = running.send("POST", "/v1/events", &headers, b"").await;
        let seq = answer.json()["sequence"].as_u64().unwrap();
        let found: serde_json::Value = serde_json::from_str(&stored(&running, seq)).unwrap();
        assert_eq!(found, expected, "an event without data");
    });
}

#[test]
fn a_header_in_double_quotes_is_what_they_enclose() {
    with_server(|running| async move {
        let headers = [
            "ce-specversion: 1.0",
            "ce-id: \"1\"",
            "ce-source: /shop",
            "ce-type: t",
            r#"ce-subject: "a \"b\" \\ 100%25""#,
            "Content-Type: Application/JSON",
        ];
        let answer = running.send("POST", "/v1/events", &headers, b"[1]").await;
        assert_eq!(answer.json(), json!({"sequence": 1}));
        let found: serde_json::Value = serde_json::from_str(&stored(&running, 1)).unwrap();
        let wanted = json!({"specversion": "1.0", "id": "1", "source": "/shop", "type": "t",
            "subject": r#"a "b" \ 100%"#, "datacontenttype": "Application/JSON", "data": [1]});
        assert_eq!(found, wanted);
    });
}

#[test]
fn what_headers_say_that_would_not_count_is_refused() {
    with_server(|running| async move {
        let structured = event("1").into_bytes();
        let binary = ["ce-specversion: 1.0", "ce-id: 1", "ce-source: s", "ce-type: t"];
        let as_text = [&binary[..], &["ce-datacontenttype: text/plain"]].concat();
        for (headers, body, status, words) in [
            (vec![STRUCTURED, STRUCTURED], &structured[..], 400, "twice"),
            (vec![STRUCTURED, "Content-Encoding: gzip"], &structured, 415, "gzip"),
            (vec![STRUCTURED, "Content-Encoding: identity", "Content-Encoding: br"], &structured, 415, "br"),
            (vec![STRUCTURED, "Content-Encoding: identity, gzip"], &structured, 415, "gzip"),
            ([&as_text[..], &[PLAIN]].concat(), b"1", 400, "`ce-datacontenttype`"),
            (as_text, b"1", 400, "`ce-datacontenttype`"),
        ] {
            running.send("POST", "/v1/events", &headers, body).await.refuses(status, words);
        }
        assert_eq!(running.bus.events().next_seq().get(), 1, "nothing was published");
    });
}

#[test]
fn an_encoding_and_a_content_type_that_say_nothing_else_are_taken() {
    with_server(|running| async move {
        let headers = [STRUCTURED, "Content-Encoding: Identity"];
        let answer = running.send("POST", "/v1/events", &headers, event("1").as_bytes()).await;
        assert_eq!(answer.json(), json!({"sequence": 1}));
        let headers = [
            "ce-specversion: 1.0",
            "ce-id: 2",
            "ce-source: /shop",
            "ce-type: t",
            "ce-datacontenttype: text/plain",
            "Content-Type: text/plain",
        ];
        let answer = running.send("POST", "/v1/events", &headers, b"x").await;
        assert_eq!(answer.json(), json!({"sequence": 2}));
        let found: serde_json::Value = serde_json::from_str(&stored(&running, 2)).unwrap();
        assert_eq!((&found["datacontenttype"], &found["data"]), (&json!("text/plain"), &json!("x")));
    });
}

/// What is parsed on another thread is answered as what is not.
#[test]
fn a_long_batch_is_published_in_order_and_whole() {
    with_server(|running| async move {
        let events: Vec<_> = (0..1_000).map(|n| event(&n.to_string())).collect();
        let batch = format!("[{}]", events.join(","));
        assert!(batch.len() > 64 << 10);
        let wanted: Vec<u64> = (1..=1_000).collect();
        for status in [201, 200] {
            let answer = running.send("POST", "/v1/events", &[BATCH], batch.as_bytes()).await;
            assert_eq!((answer.status, answer.json()), (status, json!({"sequences": wanted})));
        }
        assert_eq!(stored(&running, 1_000), event("999"));
        let bad = format!("[{},{{}}]", events.join(","));
        let answer = running.send("POST", "/v1/events", &[BATCH], bad.as_bytes()).await;
        answer.refuses(400, "event 1000 of the batch");
    });
}

/// A client that reads once it has sent everything sees why it was refused.
#[test]
fn a_refusal_is_seen_by_who_does_not_read_while_sending() {
    let guard = Guard { token: Some("0123456789abcdef".into()), any_host: false };
    let settings = ServerSettings { body_bytes_max: 8 << 20, guard, ..ServerSettings::default() };
    with(settings, ConnectionLimits::default(), |running| async move {
        let token = "Authorization: Bearer 0123456789abcdef";
        for (shown, len, status, words) in [("X: y", 8 << 20, 401, "token"), (token, 12 << 20, 413, "bytes")]
        {
            for connection in ["close", "keep-alive"] {
                let mut stream = running.connect().await;
                let head = format!(
                    "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n{shown}\r\nContent-Length: {len}\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                let piece = vec![b' '; 64 << 10];
                for _ in 0..len / piece.len() {
                    stream.write_all(&piece).await.unwrap();
                }
                Answer::read(BufReader::new(stream)).await.refuses(status, words);
            }
        }
    });
}

#[test]
fn plain_json_needs_a_type_and_a_source() {
    with_server(|running| async move {
        let answer = running.send("POST", "/v1/events?type=t&source=%2Fs", &[PLAIN], b"[1, 2]").await;
        assert_eq!((answer.status, answer.json()), (201, json!({"sequence": 1})));
        assert_eq!(stored(&running, 1), "[1, 2]");
        running.send("POST", "/v1/events?source=s", &[PLAIN], b"1").await.refuses(400, "`type` is missing");
        running.send("POST", "/v1/events?type=t", &[PLAIN], b"1").await.refuses(400, "`source` is missing");
    });
}

#[test]
fn what_is_no_event_is_refused_with_a_reason() {
    with_server(|running| async move {
        let with = |member: &str| {
            format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t",{member}}}"#).into_bytes()
        };
        let long =
            format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"{}"}}"#, "t".repeat(1_025));
        for (headers, body, status, words) in [
            (&[STRUCTURED][..], b"nope".to_vec(), 400, "JSON"),
            (&[STRUCTURED], b"[]".to_vec(), 400, "JSON"),
            (&[STRUCTURED], b"{}".to_vec(), 400, "no CloudEvent"),
            (&[STRUCTURED], b"\xff".to_vec(), 400, "no UTF-8 at byte 0"),
            (&[STRUCTURED], br#"{"specversion":"1.0","source":"/s","type":"t"}"#.to_vec(), 400, "\"id\""),
            (&[STRUCTURED], with(r#""Foo":1"#), 400, "lower-case"),
            (&[STRUCTURED], with(r#""x":[]"#), 400, "`x`"),
            (&[STRUCTURED], with(r#""x":1.5"#), 400, "`x`"),
            (&[STRUCTURED], with(r#""x":1e999"#), 400, "`x`"),
            (&[STRUCTURED], with(r#""x":{"a":1}"#), 400, "`x`"),
            (&[STRUCTURED], with(r#""subject":"\ud800""#), 400, "`subject`"),
            (&[STRUCTURED], with(r#""time":"noon""#), 400, "RFC 3339"),
            (&[STRUCTURED], with(r#""subject":"""#), 400, "`subject`"),
            (&[STRUCTURED], with(r#""id":"2""#), 400, "twice"),
            (&[STRUCTURED], with(r#""data":1,"data_base64":"AA==""#), 400, "both"),
            (&[STRUCTURED], with(r#""data_base64":"?""#), 400, "Base64"),
            (&[STRUCTURED], long.into_bytes(), 400, "1 to 1024"),
            (
                &[STRUCTURED],
                br#"{"specversion":"1.0","id":"1","source":"/s","type":"a\ndata: x"}"#.to_vec(),
                400,
                "control",
            ),
            (
                &[STRUCTURED],
                br#"{"specversion":"1.0","id":"1","source":"/s","type":"strandline.gap"}"#.to_vec(),
                400,
                "strandline.",
            ),
            (&[BATCH], b"{}".to_vec(), 400, "JSON"),
            (&[PLAIN], b"".to_vec(), 400, "JSON"),
            (&[PLAIN], event("1").into_bytes(), 400, "application/cloudevents+json"),
            (&["Content-Type: text/html"], b"x".to_vec(), 415, "text/html"),
            (&[], b"x".to_vec(), 415, "no content type"),
            (&["ce-specversion: 1.0", "ce-id: %+1"], b"".to_vec(), 400, "percent"),
            (&["ce-specversion: 1.0", "ce-id: \"1"], b"".to_vec(), 400, "`ce-id`"),
            (&["ce-specversion: 1.0", "ce-id: \"1\"2"], b"".to_vec(), 400, "`ce-id`"),
            (&["ce-specversion: 1.0", "ce-data: 1"], b"".to_vec(), 400, "as the body"),
            (&["ce-specversion: 1.0", "ce-id: %zz"], b"".to_vec(), 400, "percent"),
            (
                &["ce-specversion: 1.0", "ce-id: 1", "ce-source: s", "ce-type: t", PLAIN],
                b"{".to_vec(),
                400,
                "JSON",
            ),
        ] {
            let answer = running.send("POST", "/v1/events", headers, &body).await;
            answer.refuses(status, words);
        }
        for (query, words) in [
            ("?domain=0", "domain"),
            ("?domain=256", "domain"),
            ("?tpye=t", "`tpye`"),
            ("?domain=1&domain=2", "twice"),
        ] {
            running
                .send("POST", &format!("/v1/events{query}"), &[STRUCTURED], event("1").as_bytes())
                .await
                .refuses(400, words);
        }
        assert_eq!(running.bus.events().next_seq().get(), 1, "nothing was published");
    });
}

#[test]
fn the_same_event_is_published_once_also_after_a_restart() {
    with_server(|running| async move {
        assert_eq!(running.publish(&event("1")).await.json(), json!({"sequence": 1}));
        assert_eq!(running.publish(&event("2")).await.json(), json!({"sequence": 2}));
        let again = running.publish(&event("1")).await;
        assert_eq!((again.status, again.json()), (200, json!({"sequence": 1})));
        let running = running.restart().await;
        let again = running.publish(&event("2")).await;
        assert_eq!((again.status, again.json()), (200, json!({"sequence": 2})));
        let other = event("2").replace("/shop", "/other");
        assert_eq!(
            running.publish(&other).await.json(),
            json!({"sequence": 3}),
            "another source, another event"
        );
        running.end().await;
    });
}

#[test]
fn many_who_publish_the_same_at_once_get_one_number() {
    with_server(|running| async move {
        let client = running.client();
        for round in 0..20 {
            let tasks: Vec<_> = (0..8)
                .map(|_| {
                    let (client, event) = (client.clone(), event(&format!("r{round}")));
                    tokio::spawn(async move { client.publish(&event).await.unwrap() })
                })
                .collect();
            let mut numbers = Vec::new();
            for task in tasks {
                numbers.push(task.await.unwrap());
            }
            assert_eq!(numbers, [round + 1; 8]);
        }
        assert_eq!(running.bus.events().next_seq().get(), 21);
    });
}

#[test]
fn a_body_that_is_too_long_or_dawdles_is_refused() {
    let settings = ServerSettings {
        body_bytes_max: 1_000,
        body_timeout: std::time::Duration::from_millis(100),
        ..ServerSettings::default()
    };
    with(settings, ConnectionLimits::default(), |running| async move {
        let long = vec![b' '; 1_001];
        running.send("POST", "/v1/events", &[STRUCTURED], &long).await.refuses(413, "1000 bytes");
        let request = "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/cloudevents+json\r\n";
        let said = format!("{request}Content-Length: 1073741824\r\n\r\n");
        running.raw(said).await.refuses(413, "1000 bytes");
        let chunks =
            format!("{request}Transfer-Encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n", " ".repeat(1_001));
        running.raw(chunks).await.refuses(413, "1000 bytes");
        let waits = format!("{request}Content-Length: 10\r\n\r\n{{");
        running.raw(waits).await.refuses(408, "too long to arrive");
        assert_eq!(running.publish(&event("3")).await.status, 201);
    });
}

#[test]
fn bodies_take_no_more_room_than_there_is() {
    let settings =
        ServerSettings { body_bytes_max: 1_000, bodies_bytes_max: 1_000, ..ServerSettings::default() };
    with(settings, ConnectionLimits::default(), |running| async move {
        use tokio::io::AsyncReadExt as _;
        let mut first = tokio::net::TcpStream::connect(running.address).await.unwrap();
        let head = "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nContent-Type: application/cloudevents+json\r\n\r\n";
        first.write_all(head.as_bytes()).await.unwrap();
        let mut goes_on = [0; 12];
        first.read_exact(&mut goes_on).await.unwrap();
        assert_eq!(&goes_on, b"HTTP/1.1 100");
        // It did not say how long it is, and keeps nobody out before it has sent something.
        assert_eq!(running.publish(&event("1")).await.status, 201);
        let body = event("2");
        let (half, rest) = body.split_at(body.len() / 2);
        first.write_all(format!("{:x}\r\n{half}\r\n", half.len()).as_bytes()).await.unwrap();
        // Until that has arrived, there is room.
        let refused = loop {
            let answer = running.publish(&event("1")).await;
            if answer.status != 200 {
                break answer;
            }
        };
        refused.refuses(429, "in a moment");
        assert!(refused.head.contains("retry-after"), "{refused:?}");
        first.write_all(format!("{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len()).as_bytes()).await.unwrap();
        let mut answer = [0; 1_024];
        let mut text = String::new();
        while !text.contains("sequence") {
            let read = first.read(&mut answer).await.unwrap();
            assert!(read > 0, "{text}");
            text.push_str(std::str::from_utf8(&answer[..read]).unwrap());
        }
        assert_eq!(running.publish(&event("3")).await.status, 201);
    });
}
