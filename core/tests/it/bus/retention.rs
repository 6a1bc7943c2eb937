//! Retention and subscriptions: who pins what, and who is told what went.

use strandline_core::bus::lifecycle::SubscriptionState;
use strandline_core::bus::{BusConfig, ConnectionId, GapReason, Subscribe, SubscriptionGap};
use strandline_core::{
    Completion, Config, Effect, EventDraft, Filter, IoCause, IoFailure, IoOperation, Output, Retention, Seq,
};

use super::town::{Seen, Town, events_then, settings, wall};
use crate::world::drain;

/// Room for eight segments of 2 KiB, compacted above four.
fn tight() -> (Config, BusConfig) {
    let (config, bus) = settings();
    let retention = Retention { age_ms_max: None, compact_above: 4 * 2_048, bytes_max: 8 * 2_048 };
    (Config { segments_bytes_max: 7 * 2_048, waits_for_room: true, ..config }, BusConfig { retention, ..bus })
}

fn expired(from: u64, to: u64, count: u64) -> Seen {
    let (from, to) = (Seq::new(from), Seq::new(to));
    let reason = GapReason::Expired;
    Seen::Gap(SubscriptionGap { from, to, count: Some(count), reason, resume_after: to })
}

fn first(town: &Town) -> u64 {
    town.events.view().first().get()
}

fn away(town: &mut Town, name: &str) -> ConnectionId {
    let connection = town.subscribe(Subscribe::durable(name));
    town.disconnect(connection);
    connection
}

#[test]
fn what_nobody_needs_goes_above_the_soft_bound_and_what_is_pinned_stays() {
    let mut town = Town::new(tight());
    town.publish(30);
    assert_eq!(first(&town), 1, "below the bound nothing goes");
    town.publish(70);
    assert!(first(&town) > 50 && town.bytes() <= 4 * 2_048, "{} bytes", town.bytes());

    let mut town = Town::new(tight());
    away(&mut town, "context");
    town.publish(45);
    assert_eq!((first(&town), town.named("context").pins), (1, Some(Seq::new(1))));
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), events_then(1..=45, Seen::Awaiting(45)));
    town.acknowledge(context, 40).unwrap();
    assert!((2..=41).contains(&first(&town)), "no further than the pointer: {}", first(&town));
    assert!(town.bytes() <= 4 * 2_048, "and no less than asked: {} bytes", town.bytes());
}

#[test]
fn beyond_the_hard_bound_the_oldest_go_and_the_absent_one_is_told_how_many() {
    let mut town = Town::new(tight());
    away(&mut town, "context");
    while first(&town) == 1 {
        town.publish(1);
        assert!(town.bytes() <= 8 * 2_048, "{} bytes", town.bytes());
    }
    let status = town.named("context");
    assert_eq!((status.state, status.pins), (SubscriptionState::Expired, None));
    town.publish(200);
    assert!(town.bytes() <= 8 * 2_048);
    let newest = town.events.next_seq().get() - 1;
    let mut town = town.restart();
    assert_eq!(town.named("context").state, SubscriptionState::Expired);
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), [expired(1, newest, newest), Seen::Awaiting(newest)]);
    town.publish(1);
    town.acknowledge(context, newest).unwrap();
    assert_eq!(town.receive(context), [Seen::Event(newest + 1), Seen::CaughtUp]);
}

#[test]
fn a_loss_is_on_the_disk_before_the_events_go() {
    let mut town = Town::new(tight());
    away(&mut town, "context");
    while town.events.view().segments().len() < 6 {
        town.publish(1);
    }
    town.records_flow = false;
    town.publish(30);
    let kept = first(&town);
    assert_eq!(kept, 1, "nothing goes while the loss is not recorded");
    let mut town = town.restart();
    town.publish(20);
    assert!(first(&town) > 1);
    assert_eq!(town.named("context").state, SubscriptionState::Expired);
}

#[test]
fn what_the_filter_does_not_let_through_pins_nothing_and_is_no_loss() {
    let mut town = Town::new(tight());
    let rare = Subscribe::durable("rare").filter(Filter::all().event_type("rare"));
    let connection = town.subscribe(rare.clone());
    town.disconnect(connection);
    town.publish(300);
    assert!(first(&town) > 200);
    let status = town.named("rare");
    assert_eq!((status.state, status.lag_events, status.pins), (SubscriptionState::Suspended, 0, None));
    town.publish_as("source", "rare", 1);
    let mut town = town.restart();
    let connection = town.subscribe(rare.after(0));
    assert_eq!(town.receive(connection), [Seen::Event(301), Seen::Awaiting(301)], "it had acknowledged 0");
}

#[test]
fn one_that_is_connected_and_slow_gets_the_gap_in_its_stream() {
    let mut town = Town::new(tight());
    let durable = town.subscribe(Subscribe::durable("slow"));
    let other = town.subscribe(Subscribe::default());
    town.publish(10);
    assert_eq!(town.receive(durable), events_then(1..=10, Seen::CaughtUp));
    assert_eq!(town.receive(other), events_then(1..=10, Seen::CaughtUp));
    town.publish(300);
    assert_eq!(town.named("slow").state, SubscriptionState::Replaying);
    assert_eq!(town.receive(durable), [expired(11, 310, 300), Seen::Awaiting(310)]);
    assert_eq!(
        town.receive(other),
        [expired(11, 310, 300), Seen::CaughtUp],
        "nobody waits for its acknowledgement"
    );
    town.publish(5);
    assert_eq!(town.receive(other), events_then(311..=315, Seen::CaughtUp));
    let mut town = town.restart();
    let durable = town.subscribe(Subscribe::durable("slow"));
    assert_eq!(town.receive(durable), [expired(1, 315, 315), Seen::Awaiting(315)], "none was acknowledged");
}

#[test]
fn delivered_events_that_go_before_they_are_acknowledged_are_no_gap_for_who_has_them() {
    let mut town = Town::new(tight());
    let context = town.subscribe(Subscribe::durable("context"));
    for _ in 0..100 {
        town.publish(3);
        town.receive(context);
    }
    assert!(first(&town) > 200);
    assert_eq!(town.named("context").state, SubscriptionState::Live);
    assert!(town.named("context").gap.is_some(), "if it died now, it could not get them again");
    town.acknowledge(context, 300).unwrap();
    assert_eq!(town.named("context").gap, None);
    town.publish(1);
    assert_eq!(town.receive(context), [Seen::Event(301), Seen::CaughtUp]);

    town.publish(200);
    town.receive(context);
    let mut town = town.restart();
    let context = town.subscribe(Subscribe::durable("context").after(501));
    assert_eq!(town.receive(context), [Seen::CaughtUp], "it says that it has processed them");
}

#[test]
fn age_is_kept_in_the_running_process_own_time() {
    let (config, bus) = settings();
    let retention = Retention { age_ms_max: Some(3_600_000), ..Retention::default() };
    let mut town = Town::new((config, BusConfig { retention, ..bus }));
    town.publish(10);
    town.wait(3_600_000);
    town.publish(10);
    assert_eq!(first(&town), 1, "not older than an hour");
    town.wait(10_000);
    assert_eq!(first(&town), 11);
    town.run();
    assert_eq!(first(&town), 11, "the same time once more drops nothing more");
    let mut town = town.restart();
    town.wait(3_500_000);
    assert_eq!(first(&town), 11, "the timestamps say how old they are");
    town.wait(200_000);
    assert_eq!(first(&town), 21);
}

#[test]
fn a_clock_that_steps_neither_keeps_nor_kills() {
    let (config, bus) = settings();
    let retention = Retention { age_ms_max: Some(3_600_000), ..Retention::default() };
    let settings = (config, BusConfig { retention, ..bus });
    let mut town = Town::new(settings);
    let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload: b"" };
    let year = 365 * 24 * 3_600_000;
    for step in [0, year, 0, -year, 0] {
        let at = wall(0).as_millis() + step;
        town.events.append(strandline_core::Timestamp::from_millis(at), draft).unwrap();
        town.publish(1);
    }
    let segments = town.events_world.files.len();
    let mut town = town.restart();
    assert_eq!(
        (first(&town), town.events_world.files.len()),
        (1, segments),
        "nothing young went, nothing rolled"
    );
    town.wait(3_700_000);
    assert_eq!(first(&town), 11, "and what came from the future goes with the others");
}

#[test]
fn records_that_find_no_space_are_written_later_and_nothing_goes_before() {
    let mut town = Town::new(tight());
    let context = town.subscribe(Subscribe::durable("context"));
    town.publish(20);
    town.receive(context);
    town.records_world.fault = Some(Box::new(|effect| {
        matches!(effect, Effect::Write { .. }).then_some(IoFailure::new(IoOperation::Write, IoCause::NoSpace))
    }));
    town.acknowledge(context, 20).unwrap();
    assert!(!town.bus.is_recorded(context.subscription));
    town.records_world.fault = None;
    town.wait(1_000);
    assert!(town.bus.is_recorded(context.subscription), "tried again");
    let mut town = town.restart();
    assert_eq!(town.named("context").pointer, Seq::new(20));
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), [Seen::CaughtUp]);
}

#[test]
fn the_journal_of_subscriptions_is_compacted_and_stays_small() {
    let mut town = Town::new(tight());
    away(&mut town, "absent");
    let mut context = town.subscribe(Subscribe::durable("context"));
    for n in 1..=2_000 {
        town.publish(1);
        town.receive(context);
        town.acknowledge(context, n).unwrap();
        let bytes: usize = town.records_world.files.values().map(Vec::len).sum();
        assert!(bytes <= 3 * 1_024, "{bytes} bytes after {n} acknowledgements");
        if n % 97 == 0 {
            town = if n % 2 == 0 { town.restart() } else { town.close_and_restart() };
            context = town.subscribe(Subscribe::durable("context"));
            assert_eq!(town.named("context").pointer, Seq::new(n));
            assert_eq!(town.named("absent").name.as_deref(), Some("absent"));
        }
    }
    let stranger = away(&mut town, "stranger");
    assert_eq!(stranger.subscription.get(), 3, "an identity is never given out twice");
}

#[test]
fn idle_hours_and_acknowledgements_that_nobody_waits_for_write_next_to_nothing() {
    let mut town = Town::new(tight());
    let context = town.subscribe(Subscribe::durable("context"));
    town.publish(20);
    town.receive(context);
    town.wait(1_000);
    let before = town.records_world.log.len() + town.events_world.log.len();
    for _ in 0..24 * 60 {
        town.wait(60_000);
    }
    assert_eq!(town.records_world.log.len() + town.events_world.log.len(), before, "a day of nothing");
    for sequence in 1..=20 {
        let ack = strandline_core::bus::AckRequest {
            subscription_id: context.subscription,
            sequence: Seq::new(sequence),
        };
        let now = strandline_core::Monotonic::from_millis(town.now);
        town.bus.acknowledge(now, wall(town.now), ack, strandline_core::bus::Urgency::Soon).unwrap();
        town.wait(1);
    }
    town.wait(100);
    let writes =
        town.records_world.log.iter().filter(|effect| matches!(effect, Effect::Write { .. })).count();
    assert!(town.bus.is_recorded(context.subscription));
    let all = town.records_world.log.len() + town.events_world.log.len() - before;
    assert!(all <= 2, "one write and one sync for twenty, not {all} ({writes} writes)");
}

/// 100 events a second, one subscriber away.
#[test]
fn ten_hours_stay_within_the_bound_and_no_append_waits_for_a_removal() {
    let (config, bus) = settings();
    let segment = 1 << 20;
    let config = Config {
        segment_bytes: segment,
        reserve_bytes: segment,
        segments_bytes_max: 49 << 20,
        waits_for_room: true,
        ..config
    };
    let mut town = Town::new((config, bus));
    away(&mut town, "context");
    let payload = [b'x'; 166];
    let draft = EventDraft { domain: 1, event_type: "resize", source: "compositor", payload: &payload };
    let mut removals = Vec::new();
    for second in 1..=36_000u64 {
        town.now = second * 1_000;
        for _ in 0..100 {
            town.events.append(wall(town.now), draft).unwrap();
        }
        let mut durable = false;
        while let Some(output) = town.events.poll_output() {
            match output {
                // Removals take half a minute.
                Output::Effect { id, effect: effect @ Effect::Remove { .. } } => {
                    removals.push((second + 30, id, effect));
                }
                Output::Effect { id, effect } => {
                    let result = town.events_world.perform(&effect);
                    town.events.handle_completion(Completion { id, result });
                }
                other => durable |= matches!(other, Output::Durable { .. }),
            }
        }
        assert!(durable, "second {second}");
        if let Some((_, id, effect)) = removals.pop_if(|(due, ..)| *due <= second) {
            let result = town.events_world.perform(&effect);
            town.events.handle_completion(Completion { id, result });
        }
        town.decide();
        assert!(town.bytes() <= 50 << 20, "{} bytes in second {second}", town.bytes());
        let rewritten = |effect: &Effect| matches!(effect, Effect::Truncate { len: 0, .. } | Effect::Read(_));
        assert!(!town.events_world.log.drain(..).any(|effect| rewritten(&effect)));
    }
    assert!(town.bytes() > 39 << 20, "what fits is kept: {} bytes", town.bytes());
    let status = town.named("context");
    assert_eq!(status.state, SubscriptionState::Expired);
    let gap = status.gap.unwrap();
    assert_eq!((gap.from, gap.to, gap.count), (Seq::new(1), Seq::new(3_600_000), Some(3_600_000)));
}

/// A large event takes the room of many small ones, and of a large one before it.
#[test]
fn room_is_made_for_an_event_however_large_it_is() {
    let (config, mut bus) = tight();
    bus.retention.compact_above = bus.retention.bytes_max;
    let mut town = Town::new((config, bus));
    away(&mut town, "context");
    town.publish(100);
    for n in 0..6u64 {
        for len in [5_000, 10, 6_000, 6_000] {
            let before = town.events.view().durable_end();
            let payload = vec![b'x'; len];
            let draft = EventDraft { domain: 1, event_type: "t", source: "s", payload: &payload };
            town.events.append(wall(town.now), draft).unwrap();
            drain(&mut town.events, &mut town.events_world);
            town.run();
            assert_eq!(town.events.view().durable_end(), before.next(), "{n}: {len}");
            assert!(town.bytes() <= 8 * 2_048, "{} bytes", town.bytes());
        }
    }
}
