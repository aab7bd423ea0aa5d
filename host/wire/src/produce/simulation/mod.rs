//! A seeded simulation: a [`super::Producer`] against a model of Kafka's brokers that checks what real ones check, with
//! every trouble between them that the network and the cluster can make. A failure prints its seed.
//!
//! `TIDEGATE_SIMULATION_SEEDS=FROM..TO` runs others than the usual ones.

mod broker;
mod caller;
mod dice;
mod network;

use std::ops::Range;

use self::caller::{Caller, Seen};
use self::dice::Dice;

const SEEDS: Range<u64> = 0..500;

/// Says which seed failed, whatever panics.
struct SeedGuard(u64);

impl Drop for SeedGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            eprintln!("simulation failed; again with TIDEGATE_SIMULATION_SEEDS={seed}..{}", seed + 1);
        }
    }
}

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TIDEGATE_SIMULATION_SEEDS") else { return SEEDS };
    let (from, to) = text.split_once("..").expect("TIDEGATE_SIMULATION_SEEDS is FROM..TO");
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn every_batch_arrives_in_order_once_or_with_a_warning_whatever_happens() {
    let mut seen = Seen::default();
    for seed in seeds() {
        let _guard = SeedGuard(seed);
        let mut caller = Caller::new(Dice::new(seed));
        caller.run();
        caller.check_promises();
        seen.add(&caller.seen);
    }
    if seeds() == SEEDS {
        seen.check_nothing_was_left_out();
    }
}
