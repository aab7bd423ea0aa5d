//! A filter that drops most records, and kills: what is kept arrives whole, what is dropped moves the positions, and
//! nothing is read again once the end was reached.

use std::time::Duration;

use anyhow::ensure;
use tidegate_tests::record::Content;
use tidegate_tests::{
    Duplicates, Isolation, ProducerOptions, compare, end_offsets, eventually, producer::produce_contents,
    read_all, shared, stored_positions, topics,
};

use super::{recent_ms, with_plugin};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

const TOPIC: &str = "filtered";
const TARGET_TOPIC: &str = "sieve.filtered";
const PARTITION_COUNT: i32 = 6;
const RECORD_COUNT: usize = 200_000;
const KEPT_EVERY: usize = 20;
const KILLS: usize = 3;
const SETTINGS: &str = r#"{"conditions":[{"by":"header","name":"region","allow":["eu"]}]}"#;

/// Every twentieth record, counted within its partition, is of region eu.
fn content(number: usize) -> Content {
    let round = number / PARTITION_COUNT as usize;
    let region = if round.is_multiple_of(KEPT_EVERY) { "eu" } else { "us" };
    Content {
        key: Some(format!("{number}").into_bytes()),
        value: Some(vec![b'v'; 200]),
        headers: vec![("region".to_owned(), Some(region.into()))],
        timestamp_ms: recent_ms(number),
    }
}

/// Writes all of them over some ten seconds, so that kills come in the middle.
async fn produce(source: &dyn tidegate_tests::Servers) {
    let options = ProducerOptions { codec: "lz4", batch_bytes: 32_768, ..ProducerOptions::default() };
    let numbers: Vec<usize> = (0..RECORD_COUNT).collect();
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    for some in numbers.chunks(RECORD_COUNT / 100) {
        pace.tick().await;
        let place = |number: &usize| ((number % PARTITION_COUNT as usize) as i32, content(*number));
        let contents = some.iter().map(place).collect();
        produce_contents(source, TOPIC, contents, &options).await.unwrap();
    }
}

/// Positions of every partition stand at the end of the source.
async fn positions_are_at_the_end(scenario: &Scenario<'_>) -> anyhow::Result<()> {
    let ends = end_offsets(scenario.source, TOPIC).await?;
    let stored = stored_positions(scenario.target, "sieve").await?;
    for (partition, end) in ends {
        let position = stored.get(&(TOPIC.to_owned(), partition)).copied();
        ensure!(
            position == Some(end - 1),
            "[{partition}] stored {position:?}, the last record is {}",
            end - 1
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_twentieth_of_two_hundred_thousand_arrives_in_spite_of_three_kills() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, TOPIC, PARTITION_COUNT, &[]).await.unwrap();
    let scenario = Scenario::new("sieve", clusters.source, clusters.target, |file| {
        with_plugin(file.topics(TOPIC).set("tidegate.plugins", "keep"), "keep", "region-filter", SETTINGS)
    });
    let source: &'static dyn tidegate_tests::Servers = clusters.source;
    let load = tokio::spawn(produce(source));
    let kept_count = (RECORD_COUNT / KEPT_EVERY) as i64;
    for kill in 0..KILLS {
        let mut process = scenario.run();
        let before = if kill == 0 { 0 } else { scenario.count(TARGET_TOPIC).await };
        scenario.holds(&mut process, TARGET_TOPIC, before + kept_count / 6).await;
        process.kill().await.unwrap();
    }
    load.await.unwrap();
    let mut process = scenario.run();
    let end = eventually("the positions to reach the end", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        positions_are_at_the_end(&scenario).await
    });
    end.await.unwrap_or_else(|error| panic!("{error:#}\n{}", process.log_tail()));
    let mut source = read_all(clusters.source, TOPIC, Isolation::ReadUncommitted).await.unwrap();
    source.retain(|record| record.content.headers[0].1.as_deref() == Some(b"eu"));
    let target = read_all(clusters.target, TARGET_TOPIC, Isolation::ReadUncommitted).await.unwrap();
    let compared = compare(&source, &target, Duplicates::Counted).unwrap();
    report(&format!("{compared:?} after {KILLS} kills"));
    stops(process).await;

    // Nothing is behind the end: a process that starts again reads no record.
    let count = scenario.count(TARGET_TOPIC).await;
    let mut process = scenario.run();
    let lagless = eventually("every partition to be without lag", Duration::from_secs(30), async || {
        process.still_runs()?;
        let text = process.http_get("/metrics").await?;
        let known = text.lines().filter(|line| line.starts_with("tidegate_lag_records{")).count();
        ensure!(known == PARTITION_COUNT as usize, "{known} partitions tell their lag");
        Ok(())
    });
    lagless.await.unwrap();
    assert_eq!(process.metric("tidegate_lag_records").await.unwrap(), 0.0);
    assert_eq!(
        process.metric("tidegate_plugin_records_total").await.unwrap(),
        0.0,
        "records were read again"
    );
    stops(process).await;
    assert_eq!(scenario.count(TARGET_TOPIC).await, count);
}
