//! Zeros kept ready behind the end: made beside commits, in nobody's way, and never written over a commit.

use strandline_core::{
    Config, Effect, EffectId, IoCause, IoFailure, IoOperation, Journal, Output, Pryj, Seq,
};

use crate::world::{World, answer, at, close, drain, open, payloads, small, take, take_one};

const RESERVE: u64 = 16_384;
/// Header, first mark, and a record's own bytes; a commit that crosses a page ends with a mark.
const HEAD: u64 = 16 + 40;
const MARK: u64 = 40;
const OVERHEAD: u64 = 16;

type Taken = (EffectId, Effect);

fn reserving(world: &mut World) -> Box<Journal<Pryj>> {
    open::<Pryj>(world, Config { reserve_bytes: RESERVE, ..small(2) }).unwrap().0
}

fn payload(bytes: u64) -> Vec<u8> {
    vec![7; usize::try_from(bytes).unwrap()]
}

/// The zeros among the effects, as `from..to`.
fn zeros(effects: &[Taken]) -> Option<(u64, u64)> {
    effects.iter().find_map(|(_, effect)| match effect {
        Effect::Reserve { from, to, .. } => Some((*from, *to)),
        _ => None,
    })
}

/// A journal with a durable record of 10,000 bytes, beside which zeros are being made from [`RESERVE`] on.
/// Gives where the record ends, too.
fn while_zeros_are_made(world: &mut World) -> (Box<Journal<Pryj>>, Taken, u64) {
    let mut journal = reserving(world);
    journal.append(at(1), &payload(10_000)).unwrap();
    let (mut effects, _) = take(&mut journal);
    assert_eq!(zeros(&effects), Some((RESERVE, 2 * RESERVE)));
    let reserve = effects.remove(0);
    let [write] = <[Taken; 1]>::try_from(effects).unwrap();
    answer(&mut journal, world, write);
    let sync = take_one(&mut journal);
    answer(&mut journal, world, sync);
    assert!(matches!(take(&mut journal), (effects, told) if effects.is_empty() && told.len() == 1));
    (journal, reserve, HEAD + OVERHEAD + 10_000 + MARK)
}

#[test]
fn zeros_are_made_once_less_than_half_a_step_is_left() {
    let fills_half = RESERVE / 2 - HEAD - OVERHEAD - MARK;
    for (len, made) in [(fills_half, None), (fills_half + 1, Some((RESERVE, 2 * RESERVE)))] {
        let mut world = World::default();
        let mut journal = reserving(&mut world);
        journal.append(at(1), &payload(len)).unwrap();
        let (effects, _) = take(&mut journal);
        assert_eq!(zeros(&effects), made, "{len}");
    }
}

#[test]
fn a_reopened_segment_grows_zeros_in_steps_of_four_mebibytes() {
    let mut world = World::default();
    let (mut journal, _) = open::<Pryj>(&mut world, small(2)).unwrap();
    journal.append(at(1), b"x").unwrap();
    close(journal, &mut world);
    let large = Config { segment_bytes: 64 << 20, reserve_bytes: 64 << 20, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, large).unwrap();
    journal.append(at(1), b"y").unwrap();
    let (effects, _) = take(&mut journal);
    // Header, mark, record, closing mark; and the record, in front of which that mark serves.
    let end = HEAD + 17 + MARK + 17;
    assert_eq!(zeros(&effects), Some((end, end + (4 << 20))));
}

#[test]
fn a_commit_that_may_reach_into_zeros_being_made_waits_for_them() {
    let mut world = World::default();
    let (mut journal, _, end) = while_zeros_are_made(&mut world);
    let fills = RESERVE - end - MARK - OVERHEAD - MARK;
    journal.append(at(1), &payload(fills)).unwrap();
    let (_, effect) = take_one(&mut journal);
    let Effect::Write { offset, data, .. } = effect else { panic!("{effect:?}") };
    assert_eq!((offset, offset + data.len() as u64), (end, RESERVE), "it ends where the zeros begin");

    let mut world = World::default();
    let (mut journal, reserve, end) = while_zeros_are_made(&mut world);
    journal.append(at(1), &payload(fills + 1)).unwrap();
    assert_eq!(take(&mut journal).0, [], "one byte more");
    answer(&mut journal, &mut world, reserve);
    let (_, effect) = take_one(&mut journal);
    assert!(matches!(effect, Effect::Write { offset, .. } if offset == end), "{effect:?}");
}

#[test]
fn a_file_is_cut_back_only_when_no_zeros_can_be_written_behind_the_cut() {
    let mut world = World::default();
    let (mut journal, reserve, end) = while_zeros_are_made(&mut world);
    journal.append(at(1), b"lost").unwrap();
    let no_space = IoFailure::new(IoOperation::Write, IoCause::NoSpace);
    world.fault = Some(Box::new(move |effect| matches!(effect, Effect::Write { .. }).then_some(no_space)));
    let write = take_one(&mut journal);
    answer(&mut journal, &mut world, write);
    assert_eq!(take(&mut journal), (vec![], vec![]), "neither cut nor told");
    answer(&mut journal, &mut world, reserve);
    let cut = take_one(&mut journal);
    assert!(matches!(cut.1, Effect::Truncate { len, .. } if len == end), "{cut:?}");
    answer(&mut journal, &mut world, cut);
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Void { .. }]));
    assert_eq!(world.last_file().len() as u64, end);
}

#[test]
fn a_file_gets_its_exact_length_only_when_no_zeros_can_make_it_longer_again() {
    for closes in [true, false] {
        let mut world = World::default();
        let (mut journal, reserve, end) = while_zeros_are_made(&mut world);
        if closes {
            journal.close();
        } else {
            journal.append(at(1), &payload(1 << 20)).unwrap();
        }
        assert_eq!(take(&mut journal), (vec![], vec![]), "nothing yet");
        answer(&mut journal, &mut world, reserve);
        let told = drain(&mut journal, &mut world);
        assert_eq!(told.len(), 1, "{told:?}");
        let proof = if closes { MARK } else { 0 };
        assert_eq!(world.files.values().next().unwrap().len() as u64, end + proof);
    }
}

#[test]
fn zeros_that_fail_for_another_cause_than_space_poison() {
    let mut world = World::default();
    let (mut journal, reserve, _) = while_zeros_are_made(&mut world);
    let failure = IoFailure::new(IoOperation::Write, IoCause::Other);
    world.fault = Some(Box::new(move |_| Some(failure)));
    answer(&mut journal, &mut world, reserve);
    assert!(matches!(take(&mut journal).1[..], [Output::Poisoned(poison)] if poison.failure == failure));
}

#[test]
fn a_void_ends_the_zeros_of_its_segment_and_the_next_segment_has_them_again() {
    let mut world = World::default();
    let config = Config { reserve_bytes: RESERVE, segment_bytes: 4 * RESERVE, ..small(2) };
    let (mut journal, _) = open::<Pryj>(&mut world, config).unwrap();
    let no_space = IoFailure::new(IoOperation::Write, IoCause::NoSpace);
    world.fault = Some(Box::new(move |effect| matches!(effect, Effect::Write { .. }).then_some(no_space)));
    journal.append(at(1), b"lost").unwrap();
    assert!(matches!(drain(&mut journal, &mut world)[..], [Output::Void { from: Seq::ZERO, .. }]));
    world.fault = None;
    let made = |world: &World| {
        let of = |effect: &Effect| match effect {
            Effect::Reserve { segment, .. } => Some(segment.0.get()),
            _ => None,
        };
        world.log.iter().filter_map(of).collect::<Vec<_>>()
    };
    for _ in 0..10 {
        journal.append(at(1), &payload(10_000)).unwrap();
        drain(&mut journal, &mut world);
    }
    let second = world.files.keys().nth(1).unwrap().0.get();
    assert!(made(&world).contains(&second), "{:?}", made(&world));
    assert!(!made(&world).contains(&0), "a disk that was full is not filled with zeros");
    assert_eq!(payloads(&world).len(), 10);
}
