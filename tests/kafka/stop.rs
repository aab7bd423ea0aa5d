//! SIGTERM: everything in flight is settled and stored, exit code 0, in bounded time.

use std::collections::BTreeMap;
use std::time::Instant;

use tidegate_tests::{
    Duplicates, Isolation, Load, LoadOptions, Numbered, ProducerOptions, end_offsets, produce, shared,
    stored_positions, topics,
};

use crate::scenario::{STOP_DEADLINE, Scenario, report, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 4, value_bytes: 300 };

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_stores_the_position_of_every_partition() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "stopped", RECORDS.partition_count, &[]).await.unwrap();
    produce(clusters.source, "stopped", RECORDS, 0..5_000, &ProducerOptions::default()).await.unwrap();
    let scenario = Scenario::new("stop", clusters.source, clusters.target, |file| file.topics("stopped"));
    let mut process = scenario.run();
    scenario.arrives(&mut process, "stopped", "stop.stopped").await;
    stops(process).await;
    let ends = end_offsets(clusters.source, "stopped").await.unwrap();
    let expected: BTreeMap<_, _> =
        ends.into_iter().map(|(partition, end)| (("stopped".to_owned(), partition), end - 1)).collect();
    assert_eq!(stored_positions(clusters.target, "stop").await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_under_load_ends_in_time_and_nothing_comes_twice() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "busy", RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 5_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(clusters.source, "busy", options).unwrap();
    let scenario = Scenario::new("busystop", clusters.source, clusters.target, |file| file.topics("busy"));
    for _ in 0..3 {
        let before = scenario.count("busystop.busy").await;
        let mut process = scenario.run();
        scenario.holds(&mut process, "busystop.busy", before + 3_000).await;
        let start = Instant::now();
        let code = process.stop(STOP_DEADLINE).await.unwrap();
        assert_eq!(code, 0);
        report(&format!("a stop under load took {} ms", start.elapsed().as_millis()));
    }
    load.stop().await.unwrap();
    let mut process = scenario.run();
    let isolation = Isolation::ReadUncommitted;
    scenario.arrives_by(&mut process, "busy", "busystop.busy", isolation, Duplicates::Forbidden).await;
    stops(process).await;
}
