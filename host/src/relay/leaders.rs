//! Who leads a partition, from the metadata that a worker asked for; asked anew when a broker says otherwise.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_wire::client::NodeId;
use tidegate_wire::error::WireError;
use tidegate_wire::metadata::{ClusterMetadata, TopicSelection};
use tidegate_wire::produce::Lane;
use tokio::time::Instant;
use tracing::warn;

use super::worker::{Event, Occupant, WorkerState};
use crate::status::now_ms;

/// Pause before metadata is asked for again after a broker refused or a partition had no leader; doubled up to
/// [`REFRESH_BACKOFF_MS_MAX`]. A leader election takes some hundred milliseconds.
const REFRESH_BACKOFF_MS: u64 = 50;

/// The longest such pause.
const REFRESH_BACKOFF_MS_MAX: u64 = 1_000;

/// Metadata is never asked for more often than this without a reason, in milliseconds, whatever
/// `metadata.max.age.ms` says.
const AGE_MS_MIN: u64 = 1_000;

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
        let age_max = age_max.max(Duration::from_millis(AGE_MS_MIN));
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

    /// Whether to ask now; counts as asked then.
    fn start(&mut self, now: Instant) -> bool {
        let is_due = !self.running && self.due.is_some_and(|due| due <= now);
        if is_due {
            self.running = true;
            self.due = None;
        }
        is_due
    }

    /// The answer came. `is_complete`: it names a leader for every partition.
    fn finished(&mut self, now: Instant, is_complete: bool) {
        self.running = false;
        if is_complete {
            self.attempts = 0;
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

impl WorkerState {
    /// Asks for metadata where it is time to.
    pub(super) fn refresh_metadata(&mut self, now: Instant) {
        if self.by_source.is_empty() {
            return;
        }
        if self.source.refresh.start(now) {
            let topics: BTreeSet<&str> =
                self.by_source.keys().map(|partition| partition.topic.as_str()).collect();
            let topics = TopicSelection::Named(topics.into_iter().map(Arc::from).collect());
            let client = self.source.control.clone();
            self.tasks.spawn(async move { Event::SourceMetadata(client.refresh_metadata(topics).await) });
        }
        if self.target.refresh.start(now) {
            let lanes = self.occupants.keys().filter_map(|lane| self.target_of(*lane));
            let topics: BTreeSet<Arc<str>> = lanes.map(|(topic, _partition)| topic).collect();
            let topics = TopicSelection::Named(topics.into_iter().collect());
            let client = self.target.control.clone();
            self.tasks.spawn(async move { Event::TargetMetadata(client.refresh_metadata(topics).await) });
        }
    }

    pub(super) fn take_source_metadata(
        &mut self,
        answer: Result<Arc<ClusterMetadata>, WireError>,
        now: Instant,
    ) {
        let metadata = match answer {
            Ok(metadata) => metadata,
            Err(problem) => {
                self.metadata_problem("source", &problem);
                return self.source.refresh.finished(now, false);
            }
        };
        self.source.metadata = Arc::clone(&metadata);
        let mut is_complete = true;
        let mut made_anew = Vec::new();
        for (lane, occupant) in &mut self.occupants {
            let Occupant::Relay(relay) = occupant else { continue };
            is_complete &= leader_of(&metadata, &relay.topic, relay.source.partition).is_some();
            let id = metadata.topics.get(&relay.topic).and_then(|topic| topic.id);
            if relay.is_another_topic(id) {
                made_anew.push(*lane);
            }
        }
        self.source.refresh.finished(now, is_complete);
        for lane in made_anew {
            self.start_anew(lane);
        }
    }

    pub(super) fn take_target_metadata(
        &mut self,
        answer: Result<Arc<ClusterMetadata>, WireError>,
        now: Instant,
    ) {
        match answer {
            Ok(metadata) => {
                self.target.metadata = metadata;
                let lanes: Vec<Lane> = self.occupants.keys().copied().collect();
                let mut is_complete = true;
                for lane in lanes {
                    is_complete &= self.lead_lane(lane);
                }
                self.target.refresh.finished(now, is_complete);
            }
            Err(problem) => {
                self.metadata_problem("target", &problem);
                self.target.refresh.finished(now, false);
            }
        }
    }

    /// Tells the producer who leads the lane; false when nobody is known to.
    pub(super) fn lead_lane(&mut self, lane: Lane) -> bool {
        let Some((topic, partition)) = self.target_of(lane).filter(|_| !self.abandoned.contains(&lane))
        else {
            return true;
        };
        let leader = leader_of(&self.target.metadata, &topic, partition).map(|(leader, _epoch)| leader);
        self.producer.set_leader(lane, leader);
        if let Some(relay) = self.relay_lane_mut(lane) {
            relay.is_led = leader.is_some();
        }
        leader.is_some()
    }

    /// The target partition that a lane writes to.
    fn target_of(&self, lane: Lane) -> Option<(Arc<str>, i32)> {
        match self.occupants.get(&lane)? {
            Occupant::Relay(relay) => Some((Arc::clone(&relay.target), relay.source.partition)),
            Occupant::Positions(ledger) => {
                Some((self.settings.positions_topic.as_str().into(), ledger.slot.0))
            }
        }
    }

    fn metadata_problem(&self, side: &'static str, problem: &WireError) {
        warn!(flow = %self.settings.flow, side, %problem, "a cluster did not answer as it should");
        self.flow.set_error(now_ms(), format!("{side}: {problem}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distrust_waits_longer_each_time_until_every_leader_is_known() {
        let start = Instant::now();
        let mut refresh = Refresh::new(Duration::from_secs(300), start);
        let mut waits = Vec::new();
        for _ in 0..7 {
            let due = refresh.next_wake().unwrap();
            assert!(refresh.start(due));
            assert!(!refresh.start(due), "one question at a time");
            refresh.finished(due, false);
            waits.push((refresh.next_wake().unwrap() - due).as_millis());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1000, 1000]);
        let due = refresh.next_wake().unwrap();
        assert!(refresh.start(due));
        refresh.finished(due, true);
        assert_eq!(refresh.next_wake().unwrap() - due, Duration::from_secs(300));
        refresh.distrust(due);
        assert_eq!((refresh.next_wake().unwrap() - due).as_millis(), 50);
    }

    #[test]
    fn an_age_of_zero_does_not_ask_without_end() {
        let start = Instant::now();
        let mut refresh = Refresh::new(Duration::ZERO, start);
        assert!(refresh.start(start));
        refresh.finished(start, true);
        assert_eq!(refresh.next_wake().unwrap() - start, Duration::from_secs(1));
    }
}
