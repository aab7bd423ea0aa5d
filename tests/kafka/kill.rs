//! `kill -9` at any moment: nothing is lost, order holds, and at most what came since the last stored position comes again.

use std::time::Duration;

use tidegate_tests::{
    Duplicates, Isolation, Load, LoadOptions, Numbered, ProducerOptions, eventually, shared,
    stored_positions, topics,
};

use crate::scenario::{ARRIVAL_DEADLINE, Scenario, report, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 4, value_bytes: 300 };
const KILLS: i64 = 5;

/// Number of records that the stored positions speak of: where the next process begins.
async fn stored_count(scenario: &Scenario<'_>) -> i64 {
    let positions = stored_positions(scenario.target, "kill").await.unwrap();
    positions.values().map(|last| last + 1).sum()
}

/// The target's count once nothing of the killed process is on its way to the broker any more.
async fn settled_count(scenario: &Scenario<'_>) -> i64 {
    let mut last = -1;
    let settled = eventually("the target to be at rest", Duration::from_secs(10), async || {
        let before = std::mem::replace(&mut last, scenario.count("kill.killed").await);
        anyhow::ensure!(before == last, "it grew from {before} to {last}");
        Ok(last)
    });
    settled.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_under_load_lose_nothing() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "killed", RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: 3_000,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(clusters.source, "killed", options).unwrap();
    let scenario = Scenario::new("kill", clusters.source, clusters.target, |file| file.topics("killed"));
    let mut duplicate_count_max = 0;
    for kill in 0..KILLS {
        let (before, stored) = (scenario.count("kill.killed").await, stored_count(&scenario).await);
        let mut process = scenario.run();
        scenario.holds(&mut process, "kill.killed", before + 1 + kill * 2_000).await;
        if kill % 2 == 1 {
            // Every other time not before it has stored a position.
            eventually("a position to be stored", ARRIVAL_DEADLINE, async || {
                process.still_runs()?;
                anyhow::ensure!(stored_count(&scenario).await > stored, "none is");
                Ok(())
            })
            .await
            .unwrap();
        }
        process.kill().await.unwrap();
        // What the next process copies again is what lies behind the stored positions, and no more.
        let different_count = settled_count(&scenario).await - duplicate_count_max;
        duplicate_count_max += different_count - stored_count(&scenario).await;
    }
    let numbers = load.stop().await.unwrap();
    let mut process = scenario.run();
    let isolation = Isolation::ReadUncommitted;
    let compared =
        scenario.arrives_by(&mut process, "killed", "kill.killed", isolation, Duplicates::Counted).await;
    stops(process).await;
    assert_eq!(compared.record_count as u64, numbers.end);
    report(&format!(
        "{compared:?} after {KILLS} kills; {duplicate_count_max} lay behind the stored positions"
    ));
    assert!(
        compared.duplicate_count as i64 <= duplicate_count_max,
        "{compared:?} of at most {duplicate_count_max}"
    );
}
