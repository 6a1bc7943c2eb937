//! A bus over HTTP in processes of their own: served, killed, followed and published to.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Place, Running, feed, program};

/// Starts a server; gives it and its address.
fn serve(place: &Place, listen: &str, flags: &[&str]) -> (Running, String) {
    let mut server = program("serve");
    server.arg(&place.journal).args(["--listen", listen]).args(flags);
    let server = Running::start(&mut server);
    let line = server.line();
    let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).to_string();
    (server, address)
}

fn event(n: u64) -> String {
    format!(r#"{{"specversion":"1.0","id":"{n}","source":"/shop","type":"order.placed","data":{n}}}"#)
}

/// `sub` until so many events came.
fn follow(address: &str, flags: &[&str]) -> (i32, Vec<Value>) {
    let ran = feed(program("sub").arg(address).args(flags), b"");
    (ran.code, ran.json())
}

#[test]
fn what_is_published_is_followed() {
    let place = Place::new();
    let (_server, address) = serve(&place, "127.0.0.1:0", &[]);
    let lines = format!("{}\n\n[1.50]\n", event(1));
    let published =
        feed(program("pub").arg(&address).args(["--type", "t", "--source", "s", "--ack"]), lines.as_bytes());
    assert_eq!(published.succeeds().text(), "1\n2\n{\"first\":1,\"last\":2,\"count\":2}\n");
    let again = feed(program("pub").arg(&address), event(1).as_bytes());
    assert_eq!(again.succeeds().text(), "{\"first\":1,\"last\":1,\"count\":1}\n", "it is there already");
    let (code, lines) = follow(&address, &["--after", "0", "--limit", "2"]);
    assert_eq!(code, 0);
    let first: Value = serde_json::from_str(&event(1)).unwrap();
    assert_eq!(lines[0], json!({"sequence": 1, "event": first}));
    let second = &lines[1]["event"];
    assert_eq!(
        (&second["data"], &second["type"], &second["source"]),
        (&json!([1.50]), &json!("t"), &json!("s"))
    );
    let (_, lines) = follow(&address, &["--after", "0", "--type", "t", "--limit", "1"]);
    assert_eq!(lines[0]["sequence"], 2);
    let bad = feed(program("pub").arg(&address), b"{\"specversion\":\"1.0\"}\n");
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(bad.err.contains("line 1") && bad.err.contains("\"id\""), "{bad:?}");
}

#[test]
fn a_durable_subscriber_goes_on_behind_what_it_printed() {
    let place = Place::new();
    let (server, address) = serve(&place, "127.0.0.1:0", &[]);
    let lines: String = (1..=5).map(|n| event(n) + "\n").collect();
    feed(program("pub").arg(&address), lines.as_bytes()).succeeds();
    let sequences = |flags: &[&str]| -> Vec<u64> {
        let (code, lines) = follow(&address, flags);
        assert_eq!(code, 0);
        lines.iter().map(|line| line["sequence"].as_u64().unwrap()).collect()
    };
    assert_eq!(sequences(&["--durable", "d", "--after", "0", "--limit", "2"]), [1, 2]);
    assert_eq!(sequences(&["--durable", "d", "--limit", "3"]), [3, 4, 5]);
    drop(server);
    let listed = place.run("subscriptions", &["--json"]);
    let document: Value = serde_json::from_slice(&listed.out).unwrap();
    assert_eq!(document["subscriptions"][0]["pointer"], 5, "{listed:?}");
}

/// A server that is killed in the middle of everything, and started again at the same address.
#[test]
fn every_event_that_was_answered_reaches_every_durable_subscriber_in_order() {
    let place = Place::new();
    let (mut server, address) = serve(&place, "127.0.0.1:0", &[]);
    let listen = address.strip_prefix("http://").unwrap().to_string();
    let subscribers: Vec<_> = ["a", "b"]
        .map(|name| Running::start(program("sub").arg(&address).args(["--durable", name, "--after", "0"])))
        .into();
    let mut answered = Vec::new();
    let mut published = 0;
    // Three kills, or as many as are asked for.
    let kills = std::env::var("STRANDLINE_KILLS").map_or(3, |kills| kills.parse().unwrap());
    for kill in 0..kills {
        let mut publisher = Running::start(program("pub").arg(&address).arg("--ack"));
        let lines: String = (published..published + 40).map(|n| event(n) + "\n").collect();
        publisher.write(&lines);
        published += 40;
        for _ in 0..10 + kill % 25 {
            answered.push(publisher.line().parse::<u64>().unwrap());
        }
        server.kill();
        (server, _) = serve(&place, &listen, &[]);
        // Whoever publishes tries again by itself, and what was published already is there once.
        let (code, rest, said) = publisher.finish();
        assert_eq!(code, 0, "{said}");
        answered.extend(rest.iter().filter_map(|line| line.parse::<u64>().ok()));
    }
    assert_eq!(answered, (1..=published).collect::<Vec<_>>(), "one number each, none twice");
    for subscriber in subscribers {
        // Somebody who was away for more than a thousand events is told so, and which.
        let mut next = 1;
        while next <= published {
            let line: Value = serde_json::from_str(&subscriber.line()).unwrap();
            if let Some(gap) = line.get("gap") {
                let [from, to] = ["from", "to"].map(|end| gap[end].as_u64().unwrap());
                // It begins behind what was acknowledged when the server was killed.
                assert!(from <= next && next <= to && to - from >= 1_000, "event {next} is due: {line}");
                next = to + 1;
            } else {
                assert_eq!(line["sequence"], next, "in order, and nothing twice in one process");
                assert_eq!(line["event"]["data"], next - 1);
                next += 1;
            }
        }
    }
}

#[test]
fn a_server_ends_with_a_closing_mark_when_it_is_told_to() {
    let place = Place::new();
    let (server, address) = serve(&place, "127.0.0.1:0", &[]);
    feed(program("pub").arg(&address), event(1).as_bytes()).succeeds();
    let subscriber = Running::start(program("sub").arg(&address).args(["--after", "0"]));
    assert!(subscriber.line().contains("\"sequence\":1"));
    let (code, _, said) = server.terminate();
    assert_eq!((code, &*said), (0, ""));
    let verdict = place.run("verify", &["--journal", "event-journal", "--json"]);
    assert_eq!(verdict.code, 0, "{verdict:?}");
    let stat = place.run("stat", &["--journal", "event-journal", "--json"]);
    let document: Value = serde_json::from_slice(&stat.out).unwrap();
    assert_eq!(document["journals"][0]["unproven"], 0, "{stat:?}");
}

#[test]
fn what_a_server_cannot_do_is_said_at_once() {
    let place = Place::new();
    let refused = |flags: &[&str], words: &[&str]| {
        feed(program("serve").arg(&place.journal).args(flags), b"").fails(2, words);
        assert!(!place.journal.exists(), "nothing was made");
    };
    refused(&["--listen", "0.0.0.0:0"], &["--token-file", "127.0.0.1"]);
    refused(&["--listen", "[::]:0"], &["--token-file"]);
    refused(&["--token-file", "/nowhere/token"], &["/nowhere/token"]);
    let token = place.beside("token");
    fs::write(&token, "short\n").unwrap();
    refused(&["--token-file", token.to_str().unwrap()], &["16 visible"]);
    refused(&["--max-size", "64KiB", "--listen", "127.0.0.1:0"], &["--max-size", "1048576"]);
    let (_server, address) = serve(&place, "127.0.0.1:0", &[]);
    let listen = address.strip_prefix("http://").unwrap();
    let second = Place::new();
    feed(program("serve").arg(&second.journal).args(["--listen", listen]), b"")
        .fails(2, &["cannot listen on", listen]);
    assert!(!second.journal.exists(), "nothing was made");
    let socket = second.beside("taken");
    fs::write(&socket, "").unwrap();
    feed(program("serve").arg(&second.journal).arg("--unix").arg(&socket), b"")
        .fails(2, &["cannot listen on"]);
    assert!(!second.journal.exists(), "nothing was made");
    feed(program("serve").arg(&place.journal).args(["--listen", "127.0.0.1:0"]), b"")
        .fails(2, &["open for writing already"]);
    feed(program("sub").arg("ftp://x"), b"").fails(2, &["ftp://x", "http://HOST:PORT"]);
    feed(program("sub").arg(&address).args(["--durable", ""]), b"").fails(2, &["400", "no name"]);
}

#[test]
fn a_socket_in_the_directory_of_the_bus_is_made_with_it() {
    let place = Place::new();
    let mut server = program("serve");
    server.arg(&place.journal).arg("--unix").arg(place.path("bus.sock"));
    let server = Running::start(&mut server);
    assert!(server.line().ends_with("journal/bus.sock"));
    let (code, _, said) = server.terminate();
    assert_eq!((code, &*said), (0, ""));
}

#[test]
fn a_publisher_that_stops_midway_says_how_far_it_came() {
    let place = Place::new();
    let (server, address) = serve(&place, "127.0.0.1:0", &[]);
    let lines = format!("{}\n\n{}\nnot json\n{}\n", event(1), event(2), event(3));
    let stopped = feed(program("pub").arg(&address), lines.as_bytes());
    assert_eq!(stopped.code, 1);
    let said: Vec<_> = stopped.err.lines().collect();
    let summary = "2 events were published, the first as 1, the last as 2; line 4 is the first that was not";
    assert_eq!(said[0], format!("strandline: {summary}"), "{stopped:?}");
    assert!(said[1].contains("line 4"), "{stopped:?}");
    let reserved = event(7).replace("order.placed", "strandline.gap");
    let refused = feed(program("pub").arg(&address), reserved.as_bytes());
    let summary = "0 events were published; line 1 is the first that was not";
    assert_eq!(refused.err.lines().next().unwrap(), format!("strandline: {summary}"), "{refused:?}");
    drop(server);
}

/// As `head -1` does.
#[test]
fn a_follower_ends_with_who_reads_its_output() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let place = Place::new();
    let (_server, address) = serve(&place, "127.0.0.1:0", &[]);
    feed(program("pub").arg(&address), event(1).as_bytes()).succeeds();
    let mut sub = program("sub");
    let mut follower = sub.arg(&address).args(["--after", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(follower.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert!(line.contains("\"sequence\":1"), "{line}");
    drop(out);
    // Nothing more is published: only that its reader is gone ends it.
    assert_eq!(follower.wait().unwrap().code(), Some(0));
}

#[test]
fn a_unix_socket_and_a_token_let_their_owner_in() {
    let place = Place::new();
    let token = place.beside("token");
    fs::write(&token, "0123456789abcdef\n").unwrap();
    let token = token.to_str().unwrap();
    let socket = place.beside("bus.sock");
    let mut server = program("serve");
    server.arg(&place.journal).arg("--unix").arg(&socket).args(["--token-file", token]);
    let server = Running::start(&mut server);
    assert!(server.line().ends_with("bus.sock"));
    let url = format!("unix:{}", socket.display());
    let refused = feed(program("pub").arg(&url), event(1).as_bytes());
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("401") && refused.err.contains("token"), "{refused:?}");
    feed(program("pub").arg(&url).args(["--token-file", token]), event(1).as_bytes()).succeeds();
    let (code, _, said) = server.terminate();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("0123456789abcdef"), "{said}");
    assert!(!socket.exists());
}
