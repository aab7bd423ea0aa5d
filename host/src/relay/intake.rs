//! Fetching: which partitions are asked for next, and what becomes of the answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_wire::ResponseError;
use tidegate_wire::batch::{Batch, Batches};
use tidegate_wire::client::{Isolation, NodeId};
use tidegate_wire::error::WireError;
use tidegate_wire::fetch::{CommittedFilter, FetchAnswer, FetchParameters, FetchPartition, FetchedPartition};
use tidegate_wire::produce::Lane;
use tokio::time::Instant;
use tracing::warn;

use super::lane::{Condition, RelayLane};
use super::leaders::leader_of;
use super::worker::{Event, Occupant, WorkerState};
use crate::names::SourceOffset;

/// Fetches that may run at one broker, each with partitions of its own. With two, partitions that become free while
/// the broker waits for data of others need not wait with it.
pub(super) const FETCHES_PER_BROKER_MAX: usize = 2;

/// A partition is asked for at least this much, in bytes, however many share the worker's budget; its broker gives at
/// least one batch in any case.
const PARTITION_FETCH_BYTES_MIN: usize = 64 * 1024;

/// The fetches that run.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    next: u64,
    rotation: usize,
    running: HashMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    node: NodeId,
    fetcher: usize,
    reserved: usize,
    lanes: HashMap<(Arc<str>, i32), Lane>,
}

impl Fetches {
    /// A fetcher of the broker that has nothing to do.
    fn free_fetcher(&self, node: NodeId) -> Option<usize> {
        let is_busy =
            |fetcher: usize| self.running.values().any(|run| run.node == node && run.fetcher == fetcher);
        (0..FETCHES_PER_BROKER_MAX).find(|fetcher| !is_busy(*fetcher))
    }
}

impl WorkerState {
    /// Starts a fetch at every broker that leads a partition with room and has a connection free.
    pub(super) fn start_fetches(&mut self, now: Instant) {
        let mut by_node = self.fetchable(now);
        let node_count = self.source.metadata.brokers.len().max(1);
        for (node, lanes) in &mut by_node {
            let Some(fetcher) = self.fetches.free_fetcher(*node) else { continue };
            let Some(bytes) = self.budget.reserve(node_count * FETCHES_PER_BROKER_MAX) else { return };
            self.fetches.rotation = self.fetches.rotation.wrapping_add(1);
            let start = self.fetches.rotation % lanes.len();
            lanes.rotate_left(start);
            self.start_fetch(*node, fetcher, bytes, lanes);
        }
    }

    /// Partitions that may be asked for, by leader.
    fn fetchable(&self, now: Instant) -> BTreeMap<NodeId, Vec<Lane>> {
        let share = self.budget.share(self.by_source.len());
        let mut by_node: BTreeMap<NodeId, Vec<Lane>> = BTreeMap::new();
        for lane in self.by_source.values() {
            let Some(relay) = self.relay_lane(*lane) else { continue };
            if !relay.may_fetch(share, now) {
                continue;
            }
            if let Some((leader, _)) = leader_of(&self.source.metadata, &relay.topic, relay.source.partition)
            {
                by_node.entry(leader).or_default().push(*lane);
            }
        }
        by_node
    }

    fn start_fetch(&mut self, node: NodeId, fetcher: usize, reserved: usize, lanes: &[Lane]) {
        self.fetches.next += 1;
        let fetch = self.fetches.next;
        let bytes = i32::try_from(reserved).unwrap_or(i32::MAX);
        let parameters = FetchParameters {
            max_wait_ms: i32::try_from(self.settings.fetch_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: self.settings.fetch_bytes_min,
            max_bytes: self.settings.fetch_bytes_max.min(bytes),
            isolation: self.settings.isolation,
        };
        // No partition may fill the budget that others live of.
        let share = self.budget.share(self.by_source.len()).max(PARTITION_FETCH_BYTES_MIN);
        let share = i32::try_from(share).unwrap_or(i32::MAX);
        let partition_bytes = self.settings.partition_fetch_bytes_max.min(bytes).min(share);
        let metadata = Arc::clone(&self.source.metadata);
        let mut partitions = Vec::with_capacity(lanes.len());
        let mut by_partition = HashMap::with_capacity(lanes.len());
        for lane in lanes {
            let Some(relay) = self.relay_lane_mut(*lane) else { continue };
            relay.fetching = Some(fetch);
            let (topic, partition) = (Arc::clone(&relay.topic), relay.source.partition);
            partitions.push(FetchPartition {
                leader_epoch: leader_of(&metadata, &topic, partition).map_or(-1, |(_, epoch)| epoch),
                topic: Arc::clone(&topic),
                partition,
                offset: relay.fetch_offset.0,
                max_bytes: partition_bytes,
            });
            by_partition.insert((topic, partition), *lane);
        }
        let client = self.source.fetchers[fetcher].clone();
        self.fetches.running.insert(fetch, Running { node, fetcher, reserved, lanes: by_partition });
        self.tasks.spawn(async move {
            Event::Fetched { fetch, answer: client.fetch(node, &parameters, &partitions).await }
        });
    }

    pub(super) fn take_fetched(&mut self, fetch: u64, answer: Result<FetchAnswer, WireError>, now: Instant) {
        let Some(running) = self.fetches.running.remove(&fetch) else { return };
        self.budget.release_reservation(running.reserved);
        match answer {
            Ok(answer) => {
                for fetched in answer.partitions {
                    let place = (Arc::clone(&fetched.topic), fetched.partition);
                    if let Some(lane) = running.lanes.get(&place) {
                        self.take_partition(*lane, fetch, fetched, now);
                    }
                }
            }
            Err(problem) => {
                self.source.refresh.distrust(now);
                let problem = format!("fetch from broker {} of the source failed: {problem}", running.node);
                warn!(flow = %self.settings.flow, %problem, "fetch failed, asking for leaders again");
                for lane in running.lanes.values() {
                    self.quieten(*lane, fetch, &problem, now);
                }
            }
        }
        for lane in running.lanes.values() {
            if let Some(relay) = self.relay_lane_mut(*lane)
                && relay.fetching == Some(fetch)
            {
                relay.fetching = None;
            }
        }
    }

    fn take_partition(&mut self, lane: Lane, fetch: u64, fetched: FetchedPartition, now: Instant) {
        let Some(relay) = self.relay_lane(lane) else { return };
        // What was asked for before the partition was paused, moved or let go is not taken.
        if relay.fetching != Some(fetch) || relay.condition != Condition::Moving {
            return;
        }
        match fetched.error {
            None => self.take_records(lane, fetched, now),
            Some(ResponseError::OffsetOutOfRange) => self.locate(lane),
            Some(error) => {
                self.source.refresh.distrust(now);
                let problem = format!("the source answered {error:?}");
                if error.is_retriable() {
                    self.quieten(lane, fetch, &problem, now);
                } else {
                    self.pause(lane, problem, now);
                }
            }
        }
    }

    fn take_records(&mut self, lane: Lane, fetched: FetchedPartition, now: Instant) {
        let is_committed = self.settings.isolation == Isolation::ReadCommitted;
        let end = if is_committed { fetched.last_stable_offset } else { fetched.high_watermark };
        let Some(Occupant::Relay(relay)) = self.occupants.get_mut(&lane) else { return };
        relay.refused_fetches = 0;
        relay.end_seen = Some(now);
        relay.stats.source_end.store(end, Ordering::Relaxed);
        if fetched.records.is_empty() {
            return;
        }
        let before = relay.unsettled_bytes;
        let mut filter = is_committed.then(|| CommittedFilter::new(fetched.aborted));
        let mut problem = None;
        for batch in Batches::new(fetched.records) {
            let taken = batch.map_err(|error| error.to_string()).and_then(|batch| {
                let is_wanted = filter.as_mut().is_none_or(|filter| filter.keep(&batch));
                take_batch(relay, batch, is_wanted)
            });
            if let Err(error) = taken {
                problem = Some(error);
                break;
            }
        }
        let gained = relay.unsettled_bytes - before;
        relay.publish_position();
        self.budget.hold(gained);
        if let Some(problem) = problem {
            self.pause(lane, problem, now);
        }
    }
}

/// Takes one batch of a fetch answer into the partition's queue, or notes that there is nothing in it to deliver.
fn take_batch(relay: &mut RelayLane, batch: Batch, is_wanted: bool) -> Result<(), String> {
    let next = SourceOffset(batch.header.next_offset());
    if next <= relay.fetch_offset {
        return Ok(());
    }
    batch.check_crc().map_err(|error| format!("batch at offset {}: {error}", batch.header.base_offset))?;
    let is_empty = batch.header.is_control() || batch.header.record_count == 0;
    if is_empty || !is_wanted {
        relay.push_nothing(next);
    } else {
        relay.push(batch);
    }
    Ok(())
}
