//! Writing numbered records by librdkafka, with any codec, plainly or in transactions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rdkafka::ClientConfig;
use rdkafka::client::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{
    BaseRecord, DeliveryResult, NoCustomPartitioner, Producer, ProducerContext, ThreadedProducer,
};

use crate::Servers;
use crate::record::{Content, Numbered};

/// Within this time everything must be on the broker, restarts of the broker included.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);

/// How a producer writes.
#[derive(Debug, Clone)]
pub struct ProducerOptions {
    /// `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    pub codec: &'static str,
    /// Most bytes of one batch, before compression.
    pub batch_bytes: usize,
    /// How long a batch waits for more records.
    pub linger: Duration,
    /// Librdkafka's properties, added to the harness's own.
    pub properties: Vec<(String, String)>,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        ProducerOptions {
            codec: "none",
            batch_bytes: 262_144,
            linger: Duration::from_millis(5),
            properties: Vec::new(),
        }
    }
}

/// Counts what came back from the broker.
#[derive(Debug, Default, Clone)]
pub(crate) struct Deliveries {
    delivered_count: Arc<AtomicU64>,
    first_error: Arc<Mutex<Option<String>>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => {
                self.delivered_count.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, _)) => {
                let mut first = self.first_error.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert_with(|| error.to_string());
            }
        }
    }
}

/// A producer with its own thread for answers.
pub(crate) struct Writer {
    producer: ThreadedProducer<Deliveries, NoCustomPartitioner>,
    deliveries: Deliveries,
    topic: String,
    sent_count: u64,
}

impl Writer {
    pub(crate) fn new(
        cluster: &dyn Servers,
        topic: &str,
        options: &ProducerOptions,
    ) -> anyhow::Result<Writer> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", cluster.bootstrap_servers())
            .set("log_level", "0")
            .set("enable.idempotence", "true")
            .set("compression.type", options.codec)
            .set("batch.size", options.batch_bytes.to_string())
            .set("batch.num.messages", "1000000")
            .set("message.max.bytes", options.batch_bytes.max(1_048_576).to_string())
            .set("linger.ms", options.linger.as_millis().to_string())
            .set("queue.buffering.max.kbytes", "65536")
            .set("message.timeout.ms", DELIVERY_TIMEOUT.as_millis().to_string())
            .set("reconnect.backoff.max.ms", "500");
        for (key, value) in &options.properties {
            config.set(key, value);
        }
        let deliveries = Deliveries::default();
        let producer = config.create_with_context(deliveries.clone())?;
        Ok(Writer { producer, deliveries, topic: topic.to_owned(), sent_count: 0 })
    }

    /// Hands a record to librdkafka; waits while its queue is full.
    pub(crate) fn send(&mut self, partition: i32, content: &Content) -> anyhow::Result<()> {
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.topic).partition(partition);
        record.key = content.key.as_deref();
        record.payload = content.value.as_deref();
        record.timestamp = Some(content.timestamp_ms);
        if !content.headers.is_empty() {
            record.headers = Some(owned_headers(&content.headers));
        }
        loop {
            match self.producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err((error, _)) => return Err(error).context(format!("could not produce to {}", self.topic)),
            }
        }
        self.sent_count += 1;
        Ok(())
    }

    /// Waits until the broker has acknowledged everything.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        self.producer.flush(DELIVERY_TIMEOUT)?;
        let first_error = self.deliveries.first_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(error) = first_error {
            bail!("a record was not delivered to {}: {error}", self.topic);
        }
        let delivered_count = self.delivered_count();
        ensure!(
            delivered_count == self.sent_count,
            "{delivered_count} of {} records delivered",
            self.sent_count
        );
        Ok(())
    }

    pub(crate) fn delivered_count(&self) -> u64 {
        self.deliveries.delivered_count.load(Ordering::Relaxed)
    }
}

fn owned_headers(headers: &[(String, Option<Vec<u8>>)]) -> OwnedHeaders {
    headers.iter().fold(OwnedHeaders::new_with_capacity(headers.len()), |owned, (key, value)| {
        owned.insert(Header { key, value: value.as_deref() })
    })
}

/// Writes the given numbers and waits until all are acknowledged.
///
/// # Errors
/// When a record is refused or not acknowledged within two minutes.
pub async fn produce(
    cluster: &dyn Servers,
    topic: &str,
    records: Numbered,
    numbers: impl IntoIterator<Item = u64, IntoIter: Send> + Send + 'static,
    options: &ProducerOptions,
) -> anyhow::Result<()> {
    let mut writer = Writer::new(cluster, topic, options)?;
    let write = move || {
        for number in numbers {
            writer.send(records.partition(number), &records.content(number))?;
        }
        writer.finish()
    };
    tokio::task::spawn_blocking(write).await?
}

/// Writes given contents to their partitions and waits until all are acknowledged.
///
/// # Errors
/// When a record is refused or not acknowledged within two minutes.
pub async fn produce_contents(
    cluster: &dyn Servers,
    topic: &str,
    contents: Vec<(i32, Content)>,
    options: &ProducerOptions,
) -> anyhow::Result<()> {
    let mut writer = Writer::new(cluster, topic, options)?;
    let write = move || {
        for (partition, content) in contents {
            writer.send(partition, &content)?;
        }
        writer.finish()
    };
    tokio::task::spawn_blocking(write).await?
}

/// Writes the given numbers in transactions of `per_transaction` records; every third transaction is aborted after its
/// records lie in the log. Gives the numbers that were committed.
///
/// # Errors
/// When a transaction fails.
pub async fn produce_in_transactions(
    cluster: &dyn Servers,
    topic: &str,
    records: Numbered,
    numbers: Range<u64>,
    per_transaction: usize,
) -> anyhow::Result<Vec<u64>> {
    let options = ProducerOptions {
        properties: vec![
            ("transactional.id".to_owned(), format!("{topic}-{}", records.producer)),
            // Librdkafka wants it below transaction.timeout.ms, 60 s.
            ("message.timeout.ms".to_owned(), "50000".to_owned()),
        ],
        ..ProducerOptions::default()
    };
    let mut writer = Writer::new(cluster, topic, &options)?;
    let write = move || {
        writer.producer.init_transactions(DELIVERY_TIMEOUT)?;
        let mut committed = Vec::new();
        let numbers: Vec<u64> = numbers.collect();
        for (index, transaction) in numbers.chunks(per_transaction).enumerate() {
            writer.producer.begin_transaction()?;
            for &number in transaction {
                writer.send(records.partition(number), &records.content(number))?;
            }
            writer.producer.flush(DELIVERY_TIMEOUT)?;
            if index % 3 == 2 {
                writer.producer.abort_transaction(DELIVERY_TIMEOUT)?;
            } else {
                writer.producer.commit_transaction(DELIVERY_TIMEOUT)?;
                committed.extend(transaction);
            }
        }
        Ok(committed)
    };
    tokio::task::spawn_blocking(write).await?
}

/// What several producers wrote, by partition, for [`crate::compare::same_records`].
pub fn contents(records: Numbered, numbers: impl IntoIterator<Item = u64>) -> BTreeMap<i32, Vec<Content>> {
    let mut partitions: BTreeMap<i32, Vec<Content>> = BTreeMap::new();
    for number in numbers {
        partitions.entry(records.partition(number)).or_default().push(records.content(number));
    }
    partitions
}
