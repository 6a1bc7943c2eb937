use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::program::{Place, feed, program};

const MIB: usize = 1024 * 1024;

#[test]
fn empty_input_makes_an_empty_journal() {
    let place = Place::new();
    let ran = place.run("record", &["--ack"]);
    assert_eq!(ran.succeeds().text(), "{\"first\":null,\"last\":null,\"count\":0}\n");
    place.run("cat", &[]).succeeds();
    place.run("verify", &[]).succeeds();
    assert_eq!(place.run("stat", &["--json"]).succeeds().json()[0]["journals"][0]["count"], 0);
}

/// Each is named with its line; what was before is kept, what comes after only if that is wanted.
#[test]
fn a_bad_line_is_named_and_nothing_before_it_is_lost() {
    let long = vec![b'7'; 17 * MIB];
    let label = format!(r#"{{"specversion":"1.0","id":"1","type":"{}","source":"s"}}"#, "t".repeat(1025));
    let cases: [(&[u8], &str); 10] = [
        (b"{\"a\":", "not one JSON value: EOF"),
        (b"1 2", "not one JSON value: trailing characters at column 3"),
        (b"{\"a\":1}{\"b\":2}", "not one JSON value: trailing characters at column 8"),
        (b"{\"a\":\"\0\0\0\"}", "a NUL byte at column 7"),
        (b"\0\0\0\0", "a NUL byte at column 1"),
        (b"\"caf\xe9\"", "not UTF-8 at column 5"),
        (&long, "longer than 16777216 bytes"),
        (br#"{"specversion":"1.0","id":"1","source":"s"}"#, "needs \"type\""),
        (
            br#"{"specversion":"1.0","id":"1","source":"s","type":"a\u0007"}"#,
            "type holds a control character",
        ),
        (label.as_bytes(), "type has 1025 bytes"),
    ];
    for (bad, words) in cases {
        let input = [b"1\n\n2\n", bad, b"\n3\n"].concat();
        let place = Place::new();
        let ran = place.feed("record", &["--ack"], &input);
        ran.fails(1, &["line 4 was not recorded", words]);
        assert_eq!(ran.lines(), ["1", "2", "{\"first\":1,\"last\":2,\"count\":2}"]);
        assert_eq!(place.run("cat", &["-o", "payload"]).succeeds().text(), "1\n2\n");

        let ran = place.feed("record", &["--skip-bad"], &input);
        ran.fails(1, &["line 4 was not recorded", words]);
        assert_eq!(ran.json(), [json!({"first": 3, "last": 5, "count": 3})]);
        assert_eq!(place.run("cat", &["-o", "payload"]).succeeds().text(), "1\n2\n1\n2\n3\n");
    }
}

#[test]
fn a_payload_of_exactly_the_limit_is_good() {
    let place = Place::new();
    let mut line = vec![b'"'];
    line.resize(16 * MIB - 1, b'x');
    line.extend_from_slice(b"\"\r\n");
    assert_eq!(place.feed("record", &[], &line).succeeds().json()[0]["count"], 1);
    assert_eq!(place.run("cat", &["-o", "payload"]).succeeds().out.len(), 16 * MIB + 1);
    line.insert(1, b'x');
    place.feed("record", &[], &line).fails(1, &["line 1", "longer than"]);
}

#[test]
fn several_skipped_lines_are_counted() {
    let place = Place::new();
    let ran = place.feed("record", &["--skip-bad"], b"x\n1\ny\nz\n2");
    assert_eq!((ran.code, ran.json()), (1, vec![json!({"first": 1, "last": 2, "count": 2})]));
    assert_eq!(ran.err.lines().last(), Some("strandline: 3 lines were not recorded"));
}

#[test]
fn wrong_flags_are_refused_before_anything_is_made() {
    let place = Place::new();
    for flags in [
        &["--sync", "sometimes"][..],
        &["--sync", "interval=0ms"],
        &["--sync", "interval=50"],
        &["--segment-size", "big"],
        &["--segment-size", "1KiB"],
        &["--domain", "0"],
        &["--domain", "256"],
        &["--journal", "Not A Name"],
        &["--type", ""],
        &["--source", "a\nb"],
        &["--no-such-flag"],
    ] {
        let ran = place.feed("record", flags, b"1\n");
        assert_eq!((ran.code, ran.out.len()), (2, 0), "{flags:?}: {ran:?}");
        assert!(!ran.err.is_empty(), "{flags:?}");
        assert!(!place.journal.exists(), "{flags:?}");
    }
    assert_eq!(feed(&mut program("nonsense"), b"").code, 2);
}

#[test]
fn a_file_in_place_of_the_directory_is_left_alone() {
    let place = Place::new();
    std::fs::write(&place.journal, "mine").unwrap();
    place.feed("record", &[], b"1\n").fails(2, &["is no directory"]);
    assert_eq!(std::fs::read(&place.journal).unwrap(), b"mine");
}

#[test]
fn a_directory_without_permission_is_refused() {
    let place = Place::new();
    place.record("1\n");
    std::fs::set_permissions(&place.journal, PermissionsExt::from_mode(0o000)).unwrap();
    // The superuser may read everything.
    if std::fs::read_dir(&place.journal).is_err() {
        place.feed("record", &[], b"2\n").fails(2, &["may not be opened"]);
        for command in ["cat", "verify", "stat", "tail"] {
            place.run(command, &[]).fails(2, &["permission denied"]);
        }
    }
    std::fs::set_permissions(&place.journal, PermissionsExt::from_mode(0o500)).unwrap();
    assert_eq!(place.run("cat", &["-o", "payload"]).succeeds().text(), "1\n", "reading needs no more");
    place.run("verify", &[]).succeeds();
    std::fs::set_permissions(&place.journal, PermissionsExt::from_mode(0o700)).unwrap();
}

/// The limit on file sizes (5 MiB, in blocks of 512 bytes) stands in for a full disk: the journal takes both
/// for lack of space.
#[test]
fn no_space_is_told_and_what_was_acknowledged_stays() {
    let place = Place::new();
    let script = "trap '' XFSZ; ulimit -f 10240; exec \"$0\" record \"$1\" --ack";
    let line = |n: usize| format!("\"{n} {}\"\n", "x".repeat(10_000));
    let input: String = (1..=3_000).map(line).collect();
    let mut limited = Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_strandline")]).arg(&place.journal);
    let ran = feed(&mut limited, input.as_bytes());
    assert_eq!(ran.code, 1, "{ran:?}");
    let told = ran.err.lines().last().unwrap();
    assert!(told.contains("not recorded") && told.contains("no space"), "{told}");

    let acknowledged = ran.lines().len() - 1;
    assert!(acknowledged > 0 && acknowledged < 3_000, "{acknowledged}");
    let mut expected: Vec<String> = (1..=acknowledged).map(|seq| seq.to_string()).collect();
    expected.push(format!("{{\"first\":1,\"last\":{acknowledged},\"count\":{acknowledged}}}"));
    assert_eq!(ran.lines(), expected);
    let cat = place.run("cat", &["-o", "payload"]);
    let kept = cat.succeeds().lines();
    assert_eq!(kept.len(), acknowledged);
    for (n, found) in (1..).zip(&kept) {
        if *found != line(n).trim_end() {
            // Behind lost lines at most one is recorded, and that is told.
            assert_eq!(n, acknowledged, "{found:.20}");
            let stray = found.trim_start_matches('"').split(' ').next().unwrap();
            assert!(ran.err.contains(&format!("line {stray} was recorded as {n}")), "{ran:?}");
        }
    }
    place.record("1\n");
}

#[test]
fn a_journal_of_opaque_records_is_not_recorded_into() {
    let place = Place::new();
    let directory = strandline::Directory::open(&place.journal).unwrap();
    let opened = directory.journal::<strandline_core::Pryj>("event-journal", strandline::config());
    opened.unwrap().0.append(b"\xff").unwrap();
    drop(directory);
    let before = place.files();
    place.feed("record", &[], b"1\n").fails(2, &["PRYJ", "--journal"]);
    assert_eq!(place.files(), before);
    let printed = place.run("cat", &[]);
    assert_eq!(printed.succeeds().json(), [json!({"seq": 0, "payload": "/w=="})]);
    place.run("cat", &["--type", "t"]).fails(2, &["opaque records"]);
    place.run("tail", &["--source", "s"]).fails(2, &["opaque records"]);
}
