//! Rot in acknowledged data, which is never cut or skipped; and repairs, which never take more than they must.

use strandline::core::{Config, RecoveryPolicy, Refusal, SegmentId, Seq, Verdict, verdict::Row};

use super::lab::{Lab, config, file};

/// Segments of one record each, which begin with 0, 1, 2...
fn segments(count: usize) -> Lab {
    let one = Config { segment_bytes: 200, ..config() };
    let lab = Lab::with_commits(one, &vec![&[60usize][..]; count]);
    let found = lab.files();
    assert_eq!(found.len(), count, "{:?}", found.keys());
    lab
}

#[test]
fn fault_020_a_flip_in_an_earlier_segment_is_refused_and_nothing_behind_it_is_served() {
    let lab = segments(5);
    lab.flip(&file(1), 56 + 20);
    assert_eq!(lab.damage(), (Row::A, 1, 56));
    assert_eq!(lab.seqs(), [0]);
}

#[test]
fn fault_021_a_flip_early_in_the_last_segment_does_not_cut_what_follows() {
    let lab = Lab::with_commits(config(), &vec![&[60usize; 10][..]; 100]);
    let (commit, record) = (10 * 76 + 40, 76);
    let tenth = 56 + 10 * record - record;
    lab.flip(&file(0), tenth + 30);
    assert_eq!(lab.damage(), (Row::B, 0, tenth as u64));
    assert!(lab.bytes(&file(0)).len() > 99 * commit, "990 later records are still there");
}

#[test]
fn fault_022_segments_behind_a_damaged_one_are_left_alone() {
    let lab = segments(6);
    lab.flip(&file(2), 56 + 20);
    let before = lab.files();
    assert_eq!(lab.damage(), (Row::A, 2, 56));
    assert_eq!(lab.files(), before);
}

#[test]
fn fault_025_a_truncated_earlier_segment_is_no_prefix() {
    let lab = Lab::with_commits(Config { segment_bytes: 700, ..config() }, &[&[500], &[500]]);
    let len = lab.bytes(&file(0)).len();
    lab.edit(&file(0), |bytes| bytes.truncate(len - 300));
    assert_eq!(lab.damage(), (Row::A, 0, 56));
}

#[test]
fn fault_026_every_cut_is_told_with_its_place_and_what_is_lost() {
    let lab = Lab::with_commits(config(), &[&[60, 60], &[60]]);
    let len = lab.bytes(&file(0)).len();
    lab.edit(&file(0), |bytes| bytes[len - 10] ^= 1);
    let open = lab.open(config());
    let Verdict::Cut(cut) = open.report.verdict else { panic!("{:?}", open.report) };
    let start = 56 + 2 * 76 + 40u64;
    assert_eq!((cut.segment, cut.offset), (SegmentId(Seq::ZERO), start));
    assert_eq!((cut.bytes, cut.first_lost.get(), cut.row), (76, 2, Row::G));
    let told = cut.to_string();
    for part in ["76 bytes", &format!("offset {start}"), "row G", "lost is 2"] {
        assert!(told.contains(part), "{told}");
    }
}

/// There is no side file to lose: the proof is in the journal. A small damaged tail costs itself.
#[test]
fn fault_027_a_damaged_tail_costs_no_more_than_itself() {
    let lab = Lab::with_commits(config(), &[&[1_000; 20], &[1_000; 3]]);
    let len = lab.bytes(&file(0)).len();
    lab.edit(&file(0), |bytes| bytes.truncate(len - 3 * 1_024));
    let open = lab.open(config());
    let Verdict::Cut(cut) = open.report.verdict else { panic!("{:?}", open.report) };
    assert_eq!(cut.first_lost.get(), 20);
    assert_eq!(lab.seqs(), (0..20).collect::<Vec<_>>());
}

#[test]
fn fault_028_of_a_large_segment_exactly_the_torn_record_is_cut() {
    let lab = Lab::with_commits(config(), &[&[4_000usize; 5_000][..], &[4_000; 5_000], &[4_000]]);
    let len = lab.bytes(&file(0)).len();
    assert!(len > 40_000_000);
    lab.edit(&file(0), |bytes| bytes.truncate(len - 60));
    let open = lab.open(config());
    let Verdict::Cut(cut) = open.report.verdict else { panic!("{:?}", open.report.verdict) };
    assert_eq!((cut.first_lost.get(), open.report.end.get()), (10_000, 10_000));
    assert!(cut.bytes <= 4_016 + 40);
}

#[test]
fn fault_029_a_segment_with_a_bad_header_is_no_placeholder() {
    let lab = segments(3);
    lab.flip(&file(1), 0);
    assert!(matches!(lab.refusal(config()), Refusal::Magic { segment, .. } if segment.0.get() == 1));
    assert!(lab.files().contains_key(&file(1)));
    assert_eq!(lab.seqs(), [0], "the third segment is not served");
}

/// What no mark proves may be a tear; whoever prefers a refusal gets one.
#[test]
fn the_strict_policy_refuses_what_might_be_rot_in_the_newest_commit() {
    let lab = Lab::with_commits(config(), &[&[60], &[60]]);
    let len = lab.bytes(&file(0)).len();
    lab.flip(&file(0), len - 10);
    let before = lab.files();
    let strict = Config { recovery: RecoveryPolicy::Strict, ..config() };
    let error = lab.try_open(strict).err().unwrap().to_string();
    assert!(error.contains("row G"), "{error}");
    assert_eq!(lab.files(), before);
}
