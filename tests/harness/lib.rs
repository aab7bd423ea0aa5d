//! What the scenarios stand on: real Kafka clusters and the real MirrorMaker 2 as child processes, the `tidegate`
//! binary as a child process, and independent clients (librdkafka) that write and read numbered records.
//!
//! Nothing here knows how Tidegate works inside; it is watched from the outside, as its users see it.

pub mod access;
pub mod batch_log;
pub mod compare;
pub mod eventually;
pub mod examples;
pub mod flow_file;
pub mod jars;
pub mod kafka;
pub mod load;
pub mod mirror_maker;
pub mod port;
pub mod positions;
pub mod process;
pub mod producer;
pub mod reader;
pub mod record;
pub mod shared;
pub mod skip;
pub mod tidegate;
pub mod topics;

/// A cluster that clients can be pointed at: real, or in memory.
pub trait Servers: Sync {
    /// `host:port` for any client.
    fn bootstrap_servers(&self) -> String;
}

impl Servers for KafkaCluster {
    fn bootstrap_servers(&self) -> String {
        KafkaCluster::bootstrap_servers(self)
    }
}

impl Servers for tidegate_embedded::Cluster {
    fn bootstrap_servers(&self) -> String {
        tidegate_embedded::Cluster::bootstrap_servers(self)
    }
}

pub use compare::{Compared, Duplicates, compare};
pub use eventually::eventually;
pub use flow_file::FlowFile;
pub use kafka::{KafkaCluster, KafkaOptions, KafkaVersion};
pub use load::{Load, LoadOptions};
pub use mirror_maker::MirrorMaker;
pub use positions::stored_positions;
pub use process::{Process, Signal};
pub use producer::{ProducerOptions, produce, produce_in_transactions};
pub use reader::{Isolation, end_offsets, read_all};
pub use record::{Numbered, Record};
pub use tidegate::Tidegate;
