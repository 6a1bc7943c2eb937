//! One commit's state on its own, small enough that every interleaving is looked at.

use std::sync::Arc;
use std::task::{Wake, Waker};

use shuttle::scheduler::DfsScheduler;
use shuttle::sync::atomic::{AtomicUsize, Ordering};

use strandline_core::Shortage;

use super::run;
use crate::Poisoned;
use crate::commit::{CommitState, Outcome, Woken};

/// Every interleaving, with the wake-ups that come for no reason at fixed places.
fn exhaust(name: &str, scenario: fn()) {
    let interleavings = run(DfsScheduler::new(None, true), scenario);
    println!("{name}: all {interleavings} interleavings");
}

#[test]
fn an_offered_lead_is_taken_by_exactly_one() {
    exhaust("an offered lead", || {
        let (commit, leads) = (CommitState::new(), Arc::new(AtomicUsize::new(0)));
        let waiters = [(); 2].map(|()| {
            let (commit, leads) = (Arc::clone(&commit), Arc::clone(&leads));
            commit.add_waiter();
            shuttle::thread::spawn(move || match commit.park() {
                Woken::Settled(outcome) => assert_eq!(outcome, Outcome::Acknowledged),
                Woken::Lead => {
                    leads.fetch_add(1, Ordering::SeqCst);
                    commit.settle(Outcome::Acknowledged);
                    commit.announce();
                }
            })
        });
        commit.offer_lead();
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert_eq!(leads.load(Ordering::SeqCst), 1);
    });
}

/// A lead that is on offer while the journal is poisoned still has to be taken, or nobody would give it up.
#[test]
fn a_lead_that_is_offered_beside_a_poison_is_taken() {
    exhaust("a lead beside a poison", || {
        let (commit, leads) = (CommitState::new(), Arc::new(AtomicUsize::new(0)));
        commit.add_waiter();
        let waiter = {
            let (commit, leads) = (Arc::clone(&commit), Arc::clone(&leads));
            shuttle::thread::spawn(move || {
                while let Woken::Lead = commit.park() {
                    leads.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let poisons = {
            let commit = Arc::clone(&commit);
            shuttle::thread::spawn(move || {
                commit.settle(Outcome::Poisoned(Poisoned::Abandoned));
                commit.announce();
            })
        };
        commit.offer_lead();
        poisons.join().unwrap();
        waiter.join().unwrap();
        commit.settle(Outcome::Acknowledged);
        // Whether it was woken by one or the other, nobody else is there to take what it left.
        let left = matches!(commit.park(), Woken::Lead);
        assert_eq!(leads.load(Ordering::SeqCst) + usize::from(left), 1);
        assert_eq!(commit.outcome(), Some(Outcome::Poisoned(Poisoned::Abandoned)), "the first stays");
    });
}

struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_task_that_registers_while_the_commit_ends_knows_or_is_woken() {
    exhaust("a task", || {
        let commit = CommitState::new();
        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let ends = {
            let commit = Arc::clone(&commit);
            shuttle::thread::spawn(move || {
                commit.settle(Outcome::Void(Shortage::Space));
                commit.announce().into_iter().for_each(Waker::wake);
            })
        };
        let waker = Waker::from(Arc::clone(&counts));
        let seen = commit.register(&waker);
        let again = commit.register(&waker);
        ends.join().unwrap();
        let woken = counts.0.load(Ordering::SeqCst);
        assert!(again.is_some() || woken == 1, "{seen:?} {again:?}, woken {woken} times");
        assert!(seen.is_none() || woken == 0);
    });
}
