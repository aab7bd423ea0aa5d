//! A Kafka broker in memory, for demonstrations and for tests with injected faults.
//!
//! A [`Cluster`] is one or several nodes in this process. Each has its own listener on loopback and speaks
//! Kafka's protocol over TCP, so that any client can talk to it; the data belongs to the cluster and lives in
//! memory.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use tidegate_embedded::{ApiKey, Cluster, ClusterOptions, Effect, Fault, ResponseError};
//!
//! let cluster = Cluster::start(ClusterOptions { nodes: 3, ..ClusterOptions::default() }).await?;
//! cluster.create_topic("orders", 6, &[("max.message.bytes", "100000")])?;
//! let refusal = Effect::Error(ResponseError::NotLeaderOrFollower);
//! cluster.faults().add(Fault::new(refusal).api(ApiKey::Produce).topic("orders").nth(3));
//! println!("bootstrap.servers={}", cluster.bootstrap_servers());
//! # Ok(())
//! # }
//! ```
//!
//! # What it does
//!
//! - ApiVersions, Metadata (with topic ids and leader epochs), DescribeCluster; CreateTopics,
//!   CreatePartitions, DeleteTopics, DeleteRecords; DescribeConfigs, AlterConfigs, IncrementalAlterConfigs.
//!   No topic is ever created by a Metadata request.
//! - Produce, checked as a real broker checks it: one batch per partition and request, CRC, no gaps, no
//!   control records, no LogAppendTime, size, timestamps, and sequence numbers with the last five batches of
//!   a producer remembered. Error codes were compared with a 4.3.1 broker's; error messages are given more
//!   often than Kafka gives them. Stored are the received bytes, with base offset and leader epoch written
//!   into them, and with the append time in topics with `message.timestamp.type=LogAppendTime`.
//! - Fetch by topic name with the long poll, Kafka's byte limits, leader epoch checks, and aborted
//!   transactions for logs that were filled through [`Cluster::append_raw`]. ListOffsets,
//!   OffsetForLeaderEpoch.
//! - InitProducerId for idempotent producers.
//! - Consumer groups with the classic protocol, eager and cooperative: FindCoordinator, JoinGroup, SyncGroup,
//!   Heartbeat, LeaveGroup, OffsetCommit, OffsetFetch, OffsetDelete, ListGroups, DescribeGroups,
//!   DeleteGroups. Static members are known by their instance id, but each return of one is a rebalance.
//! - Faults by request ([`Faults`]): an error, a delay, a throttle, a cut connection, a truncated answer, a
//!   moved leader; for the n-th matching request, for some, for all; and seeded random plans ([`FaultPlan`]).
//!
//! # What it does not do
//!
//! - Durability and replication: nothing is written to disk, and all replicas of a partition are the same
//!   memory. A high watermark never lags, an acknowledged record is never lost by a leader move,
//!   `min.insync.replicas` means nothing.
//! - The transactions API: transactional ids and transactional batches from clients are refused.
//! - The new group protocol (KIP-848, `group.protocol=consumer`), share groups, streams groups.
//! - TLS, SASL, ACLs, quotas, delegation tokens, telemetry.
//! - Compaction and retention by time. Retention by bytes is done, batch by batch, at every append.
//! - Looking into compressed records: `compression.type` is kept as a setting, but nothing is recompressed, a
//!   time index has the grain of a batch (ListOffsets gives the base offset of the first batch that reaches
//!   the timestamp, and its largest timestamp), and null keys in compacted topics are not refused.
//!   Uncompressed batches are walked for right inner offsets.
//! - Fetch sessions, fetching from followers, Fetch by topic id, the leader hints of KIP-951, topic settings
//!   of brokers.
//! - Defence against hostile clients: it listens on loopback and believes the lengths of arrays in requests.
//!
//! # Bounds
//!
//! Bytes per partition ([`ClusterOptions::partition_bytes_max`]), topics, partitions, groups, members,
//! connections, producers remembered per partition, and request size all have a limit. One request is served
//! at a time per connection, so nothing queues but in the client's socket.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod api;
mod call;
mod cluster;
mod connection;
mod faults;
mod group;
mod log;
mod node;
mod options;
mod refusal;
mod settings;
mod state;
mod topic;
mod versions;

pub use kafka_protocol::error::ResponseError;
pub use kafka_protocol::messages::ApiKey;

pub use crate::cluster::{Cluster, ClusterError, PartitionInfo, crc_is_right};
pub use crate::faults::{
    Effect, FIRED_KEPT_MAX, Fault, FaultId, FaultPlan, FaultSpace, Faults, Fired, Times,
};
pub use crate::options::{ClusterOptions, NODES_MAX};

#[cfg(test)]
mod tests;
