//! A transactional source: what was aborted arrives or not, as `isolation.level` says; what was committed always does.

use tidegate_tests::{
    Duplicates, Isolation, Numbered, ProducerOptions, compare::same_records, produce,
    produce_in_transactions, producer::contents, read_all, shared, topics,
};

use crate::scenario::{Scenario, stops};

const PARTITIONS: i32 = 3;
const TRANSACTIONAL: Numbered = Numbered { producer: 1, partition_count: PARTITIONS, value_bytes: 200 };
const PLAIN: Numbered = Numbered { producer: 2, partition_count: PARTITIONS, value_bytes: 200 };

async fn check(topic: &str, isolation: Isolation, level: &str) {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, topic, PARTITIONS, &[]).await.unwrap();
    // Transactions of one producer between the plain records of another.
    let options = ProducerOptions::default();
    let (committed, plain) = tokio::join!(
        produce_in_transactions(clusters.source, topic, TRANSACTIONAL, 0..3_000, 50),
        produce(clusters.source, topic, PLAIN, 0..3_000, &options),
    );
    plain.unwrap();
    let committed = committed.unwrap();
    assert!((1_000..3_000).contains(&committed.len()), "{} of 3000 were committed", committed.len());

    let scenario = Scenario::new(topic, clusters.source, clusters.target, |file| {
        file.topics(topic).set(&format!("{topic}.consumer.isolation.level"), level)
    });
    let mut process = scenario.run();
    let target_topic = format!("{topic}.{topic}");
    scenario.arrives_by(&mut process, topic, &target_topic, isolation, Duplicates::Forbidden).await;
    stops(process).await;

    let transactional = match isolation {
        Isolation::ReadCommitted => contents(TRANSACTIONAL, committed),
        Isolation::ReadUncommitted => contents(TRANSACTIONAL, 0..3_000),
    };
    let read = read_all(clusters.target, &target_topic, Isolation::ReadUncommitted).await.unwrap();
    same_records(&[transactional, contents(PLAIN, 0..3_000)], &read).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_records_stay_behind_under_read_committed() {
    check("committed", Isolation::ReadCommitted, "read_committed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aborted_records_arrive_under_read_uncommitted() {
    check("uncommitted", Isolation::ReadUncommitted, "read_uncommitted").await;
}
