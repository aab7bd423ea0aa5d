//! A source topic that is deleted and made anew while it is copied: positions of the old one mean nothing for the new one.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use tidegate_tests::{Isolation, end_offsets, eventually, read_all};

use super::{Pair, RECORDS, TARGET_TOPIC, TOPIC};
use crate::scenario::{ARRIVAL_DEADLINE, Scenario, stops};

/// The new topic at once holds more than the old one did, so its log alone does not show that it is another.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_made_anew_is_copied_from_its_first_record() {
    let pair = Pair::start(1).await;
    let scenario = Scenario::new("mem", &pair.source, &pair.target, |file| {
        let file = file.topics(TOPIC).set("replication.factor", "-1");
        file.set("refresh.topics.interval.seconds", "1")
    });
    let mut process = scenario.run();
    pair.produce(0..400).await;
    scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
    let stored = eventually("positions to be stored", Duration::from_secs(30), async || {
        let ends = end_offsets(&pair.target, "mm2-offsets.mem.internal").await?;
        ensure!(ends.values().sum::<i64>() > 0, "none yet");
        Ok(())
    });
    stored.await.unwrap();

    pair.source.delete_topic(TOPIC).unwrap();
    pair.source.create_topic(TOPIC, RECORDS.partition_count, &[]).unwrap();
    pair.produce(1_000..2_000).await;
    let arrived = eventually("every record of the new topic", ARRIVAL_DEADLINE, async || {
        process.still_runs()?;
        let target = read_all(&pair.target, TARGET_TOPIC, Isolation::ReadUncommitted).await?;
        // No two records have both the same key and the same value.
        let there: BTreeSet<_> =
            target.into_iter().map(|record| (record.content.key, record.content.value)).collect();
        let is_missing = |number: &u64| {
            let content = RECORDS.content(*number);
            !there.contains(&(content.key, content.value))
        };
        let missing: Vec<u64> = (0..400).chain(1_000..2_000).filter(is_missing).collect();
        ensure!(missing.is_empty(), "{} are missing, from {:?}", missing.len(), missing.first());
        Ok(())
    });
    if let Err(error) = arrived.await {
        panic!("{error:#}\n{}", process.log_tail());
    }
    stops(process).await;
}
