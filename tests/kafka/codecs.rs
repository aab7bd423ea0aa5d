//! Whatever a producer compressed with, the records arrive, and compressed as they were.

use tidegate_tests::batch_log::stored_batches;
use tidegate_tests::{Numbered, ProducerOptions, produce, shared, topics};

use crate::scenario::{Scenario, stops};

const RECORDS: Numbered = Numbered { producer: 1, partition_count: 2, value_bytes: 400 };
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

#[tokio::test(flavor = "multi_thread")]
async fn every_codec_arrives_and_is_kept() {
    let Some(clusters) = shared::clusters().await else { return };
    for codec in CODECS {
        let topic = format!("codec-{codec}");
        topics::create_topic(clusters.source, &topic, RECORDS.partition_count, &[]).await.unwrap();
        // Large batches take one way through the relay, small ones that wait another.
        for (batch_bytes, numbers) in [(262_144, 0..3_000), (4_096, 3_000..6_000)] {
            let options = ProducerOptions { codec, batch_bytes, ..ProducerOptions::default() };
            produce(clusters.source, &topic, RECORDS, numbers, &options).await.unwrap();
        }
    }
    let scenario = Scenario::new("codecs", clusters.source, clusters.target, |file| file.topics("codec-.*"));
    let mut process = scenario.run();
    for (id, codec) in CODECS.into_iter().enumerate() {
        let target_topic = format!("codecs.codec-{codec}");
        scenario.arrives(&mut process, &format!("codec-{codec}"), &target_topic).await;
        for partition in 0..RECORDS.partition_count {
            let found: Vec<i16> = stored_batches(clusters.target, &target_topic, partition)
                .unwrap()
                .iter()
                .map(|batch| batch.codec())
                .collect();
            assert!(
                found.iter().all(|found| usize::from(found.unsigned_abs()) == id),
                "{codec} became {found:?}"
            );
        }
    }
    stops(process).await;
}

/// Java frames snappy in its own way; a broker that recompresses writes that.
#[tokio::test(flavor = "multi_thread")]
async fn snappy_and_lz4_of_a_java_broker_arrive() {
    let Some(clusters) = shared::clusters().await else { return };
    let scenario =
        Scenario::new("framing", clusters.source, clusters.target, |file| file.topics("framed-.*"));
    for codec in ["snappy", "lz4", "zstd", "gzip"] {
        let topic = format!("framed-{codec}");
        topics::create_topic(
            clusters.source,
            &topic,
            RECORDS.partition_count,
            &[("compression.type", codec)],
        )
        .await
        .unwrap();
        // Small batches wait and are merged, so they are unpacked.
        let options = ProducerOptions { batch_bytes: 4_096, ..ProducerOptions::default() };
        produce(clusters.source, &topic, RECORDS, 0..3_000, &options).await.unwrap();
    }
    let mut process = scenario.run();
    for codec in ["snappy", "lz4", "zstd", "gzip"] {
        scenario.arrives(&mut process, &format!("framed-{codec}"), &format!("framing.framed-{codec}")).await;
    }
    stops(process).await;
}
