//! The bus over a simulated network.

use std::thread;

use strandline_sim::Trace;
use strandline_sim::network::{NetworkStatistics, NetworkStory, run_network};

fn run(seed: u64, smoke: bool) -> (NetworkStatistics, String) {
    let mut trace = Trace::silent();
    let story = NetworkStory::from_seed(seed, smoke);
    let statistics = run_network(&story, &mut trace).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    (statistics, trace.hash())
}

#[test]
fn every_subscriber_gets_everything_or_one_gap_whatever_befalls_network_and_machines() {
    let mut total = NetworkStatistics::default();
    for seed in 0..12 {
        [true, false].into_iter().for_each(|smoke| total.add(&run(seed, smoke).0));
    }
    // Nothing is shown where nothing happens.
    let NetworkStatistics { events, deliveries, again, gaps, starts, faults, .. } = total;
    assert!(events > 4_000 && deliveries > 8_000, "{total}");
    assert!(again > 50 && gaps > 10 && starts > 50 && faults > 200, "{total}");
}

#[test]
fn one_seed_is_one_run_whatever_else_the_process_does() {
    let seeds = [(3, true), (1, false), (5, true), (2, false)];
    let runs = |seeds: Vec<(u64, bool)>| {
        thread::spawn(move || seeds.into_iter().map(|(seed, smoke)| run(seed, smoke)).collect::<Vec<_>>())
    };
    let (there, back) = (runs(seeds.to_vec()), runs(seeds.into_iter().rev().collect()));
    let (there, mut back) = (there.join().expect("no panic"), back.join().expect("no panic"));
    back.reverse();
    assert_eq!(there, back);
    let hashes: std::collections::BTreeSet<_> = there.iter().map(|(_, hash)| hash).collect();
    assert_eq!(hashes.len(), seeds.len(), "different seeds are different runs");
}
