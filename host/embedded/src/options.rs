//! How a cluster is set up.

use std::time::Duration;

use crate::settings::TopicSettings;

/// Settings of an embedded cluster. `ClusterOptions::default()` is one node on a port that the system
/// chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterOptions {
    /// What Metadata answers as cluster id. Default `"embedded"`.
    pub cluster_id: String,
    /// Number of brokers, numbered from 1. Default 1, at most [`NODES_MAX`].
    pub nodes: usize,
    /// Port of each node on 127.0.0.1; empty or 0: chosen by the system. A node keeps its port when it is
    /// stopped and started again.
    pub ports: Vec<u16>,
    /// Replication factor of topics that are created with −1. Default 1. Nothing is ever copied: more
    /// replicas only mean that another node takes over when the leader is stopped.
    pub default_replication_factor: i16,
    /// Most bytes that a partition keeps; the oldest batches go first and the log start moves. A topic's
    /// `retention.bytes` holds too when it is smaller. Default 256 MiB.
    pub partition_bytes_max: usize,
    /// First producer id that InitProducerId gives. Default 1000.
    pub first_producer_id: i64,
    /// How long the first rebalance of an empty group waits for more members
    /// (`group.initial.rebalance.delay.ms`). Default zero; Kafka's is 3 s.
    pub group_initial_rebalance_delay: Duration,
    /// Shortest session timeout that a member may ask for (`group.min.session.timeout.ms`). Default 6 s, as
    /// Kafka's.
    pub group_session_timeout_min: Duration,
}

/// Most nodes of one cluster.
pub const NODES_MAX: usize = 100;

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            cluster_id: "embedded".to_owned(),
            nodes: 1,
            ports: Vec::new(),
            default_replication_factor: 1,
            partition_bytes_max: 256 << 20,
            first_producer_id: 1000,
            group_initial_rebalance_delay: Duration::ZERO,
            group_session_timeout_min: Duration::from_secs(6),
        }
    }
}

impl ClusterOptions {
    /// Most bytes that a partition of a topic with these settings keeps.
    pub(crate) fn bytes_max(&self, settings: &TopicSettings) -> usize {
        settings.retention_bytes().map_or(self.partition_bytes_max, |own| own.min(self.partition_bytes_max))
    }
}
