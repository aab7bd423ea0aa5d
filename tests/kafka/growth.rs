//! Topics and partitions that appear while it runs are found and copied from their first record.

use tidegate_tests::{Load, LoadOptions, Numbered, ProducerOptions, eventually, produce, shared, topics};

use crate::scenario::{ARRIVAL_DEADLINE, Scenario, stops};

fn load_of(producer: u32, partition_count: i32) -> LoadOptions {
    LoadOptions {
        records: Numbered { producer, partition_count, value_bytes: 200 },
        first_number: 0,
        records_per_second: 2_000,
        producer: ProducerOptions::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_appears_under_load_is_copied_from_its_first_record() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "grow-old", 2, &[]).await.unwrap();
    let load = Load::start(clusters.source, "grow-old", load_of(1, 2)).unwrap();
    let scenario = Scenario::new("newtopic", clusters.source, clusters.target, |file| file.topics("grow-.*"));
    let mut process = scenario.run();
    scenario.holds(&mut process, "newtopic.grow-old", 1_000).await;

    topics::create_topic(clusters.source, "grow-new", 3, &[]).await.unwrap();
    let records = Numbered { producer: 2, partition_count: 3, value_bytes: 100 };
    produce(clusters.source, "grow-new", records, 0..2_000, &ProducerOptions::default()).await.unwrap();
    scenario.arrives(&mut process, "grow-new", "newtopic.grow-new").await;
    load.stop().await.unwrap();
    scenario.arrives(&mut process, "grow-old", "newtopic.grow-old").await;
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_that_are_added_under_load_are_copied_from_their_first_record() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "widened", 2, &[]).await.unwrap();
    let load = Load::start(clusters.source, "widened", load_of(1, 2)).unwrap();
    let scenario = Scenario::new("wider", clusters.source, clusters.target, |file| file.topics("widened"));
    let mut process = scenario.run();
    scenario.holds(&mut process, "wider.widened", 1_000).await;

    topics::add_partitions(clusters.source, "widened", 5).await.unwrap();
    // Records are in the new partitions before Tidegate knows of them.
    let records = Numbered { producer: 2, partition_count: 5, value_bytes: 100 };
    eventually("the source's broker to lead the new partitions", ARRIVAL_DEADLINE, async || {
        let count = topics::partition_count_of(clusters.source, "widened").await?;
        anyhow::ensure!(count == 5, "{count} of 5");
        Ok(())
    })
    .await
    .unwrap();
    produce(clusters.source, "widened", records, 0..2_000, &ProducerOptions::default()).await.unwrap();
    load.stop().await.unwrap();
    scenario.arrives(&mut process, "widened", "wider.widened").await;
    assert_eq!(topics::partition_count_of(clusters.target, "wider.widened").await.unwrap(), 5);
    stops(process).await;
}
