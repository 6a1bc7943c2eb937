//! Torn tails: writes that reached the disk in part or out of order, and zeros after a power loss.

use strandline::core::{Config, Pcpj, RecoveryPolicy, SyncPolicy, Verdict, verdict::Row};

use super::lab::{Lab, config, file};

fn cut(verdict: &Verdict) -> (Row, u64, u64) {
    match verdict {
        Verdict::Cut(cut) => (cut.row, cut.offset, cut.first_lost.get()),
        other => panic!("{other:?}"),
    }
}

/// A record that crosses a page: its first page reached the disk, the second reads as zeros.
#[test]
fn fault_001_a_record_with_half_its_pages_is_cut_off() {
    let lab = Lab::with_commits(config(), &[&[100, 100, 100], &[5 * 1024]]);
    let whole = lab.bytes(&file(0));
    let start = 56 + 3 * 116 + 40;
    lab.edit(&file(0), |bytes| bytes[4_096..].fill(0));
    let open = lab.open(config());
    assert_eq!(cut(&open.report.verdict), (Row::F, start as u64, 3));
    assert!(open.report.repair.cut && open.report.repair.set_aside);
    assert_eq!(lab.bytes(&format!("{}.torn-{start}", file(0))), whole[start..4_096]);
    assert!(lab.bytes(&file(0)).len() <= start + 40, "physically cut, but for a mark");
    let mut open = open;
    assert_eq!(open.append(b"next").unwrap().seq.get(), 3);
}

/// One interior page of an unsynced batch is missing, a later one is there.
#[test]
fn fault_002_a_missing_interior_page_does_not_wedge_the_journal() {
    let lab = Lab::with_commits(config(), &[&[1_024; 20]]);
    lab.edit(&file(0), |bytes| bytes[4_096..8_192].fill(0));
    let open = lab.open(config());
    let (row, _, lost) = cut(&open.report.verdict);
    assert_eq!((row, lost), (Row::F, 3), "3 records of 1,040 bytes lie before the page");
    drop(open);
    assert_eq!(lab.open(config()).report.verdict, Verdict::Sound, "the second open is clean");
    assert_eq!(lab.seqs(), [0, 1, 2]);
}

#[test]
fn fault_003_rot_in_a_synced_batch_of_the_last_segment_is_refused() {
    let lab = Lab::with_commits(config(), &[&[100], &[100], &[100]]);
    let second = 56 + 116 + 40;
    lab.flip(&file(0), second + 50);
    assert_eq!(lab.damage(), (Row::B, 0, second as u64));
}

/// The file ends within the fixed part of a record.
#[test]
fn fault_006_a_file_that_ends_inside_a_record_header_opens() {
    let lab = Lab::with_commits(config(), &[&[10], &[10]]);
    let start = 56 + 26 + 40;
    lab.edit(&file(0), |bytes| bytes.truncate(start + 7));
    let open = lab.open(Config { recovery: RecoveryPolicy::Strict, ..config() });
    assert_eq!(cut(&open.report.verdict), (Row::F, start as u64, 1));
    let Verdict::Cut(cut) = open.report.verdict else { unreachable!() };
    assert!(cut.bytes <= 7 && cut.bytes > 0, "the bytes that hold something are reported");
}

/// The proof of durability is really in the bytes, for every policy that promises it.
#[test]
fn fault_007_rot_before_a_mark_is_refused_under_every_policy() {
    for sync in [SyncPolicy::Always, SyncPolicy::Interval { ms: 1 }, SyncPolicy::Never] {
        for reserve_bytes in [0, 4_096] {
            let settings = Config { sync, reserve_bytes, ..config() };
            let lab = Lab::new();
            let mut open = lab.open(settings.clone());
            open.commit(&[100]);
            open.core.request_sync();
            open.drain();
            open.commit(&[100]);
            let proven = lab.inspect().report.proven_end.get();
            assert_eq!(proven, 1, "{sync:?}: the second commit's mark states the first");
            lab.flip(&file(0), 56 + 30);
            assert_eq!(lab.damage(), (Row::B, 0, 56), "{sync:?}");
        }
    }
}

#[test]
fn fault_008_zeros_in_the_rest_of_the_page_are_a_clean_end() {
    let lab = Lab::with_commits(config(), &[&[100]]);
    lab.edit(&file(0), |bytes| bytes.extend_from_slice(&[0; 4_096]));
    let open = lab.open(config());
    assert_eq!(open.report.verdict, Verdict::Sound);
    assert_eq!(lab.seqs(), [0], "no record appears out of zeros");
    assert!(lab.bytes(&file(0)).len() < 4_096, "the zeros are cut off");
}

/// The length reached the disk, the data did not.
#[test]
fn fault_009_a_run_of_zeros_behind_the_end_is_named_in_the_report() {
    let lab = Lab::with_commits(config(), &[&[100, 100]]);
    let valid = lab.bytes(&file(0)).len() as u64;
    lab.edit(&file(0), |bytes| bytes.extend_from_slice(&vec![0; 1 << 20]));
    let report = lab.inspect().report;
    assert_eq!((report.verdict, report.end.get()), (Verdict::Sound, 2));
    let segment = &report.segments[0];
    assert_eq!((segment.row, segment.bytes, segment.file_bytes), (Some(Row::Z), valid, valid + (1 << 20)));
    lab.open(config()).close();
    assert_eq!(lab.seqs(), [0, 1]);
}

/// What a crash leaves of an event entry, for each byte that the write got to.
#[test]
fn fault_052_an_event_cut_between_header_and_payload_loses_nothing_acknowledged() {
    use strandline::core::{EventDraft, Timestamp};
    use strandline::{Performer, files_of, recover};
    let lab = Lab::new();
    let performer = Performer::new(std::sync::Arc::new(lab.disk.clone()), super::lab::name());
    let listing = files_of(&lab.disk, &super::lab::name()).unwrap().listing;
    let (mut journal, _) = recover::<Pcpj, _>(&performer, config(), listing).unwrap();
    let mut end_of_first = 0;
    for n in 0..2 {
        let draft = EventDraft { domain: 1, event_type: "order", source: "/shop", payload: br#"{"id":7}"# };
        journal.append(Timestamp::from_millis(1), draft).unwrap();
        while let Some(output) = journal.poll_output() {
            if let strandline::core::Output::Effect { id, effect } = output {
                let result = performer.perform(&effect);
                journal.handle_completion(strandline::core::Completion { id, result });
            }
        }
        if n == 0 {
            end_of_first = lab.bytes(&file(1)).len();
        }
    }
    let whole = lab.bytes(&file(1));
    for len in end_of_first..whole.len() {
        let torn = Lab::new();
        torn.put(&file(1), &whole[..len]);
        let performer = Performer::new(std::sync::Arc::new(torn.disk.clone()), super::lab::name());
        let listing = files_of(&torn.disk, &super::lab::name()).unwrap().listing;
        let (journal, report) = recover::<Pcpj, _>(&performer, config(), listing).unwrap();
        assert_eq!(report.end.get(), 2, "{len}");
        assert_eq!(journal.next_seq().get(), 2);
    }
}
