//! The producer's settings.

use std::time::Duration;

use super::lane::LANE_BATCHES_MAX;

/// The version of Produce that is spoken: served by brokers 2.4 to 4.x, and the first that names refused records.
pub const PRODUCE_VERSION: i16 = 8;

/// How a [`super::Producer`] sends.
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    /// Largest request in bytes, as Kafka's `max.request.size` (1 MiB). A single batch that is larger goes alone.
    pub request_bytes_max: usize,
    /// Requests in flight per broker, as Kafka's `max.in.flight.requests.per.connection`. More than 5 gains nothing: a
    /// lane has at most [`LANE_BATCHES_MAX`] batches on the way.
    pub in_flight_max: usize,
    /// How long the broker may wait for its followers, in ms, as Kafka's producer sends `request.timeout.ms` (30 000).
    pub acks_timeout_ms: i32,
    /// Wait before the first resend of a lane, as Kafka's `retry.backoff.ms`; doubled at each further one.
    pub retry_backoff: Duration,
    /// Longest wait before a resend, as Kafka's `retry.backoff.max.ms`.
    pub retry_backoff_max: Duration,
    /// Version of Produce, 3..=8. The request's bytes are the same in all of them, the answers differ.
    pub version: i16,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            request_bytes_max: 1024 * 1024,
            in_flight_max: LANE_BATCHES_MAX,
            acks_timeout_ms: 30_000,
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_millis(1000),
            version: PRODUCE_VERSION,
        }
    }
}

impl ProducerOptions {
    /// The wait before resend number `attempt` (1, 2, …): doubling, bounded. Without jitter on purpose: lanes that fail
    /// together share requests, so coming back together is cheaper for the broker.
    pub(super) fn retry_delay(&self, attempt: u32) -> Duration {
        const DOUBLINGS_MAX: u32 = 16;
        let doublings = attempt.saturating_sub(1).min(DOUBLINGS_MAX);
        self.retry_backoff.saturating_mul(1 << doublings).min(self.retry_backoff_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound() {
        let options = ProducerOptions::default();
        let waits: Vec<u128> =
            [0, 1, 2, 3, 4, 5, u32::MAX].iter().map(|n| options.retry_delay(*n).as_millis()).collect();
        assert_eq!(waits, [100, 100, 200, 400, 800, 1000, 1000]);
    }
}
