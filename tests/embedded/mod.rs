//! Brokers in memory that fail as they are told to. Each file is one kind of trouble; whatever happens, the copy must be
//! whole, in order, and without a duplicate: no process dies here.

mod bad_plugins;
mod connections;
mod demo;
mod errors;
mod guests;
mod languages;
mod leaders;
mod made_anew;
mod naming;
mod operator;
mod plugins;
mod policies;
mod producers;
mod quarantine;
mod seeded;
mod swaps;
mod target_away;
mod times;
mod tutorial;

use tidegate_embedded::{Cluster, ClusterOptions, Fault, FaultId};
use tidegate_tests::{Compared, Numbered, ProducerOptions, produce};
use tidegate_wire::batch::{BatchBuilder, Codec};

use crate::scenario::{Scenario, stops};

pub(super) const TOPIC: &str = "orders";
pub(super) const TARGET_TOPIC: &str = "mem.orders";
pub(super) const RECORDS: Numbered = Numbered { producer: 1, partition_count: 4, value_bytes: 200 };

/// Two clusters in memory and a topic on the source.
pub(super) struct Pair {
    pub(super) source: Cluster,
    pub(super) target: Cluster,
}

impl Pair {
    pub(super) async fn start(nodes: usize) -> Pair {
        let start = |name: &str| {
            let replicas = i16::try_from(nodes.min(3)).unwrap();
            Cluster::start(ClusterOptions {
                cluster_id: name.to_owned(),
                nodes,
                default_replication_factor: replicas,
                ..ClusterOptions::default()
            })
        };
        let pair = Pair { source: start("source").await.unwrap(), target: start("target").await.unwrap() };
        pair.source.create_topic(TOPIC, RECORDS.partition_count, &[]).unwrap();
        pair
    }

    pub(super) fn scenario(&self) -> Scenario<'_> {
        Scenario::new("mem", &self.source, &self.target, |file| {
            let file = file.topics(TOPIC).set("replication.factor", "-1");
            file.set("mem.reconnect.backoff.max.ms", "200").set("target.reconnect.backoff.max.ms", "200")
        })
    }

    /// Small batches, so that there are many requests to disturb.
    pub(super) async fn produce(&self, numbers: std::ops::Range<u64>) {
        let options = ProducerOptions { batch_bytes: 4_096, ..ProducerOptions::default() };
        produce(&self.source, TOPIC, RECORDS, numbers, &options).await.unwrap();
    }

    /// Copies while faults happen, in five portions so that requests don't end with the first answer; every fault
    /// must have happened at the end.
    pub(super) async fn copies_whole_in_spite_of(&self, faults: &[FaultOn]) -> Compared {
        let ids: Vec<(bool, FaultId)> = faults.iter().map(|fault| fault.add(self)).collect();
        let scenario = self.scenario();
        let mut process = scenario.run();
        let mut compared = Compared::default();
        for portion in 0..5 {
            self.produce(portion * 400..(portion + 1) * 400).await;
            compared = scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
        }
        stops(process).await;
        for ((on_source, id), fault) in ids.into_iter().zip(faults) {
            let cluster = if on_source { &self.source } else { &self.target };
            assert!(cluster.faults().hits(id) > 0, "it never happened: {fault:?}");
        }
        assert_eq!(compared.record_count, 2_000);
        compared
    }

    /// A second process copies what was added since the first has stopped, and nothing else.
    pub(super) async fn copies_whole_again(&self) {
        self.produce(2_000..2_400).await;
        let scenario = self.scenario();
        let mut process = scenario.run();
        let compared = scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
        assert_eq!(compared.record_count, 2_400);
        stops(process).await;
    }
}

/// Appends records without key and headers as one batch, so that a plugin is shown them together.
pub(super) fn append_batch(cluster: &Cluster, topic: &str, partition: i32, values: &[&str]) {
    let mut builder = BatchBuilder::new();
    builder.start(Codec::None);
    for value in values {
        builder.push_parts(None, Some(value.as_bytes()), &[], 1_700_000_000_000);
    }
    let built = builder.finish().unwrap();
    cluster.append_at_end(topic, partition, &built.to_batch().bytes).unwrap();
}

/// Where a fault happens.
#[derive(Debug, Clone)]
pub(super) enum FaultOn {
    Source(Fault),
    Target(Fault),
}

impl FaultOn {
    fn add(&self, pair: &Pair) -> (bool, FaultId) {
        match self {
            FaultOn::Source(fault) => (true, pair.source.faults().add(fault.clone())),
            FaultOn::Target(fault) => (false, pair.target.faults().add(fault.clone())),
        }
    }
}
