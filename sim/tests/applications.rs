//! Other people's code in the same crashes: the examples find what they say they find.

#[path = "../examples/applications/mod.rs"]
mod applications;

use applications::{JsonLines, SECTOR_BYTES, StrandlineLog};
use strandline_sim::{Options, explore_application};

#[test]
fn a_naive_log_loses_what_it_promised() {
    let loss = explore_application(&JsonLines, SECTOR_BYTES, Options::default()).unwrap_err();
    assert_eq!((loss.promised, loss.crashes.len()), (1, 1), "{loss}");
    assert!(loss.to_string().contains("1 events were promised, 0 are there"), "{loss}");
}

#[test]
fn a_journal_loses_nothing() {
    match explore_application(&StrandlineLog, SECTOR_BYTES, Options::smoke()) {
        Ok(statistics) => assert!(statistics.states > 100, "{statistics}"),
        Err(loss) => panic!("{loss}"),
    }
}
