//! Two processes with one file share the partitions; one that leaves or dies leaves nothing undone.

use anyhow::ensure;
use tidegate_tests::{
    Duplicates, Isolation, Load, LoadOptions, Numbered, ProducerOptions, Tidegate, eventually, shared, topics,
};

use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 12, value_bytes: 300 };

/// Waits until a process owns slots and copies records itself.
async fn takes_part(process: &mut Tidegate, slot_count_max: f64) {
    let shares = eventually("a process to take its share", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let slot_count = process.metric("tidegate_flow_slots").await?;
        let record_count = process.metric("tidegate_records_total").await?;
        ensure!(slot_count > 0.0 && slot_count <= slot_count_max, "it owns {slot_count} slots");
        ensure!(record_count > 0.0, "it has copied nothing with its {slot_count} slots");
        Ok(())
    });
    if let Err(error) = shares.await {
        panic!("{error:#}\n{}", process.log_tail());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_takes_its_share_and_gives_it_back() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "shared", RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 2_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(clusters.source, "shared", options).unwrap();
    let scenario = Scenario::new("sharing", clusters.source, clusters.target, |file| file.topics("shared"));
    const SLOTS: f64 = 25.0;
    let mut first = scenario.run();
    takes_part(&mut first, SLOTS).await;

    let mut second = scenario.run();
    takes_part(&mut second, SLOTS - 1.0).await;
    takes_part(&mut first, SLOTS - 1.0).await;
    stops(second).await;
    // The first has everything again and goes on.
    let before = scenario.count("sharing.shared").await;
    scenario.holds(&mut first, "sharing.shared", before + 4_000).await;

    let mut third = scenario.run();
    takes_part(&mut third, SLOTS - 1.0).await;
    third.kill().await.unwrap();
    load.stop().await.unwrap();
    let isolation = Isolation::ReadUncommitted;
    let compared =
        scenario.arrives_by(&mut first, "shared", "sharing.shared", isolation, Duplicates::Counted).await;
    report(&format!("{compared:?}"));
    stops(first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_comes_twice_when_a_process_joins_and_leaves_in_peace() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "peaceful", RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 2_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(clusters.source, "peaceful", options).unwrap();
    let scenario = Scenario::new("peace", clusters.source, clusters.target, |file| file.topics("peaceful"));
    let mut first = scenario.run();
    takes_part(&mut first, 25.0).await;
    let mut second = scenario.run();
    takes_part(&mut second, 24.0).await;
    stops(first).await;
    load.stop().await.unwrap();
    scenario.arrives(&mut second, "peaceful", "peace.peaceful").await;
    stops(second).await;
}
