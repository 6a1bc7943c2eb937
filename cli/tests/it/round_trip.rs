use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::Place;

/// CloudEvents with all that JSON has: nesting, escapes, other scripts, numbers that no float holds.
fn cloud_events() -> Vec<String> {
    let datas = [
        r#"{"n":0,"text":"żółć 🦀 \"quoted\" \\ \u0000 \ud83e\udd80","deep":[[[[{"a":null}]]]]}"#,
        r#"{"big":12345678901234567890123456789,"tiny":1.0e-400,"one":1.00,"minus":-0}"#,
        r#""日本語 עברית""#,
        "null",
        "[ 1 , 2 ]",
        "true",
    ];
    let event = |(n, data): (usize, &&str)| {
        format!(
            r#"{{"specversion":"1.0","id":"{n}","source":"/src/{}","type":"com.example.{}","time":"2026-01-02T12:00:00Z","extra":{n}.50,"data":{data}}}"#,
            n % 2,
            n % 3
        )
    };
    datas.iter().enumerate().map(event).collect()
}

#[test]
fn cloud_events_come_back_byte_for_byte() {
    let place = Place::new();
    let lines = cloud_events();
    let recorded = place.feed("record", &["--segment-size", "4KiB"], lines.join("\n").as_bytes());
    assert_eq!(recorded.succeeds().text(), "{\"first\":1,\"last\":6,\"count\":6}\n");

    let payloads = place.run("cat", &["-o", "payload"]);
    assert_eq!(payloads.succeeds().lines(), lines);
    let cat = place.run("cat", &[]);
    for (n, (printed, line)) in cat.succeeds().lines().iter().zip(&lines).enumerate() {
        let (printed_value, value): (Value, Value) =
            (serde_json::from_str(printed).unwrap(), serde_json::from_str(line).unwrap());
        assert_eq!(printed_value["sequence"], n + 1);
        assert_eq!(printed_value["domain"], 1);
        assert_eq!(printed_value["type"], value["type"]);
        assert_eq!(printed_value["source"], value["source"]);
        assert_eq!(printed_value["data"], value["data"]);
        assert_eq!(printed_value["attributes"]["id"], value["id"]);
        assert_eq!(printed_value["attributes"].get("data"), None);
        // Digits and escapes are those of the input.
        let (_, data) = line.split_once("\"data\":").unwrap();
        assert!(printed.contains(&format!("\"data\":{},", data.strip_suffix('}').unwrap())), "{printed}");
        assert!(printed.contains(&format!("\"extra\":{n}.50")), "{printed}");
        let time = printed_value["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
    }
    assert_eq!(cat.lines().len(), lines.len());
    assert_eq!(
        place.run("verify", &[]).succeeds().lines().last().unwrap(),
        &"sound: event-journal (PCPJ): 6 records (1..6)"
    );
}

/// Real webhooks, where they are at hand beside the checkout.
#[test]
fn real_events_come_back_byte_for_byte() {
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/github-webhooks.cloudevents.jsonl");
    let Ok(input) = fs::read(data) else { return };
    let place = Place::new();
    let recorded = place.feed("record", &[], &input);
    assert_eq!(recorded.succeeds().json(), [json!({"first": 1, "last": 329, "count": 329})]);
    assert_eq!(place.run("cat", &["-o", "payload"]).succeeds().out, input);
    let printed = place.run("cat", &[]);
    let lines = std::str::from_utf8(&input).unwrap().lines();
    for (event, line) in printed.succeeds().json().iter().zip(lines) {
        assert_eq!(event["data"], serde_json::from_str::<Value>(line).unwrap()["data"]);
    }
    assert_eq!(printed.lines().len(), 329);
    place.run("verify", &[]).succeeds();
}

#[test]
fn plain_json_takes_type_and_source_from_the_flags() {
    let place = Place::new();
    let flags = ["--type", "tick", "--source", "/clock", "--domain", "7", "--ack"];
    let recorded = place.feed("record", &flags, b" {\"a\": 1} \r\n\n   \n\"x\"\n{\"specversion\":\"0.3\"}");
    assert_eq!(recorded.succeeds().lines(), ["1", "2", "3", "{\"first\":1,\"last\":3,\"count\":3}"]);
    let default = place.feed("record", &[], b"4");
    assert_eq!(default.succeeds().json(), [json!({"first": 4, "last": 4, "count": 1})]);

    let events = place.run("cat", &[]).json();
    assert_eq!(events[0]["data"], json!({"a": 1}));
    assert_eq!(events[2]["data"], json!({"specversion": "0.3"}));
    assert_eq!(events[2].get("attributes"), None);
    for event in &events[..3] {
        assert_eq!(
            (&event["type"], &event["source"], &event["domain"]),
            (&json!("tick"), &json!("/clock"), &json!(7))
        );
    }
    assert_eq!((&events[3]["type"], &events[3]["source"]), (&json!("event"), &json!("stdin")));
    let payloads = place.run("cat", &["-o", "payload", "--limit", "1"]);
    assert_eq!(payloads.text(), " {\"a\": 1} \n", "the payload is the line, spaces included");
    assert_eq!(place.run("cat", &["-o", "hex", "--after", "3"]).text(), "4 34\n");
}

#[test]
fn readers_choose_what_they_want() {
    let place = Place::new();
    place.record(&cloud_events().join("\n"));
    let numbers = |command: &str, flags: &[&str]| -> Vec<u64> {
        let ran = place.run(command, flags);
        ran.succeeds().json().iter().map(|event| event["sequence"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers("cat", &["--source", "/src/0"]), [1, 3, 5]);
    assert_eq!(numbers("cat", &["--source", "/src/0", "--type", "com.example.2"]), [3]);
    assert_eq!(numbers("cat", &["--after", "2", "--limit", "3"]), [3, 4, 5]);
    assert_eq!(numbers("cat", &["--after", "2", "--limit", "1", "--source", "/src/1"]), [4]);
    assert_eq!(numbers("cat", &["--after", "6"]), [0; 0]);
    assert_eq!(numbers("cat", &["--limit", "0"]), [0; 0]);
    assert_eq!(numbers("tail", &["-n", "2"]), [5, 6]);
    assert_eq!(numbers("tail", &[]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(numbers("tail", &["-n", "2", "--source", "/src/0"]), [3, 5]);
    assert_eq!(numbers("tail", &["-n", "0"]), [0; 0]);
}

#[test]
fn every_sync_policy_acknowledges_what_is_durable() {
    for policy in ["always", "interval=5ms", "interval=1h", "never"] {
        let place = Place::new();
        let lines: String = (0..300).map(|n| format!("{n}\n")).collect();
        let ran =
            place.feed("record", &["--ack", "--sync", policy, "--segment-size", "4KiB"], lines.as_bytes());
        let mut expected: Vec<String> = (1..=300).map(|seq| seq.to_string()).collect();
        expected.push("{\"first\":1,\"last\":300,\"count\":300}".to_string());
        assert_eq!(ran.succeeds().lines(), expected, "{policy}");
        assert_eq!(place.run("cat", &["-o", "payload"]).text(), lines, "{policy}");
    }
}

#[test]
fn stat_describes_every_journal() {
    let place = Place::new();
    place.record("1\n2\n");
    place.feed("record", &["--journal", "other"], b"").succeeds();
    let stat = place.run("stat", &["--json"]);
    let document = &stat.succeeds().json()[0];
    let journals = document["journals"].as_array().unwrap();
    let names: Vec<_> = journals.iter().map(|journal| journal["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["event-journal", "other"]);
    let first = &journals[0];
    assert_eq!((&first["framing"], &first["versions"]), (&json!("PCPJ"), &json!([2])));
    assert_eq!((&first["first"], &first["last"], &first["count"]), (&json!(1), &json!(2), &json!(2)));
    assert_eq!(first["file_bytes"], fs::metadata(place.segment()).unwrap().len());
    assert_eq!(first["bytes"], first["file_bytes"], "a closed journal has no reserve");
    assert_eq!((&first["unproven"], &first["verdict"]["state"]), (&json!(0), &json!("sound")));
    assert!(first["first_time"].as_str() <= first["last_time"].as_str());
    assert_eq!(
        (&journals[1]["first"], &journals[1]["next"], &journals[1]["count"]),
        (&Value::Null, &json!(1), &json!(0))
    );

    let text = place.run("stat", &["--journal", "event-journal"]);
    assert!(text.succeeds().text().contains("records   2 (1..2)\n"), "{text:?}");
    assert!(!text.text().contains("other"), "{text:?}");
}
