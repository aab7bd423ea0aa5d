//! A compacted topic with real gaps: what the cleaner left arrives, tombstones too.

use tidegate_tests::batch_log::stored_batches;
use tidegate_tests::{Isolation, read_all, shared, topics};

use crate::scenario::{Scenario, stops};

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cleaner_left_arrives() {
    let Some(clusters) = shared::clusters().await else { return };
    let written_count = topics::create_compacted_topic(clusters.source, "compacted").await.unwrap();
    let batches = stored_batches(clusters.source, "compacted", 0).unwrap();
    assert!(
        batches.iter().any(|batch| batch.has_gaps() && batch.record_count > 0),
        "no batch has gaps: {batches:?}"
    );
    let source = read_all(clusters.source, "compacted", Isolation::ReadUncommitted).await.unwrap();
    assert!(source.len() < written_count);
    assert!(source.iter().any(|record| record.content.value.is_none()), "no tombstone is left");

    let scenario =
        Scenario::new("compaction", clusters.source, clusters.target, |file| file.topics("compacted"));
    let mut process = scenario.run();
    scenario.arrives(&mut process, "compacted", "compaction.compacted").await;
    stops(process).await;
    let policy =
        topics::topic_config(clusters.target, "compaction.compacted", "cleanup.policy").await.unwrap();
    assert_eq!(policy, "compact");
}
