//! The set of segments: half-created ones, entries that were not made durable, gaps, duplicates and strays.

use strandline::core::{Config, Effect, Output, Refusal, SegmentId, Seq, Verdict, verdict::Row};
use strandline::{Disk, ListingError, files_of};
use strandline_sim::disk::Survivors;

use super::lab::{Lab, config, file, name};

fn one_each() -> Config {
    Config { segment_bytes: 200, ..config() }
}

fn segments(count: usize) -> Lab {
    Lab::with_commits(one_each(), &vec![&[60usize][..]; count])
}

#[test]
fn fault_056_a_last_segment_that_was_never_created_whole_keeps_its_number() {
    for len in [0, 1, 15] {
        let lab = segments(2);
        lab.put(&file(2), &b"PRYJ\x02\0\0\0\x02\0\0\0\0\0\0\0"[..len]);
        let mut open = lab.open(one_each());
        assert!(matches!(open.report.verdict, Verdict::Cut(cut) if cut.row == Row::D), "{len}");
        assert_eq!(open.append(b"x").unwrap().seq.get(), 2);
        open.drain();
        assert_eq!(lab.seqs(), [0, 1, 2]);
    }
}

#[test]
fn fault_057_an_empty_segment_in_the_middle_is_refused() {
    let lab = segments(3);
    lab.edit(&file(1), Vec::clear);
    assert_eq!(lab.damage(), (Row::A, 1, 0));
}

#[test]
fn fault_059_a_segment_of_nothing_but_its_header_opens() {
    let lab = Lab::new();
    lab.put(&file(9), b"PRYJ\x01\0\0\0\x09\0\0\0\0\0\0\0");
    let mut open = lab.open(Config { version: 1, ..config() });
    assert_eq!((open.report.verdict.clone(), open.report.end.get()), (Verdict::Sound, 9));
    assert_eq!(open.append(b"x").unwrap().seq.get(), 9);
    // In version 2 the first mark belongs to what is created at once, so that a header alone is half of it.
    let lab = Lab::new();
    lab.put(&file(9), b"PRYJ\x02\0\0\0\x09\0\0\0\0\0\0\0");
    let mut open = lab.open(config());
    assert!(matches!(open.report.verdict, Verdict::Cut(cut) if cut.row == Row::D));
    assert_eq!(open.append(b"x").unwrap().seq.get(), 9);
}

#[test]
fn fault_061_a_record_acknowledged_in_a_new_segment_survives_the_loss_of_unsynced_entries() {
    let lab = Lab::new();
    let mut open = lab.open(one_each());
    for n in 0..4 {
        open.commit(&[60]);
        let after = lab.power_loss(Survivors::None);
        assert_eq!(after.seqs(), (0..=n).collect::<Vec<_>>());
    }
}

/// The order of the core's effects, and the order of the disk calls within a create.
#[test]
fn fault_062_the_directory_is_synced_between_a_create_and_the_first_acknowledgement() {
    let lab = Lab::new();
    let mut open = lab.open(one_each());
    open.commit(&[60]);
    open.append(&[1; 60]).unwrap();
    let mut order = Vec::new();
    while let Some(output) = open.core.poll_output() {
        match output {
            Output::Effect { id, effect } => {
                order.push(match &effect {
                    Effect::Create { .. } => "create",
                    Effect::Write { .. } => "write",
                    Effect::Sync { .. } => "sync",
                    _ => "other",
                });
                let created = matches!(effect, Effect::Create { .. });
                let performer = strandline::Performer::new(std::sync::Arc::new(lab.disk.clone()), name());
                let result = performer.perform(&effect);
                if created {
                    assert_eq!(
                        lab.disk.state().unsynced(),
                        0,
                        "file and entry are durable when a create is done"
                    );
                }
                open.core.handle_completion(strandline::core::Completion { id, result });
            }
            Output::Durable { .. } => order.push("durable"),
            _ => {}
        }
    }
    assert_eq!(order, ["sync", "create", "write", "sync", "durable"]);
}

#[test]
fn fault_065_leftovers_of_an_interrupted_create_are_no_hindrance() {
    let lab = segments(2);
    for step in 0..400 {
        let dying = lab.kill();
        let mut open = dying.open(one_each());
        dying.disk.crash_after(step);
        open.append(&[9; 60]).unwrap();
        let told = open.drain();
        drop(open);
        let after = Lab::from(dying.disk.state());
        after.open(one_each()).close();
        let names: Vec<String> = after.files().into_keys().collect();
        let ours = |name: &String| name.ends_with(".seg") || name.contains(".seg.torn-");
        assert!(names.iter().all(ours), "step {step}: {names:?}");
        if matches!(told[..], [Output::Durable { .. }]) {
            return;
        }
    }
    panic!("the commit never came to its end");
}

#[test]
fn fault_066_strays_are_left_alone() {
    let lab = segments(3);
    let strays =
        ["events.tmp", "events-00000000000000000001.seg.bak", "lost+found", "00000007.repair", "notes.txt"];
    for stray in strays {
        lab.put(stray, b"not ours");
    }
    lab.open(one_each()).close();
    assert_eq!(lab.seqs(), [0, 1, 2]);
    assert!(strays.iter().all(|stray| lab.bytes(stray) == b"not ours"));
    // What looks as if it were meant as a segment makes the set doubtful, and is named.
    lab.put("events-3.seg", b"PRYJ");
    let error = files_of(&lab.disk, &name()).unwrap_err();
    assert!(matches!(&error, ListingError::Doubtful { file, .. } if file == "events-3.seg"), "{error}");
}

#[test]
fn fault_066_a_directory_named_like_a_segment_is_ignored() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join(file(5))).unwrap();
    let disk = strandline::StdDisk::open(root.path()).unwrap();
    let files = files_of(&disk, &name()).unwrap();
    assert_eq!(files.listing, strandline::core::Listing::Segments(Vec::new()));
    assert_eq!(files.warnings.len(), 1, "it is worth a word");
}

#[test]
fn fault_067_a_crash_after_each_removal_leaves_a_contiguous_set() {
    let lab = segments(6);
    let keep = |lab: &Lab| -> Vec<u64> { lab.inspect().view.segments().map(|s| s.id().0.get()).collect() };
    let mut seen = std::collections::BTreeSet::new();
    for step in 0..60 {
        for survivors in [Survivors::None, Survivors::All, Survivors::AllBut(0), Survivors::Random(step)] {
            let dying = lab.kill();
            let mut open = dying.open(one_each());
            open.core.trim_to(Seq::new(3));
            dying.disk.crash_after(step);
            open.drain();
            drop(open);
            let after = Lab::from(dying.disk.state().power_loss(survivors));
            assert_eq!(after.inspect().report.verdict, Verdict::Sound);
            let left = keep(&after);
            assert_eq!(left, (left[0]..6).collect::<Vec<_>>(), "step {step}, {survivors}");
            seen.insert(left[0]);
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3], "every stage of the trim was crashed in");
}

#[test]
fn fault_069_a_missing_segment_is_refused_by_the_numbers_it_held() {
    let lab = segments(3);
    lab.disk.remove(&file(1)).unwrap();
    let refusal = lab.refusal(config());
    assert_eq!(
        refusal,
        Refusal::Gap { segment: SegmentId(Seq::ZERO), missing: Seq::new(1), next: SegmentId(Seq::new(2)) }
    );
    assert!(refusal.to_string().contains("records 1 to 1 are missing"), "{refusal}");
}

/// The format has exactly 20 digits, which every number fits; more or fewer are refused, not skipped.
#[test]
fn fault_070_numbers_of_any_length_are_in_numeric_order_and_other_names_are_refused() {
    let lab = Lab::new();
    let first = 9_999_999_999;
    let mut open = lab.open(Config { first_seq: Some(Seq::new(first)), ..one_each() });
    for _ in 0..3 {
        open.commit(&[60]);
    }
    drop(open);
    assert_eq!(lab.seqs(), [first, first + 1, first + 2]);
    lab.put("events-000000000000000000001.seg", b"");
    assert!(matches!(files_of(&lab.disk, &name()), Err(ListingError::Doubtful { .. })));
}

#[test]
fn fault_072_segments_that_overlap_are_refused_by_name() {
    let lab = Lab::with_commits(config(), &[&[10; 3]]);
    let other = Lab::with_commits(Config { first_seq: Some(Seq::new(2)), ..config() }, &[&[10; 3]]);
    lab.put(&file(2), &other.bytes(&file(2)));
    let refusal = lab.refusal(config());
    let (segment, next) = (SegmentId(Seq::ZERO), SegmentId(Seq::new(2)));
    assert_eq!(refusal, Refusal::Overlap { segment, end: Seq::new(3), next });
    let told = refusal.to_string();
    assert!(told.contains(&segment.to_string()) && told.contains(&next.to_string()), "{told}");
}

#[test]
fn fault_073_and_074_numbers_go_on_after_retention_took_every_record() {
    let lab = segments(4);
    for step in 0..200 {
        let dying = lab.kill();
        let mut open = dying.open(one_each());
        open.core.trim_to(Seq::new(4));
        dying.disk.crash_after(step);
        open.drain();
        drop(open);
        let after = Lab::from(dying.disk.state().power_loss(Survivors::None));
        let mut open = after.open(one_each());
        assert_eq!(open.append(b"x").unwrap().seq.get(), 4, "step {step}");
    }
}
