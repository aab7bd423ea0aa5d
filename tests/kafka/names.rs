//! What a topic is called over there, and that nothing else appears there.

use tidegate_tests::{Numbered, ProducerOptions, Tidegate, produce, shared, topics};

use crate::scenario::{ARRIVAL_DEADLINE, Scenario, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 3, value_bytes: 100 };

#[tokio::test(flavor = "multi_thread")]
async fn the_default_policy_puts_the_source_in_front() {
    let Some(clusters) = shared::clusters().await else { return };
    for topic in ["naming-orders", "naming-bills", "unnamed"] {
        topics::create_topic(
            clusters.source,
            topic,
            RECORDS.partition_count,
            &[("retention.ms", "123456789000")],
        )
        .await
        .unwrap();
        produce(clusters.source, topic, RECORDS, 0..100, &ProducerOptions::default()).await.unwrap();
    }
    let scenario = Scenario::new("east", clusters.source, clusters.target, |file| file.topics("naming-.*"));
    let mut process = scenario.run();
    scenario.arrives(&mut process, "naming-orders", "east.naming-orders").await;
    scenario.arrives(&mut process, "naming-bills", "east.naming-bills").await;
    stops(process).await;
    let names = topics::topic_names(clusters.target).await.unwrap();
    let ours: Vec<&String> =
        names.iter().filter(|name| name.contains("east") || name.contains("named")).collect();
    assert_eq!(ours, ["east.naming-bills", "east.naming-orders", "mm2-offsets.east.internal"]);
    let partition_count = topics::partition_count_of(clusters.target, "east.naming-orders").await.unwrap();
    assert_eq!(partition_count, RECORDS.partition_count);
    let retention =
        topics::topic_config(clusters.target, "east.naming-orders", "retention.ms").await.unwrap();
    assert_eq!(retention, "123456789000");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_separator_is_obeyed() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "separated", RECORDS.partition_count, &[]).await.unwrap();
    produce(clusters.source, "separated", RECORDS, 0..100, &ProducerOptions::default()).await.unwrap();
    let scenario = Scenario::new("north", clusters.source, clusters.target, |file| {
        file.topics("separated").set("replication.policy.separator", "_")
    });
    let mut process = scenario.run();
    scenario.arrives(&mut process, "separated", "north_separated").await;
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_policy_keeps_the_name() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "identical", RECORDS.partition_count, &[]).await.unwrap();
    produce(clusters.source, "identical", RECORDS, 0..100, &ProducerOptions::default()).await.unwrap();
    let scenario = Scenario::new("same", clusters.source, clusters.target, |file| {
        file.topics("identical").identity_names()
    });
    let mut process = scenario.run();
    scenario.arrives(&mut process, "identical", "identical").await;
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_is_told_and_nothing_is_done() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "planned", RECORDS.partition_count, &[]).await.unwrap();
    let scenario = Scenario::new("plan", clusters.source, clusters.target, |file| file.topics("planned"));
    let file = scenario.file.to_str().unwrap();
    let finished = Tidegate::command(&["plan", file], ARRIVAL_DEADLINE).await.unwrap();
    assert_eq!(finished.code, 0, "{}", finished.output);
    assert!(finished.output.contains("plan.planned"), "{}", finished.output);
    let names = topics::topic_names(clusters.target).await.unwrap();
    assert!(
        !names.iter().any(|name| name == "plan.planned" || name == "mm2-offsets.plan.internal"),
        "{names:?}"
    );
}
