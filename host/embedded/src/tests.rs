//! Tests through the sockets: a plain client that speaks any version, batches made by hand, and rdkafka as a
//! client that knows nothing of this crate.

mod batch;
mod client;

mod faults;
mod fetching;
mod groups;
mod producing;
mod rdkafka_groups;
mod rdkafka_records;
mod topics;
mod versions;

use std::time::{Duration, Instant};

use crate::{Cluster, ClusterOptions};

/// Longest that any test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster of so many nodes.
pub(crate) async fn cluster(nodes: usize) -> Cluster {
    Cluster::start(ClusterOptions { nodes, ..ClusterOptions::default() }).await.unwrap()
}

/// Looks again and again until it holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
