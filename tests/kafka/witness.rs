//! The witnesses themselves: what the other scenarios rely on must be able to find a fault.

use std::time::Duration;

use tidegate_tests::flow_file::FlowFile;
use tidegate_tests::{
    Duplicates, Isolation, KafkaCluster, MirrorMaker, Numbered, ProducerOptions, compare,
    compare::same_records, end_offsets, eventually, produce, producer::contents, read_all, shared, topics,
};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 3, value_bytes: 100 };

async fn written_topic(cluster: &KafkaCluster, topic: &str, count: u64) {
    topics::create_topic(cluster, topic, RECORDS.partition_count, &[]).await.unwrap();
    produce(cluster, topic, RECORDS, 0..count, &ProducerOptions::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_what_is_read() {
    let Some(clusters) = shared::clusters().await else { return };
    written_topic(clusters.source, "witness-plain", 5_000).await;
    let read = read_all(clusters.source, "witness-plain", Isolation::ReadUncommitted).await.unwrap();
    same_records(&[contents(RECORDS, 0..5_000)], &read).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_to_an_old_cluster_is_what_is_read() {
    let Some(clusters) = shared::old_and_new().await else { return };
    written_topic(clusters.source, "witness-old", 5_000).await;
    let read = read_all(clusters.source, "witness-old", Isolation::ReadUncommitted).await.unwrap();
    same_records(&[contents(RECORDS, 0..5_000)], &read).unwrap();
}

/// MirrorMaker 2 keeps the promises that we make, so a comparison that finds a fault in its copy is wrong itself.
#[tokio::test(flavor = "multi_thread")]
async fn the_copy_of_mirror_maker_is_found_equal() {
    let Some(clusters) = shared::clusters().await else { return };
    let directory = tempfile::tempdir().unwrap();
    topics::create_topic(clusters.source, "witness-copied", RECORDS.partition_count, &[]).await.unwrap();
    let numbers = RECORDS.dated(0..5_000);
    let count = numbers.len();
    produce(clusters.source, "witness-copied", RECORDS, numbers, &ProducerOptions::default()).await.unwrap();
    let file = FlowFile::new("witness", clusters.source, clusters.target).topics("witness-copied");
    let mut mirror_maker = MirrorMaker::start(&file.write(directory.path()).unwrap()).await.unwrap();
    eventually("MirrorMaker 2 to copy all records", Duration::from_secs(120), async || {
        mirror_maker.still_runs()?;
        let copied: i64 = end_offsets(clusters.target, "witness.witness-copied").await?.values().sum();
        anyhow::ensure!(copied == count as i64, "{copied} of {count}");
        Ok(())
    })
    .await
    .unwrap();
    mirror_maker.stop().await.unwrap();
    let source = read_all(clusters.source, "witness-copied", Isolation::ReadUncommitted).await.unwrap();
    let target =
        read_all(clusters.target, "witness.witness-copied", Isolation::ReadUncommitted).await.unwrap();
    let compared = compare(&source, &target, Duplicates::Forbidden).unwrap();
    assert_eq!((compared.record_count, compared.duplicate_count), (count, 0));
}
