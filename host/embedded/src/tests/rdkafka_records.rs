//! rdkafka produces and reads back: every codec, headers, nulls, idempotence.

use std::collections::BTreeMap;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use super::{PATIENCE, cluster};
use crate::{ApiKey, Cluster, Effect, Fault, FaultPlan, FaultSpace, ResponseError, crc_is_right};

/// A record as far as it must survive.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
    timestamp_ms: i64,
}

fn record(number: usize) -> Seen {
    let headers = vec![
        ("same".to_owned(), Some(format!("first {number}").into_bytes())),
        ("same".to_owned(), None),
        ("empty".to_owned(), Some(Vec::new())),
    ];
    Seen {
        key: (!number.is_multiple_of(3)).then(|| format!("key {number}").into_bytes()),
        value: match number % 5 {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some(format!("value {number} ").repeat(20).into_bytes()),
        },
        headers: if number.is_multiple_of(2) { headers } else { Vec::new() },
        timestamp_ms: 1_700_000_000_000 + i64::try_from(number).unwrap(),
    }
}

fn producer(cluster: &Cluster, settings: &[(&str, &str)]) -> FutureProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers()).set("linger.ms", "5");
    for (key, value) in settings {
        config.set(*key, *value);
    }
    config.create().unwrap()
}

async fn produce(producer: &FutureProducer, topic: &str, partition: i32, records: &[Seen]) {
    let mut waiting = Vec::new();
    for record in records {
        let mut headers = OwnedHeaders::new();
        for (key, value) in &record.headers {
            headers = headers.insert(Header { key, value: value.as_ref() });
        }
        let mut future = FutureRecord::<[u8], [u8]>::to(topic)
            .partition(partition)
            .timestamp(record.timestamp_ms)
            .headers(headers);
        future.key = record.key.as_deref();
        future.payload = record.value.as_deref();
        waiting.push(producer.send_result(future).unwrap());
    }
    for (number, delivery) in waiting.into_iter().enumerate() {
        let delivery = tokio::time::timeout(PATIENCE, delivery).await.unwrap().unwrap().unwrap();
        assert_eq!(delivery.partition, partition, "record {number}");
    }
}

/// Reads a partition from its start until `count` records are there.
async fn consume(cluster: &Cluster, topic: &str, partition: i32, count: usize) -> Vec<Seen> {
    let servers = cluster.bootstrap_servers();
    let topic = topic.to_owned();
    tokio::task::spawn_blocking(move || consume_blocking(&servers, &topic, partition, count)).await.unwrap()
}

fn consume_blocking(servers: &str, topic: &str, partition: i32, count: usize) -> Vec<Seen> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", servers)
        .set("group.id", "reader")
        .set("enable.auto.commit", "false")
        .set("check.crcs", "true")
        .create()
        .unwrap();
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    consumer.assign(&list).unwrap();
    let mut seen = Vec::new();
    while seen.len() < count {
        let message = consumer.poll(PATIENCE).expect("no record came").unwrap();
        assert_eq!(message.offset(), i64::try_from(seen.len()).unwrap());
        let headers = message.headers().map_or(Vec::new(), |headers| {
            headers.iter().map(|one| (one.key.to_owned(), one.value.map(<[u8]>::to_vec))).collect()
        });
        seen.push(Seen {
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers,
            timestamp_ms: message.timestamp().to_millis().unwrap(),
        });
    }
    seen
}

async fn check_round_trip(settings: &[(&str, &str)]) {
    let cluster = cluster(2).await;
    cluster.create_topic("orders", 2, &[]).unwrap();
    let records: Vec<Seen> = (0..500).map(record).collect();
    let producer = producer(&cluster, settings);
    for partition in 0..2 {
        produce(&producer, "orders", partition, &records).await;
        assert_eq!(consume(&cluster, "orders", partition, records.len()).await, records);
        assert!(cluster.log("orders", partition).iter().all(|batch| crc_is_right(batch)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_survive_uncompressed() {
    check_round_trip(&[("compression.type", "none")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_survive_gzip() {
    check_round_trip(&[("compression.type", "gzip")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_survive_snappy() {
    check_round_trip(&[("compression.type", "snappy")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_survive_lz4() {
    check_round_trip(&[("compression.type", "lz4")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_survive_zstd() {
    check_round_trip(&[("compression.type", "zstd")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_codec_is_kept_in_the_log() {
    let names = ["none", "gzip", "snappy", "lz4", "zstd"];
    let cluster = cluster(1).await;
    for (number, name) in names.into_iter().enumerate() {
        cluster.create_topic(name, 1, &[]).unwrap();
        let producer = producer(&cluster, &[("compression.type", name)]);
        produce(&producer, name, 0, &(0..100).map(record).collect::<Vec<_>>()).await;
        let codecs: Vec<u8> = cluster.log(name, 0).iter().map(|batch| batch[22] & 7).collect();
        assert!(codecs.iter().all(|codec| usize::from(*codec) == number), "{name}: {codecs:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotent_producer_writes_each_record_once_whatever_happens() {
    let cluster = cluster(2).await;
    cluster.create_topic("orders", 1, &[]).unwrap();
    let faults = [
        (2, Effect::CutAfter),
        (4, Effect::ErrorAfterApply(ResponseError::NotEnoughReplicasAfterAppend)),
        (6, Effect::Error(ResponseError::NotLeaderOrFollower)),
        (8, Effect::CutBefore),
        (10, Effect::MoveLeader { to: None }),
    ];
    let ids: Vec<_> = faults
        .into_iter()
        .map(|(nth, effect)| {
            cluster.faults().add(Fault::new(effect).api(ApiKey::Produce).topic("orders").nth(nth))
        })
        .collect();
    let settings = [("enable.idempotence", "true"), ("batch.num.messages", "20"), ("retry.backoff.ms", "10")];
    let producer = producer(&cluster, &settings);
    let records: Vec<Seen> = (0..600).map(record).collect();
    produce(&producer, "orders", 0, &records).await;
    assert!(ids.iter().all(|id| cluster.faults().hits(*id) == 1), "{:?}", cluster.faults().fired());
    assert_eq!(cluster.end_offset("orders", 0), 600);
    assert_eq!(consume(&cluster, "orders", 0, records.len()).await, records);
}

#[tokio::test(flavor = "multi_thread")]
async fn seeded_faults_neither_lose_nor_double_nor_disorder() {
    let records: Vec<Seen> = (0..400).map(record).collect();
    for seed in 1..=6 {
        let cluster = cluster(3).await;
        cluster.create_topic("orders", 1, &[]).unwrap();
        let space = FaultSpace {
            apis: vec![ApiKey::Produce, ApiKey::Fetch, ApiKey::Metadata, ApiKey::ListOffsets],
            delay_ms_max: 50,
            ..FaultSpace::default()
        };
        let plan = FaultPlan::random(seed, &space);
        println!("{plan}");
        cluster.faults().add_plan(&plan);
        let settings =
            [("enable.idempotence", "true"), ("batch.num.messages", "10"), ("retry.backoff.ms", "10")];
        produce(&producer(&cluster, &settings), "orders", 0, &records).await;
        assert_eq!(cluster.end_offset("orders", 0), 400, "seed {seed}");
        assert_eq!(consume(&cluster, "orders", 0, records.len()).await, records, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_topic_is_made_by_a_producer_or_by_metadata() {
    let cluster = cluster(1).await;
    let producer = producer(&cluster, &[("message.timeout.ms", "1000")]);
    let record = FutureRecord::<str, str>::to("nowhere").payload("lost");
    let refused = producer.send(record, PATIENCE).await;
    assert!(refused.is_err());
    producer.client().fetch_metadata(Some("nowhere"), PATIENCE).unwrap();
    assert_eq!(cluster.topics(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn rdkafka_sees_leaders_spread_over_the_nodes() {
    let cluster = cluster(3).await;
    cluster.create_topic("orders", 6, &[]).unwrap();
    let producer = producer(&cluster, &[]);
    let metadata =
        tokio::task::spawn_blocking(move || producer.client().fetch_metadata(Some("orders"), PATIENCE));
    let metadata = metadata.await.unwrap().unwrap();
    let mut led = BTreeMap::new();
    for partition in metadata.topics()[0].partitions() {
        *led.entry(partition.leader()).or_insert(0) += 1;
    }
    assert_eq!(led, BTreeMap::from([(1, 2), (2, 2), (3, 2)]));
    assert_eq!(metadata.brokers().len(), 3);
}
