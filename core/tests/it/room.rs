//! Segment files within a bound: a disk of its own that can be full.

use strandline_core::{Config, Effect, IoCause, IoFailure, IoOperation, Journal, Output, Pryj, Seq};

use crate::world::{World, at, drain, open, payloads, small};

const BOUND: u64 = 1_500;

fn bounded(world: &mut World, reserve_bytes: u64) -> Box<Journal<Pryj>> {
    let settings = Config { segment_bytes: 400, reserve_bytes, segments_bytes_max: BOUND, ..small(2) };
    open::<Pryj>(world, settings).unwrap().0
}

fn bytes(world: &World) -> u64 {
    world.files.values().map(|file| file.len() as u64).sum()
}

/// Appends a record of 60 bytes and gives whether it became durable.
fn append(journal: &mut Journal<Pryj>, world: &mut World) -> bool {
    journal.append(at(1), &[7; 60]).unwrap();
    let told = drain(journal, world);
    assert!(bytes(world) <= BOUND, "{} bytes", bytes(world));
    told.iter().any(|output| matches!(output, Output::Durable { .. }))
}

/// Appends until there is no room.
fn fill(journal: &mut Journal<Pryj>, world: &mut World) {
    let full = (0..BOUND).any(|_| !append(journal, world));
    assert!(full, "a bound is reached");
}

fn trim_segments(journal: &mut Journal<Pryj>, n: usize) {
    let first = journal.view().segments().nth(n).unwrap().first();
    journal.trim_to(first);
}

#[test]
fn beyond_the_bound_a_journal_is_full_and_goes_on_once_a_segment_is_gone() {
    for reserve in [0, 400] {
        let mut world = World::default();
        let mut journal = bounded(&mut world, reserve);
        fill(&mut journal, &mut world);
        let full = journal.next_seq();
        assert!(full > Seq::new(8), "a bound is used: {full}");
        assert!(!append(&mut journal, &mut world), "still full");
        assert_eq!(journal.next_seq(), full, "the number is given out again");
        assert_eq!(journal.poison(), None);
        trim_segments(&mut journal, 1);
        assert!(append(&mut journal, &mut world), "a segment's room is free again");
        assert_eq!(payloads(&world).last().unwrap().0, full.get());
    }
}

#[test]
fn a_commit_waits_for_the_removal_that_makes_its_room_and_for_no_other() {
    let mut world = World::default();
    let mut journal = bounded(&mut world, 0);
    fill(&mut journal, &mut world);
    trim_segments(&mut journal, 1);
    journal.append(at(1), &[7; 60]).unwrap();
    let mut effects = Vec::new();
    while let Some(output) = journal.poll_output() {
        if let Output::Effect { id, effect } = output {
            effects.push((id, effect));
        }
    }
    let [(id, remove @ Effect::Remove { .. })] = &effects[..] else { panic!("only a removal: {effects:?}") };
    world.perform(remove).unwrap();
    journal.handle_completion(strandline_core::Completion { id: *id, result: Ok(()) });
    let told = drain(&mut journal, &mut world);
    assert!(matches!(told[..], [Output::Durable { .. }]), "{told:?}");
    assert!(bytes(&world) <= BOUND);
}

#[test]
fn a_removal_that_fails_leaves_it_full_rather_than_too_large() {
    let mut world = World::default();
    let mut journal = bounded(&mut world, 0);
    fill(&mut journal, &mut world);
    world.fault = Some(Box::new(|effect| {
        matches!(effect, Effect::Remove { .. }).then_some(IoFailure::new(IoOperation::Remove, IoCause::Other))
    }));
    trim_segments(&mut journal, 2);
    assert!(!append(&mut journal, &mut world));
    assert_eq!(journal.poison(), None);
}

#[test]
fn a_record_larger_than_the_bound_is_refused_as_without_space() {
    let mut world = World::default();
    let mut journal = bounded(&mut world, 0);
    assert!(append(&mut journal, &mut world));
    journal.append(at(1), &[7; 2_000]).unwrap();
    let told = drain(&mut journal, &mut world);
    assert!(matches!(told[..], [Output::Void { from, .. }] if from == Seq::new(1)), "{told:?}");
    assert!(append(&mut journal, &mut world));
}
