//! Every record arrives once, whole, in its partition and in order: from a cluster of today and from an old one.

use tidegate_tests::shared::Clusters;
use tidegate_tests::{
    Isolation, Numbered, ProducerOptions, compare::same_records, produce, producer::contents, read_all,
    shared, topics,
};

use crate::scenario::{Scenario, stops};

const PARTITIONS: i32 = 6;
const RECORDS_PER_PRODUCER: u64 = 10_000;

fn producers() -> [Numbered; 3] {
    [1, 2, 3].map(|producer| Numbered { producer, partition_count: PARTITIONS, value_bytes: 300 })
}

/// Three producers write at the same time, so that their batches lie mixed in each partition.
async fn written_topic(clusters: Clusters, topic: &str) {
    topics::create_topic(clusters.source, topic, PARTITIONS, &[]).await.unwrap();
    let [first, second, third] = producers();
    let options = ProducerOptions::default();
    let write = |records| produce(clusters.source, topic, records, 0..RECORDS_PER_PRODUCER, &options);
    let (first, second, third) = tokio::join!(write(first), write(second), write(third));
    first.and(second).and(third).unwrap();
}

async fn check_whole_copy(clusters: Clusters, alias: &str, topic: &str) {
    written_topic(clusters, topic).await;
    let scenario = Scenario::new(alias, clusters.source, clusters.target, |file| file.topics(topic));
    let mut process = scenario.run();
    let target_topic = format!("{alias}.{topic}");
    let compared = scenario.arrives(&mut process, topic, &target_topic).await;
    assert_eq!(compared.record_count as u64, 3 * RECORDS_PER_PRODUCER);
    stops(process).await;
    // Against what was written, too: a fault in reading would be the same on both sides.
    let written = producers().map(|records| contents(records, 0..RECORDS_PER_PRODUCER));
    let read = read_all(clusters.target, &target_topic, Isolation::ReadUncommitted).await.unwrap();
    same_records(&written, &read).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_thousand_records_arrive_whole() {
    let Some(clusters) = shared::clusters().await else { return };
    check_whole_copy(clusters, "whole", "whole").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_thousand_records_of_an_old_cluster_arrive_whole() {
    let Some(clusters) = shared::old_and_new().await else { return };
    check_whole_copy(clusters, "old", "whole").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_written_while_it_runs_arrive_too() {
    let Some(clusters) = shared::clusters().await else { return };
    let records = Numbered { producer: 1, partition_count: 2, value_bytes: 100 };
    topics::create_topic(clusters.source, "whole-live", 2, &[]).await.unwrap();
    let scenario = Scenario::new("live", clusters.source, clusters.target, |file| file.topics("whole-live"));
    let mut process = scenario.run();
    for round in 0..5 {
        let numbers = round * 100..(round + 1) * 100;
        produce(clusters.source, "whole-live", records, numbers, &ProducerOptions::default()).await.unwrap();
        scenario.arrives(&mut process, "whole-live", "live.whole-live").await;
    }
    stops(process).await;
}
