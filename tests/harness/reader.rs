//! Reading a topic from its beginning to its present end by librdkafka: the independent witness.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message, Timestamp};
use rdkafka::{Offset, TopicPartitionList};

use crate::Servers;
use crate::record::{Content, Record};

/// A whole topic is read within this time or the test fails.
const READ_DEADLINE: Duration = Duration::from_secs(120);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a reader sees of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Everything, also what was aborted.
    ReadUncommitted,
    /// Only what was committed.
    ReadCommitted,
}

/// All records of a topic, by partition and offset, without a group.
///
/// # Errors
/// When the topic is not there or its end is not reached within two minutes.
pub async fn read_all(
    cluster: &dyn Servers,
    topic: &str,
    isolation: Isolation,
) -> anyhow::Result<Vec<Record>> {
    let consumer = consumer(cluster, isolation)?;
    let topic = topic.to_owned();
    tokio::task::spawn_blocking(move || {
        read_to_end(&consumer, &topic).with_context(|| format!("could not read all of {topic}"))
    })
    .await?
}

/// The end offset of every partition of a topic; nothing if the topic is not there.
///
/// # Errors
/// When the cluster does not answer.
pub async fn end_offsets(cluster: &dyn Servers, topic: &str) -> anyhow::Result<BTreeMap<i32, i64>> {
    let watch = EndWatch::new(cluster, topic)?;
    tokio::task::spawn_blocking(move || watch.end_offsets()).await?
}

/// Asks for the ends of one topic again and again over one connection.
pub struct EndWatch {
    consumer: BaseConsumer,
    topic: String,
}

impl EndWatch {
    /// A watch over a topic that may not be there yet.
    ///
    /// # Errors
    /// When librdkafka refuses its settings.
    pub fn new(cluster: &dyn Servers, topic: &str) -> anyhow::Result<EndWatch> {
        Ok(EndWatch { consumer: consumer(cluster, Isolation::ReadUncommitted)?, topic: topic.to_owned() })
    }

    /// The end offset of every partition now. Blocks for some milliseconds.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn end_offsets(&self) -> anyhow::Result<BTreeMap<i32, i64>> {
        let mut ends = BTreeMap::new();
        for partition in partitions(&self.consumer, &self.topic)? {
            match self.consumer.fetch_watermarks(&self.topic, partition, ANSWER_TIMEOUT) {
                Ok((_, end)) => ends.insert(partition, end),
                // Just created: the leader is not there yet, so nothing is.
                Err(_) => ends.insert(partition, 0),
            };
        }
        Ok(ends)
    }

    /// Sum of the end offsets: the number of records in a topic without gaps.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn record_count(&self) -> anyhow::Result<i64> {
        Ok(self.end_offsets()?.values().sum())
    }
}

/// A consumer without a group that reads what is assigned to it by hand.
pub(crate) fn consumer(cluster: &dyn Servers, isolation: Isolation) -> anyhow::Result<BaseConsumer> {
    let isolation = match isolation {
        Isolation::ReadUncommitted => "read_uncommitted",
        Isolation::ReadCommitted => "read_committed",
    };
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("group.id", "reader-without-a-group")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "error")
        .set("check.crcs", "true")
        .set("isolation.level", isolation)
        .set("fetch.wait.max.ms", "50")
        .set("reconnect.backoff.max.ms", "500")
        .set("log_level", "0");
    Ok(config.create()?)
}

fn partitions(consumer: &BaseConsumer, topic: &str) -> anyhow::Result<Vec<i32>> {
    let metadata = consumer.fetch_metadata(None, ANSWER_TIMEOUT)?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    let mut partitions: Vec<i32> =
        found.iter().flat_map(|topic| topic.partitions()).map(|partition| partition.id()).collect();
    partitions.sort_unstable();
    Ok(partitions)
}

fn read_to_end(consumer: &BaseConsumer, topic: &str) -> anyhow::Result<Vec<Record>> {
    let partitions = partitions(consumer, topic)?;
    ensure!(!partitions.is_empty(), "there is no such topic");
    let mut assignment = TopicPartitionList::new();
    for &partition in &partitions {
        assignment.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&assignment)?;
    let mut open: BTreeSet<i32> = partitions.into_iter().collect();
    let mut records = Vec::new();
    let start = Instant::now();
    while !open.is_empty() {
        match consumer.poll(Duration::from_millis(200)) {
            None => {}
            Some(Ok(message)) => records.push(record(&message)),
            Some(Err(KafkaError::PartitionEOF(partition))) => drop(open.remove(&partition)),
            Some(Err(error)) if is_passing(&error) => {}
            Some(Err(error)) => return Err(error.into()),
        }
        ensure!(
            start.elapsed() < READ_DEADLINE,
            "the end of partitions {open:?} was not reached; {} records so far",
            records.len()
        );
    }
    records.sort_by_key(|record| (record.partition, record.offset));
    Ok(records)
}

/// What librdkafka tells and cures by itself.
fn is_passing(error: &KafkaError) -> bool {
    use rdkafka::error::RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(Code::BrokerTransportFailure | Code::AllBrokersDown | Code::OperationTimedOut)
    )
}

/// A message as a record.
pub(crate) fn record(message: &BorrowedMessage<'_>) -> Record {
    let headers = message.headers().map(|headers| {
        let all = headers.iter();
        all.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect()
    });
    let (timestamp_ms, log_append_time) = match message.timestamp() {
        Timestamp::NotAvailable => (-1, false),
        Timestamp::CreateTime(milliseconds) => (milliseconds, false),
        Timestamp::LogAppendTime(milliseconds) => (milliseconds, true),
    };
    Record {
        partition: message.partition(),
        offset: message.offset(),
        log_append_time,
        content: Content {
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: headers.unwrap_or_default(),
            timestamp_ms,
        },
    }
}
