//! Who leads a partition, from the metadata that a worker asked for; asked anew when a broker says otherwise.

use std::sync::Arc;
use std::time::Duration;

use tidegate_wire::client::NodeId;
use tidegate_wire::metadata::ClusterMetadata;
use tokio::time::Instant;

/// Pause before metadata is asked for again after a broker refused or a partition had no leader; doubled up to
/// [`REFRESH_BACKOFF_MS_MAX`]. A leader election takes some hundred milliseconds.
pub(super) const REFRESH_BACKOFF_MS: u64 = 50;

/// The longest such pause.
pub(super) const REFRESH_BACKOFF_MS_MAX: u64 = 1_000;

/// When to ask a cluster for metadata.
#[derive(Debug)]
pub(super) struct Refresh {
    age_max: Duration,
    due: Option<Instant>,
    running: bool,
    attempts: u32,
}

impl Refresh {
    /// Asks at once, and then every `age_max`.
    pub(super) fn new(age_max: Duration, now: Instant) -> Self {
        Self { age_max, due: Some(now), running: false, attempts: 0 }
    }

    /// What is known seems to be wrong: ask soon, later with every attempt that did not help.
    pub(super) fn distrust(&mut self, now: Instant) {
        let doubled = REFRESH_BACKOFF_MS.saturating_mul(1 << self.attempts.min(10));
        let soon = now + Duration::from_millis(doubled.min(REFRESH_BACKOFF_MS_MAX));
        if self.due.is_none_or(|due| due > soon) {
            self.due = Some(soon);
            self.attempts += 1;
        }
    }

    /// New partitions came: ask now.
    pub(super) fn now(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// Something was delivered or read: what is known is right.
    pub(super) fn trust(&mut self) {
        self.attempts = 0;
    }

    /// Whether to ask now; counts as asked then.
    pub(super) fn start(&mut self, now: Instant) -> bool {
        let is_due = !self.running && self.due.is_some_and(|due| due <= now);
        if is_due {
            self.running = true;
            self.due = None;
        }
        is_due
    }

    /// The answer came.
    pub(super) fn finished(&mut self, now: Instant, succeeded: bool) {
        self.running = false;
        if succeeded {
            let next = now + self.age_max;
            self.due = Some(self.due.map_or(next, |due| due.min(next)));
        } else {
            self.distrust(now);
        }
    }

    /// When to look again.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        if self.running { None } else { self.due }
    }
}

/// The leader of a partition and its epoch (−1 if the broker tells none).
pub(super) fn leader_of(
    metadata: &ClusterMetadata,
    topic: &Arc<str>,
    partition: i32,
) -> Option<(NodeId, i32)> {
    let partition = metadata.topics.get(topic)?.partitions.get(&partition)?;
    partition.leader.map(|leader| (leader, partition.leader_epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distrust_waits_longer_each_time_until_something_works() {
        let start = Instant::now();
        let mut refresh = Refresh::new(Duration::from_secs(300), start);
        let mut waits = Vec::new();
        for _ in 0..7 {
            let due = refresh.next_wake().unwrap();
            assert!(refresh.start(due));
            assert!(!refresh.start(due), "one question at a time");
            refresh.finished(due, true);
            refresh.distrust(due);
            waits.push((refresh.next_wake().unwrap() - due).as_millis());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1000, 1000]);
        refresh.trust();
        let due = refresh.next_wake().unwrap();
        assert!(refresh.start(due));
        refresh.finished(due, true);
        assert_eq!(refresh.next_wake().unwrap() - due, Duration::from_secs(300));
    }
}
