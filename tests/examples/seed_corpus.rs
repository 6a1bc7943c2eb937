//! Writes the seeds of the fuzz corpus: `cargo run -p strandline-tests --example seed_corpus -- fuzz/corpus`.
//!
//! What a fuzzer has found lies beside them, under names that begin with `found`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use strandline::core::{EventDraft, Pryj};
use strandline::{Config, Directory, Pcpj, config};
use strandline_sim::exchange::{
    CancelOrder, CancelReason, Command, CommandRefused, Event, ExchangeSetup, Halt, Halted, Instrument,
    ModifyOrder, OrderAccepted, OrderCanceled, OrderKind, OrderModified, Phase, PhaseChanged, PlaceOrder,
    Refusal, Resume, Resumed, Settled, Side, Tick, TimeInForce, Trade,
};

type Outcome = Result<(), Box<dyn Error>>;
type FourBytes = Vec<[u8; 4]>;

/// Control bytes of `journal_bytes` and `journal_pieces`: nothing is mended, the journal starts at 0.
const AS_IT_IS: u8 = 0b0110_0000;
const EVENTS: u8 = 1;
const STRICT: u8 = 2;
const VERSION_1: u8 = 16;

fn main() -> Outcome {
    let root = PathBuf::from(std::env::args_os().nth(1).ok_or("give the folder of the corpus")?);
    exchange_messages(&root.join("exchange_messages"))?;
    frames(&root.join("frames"))?;
    journals(&root.join("journal_bytes"))?;
    pieces(&root.join("journal_pieces"))?;
    lines(&root.join("lines"))?;
    operations(&root.join("operations"))?;
    words(&root.join("words"))
}

fn write(folder: &Path, name: &str, parts: &[&[u8]]) -> Outcome {
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join(name), parts.concat())?)
}

/// One message of each kind, then setups of eight bytes with commands of four.
fn exchange_messages(folder: &Path) -> Outcome {
    for command in commands() {
        write(folder, &format!("command-{}", command.template().id), &[&command.to_bytes()])?;
    }
    for event in events() {
        write(folder, &format!("event-{}", event.template().id), &[&event.to_bytes()])?;
    }
    let instrument = |instrument, symbol: &str| Instrument {
        instrument,
        reference: 1_000,
        band: 100,
        tick: 5,
        lot: 1,
        symbol: symbol.into(),
    };
    let instruments = vec![instrument(1, "GOLD"), instrument(2, "")];
    let setup = ExchangeSetup { time: 1, opens_at: 0, closes_at: 86_400, instruments };
    write(folder, "setup", &[&setup.to_bytes()])?;
    // Open all day; the first is the tick that opens.
    let (all_day, open) = ([0; 8], [8, 0, 0, 0]);
    let (sell, buy, next_day) = ([0, 2, 5, 10], [0, 64, 9, 4], [56, 1, 0, 0]);
    let scripts: [(&str, [u8; 8], FourBytes); 10] = [
        ("trade", all_day, vec![open, sell, buy, buy, buy, sell]),
        ("market-order", all_day, vec![open, sell, [0, 4, 0, 20], [0, 4, 0, 1]]),
        ("immediate-or-cancel", all_day, vec![open, sell, [0, 16, 7, 20]]),
        (
            "cancel-and-modify",
            all_day,
            vec![open, sell, sell, [6, 0, 2, 0], [7, 16, 3, 5], [6, 64, 3, 0], buy],
        ),
        ("next-day", all_day, vec![open, sell, buy, [0, 10, 99, 4], next_day, sell, next_day]),
        (
            "halt",
            all_day,
            vec![open, sell, [12, 0, 0, 0], buy, [12, 0, 0, 0], [13, 0, 0, 0], buy, [13, 0, 0, 0]],
        ),
        ("short-day", [80, 100, 1, 2, 0, 1, 1, 1], vec![open, sell, [40, 9, 0, 0], sell, buy, [40, 9, 0, 0]]),
        (
            "end-of-time",
            [0, 0, 3, 2, 3, 1, 0, 0],
            vec![open, sell, buy, next_day, next_day, sell, [8, 0, 0, 3]],
        ),
        (
            "lowest-prices",
            [0, 0, 0, 0, 4, 1, 0, 0],
            vec![open, sell, [0, 2, 128, 255], buy, [0, 0, 255, 255]],
        ),
        (
            "spoilt",
            all_day,
            vec![open, [14, 2, 0, 1], [14, 0, 0, 9], [15, 8, 0, 0], [8, 0, 11, 0], [0, 0, 142, 28]],
        ),
    ];
    for (name, setup, script) in scripts {
        write(folder, &format!("exchange-{name}"), &[&setup, script.as_flattened()])?;
    }
    write(folder, "setup-of-two-equal-instruments", &[&[0, 0, 0, 1, 0, 0, 0, 0]])
}

fn commands() -> [Command<'static>; 6] {
    let (trader, reference) = ("ann", "größe");
    [
        Command::Tick(Tick { time: 1 }),
        Command::PlaceOrder(PlaceOrder {
            instrument: 1,
            side: Side::Buy,
            kind: OrderKind::Limit,
            time_in_force: TimeInForce::Day,
            price: -1,
            quantity: 1,
            trader,
            reference,
        }),
        Command::CancelOrder(CancelOrder { order: 1, trader }),
        Command::ModifyOrder(ModifyOrder { order: 1, price: 1, quantity: 1, trader }),
        Command::Halt(Halt { instrument: 1, reason: "news" }),
        Command::Resume(Resume { instrument: 1 }),
    ]
}

fn events() -> [Event<'static>; 9] {
    let (trader, reference) = ("ann", "größe");
    [
        Event::OrderAccepted(OrderAccepted {
            order: 2,
            instrument: 1,
            side: Side::Sell,
            kind: OrderKind::Market,
            time_in_force: TimeInForce::ImmediateOrCancel,
            price: 0,
            quantity: 1,
            trader,
            reference,
        }),
        Event::Trade(Trade {
            trade: 1,
            time: 2,
            instrument: 3,
            price: 4,
            quantity: 5,
            taker_side: Side::Sell,
            taker: 6,
            taker_left: 7,
            maker: 8,
            maker_left: 9,
        }),
        Event::OrderModified(OrderModified { order: 1, price: 2, quantity: 3 }),
        Event::OrderCanceled(OrderCanceled { order: 1, reason: CancelReason::Expired, quantity: 2 }),
        Event::CommandRefused(CommandRefused {
            command: 12,
            refusal: Refusal::PriceOffTick,
            order: 0,
            trader,
            reference,
        }),
        Event::PhaseChanged(PhaseChanged { time: 1, phase: Phase::Open }),
        Event::Settled(Settled { instrument: 1, reference: -1 }),
        Event::Halted(Halted { instrument: 1, reason: "news" }),
        Event::Resumed(Resumed { instrument: 1 }),
    ]
}

/// The frames of `core/FORMAT.md`, each with the control byte of its framing and version.
fn frames(folder: &Path) -> Outcome {
    let salt_and_more = |at: u8, first: u8| {
        [
            &[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11][..],
            &[at, 0, 0, 0, 0, 0, 0, 0],
            &[first, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat()
    };
    let record = b"\x02\0\0\0\x07\0\0\0\0\0\0\0hi\xf4\xbc\xe2\xa1";
    write(folder, "pryj-record", &[b"\x02", record])?;
    write(folder, "pryj-record-of-version-1", &[b"\x00", record])?;
    let mark = [b"\x18\0\0\x80\x07\0\0\0\0\0\0\0", &salt_and_more(0x10, 5)[..], b"\xd2\xc5\xf7\x8d"].concat();
    write(folder, "pryj-mark", &[b"\x02", &mark])?;
    write(folder, "pryj-length-beyond-the-limit", &[b"\x02\x01\0\0\x01"])?;
    write(folder, "pryj-empty-to-be-sealed", &[b"\x06", &[0; 16]])?;
    let entry = |version: u8, sum: &[u8]| {
        let head = [b"PCPJ", &[version, 3, 4, 0, 2, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..]].concat();
        [&head[..], b"\0\x68\xe5\xcf\x8b\x01\0\0", sum, b"tick/a{\"n\":1}"].concat()
    };
    write(folder, "pcpj-event", &[b"\x03", &entry(2, b"\x74\xee\xec\x8d")])?;
    write(folder, "pcpj-event-of-version-1", &[b"\x01", &entry(1, b"\x7e\x3b\x4b\xd4")])?;
    write(folder, "pcpj-event-in-a-file-of-version-1", &[b"\x01", &entry(2, b"\x74\xee\xec\x8d")])?;
    let head = b"PCPJ\x02\0\0\0\0\0\x18\0\0\0\x01\0\0\0\0\0\0\0\0\x68\xe5\xcf\x8b\x01\0\0\xfa\xd3\x2f\xfa";
    write(folder, "pcpj-mark", &[b"\x03", head, &salt_and_more(0, 1)])
}

/// Real journals, of a few small segments, as a close and as a kill leave them.
fn journals(folder: &Path) -> Outcome {
    for (name, version, zeros, control) in [
        ("marks", 2, 0, AS_IT_IS),
        ("marks-and-zeros", 2, 64, AS_IT_IS | STRICT),
        ("version-1", 1, 0, AS_IT_IS | VERSION_1),
    ] {
        let mut config = Config { segment_bytes: 250, reserve_bytes: 0, version, ..config() };
        config.salt_seed = 7;
        let root = tempfile::tempdir()?;
        let directory = Directory::open(root.path())?;
        let (records, _) =
            directory.journal::<Pryj>("records", Config { first_seq: Some(0.into()), ..config.clone() })?;
        let (events, _) =
            directory.journal::<Pcpj>("events", Config { first_seq: Some(0.into()), ..config })?;
        for n in 0..6u8 {
            records.append(&vec![n; usize::from(n) * 9])?;
            events.append(EventDraft {
                domain: 1 + n,
                event_type: "tick",
                source: "/a",
                payload: b"{\"n\":1}",
            })?;
        }
        let killed = |framing: &str, control: u8| {
            let files = files_of(root.path(), framing)?;
            write(folder, &format!("{framing}-{name}"), &[&[control, 0, 0, 0], &cut_into(&files, zeros)])
        };
        killed("records", control)?;
        killed("events", control | EVENTS)?;
        records.close()?;
        events.close()?;
        let closed = files_of(root.path(), "records")?;
        write(folder, &format!("records-{name}-closed"), &[&[control, 0, 0, 0], &cut_into(&closed, 0)])?;
        let torn = cut_into(&closed, 0);
        write(folder, &format!("records-{name}-torn"), &[&[control, 0, 0, 0], &torn[..torn.len() - 7]])?;
    }
    write(folder, "begun-by-the-fuzzer-records", &[&[0, 0, 9, 0, 255, 255, 0], &[24; 700]])?;
    write(folder, "begun-by-the-fuzzer-events", &[&[EVENTS, 0, 9, 1, 255, 255, 0], &[3; 900]])?;
    for (name, wrong) in [("start", 1), ("end", 2), ("place", 3)] {
        let file = &[&[0, wrong << 3, 2, 3, 255, 255, 0][..], &[2; 150]];
        write(folder, &format!("records-first-mark-with-a-wrong-{name}"), file)?;
    }
    write(folder, "bare-events", &[&[EVENTS, 7, 5, 3, 255, 255, 0], &[2; 300]])
}

/// The segments of a journal, in order.
fn files_of(path: &Path, journal: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut paths: Vec<_> =
        fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?.iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(journal) && name.ends_with(".seg")
    });
    paths.sort();
    Ok(paths.iter().map(fs::read).collect::<Result<_, _>>()?)
}

/// Files as the target cuts them: a length, a step of 0, the bytes.
fn cut_into(files: &[Vec<u8>], zeros: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let last = index + 1 == files.len();
        let len = u16::try_from(file.len()).unwrap_or(u16::MAX);
        all.extend(if last { u16::MAX } else { len }.to_le_bytes());
        all.push(0);
        all.extend(file);
    }
    all.resize(all.len() + zeros, 0);
    all
}

/// Pieces are three bytes; see `Piece`.
fn pieces(folder: &Path) -> Outcome {
    let record = |len: u8| [0, len, 7];
    let (mark, seal) = ([4, 0, 0], [10, 0, 0]);
    let scripts: [(&str, Vec<[u8; 3]>); 16] = [
        ("commits", vec![record(10), mark, record(0), record(30), mark]),
        ("segments", vec![record(10), seal, record(3), mark, seal, record(4)]),
        ("torn-record", vec![record(10), mark, record(90), [9, 20, 0]]),
        ("rot-that-a-mark-proves", vec![record(50), [8, 80, 0], mark]),
        ("rot-that-nothing-proves", vec![record(50), mark, record(50), [8, 80, 0]]),
        ("hole-in-the-last-record", vec![mark, [14, 60, 0], [16, 200, 255]]),
        ("lost-block", vec![record(10), [14, 100, 0], [19, 0, 0], record(3)]),
        ("lost-seal", vec![record(10), [6, 200, 0], seal, record(2)]),
        ("zeros-behind-the-end", vec![record(10), mark, [15, 100, 0]]),
        ("wrong-number", vec![record(10), [11, 0, 1]]),
        ("wrong-salt", vec![record(10), [13, 0, 1]]),
        ("mark-that-states-more", vec![record(10), [13, 2, 3]]),
        ("imitation", vec![record(10), [17, 9, 0], [8, 255, 1]]),
        ("copy-behind-the-end", vec![record(10), mark, [18, 20, 66]]),
        ("gap", vec![record(10), [10, 0, 1], record(1)]),
        ("frames-larger-than-a-read", vec![[14, 80, 255], record(1), [14, 66, 255], [8, 3, 0]]),
    ];
    for (name, script) in scripts {
        for (framing, control) in [("records", 0), ("events", EVENTS)] {
            write(folder, &format!("{framing}-{name}"), &[&[control, 0, 0, 1], script.as_flattened()])?;
        }
    }
    let flags = EVENTS | STRICT | VERSION_1;
    write(folder, "events-of-version-1-strict", &[&[flags, 0, 0, 3], &record(8), &record(0), &[9, 3, 0]])?;
    write(
        folder,
        "last-numbers",
        &[&[0, 0, 0, 6], [record(1), record(2), record(3), record(4)].as_flattened()],
    )?;
    write(folder, "bare-events", &[&[EVENTS, 7, 0, 4], &record(9), &mark, &[9, 3, 0]])
}

fn lines(folder: &Path) -> Outcome {
    let event = br#"{"specversion":"1.0","id":"1","type":"t","source":"/\u00e4","data":{"x":1.50}}"#;
    let texts: [(&str, &[u8]); 12] = [
        ("values", b"null\n 1.50e400 \n\"\\ud800\"\n[[],{}]\r\n\n \t\n{\"a\":1,\"a\":2}"),
        ("cloud-event", event),
        ("cloud-event-without-an-id", br#"{"specversion":"1.0","type":"t","source":"s"}"#),
        (
            "cloud-event-with-escapes",
            br#"{"specversi\u006fn":"1.0","id":"1","type":"t","source":"s","\ud800":1,"type":"u"}"#,
        ),
        (
            "cloud-event-with-a-control-character",
            br#"{"specversion":"1.0","id":"1","type":"\u0007","source":"s"}"#,
        ),
        ("nul", b"{\"a\":\0}\n\0\0\0\0"),
        ("not-utf-8", b"\"\xff\"\n\"\xc3\xa4\""),
        ("byte-order-mark", b"\xef\xbb\xbf{}\n{}"),
        ("two-values", b"{} {}\n1 2"),
        ("cut-short", b"{\"a\":[1,tr"),
        ("carriage-returns", b"1\r\r\n\r\n\r"),
        ("deep", &[b'['; 300]),
    ];
    for (name, text) in texts {
        write(folder, name, &[&[255, 64], text])?;
    }
    write(folder, "long-lines", &[&[5, 2], b"12345\n123456\n12345\r\n123456\r\n1234567890123\n1"])
}

/// Eight bytes of settings, then operations of three bytes.
fn operations(folder: &Path) -> Outcome {
    let (append, drain) = ([0, 9, 1], [8, 0, 0]);
    let scripts: [(&str, Vec<[u8; 3]>); 10] = [
        ("commits", vec![append, drain, append, [12, 0, 0]]),
        ("rotation", vec![[0, 50, 2], drain, [0, 50, 2], drain]),
        ("kill", vec![append, drain, append, [12, 0, 0], [20, 0, 0], append]),
        ("power-loss", vec![append, drain, append, [12, 0, 0], [21, 2, 3], append]),
        ("no-space", vec![[22, 60, 1], [0, 50, 2], drain, [22, 0, 0], append, drain]),
        ("failed-sync", vec![append, [23, 4, 9], drain, [20, 0, 0]]),
        ("trim", vec![[0, 50, 2], drain, [0, 50, 2], drain, [17, 3, 0], drain]),
        ("idle", vec![append, drain, [15, 200, 0], drain, [18, 0, 0]]),
        ("lost-write", vec![append, drain, [29, 0, 0], append, drain]),
        ("rot", vec![append, drain, append, [30, 3, 0], [31, 3, 0]]),
    ];
    for (name, script) in scripts {
        for (framing, kind) in [("records", 0), ("events", 1)] {
            let settings = [3, kind, 2, 1, 2, 3, 1, 1];
            write(folder, &format!("{framing}-{name}"), &[&settings, script.as_flattened()])?;
        }
    }
    Ok(())
}

fn words(folder: &Path) -> Outcome {
    for (name, text) in [
        ("size", "64 kib"),
        ("size-too-large", "20000000000GiB"),
        ("duration", "5 min"),
        ("duration-too-long", "18446744073709551615h"),
        ("journal", "event-journal"),
        ("segment", "events-00000000000000000012.seg"),
        ("segment-beyond-the-last-number", "events-18446744073709551615.seg"),
        ("segment-with-too-few-digits", "events-12.seg"),
        ("torn-copy", "events-00000000000000000012.seg.torn-40"),
        ("script", "append:0,17 drain tick:60 clock:-5 power-loss:all-but:2 fail-sync:prefix:1 forge:salt"),
        (
            "script-of-faults",
            "space:128 short:3 misdirect-write:2 rot:7 fail-directory-sync:random:3 lose-write",
        ),
        ("sign", "+5"),
    ] {
        write(folder, name, &[text.as_bytes()])?;
    }
    Ok(())
}
