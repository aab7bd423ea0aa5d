//! A source whose broker sets the time: the target keeps each record's time as the record's own.

use tidegate_tests::{Isolation, Numbered, ProducerOptions, produce, read_all, shared, topics};

use crate::scenario::{Scenario, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 2, value_bytes: 100 };

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_appending_becomes_the_records_own() {
    let Some(clusters) = shared::clusters().await else { return };
    let configs = [("message.timestamp.type", "LogAppendTime")];
    topics::create_topic(clusters.source, "appended", RECORDS.partition_count, &configs).await.unwrap();
    for (codec, numbers) in [("none", 0..2_000), ("lz4", 2_000..4_000)] {
        let options = ProducerOptions { codec, ..ProducerOptions::default() };
        produce(clusters.source, "appended", RECORDS, numbers, &options).await.unwrap();
    }
    let source = read_all(clusters.source, "appended", Isolation::ReadUncommitted).await.unwrap();
    assert!(
        source.iter().all(|record| record.log_append_time && record.content.timestamp_ms > 1_700_000_000_000)
    );

    // The target's topic takes over the setting by default, and then its broker would set the time again.
    let scenario = Scenario::new("appending", clusters.source, clusters.target, |file| {
        file.topics("appended").set_for_flow("config.properties.exclude", "message\\.timestamp\\.type")
    });
    let mut process = scenario.run();
    scenario.arrives(&mut process, "appended", "appending.appended").await;
    stops(process).await;
}
