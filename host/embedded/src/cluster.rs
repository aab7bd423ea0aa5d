//! The cluster as a test or a demonstration holds it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::faults::Faults;
use crate::log::header::{self, Header, Stamp};
use crate::node::{self, HOST, NodeTask};
use crate::options::{ClusterOptions, NODES_MAX};
use crate::refusal::Refusal;
use crate::settings::TopicSettings;
use crate::state::{NewTopic, Shared};

/// A running cluster. Its tasks live on the tokio runtime that `start` was called on; dropping it ends them.
#[derive(Debug)]
pub struct Cluster {
    shared: Arc<Shared>,
    nodes: Mutex<BTreeMap<i32, NodeTask>>,
    group_timer: JoinHandle<()>,
}

/// Why an operation on a cluster was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not {operation}: {}", .message.clone().unwrap_or_else(|| .error.to_string()))]
pub struct ClusterError {
    /// What was tried.
    pub operation: String,
    /// What a client would have been answered.
    pub error: ResponseError,
    /// In words, if there are any.
    pub message: Option<String>,
}

impl ClusterError {
    fn from_refusal(operation: String, refusal: Refusal) -> ClusterError {
        ClusterError { operation, error: refusal.error, message: refusal.message }
    }
}

/// Where a partition stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Node that leads; `None` while no replica is up.
    pub leader: Option<i32>,
    /// Grows with every election.
    pub leader_epoch: i32,
    /// First offset that is still there.
    pub start_offset: i64,
    /// Offset of the next record, which is also the high watermark.
    pub end_offset: i64,
    /// First offset of an open transaction, else the end offset.
    pub last_stable_offset: i64,
    /// Bytes of all batches.
    pub bytes: usize,
}

impl Cluster {
    /// Starts all nodes. Fails if a port is taken.
    pub async fn start(options: ClusterOptions) -> anyhow::Result<Cluster> {
        let count = options.nodes;
        ensure!(
            (1..=NODES_MAX).contains(&count),
            "an embedded cluster has 1 to {NODES_MAX} nodes, not {count}"
        );
        let mut listeners = Vec::with_capacity(count);
        for index in 0..count {
            listeners.push(node::bind(options.ports.get(index).copied().unwrap_or(0)).await?);
        }
        let ports = listeners.iter().map(node::port_of).collect::<anyhow::Result<Vec<u16>>>()?;
        let shared = Arc::new(Shared::new(options, &ports));
        let start = |(id, listener)| (id, NodeTask::start(Arc::clone(&shared), id, listener));
        let nodes = (1..).zip(listeners).map(start).collect();
        let group_timer = tokio::spawn(run_group_timer(Arc::clone(&shared)));
        Ok(Cluster { shared, nodes: Mutex::new(nodes), group_timer })
    }

    /// `127.0.0.1:PORT` of every node, stopped ones included, separated by commas.
    pub fn bootstrap_servers(&self) -> String {
        let state = self.shared.lock();
        let addresses: Vec<String> =
            state.nodes.values().map(|node| format!("{HOST}:{}", node.port)).collect();
        addresses.join(",")
    }

    /// What Metadata gives as cluster id.
    pub fn cluster_id(&self) -> &str {
        &self.shared.options.cluster_id
    }

    /// Port of a node.
    pub fn port(&self, node: i32) -> Option<u16> {
        self.shared.lock().nodes.get(&node).map(|node| node.port)
    }

    /// Creates a topic with the default replication factor.
    pub fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Result<(), ClusterError> {
        let fail = |refusal| ClusterError::from_refusal(format!("create topic {name:?}"), refusal);
        let mut settings = TopicSettings::default();
        for (key, value) in configs {
            settings.set(key, Some(value)).map_err(fail)?;
        }
        let new = NewTopic {
            partition_count: partitions,
            replication_factor: -1,
            assignments: Vec::new(),
            settings,
        };
        let factor = self.shared.options.default_replication_factor;
        self.shared.lock().create_topic(name, new, factor, false).map_err(fail)
    }

    /// Deletes a topic and everything in it. Created again under the same name it has another topic id.
    pub fn delete_topic(&self, name: &str) -> Result<(), ClusterError> {
        let mut state = self.shared.lock();
        let Some(_topic) = state.topics.remove(name) else {
            let refusal = Refusal::from(ResponseError::UnknownTopicOrPartition);
            return Err(ClusterError::from_refusal(format!("delete topic {name:?}"), refusal));
        };
        state.groups.forget_topic(name);
        Ok(())
    }

    /// Names of all topics, sorted.
    pub fn topics(&self) -> Vec<String> {
        self.shared.lock().topics.keys().cloned().collect()
    }

    /// Number of a topic's partitions; 0 if there is no such topic.
    pub fn partition_count(&self, topic: &str) -> i32 {
        let state = self.shared.lock();
        let count = state.topics.get(topic).map_or(0, |topic| topic.partitions.len());
        i32::try_from(count).unwrap_or(i32::MAX)
    }

    /// The settings that a topic has itself, that is, without defaults.
    pub fn topic_configs(&self, topic: &str) -> BTreeMap<String, String> {
        let state = self.shared.lock();
        state.topics.get(topic).map(|topic| topic.settings.own().clone()).unwrap_or_default()
    }

    /// Where a partition stands; `None` if it does not exist.
    pub fn partition(&self, topic: &str, partition: i32) -> Option<PartitionInfo> {
        let state = self.shared.lock();
        let partition = state.partition(topic, partition).ok()?;
        Some(PartitionInfo {
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            start_offset: partition.log.start_offset(),
            end_offset: partition.log.end_offset(),
            last_stable_offset: partition.log.last_stable_offset(),
            bytes: partition.log.bytes(),
        })
    }

    /// Offset of the next record; 0 if the partition does not exist.
    pub fn end_offset(&self, topic: &str, partition: i32) -> i64 {
        self.partition(topic, partition).map_or(0, |partition| partition.end_offset)
    }

    /// The batches of a partition as they are stored: what was produced, with base offset and leader epoch
    /// (and append time) written into it. Empty if the partition does not exist.
    pub fn log(&self, topic: &str, partition: i32) -> Vec<Bytes> {
        let state = self.shared.lock();
        let partition = state.partition(topic, partition);
        partition
            .map(|found| found.log.batches().map(|stored| stored.bytes.clone()).collect())
            .unwrap_or_default()
    }

    /// Puts a batch into a log as it is, without a client's restrictions: gaps in its offsets, LogAppendTime,
    /// transactional records and markers are all taken. Its own base offset is kept, and may leave a gap
    /// behind the log's end, but may not lie before it. The length must be right; the CRC is not looked at.
    /// Gives the base offset.
    pub fn append_raw(&self, topic: &str, partition: i32, batch: &[u8]) -> Result<i64, ClusterError> {
        self.append(topic, partition, batch, |own, end| if own < end { None } else { Some(own) })
    }

    /// Like [`Cluster::append_raw`], but the batch gets the log's end as its base offset, whatever it says
    /// itself.
    pub fn append_at_end(&self, topic: &str, partition: i32, batch: &[u8]) -> Result<i64, ClusterError> {
        self.append(topic, partition, batch, |_, end| Some(end))
    }

    fn append(
        &self,
        topic: &str,
        partition: i32,
        batch: &[u8],
        place: impl FnOnce(i64, i64) -> Option<i64>,
    ) -> Result<i64, ClusterError> {
        let fail =
            |refusal| ClusterError::from_refusal(format!("append a batch to {topic}[{partition}]"), refusal);
        let header = Header::parse(batch).filter(|header| header.total_bytes() == Some(batch.len()));
        let header = header.ok_or_else(|| fail(ResponseError::CorruptMessage.into()))?;
        let mut state = self.shared.lock();
        let bytes_max = {
            let settings = state.topics.get(topic).map(|topic| topic.settings.clone()).unwrap_or_default();
            self.shared.options.bytes_max(&settings)
        };
        let found = state.partition_mut(topic, partition).map_err(|error| fail(error.into()))?;
        let end = found.log.end_offset();
        let base_offset = place(header.base_offset, end).ok_or_else(|| {
            let message = format!("its base offset {} lies before the log's end {end}", header.base_offset);
            fail(Refusal::new(ResponseError::OffsetOutOfRange, message))
        })?;
        let stamp = Stamp { base_offset, leader_epoch: found.leader_epoch, append_time_ms: None };
        found.log.append(batch, stamp);
        found.log.shrink_to(bytes_max);
        found.ring();
        Ok(base_offset)
    }

    /// Moves the start of a log, as DeleteRecords and retention do.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) -> Result<(), ClusterError> {
        let mut state = self.shared.lock();
        let found = state.partition_mut(topic, partition).map_err(|error| {
            ClusterError::from_refusal(format!("delete records of {topic}[{partition}]"), error.into())
        })?;
        found.log.delete_before(before);
        found.ring();
        Ok(())
    }

    /// Makes all partitions of a topic forget a producer, so that its next batch may carry any sequence
    /// number.
    pub fn forget_producer(&self, topic: &str, producer_id: i64) {
        let mut state = self.shared.lock();
        for partition in state.topics.get_mut(topic).into_iter().flat_map(|topic| &mut topic.partitions) {
            partition.log.producers.forget(producer_id);
        }
    }

    /// The offset that a group has committed for a partition.
    pub fn committed_offset(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let state = self.shared.lock();
        state.groups.get(group)?.offsets.get(topic, partition).map(|committed| committed.offset)
    }

    /// The faults, to be added and taken away while the cluster runs.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Makes a node the leader of a partition; the leader epoch grows. The node need not have been a replica.
    pub fn move_leader(&self, topic: &str, partition: i32, node: i32) -> Result<(), ClusterError> {
        let moved = self.shared.lock().move_leader(topic, partition, Some(node));
        let fail = |refusal| {
            ClusterError::from_refusal(format!("move {topic}[{partition}] to node {node}"), refusal)
        };
        moved.map(|_| ()).map_err(fail)
    }

    /// Stops a node: its listener is closed, its connections are cut, its leaders move to other replicas.
    /// Partitions without another replica have no leader until it is back; their data stays.
    pub async fn stop_node(&self, node: i32) -> anyhow::Result<()> {
        let task = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
        let Some(task) = task else { bail!("could not stop node {node}: it does not run") };
        self.shared.lock().set_alive(node, false);
        task.stop().await;
        Ok(())
    }

    /// Starts a stopped node again, on its old port.
    pub async fn start_node(&self, node: i32) -> anyhow::Result<()> {
        let Some(port) = self.port(node) else { bail!("could not start node {node}: there is no such node") };
        let is_running = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&node);
        ensure!(!is_running, "could not start node {node}: it runs already");
        let listener = node::bind(port).await.with_context(|| format!("could not start node {node}"))?;
        let task = NodeTask::start(Arc::clone(&self.shared), node, listener);
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).insert(node, task);
        self.shared.lock().set_alive(node, true);
        Ok(())
    }

    /// Ends all nodes; returns when every listener is closed and every connection cut.
    pub async fn shutdown(self) {
        let nodes = std::mem::take(&mut *self.nodes.lock().unwrap_or_else(PoisonError::into_inner));
        for task in nodes.into_values() {
            task.stop().await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.group_timer.abort();
    }
}

/// Throws out late group members: sleeps until the next deadline, or until there may be an earlier one.
async fn run_group_timer(shared: Arc<Shared>) {
    loop {
        let deadline = shared.lock().groups.next_deadline();
        match deadline {
            None => shared.group_clock.notified().await,
            Some(deadline) => {
                tokio::select! {
                    () = shared.group_clock.notified() => {}
                    () = tokio::time::sleep_until(deadline) => {}
                }
            }
        }
        shared.lock().groups.expire(Instant::now());
    }
}

/// Whether a batch's CRC is right, for tests that look at [`Cluster::log`].
pub fn crc_is_right(batch: &[u8]) -> bool {
    Header::parse(batch).is_some_and(|parsed| {
        parsed.total_bytes() == Some(batch.len()) && parsed.crc == header::crc_of(batch)
    })
}
