//! MirrorMaker 2 is replaced and put back: each goes on where the other stopped, by the same bytes in the same topic.

use std::time::Duration;

use anyhow::ensure;
use tidegate_tests::shared::Clusters;
use tidegate_tests::{
    Duplicates, FlowFile, Isolation, MirrorMaker, Numbered, ProducerOptions, compare, end_offsets,
    eventually, produce, read_all, shared, stored_positions, topics,
};

use crate::scenario::{Scenario, report, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 4, value_bytes: 200 };
/// MirrorMaker 2 copies its first record after some 9 s, on busy cores later.
const MIRROR_MAKER_DEADLINE: Duration = Duration::from_secs(120);

/// Writes records with a time: MirrorMaker 2 would change the others.
async fn write(clusters: Clusters, topic: &str, numbers: std::ops::Range<u64>) {
    produce(clusters.source, topic, RECORDS, RECORDS.dated(numbers), &ProducerOptions::default())
        .await
        .unwrap();
}

async fn mirror_maker_copies_all(
    scenario: &Scenario<'_>,
    process: &mut MirrorMaker,
    topic: &str,
    target_topic: &str,
) {
    eventually("MirrorMaker 2 to copy all records", MIRROR_MAKER_DEADLINE, async || {
        process.still_runs()?;
        let source: i64 = end_offsets(scenario.source, topic).await?.values().sum();
        let target: i64 = end_offsets(scenario.target, target_topic).await?.values().sum();
        ensure!(target >= source, "{target} of {source}");
        Ok(())
    })
    .await
    .unwrap();
}

/// Waits until MirrorMaker 2 has stored that it copied everything.
async fn mirror_maker_stores_all(scenario: &Scenario<'_>, alias: &str, topic: &str) {
    eventually("MirrorMaker 2 to store its positions", MIRROR_MAKER_DEADLINE, async || {
        let positions = stored_positions(scenario.target, alias).await?;
        for (partition, end) in end_offsets(scenario.source, topic).await? {
            let position = positions.get(&(topic.to_owned(), partition)).copied();
            ensure!(position == Some(end - 1), "partition {partition} ends at {end}, stored is {position:?}");
        }
        Ok(())
    })
    .await
    .unwrap();
}

async fn is_whole(scenario: &Scenario<'_>, topic: &str, target_topic: &str) {
    let source = read_all(scenario.source, topic, Isolation::ReadUncommitted).await.unwrap();
    let target = read_all(scenario.target, target_topic, Isolation::ReadUncommitted).await.unwrap();
    compare(&source, &target, Duplicates::Forbidden).unwrap();
}

fn with_short_flush(file: FlowFile, topic: &str) -> FlowFile {
    file.topics(topic).set("target.offset.flush.interval.ms", "1000")
}

#[tokio::test(flavor = "multi_thread")]
async fn tidegate_goes_on_where_mirror_maker_stopped_and_back() {
    let Some(clusters) = shared::clusters().await else { return };
    let (topic, target_topic) = ("handed", "hand.handed");
    topics::create_topic(clusters.source, topic, RECORDS.partition_count, &[]).await.unwrap();
    write(clusters, topic, 0..4_000).await;
    let scenario =
        Scenario::new("hand", clusters.source, clusters.target, |file| with_short_flush(file, topic));

    let mut mirror_maker = MirrorMaker::start(&scenario.file).await.unwrap();
    mirror_maker_copies_all(&scenario, &mut mirror_maker, topic, target_topic).await;
    mirror_maker.stop().await.unwrap();
    is_whole(&scenario, topic, target_topic).await;

    write(clusters, topic, 4_000..8_000).await;
    let mut process = scenario.run();
    scenario.arrives(&mut process, topic, target_topic).await;
    stops(process).await;

    write(clusters, topic, 8_000..12_000).await;
    let mut mirror_maker = MirrorMaker::start(&scenario.file).await.unwrap();
    mirror_maker_copies_all(&scenario, &mut mirror_maker, topic, target_topic).await;
    mirror_maker.stop().await.unwrap();
    is_whole(&scenario, topic, target_topic).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_mirror_maker_is_followed_from_its_last_flush() {
    let Some(clusters) = shared::clusters().await else { return };
    let (topic, target_topic) = ("flushed", "flush.flushed");
    topics::create_topic(clusters.source, topic, RECORDS.partition_count, &[]).await.unwrap();
    write(clusters, topic, 0..4_000).await;
    let scenario =
        Scenario::new("flush", clusters.source, clusters.target, |file| with_short_flush(file, topic));
    let mut mirror_maker = MirrorMaker::start(&scenario.file).await.unwrap();
    mirror_maker_copies_all(&scenario, &mut mirror_maker, topic, target_topic).await;
    mirror_maker_stores_all(&scenario, "flush", topic).await;
    mirror_maker.kill().await.unwrap();

    write(clusters, topic, 4_000..8_000).await;
    // The dead MirrorMaker 2 is a member of the group until its session ends: Tidegate waits for that.
    let mut process = tidegate_tests::Tidegate::start(&scenario.file, &["--wait-for-mirror-maker"]).unwrap();
    scenario.arrives(&mut process, topic, target_topic).await;
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_maker_that_still_runs_is_named() {
    let Some(clusters) = shared::clusters().await else { return };
    let (topic, target_topic) = ("neighbours", "next.neighbours");
    topics::create_topic(clusters.source, topic, RECORDS.partition_count, &[]).await.unwrap();
    write(clusters, topic, 0..1_000).await;
    let scenario =
        Scenario::new("next", clusters.source, clusters.target, |file| with_short_flush(file, topic));
    let mut mirror_maker = MirrorMaker::start(&scenario.file).await.unwrap();
    mirror_maker_copies_all(&scenario, &mut mirror_maker, topic, target_topic).await;

    // By default Tidegate leaves with a word …
    let mut process = scenario.run();
    let code = process.ended(MIRROR_MAKER_DEADLINE).await.unwrap();
    let log = process.log_text();
    assert_eq!(code, 69, "{log}");
    assert!(log.contains("MirrorMaker 2 is still running"), "{log}");

    // … or waits, if it is told to, and goes on as soon as MirrorMaker 2 has stopped.
    let mut process = tidegate_tests::Tidegate::start(&scenario.file, &["--wait-for-mirror-maker"]).unwrap();
    process.says("MirrorMaker 2 is still running", MIRROR_MAKER_DEADLINE).await.unwrap();
    mirror_maker.stop().await.unwrap();
    let stopped = std::time::Instant::now();
    write(clusters, topic, 1_000..2_000).await;
    scenario.arrives(&mut process, topic, target_topic).await;
    report(&format!("took over {} ms after MirrorMaker 2 had stopped", stopped.elapsed().as_millis()));
    stops(process).await;
}
