//! Topics made and changed by librdkafka's admin client.

use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use rdkafka::ClientConfig;
use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::Consumer;

use crate::Servers;
use crate::eventually;
use crate::producer::{ProducerOptions, produce_contents};
use crate::reader::{Isolation, consumer, read_all};
use crate::record::Content;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

fn admin(cluster: &dyn Servers) -> anyhow::Result<AdminClient<DefaultClientContext>> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", cluster.bootstrap_servers()).set("log_level", "0");
    Ok(config.create()?)
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(ANSWER_TIMEOUT)).request_timeout(Some(ANSWER_TIMEOUT))
}

/// Makes a topic and waits until the broker names a leader for each partition.
///
/// # Errors
/// When the broker refuses.
pub async fn create_topic(
    cluster: &dyn Servers,
    topic: &str,
    partition_count: i32,
    configs: &[(&str, &str)],
) -> anyhow::Result<()> {
    let new = NewTopic::new(topic, partition_count, TopicReplication::Fixed(1));
    let new = configs.iter().fold(new, |new, (key, value)| new.set(key, value));
    let results = admin(cluster)?.create_topics(&[new], &options()).await?;
    for result in results {
        result.map_err(|(topic, code)| anyhow!("could not create topic {topic:?}: {code}"))?;
    }
    eventually(&format!("a leader for each partition of {topic}"), ANSWER_TIMEOUT, async || {
        let count = partition_count_of(cluster, topic).await?;
        ensure!(count == partition_count, "{count} of {partition_count} partitions");
        Ok(())
    })
    .await
}

/// Lets a topic grow to so many partitions.
///
/// # Errors
/// When the broker refuses.
pub async fn add_partitions(cluster: &dyn Servers, topic: &str, partition_count: i32) -> anyhow::Result<()> {
    let new = NewPartitions::new(topic, usize::try_from(partition_count)?);
    for result in admin(cluster)?.create_partitions(&[new], &options()).await? {
        result.map_err(|(topic, code)| anyhow!("could not add partitions to {topic:?}: {code}"))?;
    }
    Ok(())
}

/// Deletes a topic.
///
/// # Errors
/// When the broker refuses.
pub async fn delete_topic(cluster: &dyn Servers, topic: &str) -> anyhow::Result<()> {
    for result in admin(cluster)?.delete_topics(&[topic], &options()).await? {
        result.map_err(|(topic, code)| anyhow!("could not delete topic {topic:?}: {code}"))?;
    }
    Ok(())
}

/// Number of partitions that have a leader; 0 if the topic is not there.
///
/// # Errors
/// When the cluster does not answer.
pub async fn partition_count_of(cluster: &dyn Servers, topic: &str) -> anyhow::Result<i32> {
    let consumer = consumer(cluster, Isolation::ReadUncommitted)?;
    let topic = topic.to_owned();
    tokio::task::spawn_blocking(move || {
        let metadata = consumer.fetch_metadata(None, ANSWER_TIMEOUT)?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let led =
            found.map(|topic| topic.partitions().iter().filter(|partition| partition.leader() >= 0).count());
        Ok(i32::try_from(led.unwrap_or(0))?)
    })
    .await?
}

/// Names of all topics, sorted.
///
/// # Errors
/// When the cluster does not answer.
pub async fn topic_names(cluster: &dyn Servers) -> anyhow::Result<Vec<String>> {
    let consumer = consumer(cluster, Isolation::ReadUncommitted)?;
    tokio::task::spawn_blocking(move || {
        let metadata = consumer.fetch_metadata(None, ANSWER_TIMEOUT)?;
        let mut names: Vec<String> = metadata.topics().iter().map(|topic| topic.name().to_owned()).collect();
        names.sort();
        Ok(names)
    })
    .await?
}

/// The value of a topic's setting.
///
/// # Errors
/// When there is no such topic or setting.
pub async fn topic_config(cluster: &dyn Servers, topic: &str, key: &str) -> anyhow::Result<String> {
    let results = admin(cluster)?.describe_configs(&[ResourceSpecifier::Topic(topic)], &options()).await?;
    for result in results {
        let resource = result.map_err(|code| anyhow!("could not read the settings of {topic:?}: {code}"))?;
        if let Some(entry) = resource.entries.iter().find(|entry| entry.name == key) {
            return entry.value.clone().with_context(|| format!("{key} of {topic:?} has no value"));
        }
    }
    Err(anyhow!("topic {topic:?} has no setting {key}"))
}

/// Makes a compacted topic of one partition whose batches have real gaps: most of their records were removed by the
/// broker's cleaner, tombstones among those that stay. Gives the number of records that were written.
///
/// # Errors
/// When the cleaner does not do its work within a minute.
pub async fn create_compacted_topic(cluster: &dyn Servers, topic: &str) -> anyhow::Result<usize> {
    const KEYS: u64 = 40;
    const ROUNDS: u64 = 6;
    const CLEANED_DEADLINE: Duration = Duration::from_secs(60);
    let configs = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "200"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("min.compaction.lag.ms", "0"),
        ("delete.retention.ms", "86400000"),
    ];
    create_topic(cluster, topic, 1, &configs).await?;
    let mut written_count = 0;
    for round in 0..ROUNDS {
        // Every key stays alive in some round: later rounds write fewer keys, so that each batch keeps some records.
        let keys = (0..KEYS).filter(|key| key % ROUNDS >= round);
        let contents: Vec<_> = keys.map(|key| (0, compacted_record(key, round))).collect();
        written_count += contents.len();
        produce_contents(cluster, topic, contents, &ProducerOptions::default()).await?;
    }
    let mut round = ROUNDS;
    eventually("the broker's cleaner to leave gaps", CLEANED_DEADLINE, async || {
        let count = read_all(cluster, topic, Isolation::ReadUncommitted).await?.len();
        if count <= KEYS as usize + (round - ROUNDS) as usize + 1 {
            return Ok(());
        }
        // The active segment is never cleaned. A record of a later time makes the broker begin a new one.
        produce_contents(
            cluster,
            topic,
            vec![(0, compacted_record(KEYS, round))],
            &ProducerOptions::default(),
        )
        .await?;
        round += 1;
        written_count += 1;
        anyhow::bail!("{count} of {written_count} records are still there")
    })
    .await?;
    Ok(written_count)
}

/// Every fifth key's last record is a tombstone. Times differ by more than `segment.ms` from round to round.
fn compacted_record(key: u64, round: u64) -> Content {
    let value = (!key.is_multiple_of(5)).then(|| format!("value {key} of round {round}").into_bytes());
    Content {
        key: Some(format!("key-{key}").into_bytes()),
        value,
        headers: vec![("round".to_owned(), Some(round.to_string().into_bytes()))],
        timestamp_ms: 1_600_000_000_000 + (round * 10_000 + key) as i64,
    }
}
