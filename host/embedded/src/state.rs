//! Everything that a cluster knows, behind one lock: nodes, topics, producer ids, groups. No lock is held
//! across an await, and nothing in here waits.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use kafka_protocol::error::ResponseError;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::faults::Faults;
use crate::faults::random::SplitMix;
use crate::group::Groups;
use crate::options::ClusterOptions;
use crate::refusal::Refusal;
use crate::settings::TopicSettings;
use crate::topic::{self, Partition, Topic};

/// Topics per cluster.
pub(crate) const TOPICS_MAX: usize = 10_000;
/// Partitions per topic.
pub(crate) const PARTITIONS_PER_TOPIC_MAX: i32 = 10_000;

/// What all connections of a cluster share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ClusterOptions,
    pub(crate) faults: Faults,
    /// Rings when a group's next deadline may have changed.
    pub(crate) group_clock: Notify,
    state: Mutex<State>,
}

/// One broker as the others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeState {
    pub(crate) port: u16,
    pub(crate) alive: bool,
}

/// The cluster's state proper.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) nodes: BTreeMap<i32, NodeState>,
    pub(crate) topics: BTreeMap<String, Topic>,
    pub(crate) groups: Groups,
    next_producer_id: i64,
    ids: SplitMix,
}

impl Shared {
    pub(crate) fn new(options: ClusterOptions, ports: &[u16]) -> Shared {
        let nodes = (1..).zip(ports).map(|(id, port)| (id, NodeState { port: *port, alive: true })).collect();
        let groups = Groups::new(&options);
        let state = State {
            nodes,
            topics: BTreeMap::new(),
            groups,
            next_producer_id: options.first_producer_id,
            ids: SplitMix::new(now_ms().unsigned_abs()),
        };
        Shared { options, faults: Faults::default(), group_clock: Notify::new(), state: Mutex::new(state) }
    }

    /// The state. A panic of another holder does not poison it: every change is whole before the lock is
    /// given back.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What to create.
#[derive(Debug, Default)]
pub(crate) struct NewTopic {
    /// −1: one.
    pub(crate) partition_count: i32,
    /// −1: the cluster's default.
    pub(crate) replication_factor: i16,
    /// Replicas of each partition, instead of the two numbers.
    pub(crate) assignments: Vec<Vec<i32>>,
    pub(crate) settings: TopicSettings,
}

impl State {
    /// Ids of the nodes that are up.
    pub(crate) fn alive(&self) -> Vec<i32> {
        self.nodes.iter().filter(|(_, node)| node.alive).map(|(id, _)| *id).collect()
    }

    pub(crate) fn is_alive(&self, node: i32) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.alive)
    }

    /// The lowest node that is up; 0 does not exist, so it stands for none.
    pub(crate) fn controller(&self) -> i32 {
        self.alive().first().copied().unwrap_or(-1)
    }

    /// The node that coordinates a group: the same one as long as the same nodes are up.
    pub(crate) fn coordinator(&self, group: &str) -> Option<i32> {
        let alive = self.alive();
        let sum =
            group.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        (!alive.is_empty()).then(|| alive[sum % alive.len()])
    }

    pub(crate) fn new_producer_id(&mut self) -> i64 {
        self.next_producer_id += 1;
        self.next_producer_id - 1
    }

    /// A word that no other client gets.
    pub(crate) fn new_uuid(&mut self) -> Uuid {
        let high = u128::from(self.ids.next_u64());
        Uuid::from_u128(high << 64 | u128::from(self.ids.next_u64()))
    }

    pub(crate) fn partition(&self, topic: &str, partition: i32) -> Result<&Partition, ResponseError> {
        let index = usize::try_from(partition).map_err(|_| ResponseError::UnknownTopicOrPartition)?;
        let topic = self.topics.get(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
        topic.partitions.get(index).ok_or(ResponseError::UnknownTopicOrPartition)
    }

    pub(crate) fn partition_mut(
        &mut self,
        topic: &str,
        partition: i32,
    ) -> Result<&mut Partition, ResponseError> {
        let index = usize::try_from(partition).map_err(|_| ResponseError::UnknownTopicOrPartition)?;
        let topic = self.topics.get_mut(topic).ok_or(ResponseError::UnknownTopicOrPartition)?;
        topic.partitions.get_mut(index).ok_or(ResponseError::UnknownTopicOrPartition)
    }

    /// Name of the topic with this id.
    pub(crate) fn name_of(&self, id: Uuid) -> Option<&str> {
        self.topics.iter().find(|(_, topic)| topic.id == id).map(|(name, _)| name.as_str())
    }

    /// Checks and, unless it is a rehearsal, creates a topic.
    pub(crate) fn create_topic(
        &mut self,
        name: &str,
        new: NewTopic,
        default_replication_factor: i16,
        rehearsal: bool,
    ) -> Result<(), Refusal> {
        topic::check_name(name)?;
        self.check_free(name)?;
        let replicas = self.place_replicas(&new, default_replication_factor)?;
        if rehearsal {
            return Ok(());
        }
        let id = self.new_uuid();
        let partitions = replicas.into_iter().map(|replicas| self.new_partition(replicas)).collect();
        self.topics.insert(name.to_owned(), Topic { id, settings: new.settings, partitions });
        Ok(())
    }

    /// Kafka refuses names that differ only in `.` and `_`, for their metrics would collide.
    fn check_free(&self, name: &str) -> Result<(), Refusal> {
        if self.topics.contains_key(name) {
            return Err(Refusal::new(
                ResponseError::TopicAlreadyExists,
                format!("topic '{name}' already exists"),
            ));
        }
        let folded = name.replace('.', "_");
        if let Some(other) = self.topics.keys().find(|other| other.replace('.', "_") == folded) {
            return Err(Refusal::new(
                ResponseError::InvalidTopicException,
                format!("topic '{name}' collides with existing topic: {other}"),
            ));
        }
        if self.topics.len() >= TOPICS_MAX {
            return Err(Refusal::new(
                ResponseError::PolicyViolation,
                format!("this broker in memory keeps at most {TOPICS_MAX} topics"),
            ));
        }
        Ok(())
    }

    fn place_replicas(&self, new: &NewTopic, default_factor: i16) -> Result<Vec<Vec<i32>>, Refusal> {
        if !new.assignments.is_empty() {
            return self.check_assignments(&new.assignments).map(|()| new.assignments.clone());
        }
        let count = if new.partition_count == -1 { 1 } else { new.partition_count };
        if !(1..=PARTITIONS_PER_TOPIC_MAX).contains(&count) {
            return Err(Refusal::new(
                ResponseError::InvalidPartitions,
                format!("number of partitions was set to {count}; it takes 1 to {PARTITIONS_PER_TOPIC_MAX}"),
            ));
        }
        let factor = if new.replication_factor == -1 { default_factor } else { new.replication_factor };
        self.spread(0, count, factor)
    }

    /// Replicas for partitions `from..until`: leaders go round the nodes, partition 0 on the first of them.
    pub(crate) fn spread(&self, from: i32, until: i32, factor: i16) -> Result<Vec<Vec<i32>>, Refusal> {
        let alive = self.alive();
        let wanted = usize::try_from(factor).unwrap_or(0);
        if wanted == 0 || wanted > alive.len() {
            return Err(Refusal::new(
                ResponseError::InvalidReplicationFactor,
                format!("replication factor is {factor}, but there are {} brokers alive", alive.len()),
            ));
        }
        let place = |partition: i32| {
            let first = usize::try_from(partition).unwrap_or(0);
            (0..wanted).map(|replica| alive[(first + replica) % alive.len()]).collect()
        };
        Ok((from..until).map(place).collect())
    }

    pub(crate) fn check_assignments(&self, assignments: &[Vec<i32>]) -> Result<(), Refusal> {
        for replicas in assignments {
            if replicas.is_empty() || !replicas.iter().all(|node| self.nodes.contains_key(node)) {
                return Err(Refusal::new(
                    ResponseError::InvalidReplicaAssignment,
                    format!("replica assignment {replicas:?} names no broker, or one that does not exist"),
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn new_partition(&self, replicas: Vec<i32>) -> Partition {
        let leader = replicas.iter().copied().find(|node| self.is_alive(*node));
        Partition::new(replicas, leader)
    }

    /// Moves a partition's leader. Without `to`, the next node that is up; with one node, that one is elected
    /// again.
    pub(crate) fn move_leader(
        &mut self,
        topic: &str,
        partition: i32,
        to: Option<i32>,
    ) -> Result<i32, Refusal> {
        let alive = self.alive();
        let current = self.partition(topic, partition)?.leader;
        let next = || {
            let later = alive.iter().copied().find(|node| Some(*node) > current);
            later.or(alive.first().copied())
        };
        let Some(to) = to.or_else(next).filter(|node| alive.contains(node)) else {
            return Err(Refusal::new(
                ResponseError::BrokerNotAvailable,
                format!("the new leader is not up; alive: {alive:?}"),
            ));
        };
        let partition = self.partition_mut(topic, partition)?;
        if !partition.replicas.contains(&to) {
            match partition.replicas.iter_mut().find(|replica| Some(**replica) == current) {
                Some(replica) => *replica = to,
                None => partition.replicas.push(to),
            }
        }
        partition.elect(Some(to));
        Ok(to)
    }

    /// A node goes down or comes up: leaders follow.
    pub(crate) fn set_alive(&mut self, node: i32, alive: bool) {
        if let Some(state) = self.nodes.get_mut(&node) {
            state.alive = alive;
        }
        let up = self.alive();
        for partition in self.topics.values_mut().flat_map(|topic| topic.partitions.iter_mut()) {
            let loses = !alive && partition.leader == Some(node);
            let finds = alive && partition.leader.is_none();
            if loses || finds {
                let leader = partition.replicas.iter().copied().find(|replica| up.contains(replica));
                partition.elect(leader);
            }
        }
    }
}

/// Wall-clock time, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
