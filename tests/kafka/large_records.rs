//! Records of a megabyte, and batches that are larger than the target takes.

use tidegate_tests::batch_log::stored_batches;
use tidegate_tests::{Numbered, ProducerOptions, produce, shared, topics};

use crate::scenario::{Scenario, stops};

const MEGABYTE: usize = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn records_of_a_megabyte_arrive() {
    let Some(clusters) = shared::clusters().await else { return };
    let records = Numbered { producer: 1, partition_count: 2, value_bytes: MEGABYTE };
    topics::create_topic(clusters.source, "megabytes", 2, &[]).await.unwrap();
    for (codec, numbers) in [("none", 0..30), ("lz4", 30..60)] {
        let options = ProducerOptions { codec, ..ProducerOptions::default() };
        produce(clusters.source, "megabytes", records, numbers, &options).await.unwrap();
    }
    let scenario = Scenario::new("large", clusters.source, clusters.target, |file| file.topics("megabytes"));
    let mut process = scenario.run();
    scenario.arrives(&mut process, "megabytes", "large.megabytes").await;
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_too_large_for_the_target_is_split() {
    let Some(clusters) = shared::clusters().await else { return };
    let records = Numbered { producer: 1, partition_count: 1, value_bytes: 10_000 };
    topics::create_topic(clusters.source, "batches", 1, &[("max.message.bytes", "4000000")]).await.unwrap();
    topics::create_topic(clusters.target, "split.batches", 1, &[("max.message.bytes", "1000000")])
        .await
        .unwrap();
    let options = ProducerOptions {
        batch_bytes: 3_000_000,
        linger: std::time::Duration::from_millis(500),
        ..ProducerOptions::default()
    };
    produce(clusters.source, "batches", records, 0..1_500, &options).await.unwrap();
    let sizes: Vec<usize> =
        stored_batches(clusters.source, "batches", 0).unwrap().iter().map(|batch| batch.bytes).collect();
    assert!(sizes.iter().any(|&bytes| bytes > 2_000_000), "no batch is large: {sizes:?}");

    let scenario = Scenario::new("split", clusters.source, clusters.target, |file| file.topics("batches"));
    let mut process = scenario.run();
    scenario.arrives(&mut process, "batches", "split.batches").await;
    stops(process).await;
}
