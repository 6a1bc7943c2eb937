//! What lies behind the first bad byte: what proves damage, what shows a tear, and what does neither.

use strandline_core::{
    EventDraft, Framing, Mark, Pcpj, Pryj, Refusal, SegmentId, Seq, Verdict, verdict::Row,
};

use crate::world::{World, at, drain, open, scan_all, small};

const SEGMENT: SegmentId = SegmentId(Seq::ZERO);

/// A file of opaque records, one commit for each, left by a process that was killed.
fn killed(version: u8, payloads: &[&[u8]]) -> Vec<u8> {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(version)).unwrap();
    for payload in payloads {
        journal.append(at(1), payload).unwrap();
        drain(&mut journal, &mut world);
    }
    world.last_file().clone()
}

fn judged<F: Framing>(id: SegmentId, file: Vec<u8>) -> (Seq, Verdict) {
    let world = World { files: [(id, file)].into(), ..World::default() };
    let (_, report) = scan_all::<F>(&world);
    (report.end, report.verdict)
}

/// The row of a version 1 file: an undamaged record, and one of `payload` whose checksum is wrong, so that it ends at
/// `end`; behind it `rest`.
fn row_of_a_bad_frame(end: usize, fill: impl Fn(&mut [u8]), rest: &[u8]) -> Option<Row> {
    let mut file = killed(1, &[&[7; 84], &vec![7; end - 116 - 16]]);
    assert_eq!(file.len(), end);
    file[200] ^= 1;
    fill(&mut file);
    file.extend_from_slice(rest);
    match judged::<Pryj>(SEGMENT, file) {
        (end, Verdict::Cut(cut)) if end == Seq::new(1) => Some(cut.row),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_of_zeros_inside_a_frame_is_a_tear_and_one_behind_it_is_not() {
    let zeros_and_more = [&[0; 512][..], b"more"].concat();
    let untouched = |_: &mut [u8]| {};
    assert_eq!(
        row_of_a_bad_frame(1_024, untouched, &zeros_and_more),
        Some(Row::G),
        "the frame ends before it"
    );
    assert_eq!(row_of_a_bad_frame(1_024, untouched, b"more"), Some(Row::G));
    let block = |file: &mut [u8]| file[1_024..1_536].fill(0);
    assert_eq!(row_of_a_bad_frame(2_000, block, b"more"), Some(Row::F));
    let off_by_one = |file: &mut [u8]| file[1_025..1_537].fill(0);
    assert_eq!(row_of_a_bad_frame(2_000, off_by_one, b"more"), Some(Row::G), "no block was lost");
}

#[test]
fn zeros_where_two_reads_meet_are_a_tear_only_if_they_fill_a_block() {
    // The search begins with the frame, at byte 116, so that a read ends within a block.
    let meet = 116 + 256 * 1_024;
    let block = meet / 512 * 512;
    let around = |file: &mut [u8]| file[block + 1..block + 512].fill(0);
    assert_eq!(row_of_a_bad_frame(300_000, around, b""), Some(Row::G));
    let before = |file: &mut [u8]| file[block..meet].fill(0);
    assert_eq!(row_of_a_bad_frame(300_000, before, b""), Some(Row::G));
    let whole = |file: &mut [u8]| file[block..block + 512].fill(0);
    assert_eq!(row_of_a_bad_frame(300_000, whole, b""), Some(Row::F));
}

#[test]
fn a_proof_that_was_found_is_not_forgotten_however_much_lies_behind_it() {
    let mut file = killed(2, &[b"first", b"second", b"third", &vec![7; 900_000]]);
    // Without the mark that a large commit ends with.
    file.truncate(file.len() - 40);
    file[56 + 21 + 40 + 12] ^= 1;
    let (end, verdict) = judged::<Pryj>(SEGMENT, file);
    let Verdict::Refused(Refusal::Damaged { row: Row::B, proof: Some(proof), expected, .. }) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!((end, expected, proof.durable_end), (Seq::new(1), Seq::new(1), Seq::new(2)));
    assert_eq!(proof.offset, 56 + 21 + 40 + 22, "the first one");
}

#[test]
fn a_mark_behind_the_damage_that_states_no_more_than_what_lies_before_it_proves_nothing() {
    let mut file = killed(2, &[b"first", &[7; 5_000]]);
    assert!(Pryj::parse_mark(&file[file.len() - 40..]).is_some_and(|mark| mark.durable_end == Seq::new(1)));
    file[3_000] ^= 1;
    assert!(matches!(judged::<Pryj>(SEGMENT, file), (_, Verdict::Cut(cut)) if cut.row == Row::G));

    let mut world = World::default();
    let (mut journal, _) = open::<Pcpj>(&mut world, small(2)).unwrap();
    for payload in [&b"{}"[..], &[b' '; 5_000]] {
        let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload };
        journal.append(at(1), draft).unwrap();
        drain(&mut journal, &mut world);
    }
    let (id, mut file) = world.files.pop_last().unwrap();
    assert!(Pcpj::parse_mark(&file[file.len() - 58..]).is_some_and(|mark| mark.durable_end == Seq::new(2)));
    file[3_000] ^= 1;
    assert!(matches!(judged::<Pcpj>(id, file), (_, Verdict::Cut(cut)) if cut.row == Row::G));
}

#[test]
fn a_mark_behind_damage_in_a_version_1_file_is_told_as_such() {
    let mut file = killed(1, &[b"first", b"second"]);
    let (offset, mut mark) = (file.len() as u64, [0; Pryj::MARK_LEN]);
    let stated = Mark { durable_end: Seq::new(2), salt: 5, offset, first: Seq::ZERO };
    Pryj::encode_mark(&stated, at(1), &mut mark);
    file.extend_from_slice(&mark);
    let found = Verdict::Refused(Refusal::MarkInVersion1 { segment: SEGMENT, offset });
    assert_eq!(judged::<Pryj>(SEGMENT, file.clone()), (Seq::new(2), found.clone()));
    file[16 + 21 + 12] ^= 1;
    assert_eq!(judged::<Pryj>(SEGMENT, file), (Seq::new(1), found));
}
