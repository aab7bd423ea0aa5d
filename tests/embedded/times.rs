//! Times that librdkafka can't write: zero above all.

use tidegate_embedded::Cluster;
use tidegate_tests::{Isolation, read_all};
use tidegate_wire::batch::{BatchBuilder, Codec};

use super::{Pair, TARGET_TOPIC, TOPIC};
use crate::scenario::stops;

const TIMES_MS: [i64; 6] = [0, -1, 1, 1_600_000_000_000, 5, 0];

fn append_batch(source: &Cluster, partition: i32, codec: Codec) {
    let mut builder = BatchBuilder::new();
    builder.start(codec);
    for (number, time_ms) in TIMES_MS.into_iter().enumerate() {
        let key = format!("{partition}-{number}");
        builder.push_parts(Some(key.as_bytes()), Some(b"value"), &[], time_ms);
    }
    let built = builder.finish().unwrap();
    source.append_at_end(TOPIC, partition, &built.to_batch().bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_time_arrives_as_it_is() {
    let pair = Pair::start(1).await;
    for (partition, codec) in [(0, Codec::None), (1, Codec::Lz4), (2, Codec::Zstd), (3, Codec::Gzip)] {
        append_batch(&pair.source, partition, codec);
    }
    let scenario = pair.scenario();
    let mut process = scenario.run();
    scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
    stops(process).await;
    let read = read_all(&pair.target, TARGET_TOPIC, Isolation::ReadUncommitted).await.unwrap();
    let times: Vec<i64> = read.iter().map(|record| record.content.timestamp_ms).collect();
    assert_eq!(times, TIMES_MS.repeat(4));
}
