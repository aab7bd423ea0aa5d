//! A broker goes away and comes back under load: Tidegate waits, goes on, and loses and reorders nothing.

use tidegate_tests::{
    Duplicates, Isolation, KafkaCluster, Load, LoadOptions, Numbered, ProducerOptions, Servers, end_offsets,
    eventually, shared, topics,
};

use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 4, value_bytes: 300 };

/// Stops one broker as an operator does, then kills it, each time under load; the process must never end by itself.
async fn check_restarts(alias: &str, source: &dyn Servers, target: &dyn Servers, restarted: &KafkaCluster) {
    topics::create_topic(source, "restarted", RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 2_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(source, "restarted", options).unwrap();
    let scenario = Scenario::new(alias, source, target, |file| file.topics("restarted"));
    let target_topic = format!("{alias}.restarted");
    let mut process = scenario.run();
    scenario.holds(&mut process, &target_topic, 2_000).await;
    for kill in [false, true] {
        if kill {
            restarted.kill().await.unwrap()
        } else {
            restarted.stop().await.unwrap()
        }
        process.still_runs().unwrap();
        restarted.start_again().await.unwrap();
        load_goes_on(source).await;
        let before = scenario.count(&target_topic).await;
        scenario.holds(&mut process, &target_topic, before + 2_000).await;
    }
    load.stop().await.unwrap();
    let isolation = Isolation::ReadUncommitted;
    let compared =
        scenario.arrives_by(&mut process, "restarted", &target_topic, isolation, Duplicates::Counted).await;
    report(&format!("{compared:?}"));
    stops(process).await;
}

/// The witness must have survived the restart itself, before Tidegate is asked for its copy.
async fn load_goes_on(source: &dyn Servers) {
    let count = async || anyhow::Ok(end_offsets(source, "restarted").await?.values().sum::<i64>());
    let before = count().await.unwrap();
    eventually("the load to go on", ARRIVAL_DEADLINE, async || {
        let now = count().await?;
        anyhow::ensure!(now > before + 500, "the source has {now} records, had {before}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_source_restarts_under_load() {
    let Some(clusters) = shared::clusters().await else { return };
    let Some(source) = shared::own_cluster().await else { return };
    check_restarts("sourcedown", &source, clusters.target, &source).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_target_restarts_under_load() {
    let Some(clusters) = shared::clusters().await else { return };
    let Some(target) = shared::own_cluster().await else { return };
    check_restarts("targetdown", clusters.source, &target, &target).await;
}
