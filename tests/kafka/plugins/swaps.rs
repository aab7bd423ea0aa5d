//! Swaps while data flows: one clean change-over a partition each, where the answer says.

use std::collections::BTreeMap;

use anyhow::ensure;
use tidegate_tests::{
    Duplicates, Isolation, Load, LoadOptions, Numbered, ProducerOptions, compare, end_offsets, eventually,
    read_all, shared, topics,
};

use super::{mark_settings, marks_change_where_told, swap_mark, take_marks, with_plugin};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

const TOPIC: &str = "swapped";
const RECORDS: Numbered = Numbered { producer: 1, partition_count: 12, value_bytes: 200 };
const SWAPS: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn forty_swaps_under_load_change_over_once_a_partition_where_they_say() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, TOPIC, RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 4_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(clusters.source, TOPIC, options).unwrap();
    let scenario = Scenario::new("swap", clusters.source, clusters.target, |file| {
        let file = file.topics(TOPIC).set("tidegate.plugins", "mark");
        with_plugin(file, "mark", "header-rules", &mark_settings("g0"))
    });
    let mut process = scenario.run();
    scenario.holds(&mut process, "swap.swapped", 1_000).await;
    let everywhere = (0..RECORDS.partition_count).map(|partition| (partition, 0)).collect();
    let mut changes: Vec<(String, BTreeMap<i32, i64>)> = vec![("g0".to_owned(), everywhere)];
    let mut took_ms_max = 0;
    for swap in 1..=SWAPS {
        let value = format!("g{swap}");
        let swapped = swap_mark(&process, "swap->target", &value, TOPIC).await.unwrap();
        assert!(swapped.is_complete, "swap {swap}");
        assert_eq!(swapped.first_offsets.len(), 12, "swap {swap} tells {:?}", swapped.first_offsets);
        took_ms_max = took_ms_max.max(swapped.took_ms);
        changes.push((value, swapped.first_offsets));
    }
    let numbers = load.stop().await.unwrap();
    let whole = eventually("the whole copy", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let count: i64 = end_offsets(clusters.target, "swap.swapped").await?.values().sum();
        ensure!(count >= numbers.end as i64, "{count} of {} records are there", numbers.end);
        Ok(())
    });
    whole.await.unwrap_or_else(|error| panic!("{error:#}\n{}", process.log_tail()));
    let source = read_all(clusters.source, TOPIC, Isolation::ReadUncommitted).await.unwrap();
    let mut target = read_all(clusters.target, "swap.swapped", Isolation::ReadUncommitted).await.unwrap();
    let marks = take_marks(&mut target).unwrap();
    let compared = compare(&source, &target, Duplicates::Forbidden).unwrap();
    report(&format!("{compared:?} with {SWAPS} swaps, the longest took {took_ms_max} ms"));
    marks_change_where_told(&marks, &changes).unwrap();
    stops(process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_what_was_swapped_until_the_file_says_something_else() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "kept", 2, &[]).await.unwrap();
    let records = Numbered { producer: 1, partition_count: 2, value_bytes: 100 };
    let produce = async |numbers| {
        tidegate_tests::produce(clusters.source, "kept", records, numbers, &ProducerOptions::default())
            .await
            .unwrap();
    };
    let with = |value: &str| {
        let settings = mark_settings(value);
        Scenario::new("keep", clusters.source, clusters.target, |file| {
            let file = file.topics("kept").set("tidegate.plugins", "mark");
            with_plugin(file, "mark", "header-rules", &settings)
        })
    };
    let scenario = with("file");
    produce(0..100).await;
    let mut process = scenario.run();
    scenario.holds(&mut process, "keep.kept", 100).await;
    let swapped = swap_mark(&process, "keep->target", "swapped", "kept").await.unwrap();
    produce(100..200).await;
    scenario.holds(&mut process, "keep.kept", 200).await;
    stops(process).await;
    // The same file: the swap holds.
    produce(200..300).await;
    let mut process = scenario.run();
    scenario.holds(&mut process, "keep.kept", 300).await;
    stops(process).await;
    // The file says something else than it said when the swap was made.
    produce(300..400).await;
    let scenario = with("other");
    let mut process = scenario.run();
    scenario.holds(&mut process, "keep.kept", 400).await;
    stops(process).await;
    let mut target = read_all(clusters.target, "keep.kept", Isolation::ReadUncommitted).await.unwrap();
    let marks = take_marks(&mut target).unwrap();
    assert_eq!(swapped.first_offsets, BTreeMap::from([(0, 50), (1, 50)]));
    for (partition, marks) in marks {
        let expected: Vec<&str> = [("file", 50), ("swapped", 100), ("other", 50)]
            .iter()
            .flat_map(|(mark, count)| vec![*mark; *count])
            .collect();
        assert_eq!(marks, expected, "partition {partition}");
    }
    let source = read_all(clusters.source, "kept", Isolation::ReadUncommitted).await.unwrap();
    compare(&source, &target, Duplicates::Forbidden).unwrap();
}
