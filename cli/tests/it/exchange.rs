//! Sessions of the reference exchange: one history, whoever replays it and whatever happened on the way.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Place, Ran, Running, feed, files_of, program};

/// Of each session: seed, commands, events, and the digest that every replay gives, on every machine.
const GOLDEN: &str = include_str!("../golden/exchange.txt");

/// The golden sessions, without the comments.
fn golden() -> Vec<[&'static str; 4]> {
    let lines = GOLDEN.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().try_into().unwrap()).collect()
}

/// Makes a session, or goes on with it.
fn trade(place: &Place, seed: &str, commands: &str, producers: &str) -> Ran {
    let flags = ["--in-turn", "--seed", seed, "--commands", commands, "--producers", producers];
    feed(program("exchange").arg("run").arg(&place.journal).args(flags), b"")
}

fn checked(place: &Place) -> Value {
    serde_json::from_slice(&place.run("replay-check", &["--json"]).succeeds().out).unwrap()
}

/// A small session.
fn small() -> Place {
    let place = Place::new();
    let told = trade(&place, "5", "1000", "2");
    assert!(told.succeeds().text().starts_with("commands  1000\nevents    "), "{told:?}");
    place
}

#[test]
fn golden_sessions_are_the_same_on_every_machine() {
    assert_eq!(golden().len(), 3);
    for ([seed, commands, events, sha256], producers) in golden().into_iter().zip(["1", "4", "7"]) {
        let place = Place::new();
        let told = trade(&place, seed, commands, producers);
        assert_eq!(told.succeeds().text(), format!("commands  {commands}\nevents    {events}\n"));
        let [commands, events] = [commands, events].map(|count| count.parse::<u64>().unwrap());
        let wanted = json!({"verdict": "same", "commands": commands, "events": events, "sha256": sha256});
        assert_eq!(checked(&place), wanted, "seed {seed}");
    }
}

#[test]
fn fifty_processes_in_other_places_and_languages_replay_one_history() {
    let place = small();
    let wanted = place.run("replay-check", &[]).succeeds().text().to_string();
    assert_eq!(wanted.lines().count(), 3);
    let zones = ["UTC", "Asia/Kathmandu", "America/St_Johns", "XYZ-13:45", "no/where"];
    let languages = ["C", "de_DE.UTF-8", "tr_TR.UTF-8", "ar_EG.UTF-8", "ja_JP.eucJP"];
    let surroundings = zones.iter().flat_map(|zone| languages.map(|language| (zone, language)));
    for (zone, language) in surroundings.clone().chain(surroundings) {
        let mut check = program("replay-check");
        check.arg(&place.journal).env("TZ", zone).env("LC_ALL", language).env("LANG", language);
        assert_eq!(feed(&mut check, b"").succeeds().text(), wanted, "{zone} {language}");
    }
}

#[test]
fn a_replay_check_only_reads() {
    let place = small();
    let before = files_of(&place.journal);
    checked(&place);
    assert_eq!(files_of(&place.journal), before);
    // Nor does it talk to anybody; said by the system, where it can be asked.
    let log = place.path("calls");
    let mut check = Command::new("strace");
    check.args([
        "-f",
        "-qq",
        "-e",
        "trace=%network,open,openat,creat,rename,unlink,ftruncate,pwrite64",
        "-o",
    ]);
    check.arg(&log).arg(env!("CARGO_BIN_EXE_strandline")).arg("replay-check").arg(&place.journal);
    let traced = check.output().is_ok_and(|output| output.status.success());
    assert!(
        traced || env::var_os("STRANDLINE_REQUIRE_STRACE").is_none(),
        "strace is required, and does not run"
    );
    if traced {
        let calls = fs::read_to_string(&log).unwrap();
        assert!(calls.contains("events-00000000000000000001.seg"), "{calls}");
        let reads =
            |call: &&str| call.contains("open") && call.contains("O_RDONLY") && !call.contains("O_CREAT");
        let others: Vec<_> = calls.lines().filter(|call| !reads(call)).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

/// Trades until so many answers were printed, and kills the process. Gives the numbers of all answers that were printed.
fn trade_and_kill(place: &Place, seed: &str, answers: usize) -> Vec<u64> {
    let mut run = program("exchange");
    run.arg("run").arg(&place.journal).args([
        "--in-turn",
        "--answered",
        "--seed",
        seed,
        "--commands",
        COMMANDS,
    ]);
    let trading = Running::start(&mut run);
    let mut said: Vec<_> = (0..answers).map(|_| trading.line()).collect();
    said.extend(trading.kill());
    // The totals at the end are no answers.
    said.iter().map_while(|line| line.parse().ok()).collect()
}

const COMMANDS: &str = "3000";

/// So many kills in so many sessions, by the seed: five, or as many as `STRANDLINE_KILLS` asks for.
#[test]
fn a_session_that_is_killed_again_and_again_goes_on_as_if_it_had_not_been() {
    let variable = |name, default| env::var(name).map_or(default, |value| value.parse().unwrap());
    let (kills, seed): (u64, u64) = (variable("STRANDLINE_KILLS", 5), variable("STRANDLINE_KILLS_SEED", 1));
    let mut state = seed;
    let mut random = move |below: u64| {
        // Numbers without a pattern are all that is needed.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut done = 0;
    for session in 0.. {
        if done == kills {
            break;
        }
        let seed = (seed + session).to_string();
        let undisturbed = Place::new();
        trade(&undisturbed, &seed, COMMANDS, "4").succeeds();
        let place = Place::new();
        let mut answered = BTreeSet::new();
        for _ in 0..5.min(kills - done) {
            let answers = trade_and_kill(&place, &seed, usize::try_from(random(500)).unwrap());
            answered.extend(answers);
            done += 1;
        }
        let input = fs::exists(&place.journal).unwrap().then(|| place.run("decode", &["--journal", "input"]));
        let recorded = input.map_or(0, |input| input.lines().len().saturating_sub(1)) as u64;
        let last = answered.last().copied().unwrap_or(0);
        assert!(recorded >= last, "command {last} was answered, and {recorded} are recorded");
        trade(&place, &seed, COMMANDS, "3").succeeds();
        assert_eq!(checked(&place), checked(&undisturbed), "seed {seed}");
        for journal in ["input", "events"] {
            let [found, wanted] =
                [&place, &undisturbed].map(|place| place.run("decode", &["--journal", journal]));
            assert!(found.succeeds().out == wanted.out, "seed {seed}: {journal} is not the same");
        }
    }
}

#[test]
fn messages_are_decoded_to_json() {
    let place = small();
    let input = place.run("decode", &["--journal", "input"]);
    let lines = input.succeeds().json();
    assert_eq!(lines.len(), 1_001);
    let setup = &lines[0];
    assert_eq!((&setup["seq"], &setup["message"]), (&json!(0), &json!("setup")));
    assert_eq!((&setup["engine"], &setup["opens_at"]), (&json!("strandline-exchange/1"), &json!(32_400)));
    assert_eq!(setup["instruments"][2]["symbol"], "銅");
    let order = lines.iter().find(|line| line["message"] == "place_order").unwrap();
    let fields: Vec<_> = order.as_object().unwrap().keys().collect();
    let wanted = [
        "seq",
        "message",
        "instrument",
        "side",
        "kind",
        "time_in_force",
        "price",
        "quantity",
        "trader",
        "reference",
    ];
    assert_eq!(fields, wanted);
    let unreadable = lines.iter().find(|line| line.get("unreadable").is_some());
    assert_eq!(
        unreadable.map(|line| &line["payload"]),
        Some(&json!("bm8gY29tbWFuZA==")),
        "a trader's mistake"
    );

    let events = place.run("decode", &["--journal", "events"]);
    let kinds: BTreeSet<_> =
        events.succeeds().json().iter().map(|line| line["message"].to_string()).collect();
    for kind in ["order_accepted", "trade", "order_canceled", "command_refused", "phase_changed", "settled"] {
        assert!(kinds.contains(&format!("{kind:?}")), "{kind} is not in {kinds:?}");
    }
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_and_left_as_it_is() {
    let place = small();
    let decoded = || ["input", "events"].map(|journal| place.run("decode", &["--journal", journal]).out);
    let before = decoded();
    let refused = |flags: &[&str], words: &[&str]| {
        feed(program("exchange").arg("run").arg(&place.journal).args(flags), b"").fails(1, words);
    };
    refused(&["--commands", "1000"], &["has 1000 commands already", "use another directory"]);
    refused(&["--in-turn", "--commands", "1000", "--seed", "6"], &["command 1 ", "the seed"]);
    refused(&["--in-turn", "--commands", "900", "--seed", "5"], &["not the one", "number of commands"]);
    assert!(decoded() == before, "something was added");
    for flags in [&["--commands", "99"][..], &["--producers", "0"], &["--seed", "-1"], &["--commands", "x"]] {
        let ran = feed(program("exchange").arg("run").arg(place.path("none")).args(flags), b"");
        assert_eq!(ran.code, 2, "{flags:?}: {ran:?}");
        assert!(!place.path("none").exists());
    }
}

#[test]
fn what_is_no_session_of_the_exchange_cannot_be_checked_or_decoded() {
    let place = Place::new();
    place.run("replay-check", &[]).fails(2, &["journal"]);
    place.run("decode", &["--journal", "events"]).fails(2, &["journal"]);
    fs::create_dir(&place.journal).unwrap();
    place.run("replay-check", &[]).fails(2, &["events"]);
    place.run("decode", &["--journal", "events"]).fails(2, &["events"]);
    assert_eq!(place.run("decode", &[]).code, 2, "which journal has to be said");
}
