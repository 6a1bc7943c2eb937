//! Reconnecting: exactly what was missed, or exactly what cannot be had.

use strandline_core::bus::lifecycle::SubscriptionState;
use strandline_core::bus::{AckRequest, AcknowledgeError, BusConfig, GapReason, Subscribe, SubscriptionGap};
use strandline_core::{Filter, Seq};

use super::town::{Seen, Town, events, events_then, settings, wall};

fn gap(from: u64, to: u64, count: Option<u64>, reason: GapReason) -> Seen {
    let (from, to) = (Seq::new(from), Seq::new(to));
    Seen::Gap(SubscriptionGap { from, to, count, reason, resume_after: to })
}

/// A bus that keeps everything.
fn keeping() -> Town {
    let (config, mut bus) = settings();
    bus.retention.bytes_max = u64::MAX;
    bus.retention.compact_above = u64::MAX;
    Town::new((config, bus))
}

#[test]
fn the_story_of_the_source_document() {
    let mut town = keeping();
    let context = town.subscribe(Subscribe::durable("context"));
    town.publish(4_782);
    assert_eq!(town.receive(context), events_then(1..=4_782, Seen::CaughtUp));
    town.acknowledge(context, 4_782).unwrap();
    town.disconnect(context);
    assert_eq!(town.named("context").state, SubscriptionState::Suspended);
    town.publish(28);

    let context = town.subscribe(Subscribe::durable("context").after(4_782));
    assert_eq!(town.named("context").state, SubscriptionState::Replaying);
    assert_eq!(town.receive(context), events_then(4_783..=4_810, Seen::Awaiting(4_810)));
    town.publish(1);
    assert_eq!(town.receive(context), [Seen::Awaiting(4_810)], "live delivery waits for the acknowledgement");
    town.acknowledge(context, 4_810).unwrap();
    assert_eq!(town.named("context").state, SubscriptionState::Live);
    assert_eq!(town.receive(context), [Seen::Event(4_811), Seen::CaughtUp]);
}

#[test]
fn a_thousand_missed_events_are_replayed_and_one_more_is_a_gap() {
    for missed in [999, 1_000, 1_001] {
        let mut town = keeping();
        let context = town.subscribe(Subscribe::durable("context"));
        town.publish(5);
        town.disconnect(context);
        town.publish(missed - 5);
        let context = town.subscribe(Subscribe::durable("context").after(0));
        let wanted = match missed {
            1_001 => vec![gap(1, 1_001, Some(1_001), GapReason::TooMany), Seen::Awaiting(1_001)],
            _ => events_then(1..=missed, Seen::Awaiting(missed)),
        };
        assert_eq!(town.receive(context), wanted);
        town.publish(1);
        town.acknowledge(context, missed).unwrap();
        assert_eq!(town.receive(context), [Seen::Event(missed + 1), Seen::CaughtUp]);
    }
}

#[test]
fn without_an_acknowledgement_the_same_events_come_again_also_after_a_kill() {
    let mut town = keeping();
    town.subscribe(Subscribe::durable("context"));
    town.publish(10);
    let mut town = town.restart();
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), events_then(1..=10, Seen::Awaiting(10)));
    town.acknowledge(context, 4).unwrap();
    let mut town = town.restart();
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), events_then(5..=10, Seen::Awaiting(10)));
    town.acknowledge(context, 10).unwrap();
    let mut town = town.close_and_restart();
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), [Seen::CaughtUp]);
}

#[test]
fn an_acknowledgement_is_cumulative_and_idempotent_and_never_of_what_was_not_delivered() {
    let mut town = keeping();
    let context = town.subscribe(Subscribe::durable("context"));
    town.publish(10);
    let refused = |delivered: u64, sequence: u64| AcknowledgeError::NeverDelivered {
        subscription: context.subscription,
        sequence: Seq::new(sequence),
        delivered: Seq::new(delivered),
    };
    assert_eq!(town.acknowledge(context, 1), Err(refused(0, 1)), "nothing was received yet");
    town.receive(context);
    assert_eq!(town.acknowledge(context, 11), Err(refused(10, 11)));
    town.acknowledge(context, 8).unwrap();
    let bytes = town.bytes();
    for earlier in [8, 3, 0] {
        town.acknowledge(context, earlier).unwrap();
        assert_eq!(town.named("context").pointer, Seq::new(8), "it never moves back");
    }
    assert_eq!(town.bytes(), bytes, "what changes nothing writes nothing");
    let mut town = town.restart();
    let context = town.subscribe(Subscribe::durable("context").after(9));
    town.acknowledge(context, 9).unwrap();
    assert_eq!(town.receive(context), [Seen::Event(10), Seen::Awaiting(10)]);
    town.bus.remove("context");
    town.run();
    let unknown = AcknowledgeError::Unknown { subscription: context.subscription };
    assert_eq!(town.acknowledge(context, 9), Err(unknown));
}

#[test]
fn an_operator_acknowledges_what_was_not_delivered_but_nothing_that_does_not_exist() {
    let mut town = keeping();
    let context = town.subscribe(Subscribe::durable("context"));
    town.publish(10);
    let mut force = |sequence: u64| {
        let ack = AckRequest { subscription_id: context.subscription, sequence: Seq::new(sequence) };
        town.bus.force_acknowledge(wall(town.now), ack, town.events.view())
    };
    let beyond = |sequence| AcknowledgeError::BeyondEnd {
        subscription: context.subscription,
        sequence,
        end: Seq::new(11),
    };
    assert_eq!(force(11), Err(beyond(Seq::new(11))));
    assert_eq!(force(u64::MAX), Err(beyond(Seq::new(u64::MAX))));
    assert_eq!(force(10), Ok(()));
    assert_eq!(force(4), Ok(()), "it never moves back");
    town.run();
    let mut town = town.restart();
    assert_eq!(town.named("context").pointer, Seq::new(10), "it was recorded at once");
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), [Seen::CaughtUp]);
}

#[test]
fn only_what_the_filter_lets_through_is_delivered_counted_and_waited_for() {
    let (config, mut bus) = settings();
    bus.replay_events_max = 3;
    bus.retention.compact_above = u64::MAX;
    let mut town = Town::new((config, bus));
    let filter = Filter::all().source("b").event_type("t");
    let wanted = Subscribe::durable("context").filter(filter);
    let context = town.subscribe(wanted.clone());
    town.disconnect(context);
    for _ in 0..3 {
        town.publish_as("a", "t", 70);
        town.publish_as("b", "t", 1);
        town.publish_as("b", "u", 1);
    }
    let context = town.subscribe(wanted.clone());
    assert_eq!(
        town.receive(context),
        [Seen::Event(71), Seen::Event(143), Seen::Event(215), Seen::Awaiting(215)]
    );
    town.publish_as("b", "t", 1);
    let context = town.subscribe(wanted);
    assert_eq!(town.receive(context), [gap(1, 217, Some(4), GapReason::TooMany), Seen::Awaiting(217)]);
    town.publish_as("a", "t", 1);
    town.publish_as("b", "t", 1);
    town.acknowledge(context, 217).unwrap();
    assert_eq!(town.receive(context), [Seen::Event(219), Seen::CaughtUp]);
}

#[test]
fn a_gap_is_told_until_it_is_acknowledged() {
    let (config, mut bus) = settings();
    bus.replay_events_max = 3;
    let mut town = Town::new((config, bus));
    town.subscribe(Subscribe::durable("context"));
    town.publish(4);
    let mut town = town.restart();
    let told = [gap(1, 4, Some(4), GapReason::TooMany), Seen::Awaiting(4)];
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), told);
    assert_eq!(town.receive(context), [Seen::Awaiting(4)], "once to each connection");
    assert!(town.acknowledge(context, 3).is_err(), "not of an event within it");
    town.acknowledge(context, 0).unwrap();
    assert!(town.named("context").gap.is_some(), "what was acknowledged long ago settles nothing");
    let mut town = town.restart();
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), told, "again after a kill");
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), told, "and after a takeover");
    town.publish(1);
    town.disconnect(context);
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(
        town.receive(context)[0],
        gap(1, 5, Some(5), GapReason::TooMany),
        "as far as it reaches by now"
    );
    town.acknowledge(context, 5).unwrap();
    let mut town = town.restart();
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), [Seen::CaughtUp]);
}

#[test]
fn a_gap_is_on_the_disk_before_it_is_told() {
    let (config, mut bus) = settings();
    bus.replay_events_max = 3;
    let mut town = Town::new((config, bus));
    let context = town.subscribe(Subscribe::durable("context"));
    town.disconnect(context);
    town.publish(4);
    town.records_flow = false;
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), [Seen::CaughtUp], "not yet");
    town.records_flow = true;
    town.run();
    assert_eq!(town.receive(context)[0], gap(1, 4, Some(4), GapReason::TooMany));
}

#[test]
fn a_later_connection_takes_over() {
    let mut town = keeping();
    let older = town.subscribe(Subscribe::durable("context"));
    town.publish(2);
    assert_eq!(town.receive(older), events_then(1..=2, Seen::CaughtUp));
    let newer = town.subscribe(Subscribe::durable("context"));
    assert_eq!(newer.subscription, older.subscription);
    assert_eq!(town.receive(older), [Seen::Ended]);
    assert_eq!(town.receive(newer), events_then(1..=2, Seen::Awaiting(2)));
    town.disconnect(older);
    assert_eq!(town.named("context").state, SubscriptionState::Replaying, "the older one is nobody any more");
}

#[test]
fn one_that_is_not_durable_needs_no_acknowledgement_and_leaves_nothing_behind() {
    let mut town = keeping();
    town.publish(5);
    let bytes: u64 = town.records_world.files.values().map(|file| file.len() as u64).sum();
    let logger = town.subscribe(Subscribe { name: None, ..Subscribe::default().after(2) });
    let live = town.subscribe(Subscribe::default());
    assert_eq!(town.receive(logger), events_then(3..=5, Seen::CaughtUp));
    assert_eq!(town.receive(live), [Seen::CaughtUp]);
    town.publish(1);
    assert_eq!(town.receive(logger), [Seen::Event(6), Seen::CaughtUp]);
    assert_eq!(town.receive(live), [Seen::Event(6), Seen::CaughtUp]);
    town.disconnect(logger);
    town.disconnect(live);
    assert_eq!(town.bus.statuses(town.events.view()).count(), 0);
    let after: u64 = town.records_world.files.values().map(|file| file.len() as u64).sum();
    assert_eq!(after, bytes);
}

#[test]
fn a_wiped_journal_is_a_gap_and_never_silence() {
    let mut town = keeping();
    let context = town.subscribe(Subscribe::durable("context"));
    town.publish(50);
    town.receive(context);
    town.acknowledge(context, 50).unwrap();
    town.events_world = crate::world::World::default();
    let mut town = town.restart();
    let told = [gap(1, 0, None, GapReason::Beyond), Seen::Awaiting(0)];
    let context = town.subscribe(Subscribe::durable("context"));
    assert_eq!(town.receive(context), told);
    town.publish(60);
    let context = town.subscribe(Subscribe::durable("context").after(50));
    let grown = [gap(1, 60, None, GapReason::Beyond), Seen::Awaiting(60)];
    assert_eq!(town.receive(context), grown, "50 is a number of the new journal by now");
    town.acknowledge(context, 60).unwrap();
    let stranger = town.subscribe(Subscribe::default().after(70));
    assert_eq!(town.receive(stranger), [gap(1, 60, None, GapReason::Beyond), Seen::CaughtUp]);
    town.publish(1);
    assert_eq!(town.receive(stranger), [Seen::Event(61), Seen::CaughtUp]);
    assert_eq!(town.receive(context), [Seen::Event(61), Seen::CaughtUp]);
}

#[test]
fn live_goes_on_exactly_behind_a_replay_that_took_its_time() {
    let mut town = keeping();
    let context = town.subscribe(Subscribe::durable("context"));
    town.disconnect(context);
    town.publish(900);
    let context = town.subscribe(Subscribe::durable("context"));
    let mut seen = Vec::new();
    for _ in 0..5 {
        town.publish(300);
        seen.extend(town.receive(context).into_iter().filter(|seen| matches!(seen, Seen::Event(_))));
    }
    assert_eq!(seen, events(1..=900));
    town.acknowledge(context, 900).unwrap();
    assert_eq!(town.receive(context), events_then(901..=2_400, Seen::CaughtUp));
}

#[test]
fn names_and_filters_are_bounded_and_a_refusal_changes_nothing() {
    let (config, bus) = settings();
    let mut town = Town::new((config, BusConfig { subscriptions_bytes_max: 400, ..bus }));
    let long = "n".repeat(129);
    for name in ["", "a\nb", &long] {
        let refused = town.bus.subscribe(wall(0), Subscribe::durable(name), town.events.view());
        assert!(refused.is_err(), "{name}");
    }
    let wide = Subscribe::durable("wide").filter(Filter::all().source(&"s".repeat(9_000)));
    assert!(town.bus.subscribe(wall(0), wide, town.events.view()).is_err());
    for n in 0..4 {
        town.subscribe(Subscribe::durable(&format!("n{n}")));
    }
    let full = town.bus.subscribe(wall(0), Subscribe::durable("n4"), town.events.view());
    assert!(
        full.unwrap_err().to_string().contains("4 durable subscriptions take 392 bytes, the limit is 400")
    );
    town.subscribe(Subscribe::durable("n3"));
    assert!(town.bus.remove("n0"));
    town.subscribe(Subscribe::durable("n4"));
    let town = town.restart();
    let names: Vec<_> = town.bus.statuses(town.events.view()).filter_map(|status| status.name).collect();
    assert_eq!(names.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["n1", "n2", "n3", "n4"]);
}
