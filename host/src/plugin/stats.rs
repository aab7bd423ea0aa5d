//! What a plugin has done so far, for metrics: whole numbers that any thread adds to, once a call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::fault::FaultKind;

/// Upper bounds of the buckets of [`PluginStats`]' call times, in nanoseconds: 10 µs to 1 s. What is above counts in one
/// more bucket. A batch through a filter takes 20 µs; the default deadline is 50 ms.
pub const CALL_TIME_BOUNDS_NS: [u64; 12] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    250_000_000,
    1_000_000_000,
];
/// The bounded buckets, and the one above.
pub const CALL_TIME_BUCKET_COUNT: usize = CALL_TIME_BOUNDS_NS.len() + 1;

/// Shared by all instances of a loaded plugin. Only grows, but for `memory_bytes`.
#[derive(Debug, Default)]
pub struct PluginStats {
    calls: AtomicU64,
    records: AtomicU64,
    dropped: AtomicU64,
    changed: AtomicU64,
    rejected: AtomicU64,
    faults: [AtomicU64; FaultKind::ALL.len()],
    call_time_ns_sum: AtomicU64,
    call_time_buckets: [AtomicU64; CALL_TIME_BUCKET_COUNT],
    memory_bytes: AtomicU64,
}

/// What one call about records came to. All zero when there was no usable answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Records that were shown.
    pub records: u64,
    /// Of them, those that it dropped.
    pub dropped: u64,
    /// Of them, those that it changed.
    pub changed: u64,
    /// Of them, those that it rejected.
    pub rejected: u64,
}

/// The numbers at one moment (each for itself: they are not read together).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsSnapshot {
    /// Questions of every hook, faults included; not the start.
    pub calls: u64,
    /// Records that it was shown.
    pub records: u64,
    /// Records that it dropped.
    pub dropped: u64,
    /// Records that it changed.
    pub changed: u64,
    /// Records that it rejected.
    pub rejected: u64,
    /// Calls without a usable answer, in the order of [`FaultKind::ALL`].
    pub faults: [u64; FaultKind::ALL.len()],
    /// Wall time of all calls together.
    pub call_time_ns_sum: u64,
    /// How many calls took up to the bound of the same index in [`CALL_TIME_BOUNDS_NS`] and longer than the one before;
    /// the last one those that took longer. Not cumulative.
    pub call_time_buckets: [u64; CALL_TIME_BUCKET_COUNT],
    /// Linear memory of the instances that edit records and live now.
    pub memory_bytes: u64,
}

impl PluginStats {
    /// Counts one question, answered or not.
    pub fn note_call(&self, elapsed: Duration) {
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let bucket = CALL_TIME_BOUNDS_NS.partition_point(|bound_ns| *bound_ns < elapsed_ns);
        add(&self.calls, 1);
        add(&self.call_time_ns_sum, elapsed_ns);
        add(&self.call_time_buckets[bucket], 1);
    }

    /// Counts what a call about records came to.
    pub fn note_records(&self, counts: RecordCounts) {
        add(&self.records, counts.records);
        add(&self.dropped, counts.dropped);
        add(&self.changed, counts.changed);
        add(&self.rejected, counts.rejected);
    }

    /// Counts a call that gave no usable answer.
    pub fn note_fault(&self, kind: FaultKind) {
        add(&self.faults[kind as usize], 1);
    }

    /// An instance held `before_bytes` and holds `now_bytes`.
    pub(super) fn note_memory(&self, before_bytes: usize, now_bytes: usize) {
        if now_bytes >= before_bytes {
            self.memory_bytes.fetch_add((now_bytes - before_bytes) as u64, Ordering::Relaxed);
        } else {
            self.memory_bytes.fetch_sub((before_bytes - now_bytes) as u64, Ordering::Relaxed);
        }
    }

    /// The numbers now.
    pub fn snapshot(&self) -> StatsSnapshot {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        StatsSnapshot {
            calls: get(&self.calls),
            records: get(&self.records),
            dropped: get(&self.dropped),
            changed: get(&self.changed),
            rejected: get(&self.rejected),
            faults: self.faults.each_ref().map(get),
            call_time_ns_sum: get(&self.call_time_ns_sum),
            call_time_buckets: self.call_time_buckets.each_ref().map(get),
            memory_bytes: get(&self.memory_bytes),
        }
    }
}

fn add(number: &AtomicU64, by: u64) {
    number.fetch_add(by, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_in_the_bucket_of_its_time() {
        let check = |elapsed_ns: u64, bucket: usize| {
            let stats = PluginStats::default();
            stats.note_call(Duration::from_nanos(elapsed_ns));
            let mut expected = [0; CALL_TIME_BUCKET_COUNT];
            expected[bucket] = 1;
            assert_eq!(stats.snapshot().call_time_buckets, expected, "{elapsed_ns} ns");
            assert_eq!(stats.snapshot().call_time_ns_sum, elapsed_ns);
        };
        check(0, 0);
        check(10_000, 0);
        check(10_001, 1);
        check(1_000_000_000, 11);
        check(1_000_000_001, 12);
    }

    #[test]
    fn faults_are_counted_by_kind_and_memory_goes_both_ways() {
        let stats = PluginStats::default();
        for kind in FaultKind::ALL {
            stats.note_fault(kind);
        }
        stats.note_fault(FaultKind::Trap);
        stats.note_memory(0, 1 << 20);
        stats.note_memory(1 << 20, 1 << 16);
        stats.note_records(RecordCounts { records: 10, dropped: 3, changed: 2, rejected: 1 });

        let expected = StatsSnapshot {
            records: 10,
            dropped: 3,
            changed: 2,
            rejected: 1,
            faults: [1, 1, 2, 1, 1],
            memory_bytes: 1 << 16,
            ..StatsSnapshot::default()
        };
        assert_eq!(stats.snapshot(), expected);
    }
}
