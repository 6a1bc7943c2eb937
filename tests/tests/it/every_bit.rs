//! Every bit of a journal is flipped, and everybody who looks at it comes to the same verdict.

use std::thread;

use strandline::core::{RecoveryError, Verdict};
use strandline::{OfflineStep, ReadUpTo, Seq};

use crate::faults::lab::{Lab, config, file};

const WORKERS: usize = 16;

/// The sequence numbers and payloads that a reader gets before it ends.
fn read(lab: &Lab, until: ReadUpTo) -> Vec<(u64, Vec<u8>)> {
    let mut reader = lab.inspect().reader(Seq::ZERO, until);
    let mut records = Vec::new();
    while let OfflineStep::Records(batch) = reader.next_batch().unwrap() {
        records.extend(batch.records().map(|record| (record.seq.get(), record.payload.to_vec())));
    }
    records
}

fn all_agree(whole: &[(u64, Vec<u8>)], bytes: &[u8], bit: usize) -> &'static str {
    let mut flipped = bytes.to_vec();
    flipped[bit / 8] ^= 1 << (bit % 8);
    let lab = Lab::new();
    lab.put(&file(0), &flipped);

    // `verify` prints this report, `cat` reads up to its end, `tail -f` up to what is proven.
    let report = lab.inspect().report;
    let printed = read(&lab, ReadUpTo::Written);
    assert_eq!(printed, whole[..printed.len()], "bit {bit}: a prefix, unchanged");
    assert_eq!(printed.len() as u64, report.end.get(), "bit {bit}");
    let followed = read(&lab, ReadUpTo::Durable);
    assert_eq!(followed, whole[..followed.len()], "bit {bit}");
    assert_eq!(followed.len() as u64, report.proven_end.get(), "bit {bit}");
    assert_eq!(lab.files()[&file(0)], flipped, "bit {bit}: looking changes nothing");

    match (lab.try_open(config()), report.verdict) {
        (Err(RecoveryError::Refused { refusal, .. }), Verdict::Refused(seen)) => {
            assert_eq!(refusal, seen, "bit {bit}");
            assert_eq!(lab.files()[&file(0)], flipped, "bit {bit}: a refusal changes nothing");
            "refused"
        }
        (Ok(open), Verdict::Cut(seen)) => {
            assert_eq!(open.report.verdict, Verdict::Cut(seen), "bit {bit}");
            assert_eq!(open.report.end.get(), printed.len() as u64, "bit {bit}");
            "cut"
        }
        (opened, seen) => panic!("bit {bit}: {seen:?}, {:?}", opened.map(|open| open.report)),
    }
}

#[test]
fn every_flipped_bit_gets_one_verdict_from_open_verify_cat_and_tail() {
    let lab = Lab::new();
    let mut open = lab.open(config());
    for len in [10, 0, 25] {
        open.commit(&[len]);
    }
    open.close();
    let (whole, bytes) = (lab.records(), lab.bytes(&file(0)));
    assert_eq!(whole.len(), 3);
    // Each look waits a moment to see whether a writer is at work, so many are made at once.
    let verdicts: Vec<&str> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let (whole, bytes) = (&whole, &bytes);
                scope.spawn(move || {
                    let bits = (worker..bytes.len() * 8).step_by(WORKERS);
                    bits.map(|bit| all_agree(whole, bytes, bit)).collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(verdicts.len(), bytes.len() * 8);
    let cut = verdicts.iter().filter(|verdict| **verdict == "cut").count();
    assert_eq!(cut, 40 * 8, "only the closing mark, behind which nothing proves it, is cut");
}
