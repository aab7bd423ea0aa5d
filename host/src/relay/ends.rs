//! The source's ends of partitions that are not fetched just now. A fetch tells the end; but while the target is away or a
//! partition is paused nothing is fetched, and that is when an operator looks at the lag.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_wire::client::OffsetAt;
use tidegate_wire::error::WireError;
use tidegate_wire::list_offsets::ListedOffset;
use tokio::time::{Duration, Instant};
use tracing::debug;

use super::worker::{Event, Occupant, WorkerState};
use crate::names::{SourcePartition, TopicName};

/// An end that is older than this is asked for, in milliseconds.
pub(super) const END_AGE_MS_MAX: u64 = 5_000;

impl WorkerState {
    /// Asks for ends that no fetch has told for some time. One question at a time.
    pub(super) fn look_for_ends(&mut self, now: Instant) {
        if now < self.ends_due {
            return;
        }
        let age_max = Duration::from_millis(END_AGE_MS_MAX);
        self.ends_due = now + age_max;
        let relays = self.occupants.values().filter_map(Occupant::relay);
        let is_old = |seen: Option<Instant>| seen.is_none_or(|seen| now.duration_since(seen) >= age_max);
        let stale: Vec<_> = relays
            .filter(|relay| relay.fetching.is_none() && is_old(relay.end_seen))
            .map(|relay| (Arc::clone(&relay.topic), relay.source.partition))
            .collect();
        if stale.is_empty() {
            return;
        }
        let client = self.source.control.clone();
        let isolation = self.settings.isolation;
        self.tasks.spawn(async move {
            Event::Ends(client.list_offsets(&stale, OffsetAt::Latest, isolation).await)
        });
    }

    pub(super) fn take_ends(&mut self, ends: Result<Vec<ListedOffset>, WireError>, now: Instant) {
        let ends = match ends {
            Ok(ends) => ends,
            Err(problem) => {
                debug!(flow = %self.settings.flow, %problem, "the source's ends can't be learnt now");
                return;
            }
        };
        for end in ends {
            let (Some(offset), Ok(topic)) = (end.offset, TopicName::parse(&end.topic)) else { continue };
            let partition = SourcePartition { topic, partition: end.partition };
            let Some(lane) = self.by_source.get(&partition).copied() else { continue };
            if let Some(relay) = self.relay_lane_mut(lane) {
                relay.end_seen = Some(now);
                relay.stats.source_end.store(offset, Ordering::Relaxed);
            }
        }
    }
}
