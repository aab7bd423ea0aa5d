//! A flow on several nodes: a swap on one is a swap on all.

use std::collections::BTreeMap;

use anyhow::ensure;
use tidegate_tests::{
    Duplicates, Isolation, Load, LoadOptions, Numbered, ProducerOptions, Tidegate, compare, eventually,
    read_all, shared, topics,
};

use super::{mark_settings, marks_change_where_told, swap_mark, take_marks, with_plugin};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

const TOPIC: &str = "shared-swap";
const RECORDS: Numbered = Numbered { producer: 1, partition_count: 12, value_bytes: 200 };

async fn relays_some(process: &Tidegate) -> anyhow::Result<()> {
    let slots = process.metric("tidegate_flow_slots").await?;
    ensure!((1.0..25.0).contains(&slots), "it has {slots} slots");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_on_one_of_two_nodes_changes_both_and_a_third_comes_up_with_it() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, TOPIC, RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 1_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(clusters.source, TOPIC, options).unwrap();
    let scenario = Scenario::new("two", clusters.source, clusters.target, |file| {
        let file = file.topics(TOPIC).set("tidegate.plugins", "mark");
        with_plugin(file, "mark", "header-rules", &mark_settings("g0"))
    });
    let (mut first, mut second) = (scenario.run(), scenario.run());
    let shared = eventually("both nodes to have slots", ARRIVAL_DEADLINE, async || {
        first.still_runs()?;
        second.still_runs()?;
        relays_some(&first).await?;
        relays_some(&second).await
    });
    shared.await.unwrap();
    let everywhere = (0..RECORDS.partition_count).map(|partition| (partition, 0)).collect();
    let mut changes: Vec<(String, BTreeMap<i32, i64>)> = vec![("g0".to_owned(), everywhere)];
    for (swap, process) in [&first, &second, &first].into_iter().enumerate() {
        let value = format!("g{}", swap + 1);
        let swapped = swap_mark(process, "two->target", &value, TOPIC).await.unwrap();
        assert!(swapped.is_complete, "swap {value}");
        assert_eq!(swapped.first_offsets.len(), 12, "all partitions of both nodes");
        report(&format!("generation {} was everywhere after {} ms", swapped.generation, swapped.took_ms));
        changes.push((value, swapped.first_offsets));
    }
    // One goes, another one comes: it has never seen the swaps.
    stops(second).await;
    let mut third = scenario.run();
    let shared = eventually("the third node to have slots", ARRIVAL_DEADLINE, async || {
        third.still_runs()?;
        relays_some(&third).await
    });
    shared.await.unwrap();
    let numbers = load.stop().await.unwrap();
    scenario.holds(&mut third, "two.shared-swap", numbers.end as i64).await;
    let source = read_all(clusters.source, TOPIC, Isolation::ReadUncommitted).await.unwrap();
    let mut target = read_all(clusters.target, "two.shared-swap", Isolation::ReadUncommitted).await.unwrap();
    let marks = take_marks(&mut target).unwrap();
    compare(&source, &target, Duplicates::Forbidden).unwrap();
    marks_change_where_told(&marks, &changes).unwrap();
    stops(first).await;
    stops(third).await;
}
