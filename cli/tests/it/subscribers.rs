use std::path::Path;

use serde_json::{Value, json};
use strandline::bus::{BusSettings, EventBus, Filter, Received, Retention, Subscribe};
use strandline::{Directory, EventDraft};
use strandline_core::Seq;

use crate::program::{Place, feed, program};

fn open(path: &Path, bytes_max: u64) -> EventBus {
    let retention = Retention { age_ms_max: None, compact_above: bytes_max, bytes_max };
    let directory = Directory::open(path).unwrap();
    EventBus::open(&directory, BusSettings::with_retention(retention)).unwrap().0
}

fn draft(payload: &[u8]) -> EventDraft<'_> {
    EventDraft { domain: 1, event_type: "type", source: "source", payload }
}

/// A bus of so many events of a thousand bytes. `context` has acknowledged 3 of them, `audit` none and wants no event
/// that there is.
fn bus(place: &Place, events: usize) -> EventBus {
    let bus = open(&place.journal, 1 << 20);
    let mut context = bus.subscribe(Subscribe::durable("context")).unwrap();
    let nothing = Filter::all().source("nobody").event_type("a").event_type("b").domain(9);
    bus.subscribe(Subscribe::durable("audit").filter(nothing)).unwrap();
    bus.publish_all(std::iter::repeat_n(draft(&[b'7'; 1_000]), events)).unwrap();
    while let Received::Events(_) = context.recv(Some(std::time::Duration::ZERO)).unwrap() {}
    context.acknowledge(Seq::new(3)).unwrap();
    bus
}

fn subscriptions(place: &Place) -> Vec<Value> {
    let ran = place.run("subscriptions", &["--json"]);
    assert_eq!((ran.code, ran.lines().len()), (0, 1), "{ran:?}");
    ran.json()[0]["subscriptions"].as_array().unwrap().clone()
}

#[test]
fn everybody_who_follows_is_listed_with_the_place() {
    let place = Place::new();
    bus(&place, 10).close().unwrap();
    let found = subscriptions(&place);
    assert_eq!(found.len(), 2);
    let context = &found[0];
    assert_eq!((&context["name"], &context["state"]), (&json!("context"), &json!("SUSPENDED")));
    assert_eq!(
        (&context["pointer"], &context["pins"], &context["gap"]),
        (&json!(3), &json!(4), &Value::Null)
    );
    assert_eq!((&context["lag_events"], &context["filter"]), (&json!(7), &json!({})));
    assert!(context["lag_bytes"].as_u64().unwrap() > 7_000, "{context}");
    assert!(context["since"].as_str().unwrap().ends_with('Z'), "{context}");
    let wanted = json!({"domains": [9], "sources": ["nobody"], "types": ["a", "b"]});
    assert_eq!(
        (&found[1]["filter"], &found[1]["lag_events"], &found[1]["pins"]),
        (&wanted, &json!(0), &Value::Null)
    );

    let table = place.run("subscriptions", &[]);
    let lines = table.succeeds().lines();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("name     state      since"), "{table:?}");
    assert!(lines[1].starts_with("context  SUSPENDED  ") && lines[1].contains("  all"), "{table:?}");
    assert!(lines[2].contains("domain 9, source nobody, type a|b"), "{table:?}");
}

#[test]
fn beside_a_live_writer_a_fresh_acknowledgement_is_no_gap() {
    let place = Place::new();
    let bus = bus(&place, 10);
    for n in 11..=30 {
        bus.publish(draft(b"x")).unwrap();
        bus.force_acknowledge("context", Seq::new(n)).unwrap();
        // Right behind the acknowledgement no mark in the journal of events proves what was acknowledged.
        let context = &subscriptions(&place)[0];
        assert_eq!((&context["pointer"], &context["gap"]), (&json!(n), &Value::Null));
        assert_eq!((&context["lag_events"], &context["pins"]), (&json!(0), &Value::Null));
    }
    bus.close().unwrap();
}

#[test]
fn a_bus_that_was_emptied_leaves_a_gap() {
    let place = Place::new();
    bus(&place, 10).close().unwrap();
    std::fs::remove_file(place.segment()).unwrap();
    place.run("subscriptions", &[]).fails(2, &["holds subscriptions but no events"]);
    place.record("1\n2\n");
    let beyond = json!({"from": 1, "to": 2, "count": null, "reason": "beyond_the_end", "resume_after": 2});
    assert_eq!(subscriptions(&place)[0]["gap"], beyond);
    let table = place.run("subscriptions", &[]);
    assert!(table.succeeds().text().contains("1 to 2 (unknown, beyond_the_end)"), "{table:?}");
}

#[test]
fn where_nobody_follows_that_is_said_and_where_no_bus_is_too() {
    let place = Place::new();
    place.run("subscriptions", &[]).fails(2, &["no such file"]);
    std::fs::create_dir(&place.journal).unwrap();
    for command in ["subscriptions", "compact", "ack"] {
        let flags: &[&str] = match command {
            "compact" => &["--max-size", "1MiB"],
            "ack" => &["context", "1", "--force"],
            _ => &[],
        };
        place.run(command, flags).fails(2, &["there is no event bus in"]);
    }
    assert!(place.files().is_empty());
    place.record("1\n");
    let ran = place.run("subscriptions", &[]);
    assert_eq!((ran.code, ran.text()), (0, ""));
    assert!(ran.err.contains("there is no durable subscription"), "{ran:?}");
    let ran = place.run("subscriptions", &["--json"]);
    assert_eq!((ran.code, ran.text()), (0, "{\"subscriptions\":[]}\n"));
}

#[test]
fn damaged_journals_are_named() {
    let place = Place::new();
    bus(&place, 10).close().unwrap();
    let sound = place.files();
    for (name, what) in [("event-journal", "source"), ("subscriptions", "context")] {
        let file = place.path(sound.keys().find(|file| file.starts_with(name)).unwrap());
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.windows(what.len()).position(|window| window == what.as_bytes()).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let damaged = place.files();
        place.run("subscriptions", &[]).fails(1, &[name, "stopped before record"]);
        place.run("compact", &["--max-size", "1MiB"]).fails(1, &[name]);
        place.run("ack", &["context", "5", "--force"]).fails(1, &[name]);
        assert_eq!(place.files(), damaged);
        std::fs::write(&file, &sound[&*file.file_name().unwrap().to_string_lossy()]).unwrap();
    }
}

#[test]
fn an_operator_can_skip_events_for_who_is_away() {
    let place = Place::new();
    bus(&place, 10).close().unwrap();
    let before = place.files();
    place.run("ack", &["context", "7"]).fails(2, &["up to 3", "of the events 4 to 7, 4 are kept", "--force"]);
    place.run("ack", &["context", "2"]).fails(2, &["up to 3 already", "nothing would be skipped"]);
    place.run("ack", &["context", "11", "--force"]).fails(2, &["ends before 11"]);
    place.run("ack", &["nobody", "7", "--force"]).fails(2, &["no durable subscription \"nobody\""]);
    assert_eq!(place.files(), before);
    let done = place.run("ack", &["context", "7", "--force"]);
    assert_eq!(done.succeeds().text(), "{\"name\":\"context\",\"pointer\":7,\"skipped\":4}\n");
    assert_eq!(
        (&subscriptions(&place)[0]["pointer"], &subscriptions(&place)[0]["pins"]),
        (&json!(7), &json!(8))
    );
    let back = place.run("ack", &["context", "5", "--force"]);
    assert_eq!(back.succeeds().text(), "{\"name\":\"context\",\"pointer\":7,\"skipped\":0}\n", "never back");
}

#[test]
fn an_acknowledgement_by_force_drops_no_event_now_or_at_the_next_opening() {
    let place = Place::new();
    // As full as a bus of 1 MiB is kept, and all of it needed.
    let full = open(&place.journal, 1 << 20);
    full.publish_all(std::iter::repeat_n(draft(&[b'7'; 1_000]), 2_000)).unwrap();
    // What the bus has decided to drop is gone before anybody subscribes.
    full.compact().unwrap();
    let first = full.events().first();
    drop(full.subscribe(Subscribe::durable("context").after(first.get() - 1)).unwrap());
    full.close().unwrap();
    drop(full);
    assert!(first > Seq::new(1), "retention was at work");
    assert_eq!(subscriptions(&place)[0]["pins"], json!(first.get()));
    let pointer = first.get() + 20;
    place.run("ack", &["context", &pointer.to_string(), "--force"]).succeeds();
    let again = open(&place.journal, 1 << 20);
    assert_eq!(again.events().first(), first);
    assert_eq!(again.subscriptions()[0].pointer, Seq::new(pointer));
    again.close().unwrap();
}

#[test]
fn a_bus_that_is_open_is_left_alone() {
    let place = Place::new();
    let bus = bus(&place, 10);
    place.run("ack", &["context", "7", "--force"]).fails(2, &["open for writing already"]);
    place.run("compact", &["--max-size", "1MiB"]).fails(2, &["open for writing already"]);
    assert_eq!(bus.subscriptions()[0].pointer, Seq::new(3));
    bus.close().unwrap();
}

#[test]
fn a_dry_run_says_what_compacting_does_and_changes_nothing() {
    let place = Place::new();
    let large = open(&place.journal, 64 << 20);
    drop(large.subscribe(Subscribe::durable("context").after(0)).unwrap());
    large.publish_all(std::iter::repeat_n(draft(&[b'7'; 100_000]), 60)).unwrap();
    large.close().unwrap();
    drop(large);
    let before = place.files();
    let bytes: u64 = before.values().map(|file| file.len() as u64).sum();
    let dry =
        place.run("compact", &["--max-size", "4MiB", "--dry-run", "--json"]).succeeds().json().remove(0);
    assert!(place.files() == before, "not one byte");
    assert_eq!((&dry["dry_run"], &dry["bytes"]), (&json!(true), &json!({"before": bytes, "after": null})));
    let dropped = dry["dropped"].as_u64().unwrap();
    assert!((10..60).contains(&dropped), "{dry}");
    assert_eq!(dry["losses"], json!([{"name": "context", "events": dropped}]));
    assert_eq!(dry["events"], json!({"before": 60, "after": 60 - dropped}));

    let done = place.run("compact", &["--max-size", "4MiB", "--json"]).succeeds().json().remove(0);
    for same in ["first", "dropped", "events", "losses"] {
        assert_eq!(done[same], dry[same], "{same}");
    }
    let after: u64 = place.files().values().map(|file| file.len() as u64).sum();
    assert_eq!(done["bytes"], json!({"before": bytes, "after": after}));
    assert!(after <= 4 << 20, "{after}");
    let context = &subscriptions(&place)[0];
    let first = dropped + 1;
    let gap = json!({"from": 1, "to": 60, "count": 60, "reason": "expired", "resume_after": 60});
    assert_eq!((&context["state"], &context["gap"]), (&json!("EXPIRED"), &gap));
    assert_eq!(
        place.run("stat", &["--journal", "event-journal", "--json"]).json()[0]["journals"][0]["first"],
        first
    );
    // What fits stays.
    let again = place.run("compact", &["--max-size", "4MiB"]);
    assert!(again.succeeds().text().starts_with("dropped  0 events went"), "{again:?}");
}

#[test]
fn compacting_by_age_and_bad_bounds() {
    let place = Place::new();
    bus(&place, 10).close().unwrap();
    let unbounded = feed(program("compact").arg(&place.journal), b"");
    assert_eq!(unbounded.code, 2, "{unbounded:?}");
    place.run("compact", &["--max-size", "100KiB"]).fails(2, &["at least 1048576"]);
    let kept = place.run("compact", &["--max-age", "1h", "--json"]).succeeds().json().remove(0);
    assert_eq!((&kept["dropped"], &kept["losses"]), (&json!(0), &json!([])));
    // Between a publish and this, more than a millisecond goes by: a program was started.
    let all = place.run("compact", &["--max-age", "0ms", "--json"]).succeeds().json().remove(0);
    assert_eq!((&all["dropped"], &all["first"]), (&json!(10), &json!(11)), "{all}");
    assert_eq!(all["losses"], json!([{"name": "context", "events": 7}]));
    assert_eq!(subscriptions(&place)[0]["gap"]["reason"], "expired");
}
