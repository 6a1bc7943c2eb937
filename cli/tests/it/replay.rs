use serde_json::json;
use strandline::bus::{BusSettings, EventBus, Retention};
use strandline::{Directory, EventDraft};
use strandline_core::Seq;

use crate::program::{Place, Ran};

/// So many events, numbered from 1 on; those that 3 divides are of another source.
fn publish(place: &Place, count: u64) -> EventBus {
    let directory = Directory::open(&place.journal).unwrap();
    let retention = Retention { age_ms_max: None, ..Retention::default() };
    let (bus, _) = EventBus::open(&directory, BusSettings::with_retention(retention)).unwrap();
    let payloads: Vec<_> = (1..=count).map(|n| n.to_string()).collect();
    let drafts = payloads.iter().enumerate().map(|(n, payload)| EventDraft {
        domain: if n < 2 { 7 } else { 1 },
        event_type: "type",
        source: if (n + 1) % 3 == 0 { "third" } else { "other" },
        payload: payload.as_bytes(),
    });
    bus.publish_all(drafts).unwrap();
    bus
}

fn sequences(ran: &Ran) -> Vec<u64> {
    ran.json().iter().map(|event| event["sequence"].as_u64().unwrap()).collect()
}

fn gap(ran: &Ran) -> serde_json::Value {
    assert_eq!((ran.code, &*ran.err, ran.lines().len()), (1, "", 1), "{ran:?}");
    ran.json().remove(0)
}

#[test]
fn a_thousand_missed_events_come_and_one_more_is_a_gap() {
    let place = Place::new();
    publish(&place, 1_500).close().unwrap();
    for (after, count) in [(501, 999), (500, 1_000)] {
        let ran = place.run("replay", &["--after", &after.to_string(), "--limit", "1000"]);
        assert_eq!(sequences(ran.succeeds()), (after + 1..=1_500).collect::<Vec<_>>());
        assert_eq!(ran.lines().len(), count);
    }
    let too_many =
        json!({"gap": {"from": 500, "to": 1500, "count": 1001, "reason": "too_many", "resume_after": 1500}});
    assert_eq!(gap(&place.run("replay", &["--after", "499", "--limit", "1000"])), too_many);
    assert_eq!(
        gap(&place.run("replay", &["--after", "499"])),
        too_many,
        "a thousand is what it is by default"
    );
    assert_eq!(place.run("replay", &["--after", "499", "--limit", "1001"]).succeeds().lines().len(), 1_001);
    assert_eq!(place.run("replay", &["--after", "1500", "--limit", "0"]).succeeds().text(), "");
}

#[test]
fn only_what_is_wanted_counts_and_comes() {
    let place = Place::new();
    publish(&place, 1_500).close().unwrap();
    let third = place.run("replay", &["--after", "0", "--source", "third", "--limit", "500"]);
    assert_eq!(sequences(third.succeeds()), (1..=500).map(|n| n * 3).collect::<Vec<_>>());
    let ran = place.run("replay", &["--after", "0", "--source", "third", "--limit", "499"]);
    let too_many = json!({"from": 1, "to": 1500, "count": 500, "reason": "too_many", "resume_after": 1500});
    assert_eq!(gap(&ran)["gap"], too_many);
    let both = place.run("replay", &["--after", "1490", "--source", "third", "--source", "other"]);
    assert_eq!(sequences(both.succeeds()), (1_491..=1_500).collect::<Vec<_>>());
    let domain = place.run("replay", &["--after", "1", "--domain", "7", "-o", "payload"]);
    assert_eq!(domain.succeeds().text(), "2\n");
    assert_eq!(place.run("replay", &["--after", "0", "--type", "none"]).succeeds().text(), "");
    assert_eq!(place.run("replay", &["--after", "0", "--domain", "0"]).code, 2);
}

#[test]
fn what_is_no_longer_kept_is_a_gap_and_the_first_that_is_kept_is_none() {
    let place = Place::new();
    let bus = publish(&place, 20);
    bus.events().trim_to(Seq::new(11)).unwrap();
    bus.close().unwrap();
    assert_eq!(sequences(place.run("replay", &["--after", "10"]).succeeds()), (11..=20).collect::<Vec<_>>());
    let expired =
        |from: u64| json!({"from": from, "to": 20, "count": null, "reason": "expired", "resume_after": 20});
    assert_eq!(gap(&place.run("replay", &["--after", "9"]))["gap"], expired(10));
    assert_eq!(gap(&place.run("replay", &["--after", "0"]))["gap"], expired(1));
}

#[test]
fn the_beginning_is_no_gap_and_beyond_the_end_is_one() {
    let place = Place::new();
    publish(&place, 3).close().unwrap();
    assert_eq!(sequences(place.run("replay", &["--after", "0"]).succeeds()), [1, 2, 3]);
    assert_eq!(place.run("replay", &["--after", "3"]).succeeds().text(), "");
    for after in ["4", "18446744073709551615"] {
        let beyond =
            json!({"from": 1, "to": 3, "count": null, "reason": "beyond_the_end", "resume_after": 3});
        assert_eq!(gap(&place.run("replay", &["--after", after]))["gap"], beyond);
    }
    let empty = Place::new();
    publish(&empty, 0).close().unwrap();
    assert_eq!(empty.run("replay", &["--after", "0"]).succeeds().text(), "");
    let beyond = json!({"from": 1, "to": 0, "count": null, "reason": "beyond_the_end", "resume_after": 0});
    assert_eq!(gap(&empty.run("replay", &["--after", "1"]))["gap"], beyond);
}

#[test]
fn it_reads_beside_a_live_writer() {
    let place = Place::new();
    let bus = publish(&place, 5);
    // No mark stands behind the newest commit yet, or one does: either way the events are there.
    let ran = place.run("replay", &["--after", "3"]);
    assert_eq!((ran.code, sequences(&ran)), (0, vec![4, 5]), "{ran:?}");
    let beyond = place.run("replay", &["--after", "6"]);
    assert_eq!((beyond.code, &beyond.json()[0]["gap"]["reason"]), (1, &json!("beyond_the_end")));
    bus.close().unwrap();
}

#[test]
fn problems_of_the_journal_are_told_as_cat_tells_them() {
    let place = Place::new();
    place.run("replay", &["--after", "0"]).fails(2, &["no such file"]);
    std::fs::create_dir(&place.journal).unwrap();
    place.run("replay", &["--after", "0"]).fails(2, &["no journal event-journal"]);
    place.record("1\n2\n3\n");
    let mut bytes = std::fs::read(place.segment()).unwrap();
    let at = bytes.windows(5).position(|window| window == b"stdin").unwrap();
    bytes[at] ^= 1;
    std::fs::write(place.segment(), bytes).unwrap();
    let (replay, cat) = (place.run("replay", &["--after", "0"]), place.run("cat", &[]));
    assert_eq!((replay.code, &replay.err, &replay.out), (1, &cat.err, &cat.out));
    let beyond = place.run("replay", &["--after", "2"]);
    assert_eq!((beyond.code, &beyond.err, beyond.text()), (1, &cat.err, ""), "what is damaged is not wiped");
    let file = crate::program::feed(
        crate::program::program("replay").arg(place.segment()).args(["--after", "0"]),
        b"",
    );
    file.fails(2, &["is a file"]);
}
