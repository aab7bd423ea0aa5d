//! Fetching: which partitions are asked for next, and what becomes of the answer.

use std::collections::{BTreeMap, HashMap};

use tidegate_wire::ResponseError;
use tidegate_wire::batch::{Batch, Batches};
use tidegate_wire::client::{Isolation, NodeId, OffsetAt};
use tidegate_wire::error::WireError;
use tidegate_wire::fetch::{CommittedFilter, FetchAnswer, FetchParameters, FetchPartition, FetchedPartition};
use tidegate_wire::produce::Lane;
use tokio::time::{Duration, Instant};
use tracing::{info, warn};

use super::lane::{Condition, RelayLane};
use super::leaders::leader_of;
use super::range::{self, OutOfRange};
use super::worker::{Bounds, Event, Occupant, WorkerState};
use crate::config::OffsetReset;
use crate::names::SourceOffset;
use crate::status::now_ms;

/// Fetches that may run at one broker, each with partitions of its own. With two, partitions that become free while
/// the broker waits for data of others need not wait with it.
pub(super) const FETCHES_PER_BROKER_MAX: usize = 2;

/// Pause before a partition is fetched again after its broker refused, in milliseconds; leaders move in some hundred.
const FETCH_RETRY_MS: u64 = 100;

/// Pause before a partition that can't be read or written is tried again, in milliseconds. Long enough not to fill
/// logs, short enough that a mended topic goes on by itself.
pub(super) const PAUSE_MS: u64 = 10_000;

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
    lanes: Vec<Lane>,
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
            self.start_fetch(*node, fetcher, bytes, std::mem::take(lanes));
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

    fn start_fetch(&mut self, node: NodeId, fetcher: usize, reserved: usize, lanes: Vec<Lane>) {
        self.fetches.next += 1;
        let fetch = self.fetches.next;
        let bytes = i32::try_from(reserved).unwrap_or(i32::MAX);
        let parameters = FetchParameters {
            max_wait_ms: i32::try_from(self.settings.fetch_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: self.settings.fetch_bytes_min,
            max_bytes: self.settings.fetch_bytes_max.min(bytes),
            isolation: self.settings.isolation,
        };
        let partition_bytes = self.settings.partition_fetch_bytes_max.min(bytes);
        let metadata = std::sync::Arc::clone(&self.source.metadata);
        let mut partitions = Vec::with_capacity(lanes.len());
        for lane in &lanes {
            let Some(relay) = self.relay_lane_mut(*lane) else { continue };
            relay.fetching = Some(fetch);
            let epoch =
                leader_of(&metadata, &relay.topic, relay.source.partition).map_or(-1, |(_, epoch)| epoch);
            partitions.push(FetchPartition {
                topic: std::sync::Arc::clone(&relay.topic),
                partition: relay.source.partition,
                offset: relay.fetch_offset.0,
                leader_epoch: epoch,
                max_bytes: partition_bytes,
            });
        }
        let client = self.source.fetchers[fetcher].clone();
        self.fetches.running.insert(fetch, Running { node, fetcher, reserved, lanes });
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
                    self.take_partition(&running.lanes, fetch, fetched, now);
                }
            }
            Err(problem) => {
                self.source.refresh.distrust(now);
                let problem = format!("fetch from broker {} of the source failed: {problem}", running.node);
                warn!(flow = %self.settings.flow, %problem, "fetch failed, asking for leaders again");
                for lane in &running.lanes {
                    self.quieten(*lane, fetch, &problem, now);
                }
            }
        }
        for lane in &running.lanes {
            if let Some(relay) = self.relay_lane_mut(*lane)
                && relay.fetching == Some(fetch)
            {
                relay.fetching = None;
            }
        }
    }

    fn take_partition(&mut self, lanes: &[Lane], fetch: u64, fetched: FetchedPartition, now: Instant) {
        let is_meant = |lane: &&Lane| {
            self.relay_lane(**lane).is_some_and(|relay| {
                relay.fetching == Some(fetch)
                    && relay.source.partition == fetched.partition
                    && *relay.topic == *fetched.topic
            })
        };
        let Some(lane) = lanes.iter().find(is_meant).copied() else { return };
        match fetched.error {
            None => self.take_records(lane, fetched, now),
            Some(ResponseError::OffsetOutOfRange) => self.locate(lane, now),
            Some(error) => self.take_fetch_error(lane, fetch, error, now),
        }
    }

    fn take_fetch_error(&mut self, lane: Lane, fetch: u64, error: ResponseError, now: Instant) {
        self.source.refresh.distrust(now);
        let problem = format!("the source answered {error:?}");
        if !error.is_retriable() {
            self.pause(lane, problem, now);
            return;
        }
        self.quieten(lane, fetch, &problem, now);
    }

    fn take_records(&mut self, lane: Lane, fetched: FetchedPartition, now: Instant) {
        self.source.refresh.trust();
        let is_committed = self.settings.isolation == Isolation::ReadCommitted;
        let end = if is_committed { fetched.last_stable_offset } else { fetched.high_watermark };
        let Some(Occupant::Relay(relay)) = self.occupants.get_mut(&lane) else { return };
        relay.stats.source_end.store(end, std::sync::atomic::Ordering::Relaxed);
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

    /// Lets a partition rest after a refusal that a new leader will mend.
    fn quieten(&mut self, lane: Lane, fetch: u64, problem: &str, now: Instant) {
        let until = now + Duration::from_millis(FETCH_RETRY_MS);
        if let Some(relay) = self.relay_lane_mut(lane)
            && relay.fetching == Some(fetch)
        {
            relay.quiet_until = Some(until);
            relay.stats.set_error(now_ms(), problem.to_owned());
            self.wake_at(until);
        }
    }

    /// Stops a partition because of something that it can't mend itself, and says so. It is tried again.
    pub(super) fn pause(&mut self, lane: Lane, problem: String, now: Instant) {
        let until = now + Duration::from_millis(PAUSE_MS);
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        warn!(%flow, partition = %relay.source, %problem, retry_ms = PAUSE_MS, "partition paused");
        relay.stats.set_error(now_ms(), problem);
        if relay.condition != Condition::Draining {
            relay.condition = Condition::Paused { until };
        }
        self.wake_at(until);
    }

    /// Asks where a partition's log begins and ends.
    pub(super) fn locate(&mut self, lane: Lane, _now: Instant) {
        let client = self.source.control.clone();
        let isolation = self.settings.isolation;
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        if relay.condition != Condition::Draining {
            relay.condition = Condition::Locating;
        }
        let partition = [(std::sync::Arc::clone(&relay.topic), relay.source.partition)];
        self.tasks.spawn(async move {
            let earliest = client.list_offsets(&partition, OffsetAt::Earliest, isolation).await;
            let latest = client.list_offsets(&partition, OffsetAt::Latest, isolation).await;
            Event::Located { lane, bounds: bounds(earliest, latest) }
        });
    }

    pub(super) fn take_located(&mut self, lane: Lane, bounds: Result<Bounds, String>, now: Instant) {
        let reset = self.settings.offset_reset;
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        if relay.condition != Condition::Locating {
            return;
        }
        let bounds = match bounds {
            Ok(bounds) => bounds,
            Err(problem) => {
                relay.needs_location = true;
                return self.pause(lane, format!("could not learn the partition's offsets: {problem}"), now);
            }
        };
        if !relay.is_placed {
            return self.place(lane, bounds, reset, now);
        }
        match range::decide(relay.fetch_offset, bounds.earliest, bounds.latest, reset) {
            OutOfRange::GoOn { at, because } => {
                warn!(%flow, partition = %relay.source, %because, "position out of range");
                relay.stats.set_error(now_ms(), because);
                relay.condition = Condition::Jumping { to: at };
                self.jump_if_idle(lane);
            }
            OutOfRange::Stay { because } => {
                relay.needs_location = true;
                self.pause(lane, because, now);
            }
        }
    }

    /// Starts a partition that has no stored position.
    fn place(&mut self, lane: Lane, bounds: Bounds, reset: OffsetReset, now: Instant) {
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        let at = match reset {
            OffsetReset::Earliest => bounds.earliest,
            OffsetReset::Latest => bounds.latest,
            OffsetReset::None => {
                relay.needs_location = true;
                let problem =
                    "no position is stored and auto.offset.reset=none: set it to earliest or latest";
                return self.pause(lane, problem.to_owned(), now);
            }
        };
        info!(%flow, partition = %relay.source, offset = %at, "partition starts without a stored position");
        relay.is_placed = true;
        relay.condition = Condition::Jumping { to: at };
        self.jump_if_idle(lane);
    }

    /// A partition that shall go on elsewhere does so once nothing of it is in flight.
    pub(super) fn jump_if_idle(&mut self, lane: Lane) {
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        if let Condition::Jumping { to } = relay.condition
            && relay.is_idle()
            && !relay.has_waiting()
        {
            let freed = relay.start_at(to);
            relay.publish_position();
            self.budget.free(freed);
        }
    }

    /// Lets partitions go on whose pause is over.
    pub(super) fn wake_lanes(&mut self, now: Instant) {
        if self.lane_wake.is_none_or(|wake| wake > now) {
            return;
        }
        self.lane_wake = None;
        let lanes: Vec<Lane> = self.occupants.keys().copied().collect();
        for lane in lanes {
            let Some(relay) = self.relay_lane_mut(lane) else { continue };
            if let Some(until) = relay.quiet_until {
                if until > now {
                    self.wake_at(until);
                } else {
                    relay.quiet_until = None;
                }
            }
            let Some(relay) = self.relay_lane_mut(lane) else { continue };
            match relay.condition {
                Condition::Paused { until } if until > now => self.wake_at(until),
                Condition::Paused { .. } => self.resume(lane, now),
                _ => {}
            }
        }
    }

    fn resume(&mut self, lane: Lane, now: Instant) {
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        relay.condition = Condition::Moving;
        let freed = relay.clear_queue();
        let needs_location = std::mem::take(&mut relay.needs_location);
        self.budget.free(freed);
        self.retry_held(lane);
        if needs_location {
            self.locate(lane, now);
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

type Listed = Result<Vec<tidegate_wire::list_offsets::ListedOffset>, WireError>;

fn bounds(earliest: Listed, latest: Listed) -> Result<Bounds, String> {
    let one = |listed: Listed| {
        let listed = listed.map_err(|error| error.to_string())?;
        let first = listed.into_iter().next().ok_or_else(|| "the source told no offset".to_owned())?;
        match (first.offset, first.error) {
            (Some(offset), None) => Ok(SourceOffset(offset)),
            (_, Some(error)) => Err(format!("the source answered {error:?}")),
            (None, None) => Err("the source told no offset".to_owned()),
        }
    };
    Ok(Bounds { earliest: one(earliest)?, latest: one(latest)? })
}
