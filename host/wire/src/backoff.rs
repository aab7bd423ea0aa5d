//! How long to wait before a broker is tried again: twice as long after every failure up to a bound, ± 20 % by chance so that
//! many clients of a restarted broker don't come back in one moment (Kafka's `reconnect.backoff.ms`, KIP-580's
//! jitter). Pure: the caller keeps the time.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Kafka's `ExponentialBackoff` jitter.
const JITTER: f64 = 0.2;
/// Doubling stops mattering long before this; it keeps the power finite.
const DOUBLINGS_MAX: u32 = 30;

/// The waits of one broker.
#[derive(Debug, Clone)]
pub struct Backoff {
    base: Duration,
    max: Duration,
    failures: u32,
    chance: Chance,
}

impl Backoff {
    /// `base` after the first failure, doubled after each further one up to `max`. The same `seed` gives the same waits.
    pub fn new(base: Duration, max: Duration, seed: u64) -> Self {
        Backoff { base, max: max.max(base), failures: 0, chance: Chance(seed) }
    }

    /// The wait after one more failure.
    pub fn next_wait(&mut self) -> Duration {
        let doublings = self.failures.min(DOUBLINGS_MAX);
        self.failures = self.failures.saturating_add(1);
        let wait = (self.base.as_secs_f64() * 2f64.powi(doublings as i32)).min(self.max.as_secs_f64());
        Duration::from_secs_f64(wait * (1.0 - JITTER + 2.0 * JITTER * self.chance.fraction()))
    }

    /// It worked: the next failure waits `base` again.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// A seed that differs from process to process and call to call.
pub fn seed_by_chance() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// SplitMix64: enough for jitter, and a seed repeats it.
#[derive(Debug, Clone)]
struct Chance(u64);

impl Chance {
    /// 0.0 ≤ fraction < 1.0.
    fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_ms(seed: u64, count: usize) -> Vec<u128> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(1000), seed);
        (0..count).map(|_| backoff.next_wait().as_millis()).collect()
    }

    #[test]
    fn waits_double_up_to_the_bound_within_the_jitter() {
        for seed in 0..200 {
            for (wait, wanted) in
                waits_ms(seed, 8).into_iter().zip([50, 100, 200, 400, 800, 1000, 1000, 1000])
            {
                assert!(
                    (wanted * 8 / 10..=wanted * 12 / 10).contains(&wait),
                    "seed {seed}: {wait} for {wanted}"
                );
            }
        }
    }

    #[test]
    fn a_seed_repeats_its_waits_and_another_differs() {
        assert_eq!(waits_ms(7, 8), waits_ms(7, 8));
        assert_ne!(waits_ms(7, 8), waits_ms(8, 8));
    }

    #[test]
    fn success_starts_from_the_base_again() {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1), 1);
        for _ in 0..1000 {
            backoff.next_wait();
        }
        backoff.succeeded();
        assert!(backoff.next_wait() <= Duration::from_millis(60));
    }

    #[test]
    fn a_bound_below_the_base_is_the_base() {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::ZERO, 1);
        assert!(backoff.next_wait() >= Duration::from_millis(40));
    }
}
