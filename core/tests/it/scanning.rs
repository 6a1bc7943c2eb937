//! What a scan says of sound files, of the beginnings of files, and of files that end too early.

use strandline_core::{
    Config, Framing, Mark, Pcpj, Proof, Pryj, Refusal, ScanOptions, SegmentId, Seq, Verdict, verdict::Row,
};

use crate::world::{World, at, drain, open, scan, scan_all, small};

fn killed(config: &Config, lens: &[usize]) -> World {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, config.clone()).unwrap();
    for len in lens {
        journal.append(at(1), &vec![7; *len]).unwrap();
        drain(&mut journal, &mut world);
    }
    world
}

#[test]
fn records_and_marks_are_counted() {
    let world = killed(&small(2), &[10, 20, 30]);
    let (_, report) = scan_all::<Pryj>(&world);
    assert_eq!((report.records(), report.unproven(), report.segments[0].marks), (3, 1, 3));
    let (_, report) = scan_all::<Pryj>(&killed(&small(1), &[10, 20, 30]));
    assert_eq!((report.records(), report.unproven(), report.segments[0].marks), (3, 3, 0));
}

#[test]
fn a_segment_is_proven_whole_by_the_one_behind_it() {
    for version in [1, 2] {
        let mut world = killed(&Config { segment_bytes: 150, ..small(version) }, &[40; 7]);
        let (view, report) = scan_all::<Pryj>(&world);
        let (last, sealed) = report.segments.split_last().unwrap();
        assert!(sealed.len() > 1 && sealed.iter().all(|segment| segment.proof == Proof::Successor));
        assert_ne!(last.proof, Proof::Successor);
        let proven = view.segments().take(sealed.len()).all(|s| s.durable_bytes() == s.bytes());
        assert!(proven, "every byte of them");

        // Also where the scan comes no further: the damage was done to what was durable.
        let first = world.files.first_entry().unwrap().into_mut();
        let len = first.len();
        first[len - 5] ^= 1;
        let (view, report) = scan_all::<Pryj>(&world);
        assert!(matches!(report.verdict, Verdict::Refused(Refusal::Damaged { row: Row::A, .. })));
        assert_eq!((report.segments.len(), &report.segments[0].proof), (1, &Proof::Successor));
        assert_eq!(report.proven_end, report.end);
        assert!(view.segments().all(|segment| segment.durable_bytes() == segment.bytes()));
    }
}

#[test]
fn a_file_that_ends_before_it_was_listed_to_is_no_tear() {
    let mut world = killed(&small(2), &[100_000; 6]);
    let listing = world.listing();
    let segment = SegmentId(Seq::ZERO);
    for (len, whole) in [(400_000usize, 2), (100, 0), (262_143, 0)] {
        world.last_file().truncate(600_000);
        let mut cut = World { files: world.files.clone(), ..World::default() };
        cut.last_file().truncate(len);
        let (_, report) = scan::<Pryj>(&cut, listing.clone(), ScanOptions::default());
        assert_eq!(report.verdict, Verdict::Refused(Refusal::Shrank { segment, len: len as u64 }));
        assert_eq!(report.end, Seq::new(whole), "what was valid before the read that failed");
    }
}

fn head<F: Framing>(named: u64, mark: Mark) -> Verdict {
    let mut head = bytes::BytesMut::new();
    F::encode_header(2, Seq::new(named), &mut head);
    let mut bytes = vec![0; F::MARK_LEN];
    F::encode_mark(&mark, at(1), &mut bytes);
    let file = [&head[..], &bytes].concat();
    let world = World { files: [(SegmentId(Seq::new(named)), file)].into(), ..World::default() };
    scan_all::<F>(&world).1.verdict
}

#[test]
fn a_first_mark_fits_its_segment_in_every_field() {
    let segment = SegmentId(Seq::new(7));
    let damaged = |offset| {
        let (expected, row, proof) = (segment.0, Row::C, None);
        Verdict::Refused(Refusal::Damaged { segment, offset, expected, row, proof })
    };
    let fits = Mark { durable_end: Seq::new(7), salt: 3, offset: 16, first: Seq::new(5) };
    assert_eq!(head::<Pryj>(7, fits), Verdict::Sound);
    assert_eq!(head::<Pryj>(7, Mark { durable_end: Seq::new(8), ..fits }), damaged(16));
    assert_eq!(head::<Pryj>(7, Mark { durable_end: Seq::new(6), ..fits }), damaged(16));
    assert_eq!(head::<Pryj>(7, Mark { offset: 17, ..fits }), damaged(16));
    assert_eq!(head::<Pryj>(7, Mark { first: Seq::new(8), ..fits }), damaged(16));

    let fits = Mark { offset: 0, ..fits };
    let renamed = Verdict::Refused(Refusal::HeaderMismatch { segment, offset: 0 });
    assert_eq!(head::<Pcpj>(7, fits), Verdict::Sound);
    assert_eq!(head::<Pcpj>(7, Mark { durable_end: Seq::new(8), ..fits }), renamed, "the mark is the header");
    assert_eq!(head::<Pcpj>(7, Mark { offset: 17, ..fits }), damaged(0));
    assert_eq!(head::<Pcpj>(7, Mark { first: Seq::new(8), ..fits }), damaged(0));
}

#[test]
fn what_is_cut_of_an_unfinished_segment_is_counted_to_its_last_byte_that_is_not_zero() {
    let mut world = killed(&Config { segment_bytes: 150, ..small(2) }, &[40, 40]);
    let last = *world.files.last_key_value().unwrap().0;
    let head = world.last_file()[..40].to_vec();
    // Magic, version 2, and the number 1 at byte 8; behind them a mark, whose offset 16 stands at byte 36.
    for (held, content) in [(0, 0), (5, 5), (8, 5), (9, 9), (16, 9), (17, 17), (40, 37)] {
        *world.last_file() = head[..held].to_vec();
        let (_, report) = scan_all::<Pryj>(&world);
        let Verdict::Cut(cut) = report.verdict else { panic!("{held}: {:?}", report.verdict) };
        assert_eq!((cut.row, cut.segment, cut.offset, cut.bytes), (Row::D, last, 0, content), "{held}");
    }
}
