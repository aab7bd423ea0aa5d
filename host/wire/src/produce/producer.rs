//! The producer: lanes, the brokers that lead them, the requests in flight.

mod call;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use self::call::{Call, CallBatch};
use super::lane::{LaneState, Retired, Turn};
use super::numbering::Numbering;
use super::request::RequestBatch;
use super::{ProduceEvent, ProducerIdentity, ProducerOptions};
use crate::batch::{BatchHeader, HEADER_BYTES};
use crate::error::NodeId;

/// One target partition of a producer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lane(pub usize);

/// One request of a producer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// A batch to be produced. Header and payload must fit each other; producer fields, base offset and the bits that a
/// producer may not set are overwritten on the way out.
#[derive(Clone, Debug)]
pub struct OutBatch {
    /// The batch's header.
    pub header: BatchHeader,
    /// What follows the header's 61 bytes.
    pub payload: Bytes,
    /// The caller's own number; comes back in the events.
    pub tag: u64,
}

impl OutBatch {
    /// Size on the wire, header included.
    pub fn total_bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }
}

/// Where new batches come from.
pub trait BatchSource {
    /// The next batch of `lane`, which will be sent now. `bytes_max` is what the request still takes for a batch with its
    /// header. A larger one may be given, and must be if no request takes it: it waits in its lane until it is the first of
    /// a request and goes alone. What was given is the producer's until it is acked, replaced or its lane removed.
    fn next(&mut self, lane: Lane, bytes_max: usize) -> Option<OutBatch>;
}

/// A request, ready to be written.
#[derive(Debug)]
pub struct ProduceCall {
    /// To be given back with the answer.
    pub id: CallId,
    /// The broker.
    pub node: NodeId,
    /// Version of Produce.
    pub version: i16,
    /// The body behind the request header, for one vectored write.
    pub parts: Vec<Bytes>,
    /// Batches in it.
    pub batches: usize,
    /// Bytes of `parts` together.
    pub bytes: usize,
}

/// A lane can't be removed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{in_flight} batches of the lane are still in flight; set no leader and wait for their answers")]
pub struct LaneBusy {
    /// How many.
    pub in_flight: usize,
}

/// The idempotent producer.
#[derive(Debug)]
pub struct Producer {
    identity: ProducerIdentity,
    options: ProducerOptions,
    lanes: Vec<Option<LaneState>>,
    topics: Vec<Arc<str>>,
    topic_numbers: HashMap<Arc<str>, usize>,
    lane_of: HashMap<(usize, i32), Lane>,
    /// Lanes that were removed; one small entry per partition.
    retired: HashMap<(usize, i32), Retired>,
    nodes: BTreeMap<NodeId, Node>,
    calls: Vec<Call>,
    next_call: u64,
    /// Events of steps that have no list to put them into.
    late_events: Vec<ProduceEvent>,
    /// Reused for every request.
    picked: Vec<RequestBatch>,
}

/// A broker that leads lanes.
#[derive(Debug, Default)]
struct Node {
    in_flight: usize,
    lanes: Vec<Lane>,
    /// Where in `lanes` the next request starts.
    start: usize,
}

impl Producer {
    /// A producer without lanes. An `in_flight_max` of 0 is taken as 1.
    pub fn new(identity: ProducerIdentity, options: ProducerOptions) -> Self {
        Producer {
            identity,
            options: ProducerOptions { in_flight_max: options.in_flight_max.max(1), ..options },
            lanes: Vec::new(),
            topics: Vec::new(),
            topic_numbers: HashMap::new(),
            lane_of: HashMap::new(),
            retired: HashMap::new(),
            nodes: BTreeMap::new(),
            calls: Vec::new(),
            next_call: 0,
            late_events: Vec::new(),
            picked: Vec::new(),
        }
    }

    /// The lane of a partition; the same one if it exists already. It sends nothing before its leader is set.
    pub fn add_lane(&mut self, topic: Arc<str>, partition: i32) -> Lane {
        let topic = self.topic_number(topic);
        if let Some(lane) = self.lane_of.get(&(topic, partition)) {
            return *lane;
        }
        let free = self.lanes.iter().position(Option::is_none);
        let lane = Lane(free.unwrap_or(self.lanes.len()));
        let mut state = match self.retired.remove(&(topic, partition)) {
            Some(retired) => LaneState::again(lane, topic, partition, retired),
            None => LaneState::new(lane, topic, partition, Numbering::start(self.identity)),
        };
        state.bump_if_due(self.identity, &mut self.late_events);
        match free {
            Some(index) => self.lanes[index] = Some(state),
            None => self.lanes.push(Some(state)),
        }
        self.lane_of.insert((topic, partition), lane);
        lane
    }

    fn topic_number(&mut self, topic: Arc<str>) -> usize {
        if let Some(number) = self.topic_numbers.get(&topic) {
            return *number;
        }
        self.topics.push(topic.clone());
        self.topic_numbers.insert(topic, self.topics.len() - 1);
        self.topics.len() - 1
    }

    /// Removes a lane of which nothing is in flight. Gives the tags of its batches that were not acked, in order; some of
    /// them may be in the log. An unknown lane has none.
    pub fn remove_lane(&mut self, lane: Lane) -> Result<Vec<u64>, LaneBusy> {
        let Some(state) = self.lane(lane) else { return Ok(Vec::new()) };
        if state.in_flight() > 0 {
            return Err(LaneBusy { in_flight: state.in_flight() });
        }
        self.set_leader(lane, None);
        let Some(state) = self.lanes[lane.0].take() else { return Ok(Vec::new()) };
        let place = (state.topic, state.partition);
        let (unacked, retired) = state.close();
        self.lane_of.remove(&place);
        self.retired.insert(place, retired);
        Ok(unacked)
    }

    /// Says who leads a lane's partition, from metadata. The lane goes over after everything in flight has come back.
    pub fn set_leader(&mut self, lane: Lane, leader: Option<NodeId>) {
        let Some(state) = self.lanes.get_mut(lane.0).and_then(Option::as_mut) else { return };
        let before = state.leader;
        if before == leader {
            return;
        }
        state.set_leader(leader);
        if let Some(node) = before.and_then(|node| self.nodes.get_mut(&node)) {
            node.lanes.retain(|other| *other != lane);
        }
        if let Some(leader) = leader {
            self.nodes.entry(leader).or_default().lanes.push(lane);
        }
        self.nodes.retain(|_, node| node.in_flight > 0 || !node.lanes.is_empty());
    }

    /// A new identity, for lanes that have no epoch left and for new ones. The others go on as they are.
    pub fn set_identity(&mut self, identity: ProducerIdentity) {
        self.identity = identity;
        for state in self.lanes.iter_mut().flatten() {
            state.on_new_identity(identity);
        }
    }

    /// Brokers with room for another request and a lane that may send (again or something new).
    pub fn nodes_ready(&self, now: Instant) -> impl Iterator<Item = NodeId> + '_ {
        let in_flight_max = self.options.in_flight_max;
        self.nodes.iter().filter_map(move |(id, node)| {
            let may_send = |lane: &Lane| self.lane(*lane).is_some_and(|s| s.turn(*id, now) != Turn::Nothing);
            let is_ready = node.in_flight < in_flight_max && node.lanes.iter().any(may_send);
            is_ready.then_some(*id)
        })
    }

    /// Batches of the lane that are on their way.
    pub fn in_flight(&self, lane: Lane) -> usize {
        self.lane(lane).map_or(0, LaneState::in_flight)
    }

    /// Requests on their way to any broker.
    pub fn calls_in_flight(&self) -> usize {
        self.calls.len()
    }

    /// When the next backoff ends of a lane that could then send. `None`: only an answer, metadata or new batches help.
    pub fn next_wake(&self) -> Option<Instant> {
        let with_room = self.nodes.values().filter(|node| node.in_flight < self.options.in_flight_max);
        let lanes = with_room.flat_map(|node| &node.lanes);
        lanes.filter_map(|lane| self.lane(*lane)?.wake_at()).min()
    }

    /// After [`ProduceEvent::Failed`]: the failed batch becomes these, in its place, and the lane goes on; without any,
    /// it is dropped. `false` if the lane has no failed batch of this tag.
    pub fn replace(&mut self, lane: Lane, tag: u64, smaller: Vec<OutBatch>) -> bool {
        let Some(state) = self.lanes.get_mut(lane.0).and_then(Option::as_mut) else { return false };
        state.replace(tag, smaller, self.identity, &mut self.late_events)
    }

    /// After [`ProduceEvent::Failed`]: the batch is sent again as it is, because its cause is gone (a granted right, a
    /// raised limit). `false` if the lane has no failed batch of this tag.
    pub fn retry(&mut self, lane: Lane, tag: u64) -> bool {
        let Some(state) = self.lanes.get_mut(lane.0).and_then(Option::as_mut) else { return false };
        state.retry(tag)
    }

    /// Events of `replace` and of `add_lane` for a partition that had a lane before; `on_answer` brings them too.
    pub fn take_events(&mut self, events: &mut Vec<ProduceEvent>) {
        events.append(&mut self.late_events);
    }

    /// As if the lane had produced so many records already.
    #[cfg(test)]
    pub(super) fn start_at_sequence(&mut self, lane: Lane, next_sequence: i32) {
        self.lanes[lane.0].as_mut().unwrap().start_at_sequence(next_sequence);
    }

    fn lane(&self, lane: Lane) -> Option<&LaneState> {
        self.lanes.get(lane.0)?.as_ref()
    }
}
