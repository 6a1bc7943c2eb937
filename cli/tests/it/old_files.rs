//! The files here are put together byte by byte, not by the program's own encoder.

use std::fs;

use serde_json::json;

use crate::program::{Place, feed, program};

/// A version 1 segment of opaque records.
fn pryj(first: u64, payloads: &[&[u8]]) -> Vec<u8> {
    let mut file = b"PRYJ\x01\0\0\0".to_vec();
    file.extend(first.to_le_bytes());
    for (seq, payload) in (first..).zip(payloads) {
        let len = u32::try_from(payload.len()).unwrap();
        let record = [&len.to_le_bytes()[..], &seq.to_le_bytes(), payload].concat();
        file.extend_from_slice(&record);
        file.extend(crc32c::crc32c(&record).to_le_bytes());
    }
    file
}

/// A version 1 event.
fn pcpj(seq: u64, event_type: &str, source: &str, payload: &[u8]) -> Vec<u8> {
    let len = |text: &str| u16::try_from(text.len()).unwrap().to_le_bytes();
    let mut entry = b"PCPJ\x01\x02".to_vec();
    entry.extend(len(event_type));
    entry.extend(len(source));
    entry.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    entry.extend(seq.to_le_bytes());
    entry.extend(1_700_000_000_123i64.to_le_bytes());
    entry.extend(crc32fast::hash(payload).to_le_bytes());
    [&entry, event_type.as_bytes(), source.as_bytes(), payload].concat()
}

const UNPROVEN: &str = "format version 1 has no marks";

#[test]
fn version_1_segments_are_read() {
    let place = Place::new();
    fs::create_dir(&place.journal).unwrap();
    fs::write(place.path("events-00000000000000000000.seg"), pryj(0, &[b"one", b"", b"\x00\xff"])).unwrap();
    fs::write(place.path("events-00000000000000000003.seg"), pryj(3, &[b"four"])).unwrap();
    let before = place.files();
    let printed = place.run("cat", &[]);
    assert_eq!(printed.code, 0);
    assert_eq!(
        printed.json(),
        [
            json!({"seq": 0, "payload": "b25l", "payload_utf8": "one"}),
            json!({"seq": 1, "payload": "", "payload_utf8": ""}),
            json!({"seq": 2, "payload": "AP8="}),
            json!({"seq": 3, "payload": "Zm91cg==", "payload_utf8": "four"}),
        ]
    );
    printed.fails(0, &["1 record is not proven durable", UNPROVEN]);
    let verified = place.run("verify", &[]);
    assert_eq!((verified.code, &*verified.err), (0, ""));
    assert!(verified.text().contains("sound: events (PRYJ): 4 records (0..3)"), "{verified:?}");
    let single = feed(program("cat").arg(place.path("events-00000000000000000000.seg")), b"");
    assert_eq!((single.code, single.lines().len()), (0, 3));
    assert_eq!(place.files(), before);
}

#[test]
fn a_version_1_segment_with_a_torn_record_is_read_up_to_it() {
    let place = Place::new();
    fs::create_dir(&place.journal).unwrap();
    let mut file = pryj(0, &[b"one", b"two"]);
    file.truncate(file.len() - 3);
    fs::write(place.path("events-00000000000000000000.seg"), file).unwrap();
    let printed = place.run("cat", &[]);
    assert_eq!(
        (printed.code, printed.json()),
        (1, vec![json!({"seq": 0, "payload": "b25l", "payload_utf8": "one"})])
    );
    assert!(printed.err.contains("stopped before record 1") && printed.err.contains("row F"), "{printed:?}");
    assert_eq!(place.run("verify", &[]).code, 1);
}

#[test]
fn a_bare_file_of_events_is_read() {
    let place = Place::new();
    fs::create_dir(&place.journal).unwrap();
    let file = place.path("event-journal.bin");
    let entries = [pcpj(41, "a", "/x", b"{\"n\": 1.0}"), pcpj(42, "b", "", b"not json")].concat();
    fs::write(&file, &entries).unwrap();
    let run = |command: &str, flags: &[&str]| feed(program(command).arg(&file).args(flags), b"");
    let printed = run("cat", &[]);
    printed.fails(0, &["2 records are not proven durable", UNPROVEN]);
    let time = "2023-11-14T22:13:20.123Z";
    assert_eq!(
        printed.json(),
        [
            json!({"sequence": 41, "time": time, "domain": 2, "type": "a", "source": "/x", "data": {"n": 1.0}}),
            json!({"sequence": 42, "time": time, "domain": 2, "type": "b", "source": "", "data_base64": "bm90IGpzb24="}),
        ]
    );
    assert_eq!(run("cat", &["--type", "b", "-o", "payload"]).text(), "not json\n");
    assert_eq!(run("tail", &["-n", "1", "-o", "hex"]).text(), "42 6e6f74206a736f6e\n");
    let verified = run("verify", &["--json"]);
    assert_eq!((verified.code, &verified.json()[0]["count"]), (0, &json!(2)));
    assert_eq!(fs::read(&file).unwrap(), entries);

    let mut damaged = entries.clone();
    damaged[40] ^= 1;
    fs::write(&file, &damaged).unwrap();
    let printed = run("cat", &[]);
    assert_eq!((printed.code, printed.out.len()), (1, 0), "{printed:?}");
    assert_eq!(run("verify", &[]).code, 1);
}
