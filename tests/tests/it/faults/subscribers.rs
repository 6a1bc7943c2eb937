//! Subscribers that stall, retention beneath them, and the hand-over from what was missed to what comes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use strandline::bus::{BusSettings, EVENT_JOURNAL, EventBus, Received, Retention, Subscribe, Subscription};
use strandline::core::{Completion, Output, Pcpj, Timestamp};
use strandline::{
    Directory, EventDraft, JournalName, Performer, ReadStep, ReadUpTo, Seq, StdDisk, files_of, recover,
};

const MIB: u64 = 1 << 20;

/// Set in a child process of these tests: the directory that it is to open.
#[cfg(target_os = "linux")]
const CHILD: &str = "STRANDLINE_CHILD_DIRECTORY";

fn draft(payload: &[u8]) -> EventDraft<'_> {
    EventDraft { domain: 1, event_type: "type", source: "source", payload }
}

fn open(path: &Path, retention: Retention) -> EventBus {
    EventBus::open(&Directory::open(path).unwrap(), BusSettings::with_retention(retention)).unwrap().0
}

/// Bounds by size alone.
fn sizes(compact_above: u64, bytes_max: u64) -> Retention {
    Retention { age_ms_max: None, compact_above, bytes_max }
}

/// Bytes of all files; what goes meanwhile counts as gone.
fn bytes(path: &Path) -> u64 {
    let files = std::fs::read_dir(path).unwrap();
    files.filter_map(|file| file.ok()?.metadata().ok()).map(|file| file.len()).sum()
}

/// The next thing that is not there only later.
fn receive(subscription: &mut Subscription) -> Received {
    subscription.recv(Some(Duration::ZERO)).unwrap()
}

/// All events from `next` to before `end`: each once and in order, or covered by a gap. Gives how many gaps there were.
fn follow(subscription: &mut Subscription, mut next: Seq, end: Seq) -> usize {
    let mut gaps = 0;
    while next < end {
        match subscription.recv(None).unwrap() {
            Received::Events(batch) => {
                for event in batch.events() {
                    assert_eq!(event.seq, next, "without a hole");
                    next = next.next();
                }
            }
            Received::Gap(gap) => {
                assert_eq!(gap.from, next, "{gap}");
                next = gap.to.next();
                gaps += 1;
            }
            Received::Awaiting { sequence } => subscription.acknowledge(sequence).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(next, end);
    gaps
}

/// After a power failure the file is as long as it was, and all zeros.
#[test]
fn fault_11_records_of_subscriptions_that_are_all_zeros_are_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let bus = open(root.path(), sizes(40 * MIB, 50 * MIB));
    let mut context = bus.subscribe(Subscribe::durable("context")).unwrap();
    for _ in 0..10 {
        bus.publish(draft(b"payload")).unwrap();
    }
    assert_eq!(follow(&mut context, Seq::new(1), Seq::new(11)), 0);
    context.acknowledge(Seq::new(10)).unwrap();
    drop(context);
    bus.close().unwrap();
    drop(bus);
    let records = root.path().join("subscriptions-00000000000000000000.seg");
    let zeros = vec![0; std::fs::read(&records).unwrap().len()];
    std::fs::write(&records, &zeros).unwrap();
    let settings = BusSettings::with_retention(sizes(40 * MIB, 50 * MIB));
    let refused = EventBus::open(&Directory::open(root.path()).unwrap(), settings).unwrap_err().to_string();
    assert!(
        refused.contains("subscriptions") && refused.contains("segment 00000000000000000000"),
        "{refused}"
    );
    assert_eq!(std::fs::read(&records).unwrap(), zeros, "it is left for whoever looks into it");
}

/// An event journal as a machine writes it whose clock is wrong: segment after segment stamped with this time.
fn write_at(path: &Path, at: Timestamp, events: usize) {
    let disk = Arc::new(StdDisk::create(path).unwrap());
    let name = JournalName::parse(EVENT_JOURNAL).unwrap();
    let performer = Performer::new(Arc::clone(&disk), name.clone());
    let config = strandline::core::Config { segment_bytes: 64 << 10, ..strandline::config() };
    let listing = files_of(&*disk, &name).unwrap().listing;
    let (mut journal, _) = recover::<Pcpj, _>(&performer, config, listing).unwrap();
    let drain = |journal: &mut strandline::core::Journal<Pcpj>| {
        while let Some(output) = journal.poll_output() {
            if let Output::Effect { id, effect } = output {
                journal.handle_completion(Completion { id, result: performer.perform(&effect) });
            }
        }
    };
    for _ in 0..events {
        journal.append(at, draft(&[b'x'; 1_000])).unwrap();
        drain(&mut journal);
    }
    journal.close();
    drain(&mut journal);
}

/// The machine stood a year in the future, and was set right.
#[test]
fn fault_079_segments_stamped_in_the_future_go_by_size_and_by_age() {
    let root = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let future = Timestamp::from_millis(i64::try_from(now).unwrap() + 365 * 24 * 3_600_000);
    write_at(root.path(), future, 600);
    let hour = Some(3_600_000);
    let bus = open(root.path(), Retention { age_ms_max: hour, ..sizes(MIB, MIB) });
    assert_eq!((bus.events().first(), bus.events().next_seq()), (Seq::new(1), Seq::new(601)));
    for _ in 0..20 {
        bus.publish_all(std::iter::repeat_n(draft(&[b'y'; 1_000]), 100)).unwrap();
        assert!(bytes(root.path()) <= MIB, "{} bytes", bytes(root.path()));
    }
    assert!(bus.events().first() > Seq::new(601), "those from the future went first");
    bus.close().unwrap();

    // By age: what is from the future is as old as the process, and no younger for ever.
    let root = tempfile::tempdir().unwrap();
    write_at(root.path(), future, 100);
    let bus = open(root.path(), Retention { age_ms_max: Some(1), ..sizes(MIB, MIB) });
    while bus.events().first() < Seq::new(101) {
        thread::yield_now();
    }
    bus.close().unwrap();
}

#[test]
fn fault_085_a_reader_in_the_middle_of_a_segment_that_goes_finishes_it_or_gets_a_gap() {
    const EVENTS: u64 = 400;
    let root = tempfile::tempdir().unwrap();
    let bus = open(root.path(), sizes(2 * MIB, 50 * MIB));
    let payload = [b'x'; 10_000];
    bus.publish_all(std::iter::repeat_n(draft(&payload), 60)).unwrap();
    // One that reads the journal, one that follows the bus, both of them with the first part of the first segment; and
    // one that has read nothing of it.
    let mut reader = bus.events().reader(Seq::new(1), ReadUpTo::Durable);
    let ReadStep::Records(batch) = reader.next_batch(None).unwrap() else { panic!("there are events") };
    let mut read = batch.end();
    let mut follower = bus.subscribe(Subscribe::default().after(0)).unwrap();
    let Received::Events(batch) = receive(&mut follower) else { panic!("there are events") };
    let followed = batch.end();
    let mut late = bus.subscribe(Subscribe::default().after(0)).unwrap();
    bus.publish_all(std::iter::repeat_n(draft(&payload), 340)).unwrap();
    bus.compact().unwrap();
    let first_segment = root.path().join(format!("{EVENT_JOURNAL}-{:020}.seg", 1));
    while first_segment.exists() {
        thread::yield_now();
    }
    assert!(bus.events().first() > read, "the first segment is gone, and both were within it");

    assert_eq!(follow(&mut follower, followed, Seq::new(EVENTS + 1)), 1);
    assert_eq!(follow(&mut late, Seq::new(1), Seq::new(EVENTS + 1)), 1);
    while read <= Seq::new(EVENTS) {
        match reader.next_batch(None).unwrap() {
            ReadStep::Records(batch) => {
                for event in batch.records() {
                    assert_eq!(event.seq, read, "without a hole");
                    read = read.next();
                }
            }
            ReadStep::Trimmed { first } => {
                assert!(first > read, "and what went is told");
                read = first;
            }
            other => panic!("{other:?}"),
        }
    }
    bus.close().unwrap();
}

/// The open files of this process in a directory, and how many bytes of them nobody can see there any more.
#[cfg(target_os = "linux")]
fn open_files(root: &Path) -> (usize, u64) {
    let (mut files, mut hidden) = (0, 0);
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        if target.starts_with(root) {
            files += 1;
            if target.to_string_lossy().ends_with("(deleted)") {
                hidden += std::fs::metadata(entry.path()).map_or(0, |file| file.len());
            }
        }
    }
    (files, hidden)
}

/// An hour of retention is told here by size: many times what is kept goes by.
#[cfg(target_os = "linux")]
#[test]
fn fault_087_stalled_readers_hold_neither_files_nor_space() {
    const EVENTS: u64 = 5_000;
    let root = tempfile::tempdir().unwrap();
    let root_path = root.path().canonicalize().unwrap();
    let bus = open(&root_path, sizes(MIB / 2, MIB));
    let payload = [b'x'; 1_000];
    bus.publish_all(std::iter::repeat_n(draft(&payload), 200)).unwrap();
    let (without, _) = open_files(&root_path);
    let mut stalled: Vec<_> = (0..10)
        .map(|n| {
            let mut one = bus.subscribe(Subscribe::durable(&format!("stalled {n}")).after(0)).unwrap();
            let Received::Events(batch) = receive(&mut one) else { panic!("there are events") };
            (one, batch.end())
        })
        .collect();
    for _ in 0..(EVENTS - 200) / 100 {
        bus.publish_all(std::iter::repeat_n(draft(&payload), 100)).unwrap();
        let (files, _) = open_files(&root_path);
        // Beside what a bus has open: a removal, a spare, a segment that is sealed.
        assert!(files <= without + 8, "{files} files are open, {without} without anybody who stalls");
        assert!(bytes(&root_path) <= MIB, "{} bytes", bytes(&root_path));
    }
    assert!(bus.events().first() > Seq::new(4_000), "5 MB went through 1 MiB");
    for (one, next) in &mut stalled {
        assert_eq!(follow(one, *next, Seq::new(EVENTS + 1)), 1, "each has its gap");
    }
    bus.close().unwrap();
    let (_, hidden) = open_files(&root_path);
    assert_eq!(hidden, 0, "bytes of removed files that somebody keeps open");
    drop(stalled);
}

/// The most memory that this process ever had, in bytes.
#[cfg(target_os = "linux")]
fn memory_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

/// In a process of its own, whose memory nobody else uses: many times what a queue could hold goes past subscribers that do
/// not take it.
#[cfg(target_os = "linux")]
#[test]
fn fault_091_what_a_subscriber_does_not_take_is_in_no_memory() {
    const EVENTS: u64 = 30_000;
    let name = "faults::subscribers::fault_091_what_a_subscriber_does_not_take_is_in_no_memory";
    let Ok(path) = std::env::var(CHILD) else {
        let root = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name]).env(CHILD, root.path()).stdout(Stdio::null());
        assert!(child.status().unwrap().success());
        return;
    };
    let bus = open(path.as_ref(), sizes(MIB / 2, MIB));
    let payload = [b'x'; 1_000];
    let publish = |events| bus.publish_all(std::iter::repeat_n(draft(&payload), events)).unwrap();
    publish(100);
    let requests = [Subscribe::durable("a").after(0), Subscribe::default().after(0), Subscribe::default()];
    let mut stalled = requests.map(|request| bus.subscribe(request).unwrap());
    let taken = [0, 1].map(|n: usize| match receive(&mut stalled[n]) {
        Received::Events(batch) => batch.end(),
        other => panic!("{other:?}"),
    });
    publish(3_000);
    let before = memory_max();
    for _ in 0..EVENTS / 1_000 {
        publish(1_000);
    }
    // 30 MB went past each of them.
    // The system counts it roughly: the most that there was may be a little less later.
    let grown = memory_max().saturating_sub(before);
    assert!(grown < 8 * MIB, "{grown} bytes");
    let end = Seq::new(100 + 3_000 + EVENTS + 1);
    for (one, next) in stalled.iter_mut().zip([taken[0], taken[1], Seq::new(101)]) {
        assert_eq!(follow(one, next, end), 1, "each has its gap");
    }
    // The durable one goes on once it has acknowledged that.
    publish(1);
    for one in &mut stalled {
        assert_eq!(follow(one, end, end.next()), 0);
    }
    bus.close().unwrap();
}

/// Two that nothing but their numbers tells apart: one is replayed, one comes while the replay is not acknowledged.
#[test]
fn fault_110_two_equal_events_around_the_hand_over_are_both_delivered() {
    let root = tempfile::tempdir().unwrap();
    let bus = open(root.path(), Retention::default());
    drop(bus.subscribe(Subscribe::durable("a")).unwrap());
    let same = draft(b"the same");
    let payloads = |received: Received| -> Vec<(u64, Vec<u8>)> {
        let Received::Events(batch) = received else { panic!("{received:?}") };
        batch.events().map(|event| (event.seq.get(), event.payload.to_vec())).collect()
    };
    let expected = |seq: u64| vec![(seq, b"the same".to_vec())];
    bus.publish(same).unwrap();
    let mut durable = bus.subscribe(Subscribe::durable("a")).unwrap();
    let mut other = bus.subscribe(Subscribe::default().after(0)).unwrap();
    assert_eq!(payloads(receive(&mut durable)), expected(1));
    assert_eq!(payloads(receive(&mut other)), expected(1));
    assert!(matches!(receive(&mut durable), Received::Awaiting { sequence } if sequence == Seq::new(1)));
    bus.publish(same).unwrap();
    assert!(matches!(receive(&mut durable), Received::TimedOut), "not before the acknowledgement");
    durable.acknowledge(Seq::new(1)).unwrap();
    assert_eq!(payloads(receive(&mut durable)), expected(2));
    assert_eq!(payloads(receive(&mut other)), expected(2));

    // The same with one that publishes while they are replayed.
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..500 {
                bus.publish(same).unwrap();
            }
        });
        let mut again = bus.subscribe(Subscribe::durable("a").after(0)).unwrap();
        assert_eq!(follow(&mut again, Seq::new(1), Seq::new(503)), 0);
    });
    bus.close().unwrap();
}
