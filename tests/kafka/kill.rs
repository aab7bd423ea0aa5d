//! `kill -9` at any moment: nothing is lost, order holds, and at most what came since the last stored position comes again.

use tidegate_tests::{Duplicates, Isolation, Load, LoadOptions, Numbered, ProducerOptions, shared, topics};

use crate::scenario::{Scenario, report, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 4, value_bytes: 300 };
const KILLS: i64 = 5;
const RECORDS_PER_SECOND: u64 = 3_000;
/// Positions are stored at least every 5 s; what a busy machine delays is allowed for.
const SECONDS_TWICE_MAX: u64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn five_kills_under_load_lose_nothing() {
    let Some(clusters) = shared::clusters().await else { return };
    topics::create_topic(clusters.source, "killed", RECORDS.partition_count, &[]).await.unwrap();
    let options = LoadOptions {
        records: RECORDS,
        first_number: 0,
        records_per_second: RECORDS_PER_SECOND,
        producer: ProducerOptions::default(),
    };
    let load = Load::start(clusters.source, "killed", options).unwrap();
    let scenario = Scenario::new("kill", clusters.source, clusters.target, |file| file.topics("killed"));
    for kill in 0..KILLS {
        let before = scenario.count("kill.killed").await;
        let mut process = scenario.run();
        // Each time at another moment: right after the first records, and later and later in a flush interval.
        scenario.holds(&mut process, "kill.killed", before + 1 + kill * 4_000).await;
        process.kill().await.unwrap();
    }
    let numbers = load.stop().await.unwrap();
    let mut process = scenario.run();
    let isolation = Isolation::ReadUncommitted;
    let compared =
        scenario.arrives_by(&mut process, "killed", "kill.killed", isolation, Duplicates::Counted).await;
    stops(process).await;
    assert_eq!(compared.record_count as u64, numbers.end);
    report(&format!("{compared:?} after {KILLS} kills"));
    // While a dead member is not yet found dead nothing is copied, so what comes again is bounded by the load's rate
    // only before the kill.
    let duplicate_count_max = KILLS.unsigned_abs() * SECONDS_TWICE_MAX * RECORDS_PER_SECOND;
    assert!((compared.duplicate_count as u64) < duplicate_count_max, "{compared:?}");
}
