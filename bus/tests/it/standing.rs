//! What a server says of how it is: whether it is ready, and what it counts.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use strandline::{Disk, DiskLayer, ReadStep, ReadUpTo, StdDisk};
use strandline_bus::{ConnectionLimits, DiskMeasures, ServerSettings};
use strandline_core::Seq;

use crate::server::{Running, with, with_disk};

fn event(id: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/s","type":"t"}}"#)
}

/// A disk whose writes, or syncs, fail with an error number as long as there is one.
struct Failing {
    disk: StdDisk,
    write: Arc<AtomicI32>,
    sync: Arc<AtomicI32>,
}

fn fails(code: &AtomicI32) -> io::Result<()> {
    match code.load(Ordering::SeqCst) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

impl DiskLayer for Failing {
    type Below = StdDisk;

    fn below(&self) -> &StdDisk {
        &self.disk
    }

    fn write_at(&self, file: &<StdDisk as Disk>::File, offset: u64, data: &[u8]) -> io::Result<usize> {
        fails(&self.write)?;
        self.disk.write_at(file, offset, data)
    }

    fn sync(&self, file: &<StdDisk as Disk>::File) -> io::Result<()> {
        fails(&self.sync)?;
        self.disk.sync(file)
    }
}

#[test]
fn a_server_is_not_ready_from_a_publish_without_space_to_one_that_goes_through() {
    const ENOSPC: i32 = 28;
    const EIO: i32 = 5;
    let (write, sync) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicI32::new(0)));
    let layer = {
        let (write, sync) = (Arc::clone(&write), Arc::clone(&sync));
        |disk| Failing { disk, write, sync }
    };
    with_disk(ServerSettings::default(), ConnectionLimits::default(), layer, |running| async move {
        assert_eq!(running.get("/readyz").await.status, 200);
        assert_eq!(running.publish(&event("1")).await.status, 201);
        write.store(ENOSPC, Ordering::SeqCst);
        running.publish(&event("2")).await.refuses(507, "no space left");
        running.get("/readyz").await.refuses(503, "no space left");
        // Nothing new was recorded by it.
        assert_eq!(running.publish(&event("1")).await.status, 200);
        running.get("/readyz").await.refuses(503, "no space left");
        write.store(0, Ordering::SeqCst);
        assert_eq!(running.publish(&event("2")).await.status, 201);
        assert_eq!(running.get("/readyz").await.status, 200);
        sync.store(EIO, Ordering::SeqCst);
        running.publish(&event("3")).await.refuses(503, "reopen");
        running.get("/readyz").await.refuses(503, "the journal stopped");
    });
}

/// A disk one of whose writes finds no space.
struct FailsOnce {
    disk: StdDisk,
    /// Writes until then.
    left: Arc<AtomicI32>,
}

impl DiskLayer for FailsOnce {
    type Below = StdDisk;

    fn below(&self) -> &StdDisk {
        &self.disk
    }

    fn write_at(&self, file: &<StdDisk as Disk>::File, offset: u64, data: &[u8]) -> io::Result<usize> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            1 => Err(io::Error::from_raw_os_error(28)),
            _ => self.disk.write_at(file, offset, data),
        }
    }
}

/// The ids of what is recorded.
fn recorded<D: Disk>(running: &Running<D>) -> Vec<String> {
    let mut reader = running.bus.events().reader(Seq::new(1), ReadUpTo::Durable);
    let mut ids = Vec::new();
    while let ReadStep::Records(batch) = reader.next_batch(Some(Duration::ZERO)).unwrap() {
        ids.extend(batch.records().map(|record| {
            let event: Value = serde_json::from_slice(record.payload).unwrap();
            event["id"].as_str().unwrap().to_string()
        }));
    }
    ids
}

#[test]
fn a_batch_is_recorded_from_its_beginning_on_or_not() {
    const EVENTS: usize = 60;
    let ids: Vec<_> = (0..EVENTS).map(|n| n.to_string()).collect();
    let data = "x".repeat(60_000);
    let of = |id: &String| {
        format!(r#"{{"specversion":"1.0","id":"{id}","source":"/s","type":"t","data":"{data}"}}"#)
    };
    let batch = format!("[{}]", ids.iter().map(of).collect::<Vec<_>>().join(","));
    let headers = ["Content-Type: application/cloudevents-batch+json"];
    let mut refused = 0;
    for fails_at in 1..8 {
        let left = Arc::new(AtomicI32::new(0));
        let layer = {
            let left = Arc::clone(&left);
            |disk| FailsOnce { disk, left }
        };
        let (ids, batch, refused) = (&ids, &batch, &mut refused);
        with_disk(ServerSettings::default(), ConnectionLimits::default(), layer, |running| async move {
            left.store(fails_at, Ordering::SeqCst);
            let status = running.send("POST", "/v1/events", &headers, batch.as_bytes()).await.status;
            let first = recorded(&running);
            assert_eq!(first, ids[..first.len()], "write {fails_at}: {status}");
            *refused += usize::from(status == 507);
            assert!(status == 507 || (status == 201 && first.len() == EVENTS), "{status}");
            let again = running.send("POST", "/v1/events", &headers, batch.as_bytes()).await;
            assert!(again.status < 300, "{again:?}");
            assert_eq!(recorded(&running), *ids, "write {fails_at}");
        });
    }
    assert!(refused > 0, "no batch met the write that fails");
}

/// Every metric and its value.
async fn metrics<D: Disk>(running: &Running<D>) -> BTreeMap<String, f64> {
    let text = running.get("/metrics").await.body;
    let values = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_string(), value.parse().unwrap())
    });
    values.collect()
}

#[test]
fn a_publish_moves_what_is_counted() {
    let measures = DiskMeasures::default();
    let settings = ServerSettings { disk: Some(measures.clone()), ..ServerSettings::default() };
    with_disk(
        settings,
        ConnectionLimits::default(),
        |disk| measures.of(disk),
        |running| async move {
            let _durable = running.stream("?subscription=d", &[]).await;
            let before = metrics(&running).await;
            let batch = format!("[{},{},{}]", event("1"), event("2"), event("1"));
            let headers = ["Content-Type: application/cloudevents-batch+json"];
            let answer = running.send("POST", "/v1/events", &headers, batch.as_bytes()).await;
            assert_eq!(answer.json(), json!({"sequences": [1, 2, 1]}));
            let after = metrics(&running).await;
            let grown = |name: &str| {
                let of = |metrics: &BTreeMap<String, f64>| {
                    *metrics
                        .get(&format!("strandline_{name}"))
                        .unwrap_or_else(|| panic!("{name}: {metrics:#?}"))
                };
                of(&after) - of(&before)
            };
            for (name, by) in [
                ("events_published_total", 2.0),
                ("events_repeated_total", 1.0),
                ("journal_appends_total", 2.0),
                ("commit_events_sum", 2.0),
                ("journal_next_sequence", 2.0),
                ("journal_durable_sequence", 2.0),
                ("subscription_lag_events{subscription=\"d\"}", 2.0),
                ("subscriptions{state=\"LIVE\"}", 0.0),
            ] {
                assert_eq!(grown(name), by, "{name}");
            }
            // The second event may have come to the first one's commit.
            let commits = grown("journal_commits_total");
            assert!((1.0..=2.0).contains(&commits), "{commits}");
            assert_eq!(grown("commit_events_count"), commits);
            assert_eq!(grown("commit_events_bucket{le=\"+Inf\"}"), commits);
            assert_eq!(grown("commit_events_bucket{le=\"2.0\"}"), commits);
            assert!(grown("journal_bytes") > 0.0);
            assert!(grown("sync_seconds_count") >= commits);
            assert!(grown("write_bytes_count") >= commits);
            let stands = |name: &str| after[&format!("strandline_{name}")];
            assert_eq!(stands("subscriptions{state=\"LIVE\"}"), 1.0);
            assert_eq!(stands("subscriptions{state=\"SUSPENDED\"}"), 0.0);
            assert_eq!(stands("journal_segments"), 1.0);
            assert_eq!(stands("recovery_cuts{journal=\"event-journal\"}"), 0.0);
        },
    );
}

#[test]
fn what_opening_has_cut_off_is_told() {
    with(ServerSettings::default(), ConnectionLimits::default(), |running| async move {
        assert_eq!(running.publish(&event("1")).await.status, 201);
        let running = running.restart_after(|path| {
            let segment = path.join("event-journal-00000000000000000001.seg");
            let mut bytes = std::fs::read(&segment).unwrap();
            bytes.extend(b"torn");
            std::fs::write(&segment, bytes).unwrap();
        });
        let running = running.await;
        let metrics = metrics(&running).await;
        for (name, value) in [
            ("recovery_cuts{journal=\"event-journal\"}", 1.0),
            ("recovery_cut_bytes{journal=\"event-journal\"}", 4.0),
            ("recovery_cuts{journal=\"subscriptions\"}", 0.0),
            ("recovery_cut_bytes{journal=\"subscriptions\"}", 0.0),
        ] {
            assert_eq!(metrics[&format!("strandline_{name}")], value, "{name}");
        }
    });
}
