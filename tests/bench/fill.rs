//! Filling a source topic with batches of a wanted size, and checking that they lie so in the log.

use std::fmt;
use std::time::Duration;

use anyhow::ensure;
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use tidegate_tests::batch_log::stored_batches;
use tidegate_tests::{KafkaCluster, Numbered, end_offsets, topics};

use crate::workload::{HEADERS, PARTITION_COUNT, Policy, Workload};

/// Values are dealt from so many different ones: making each anew would take longer than sending it.
const VALUE_COUNT: u64 = 4_096;
const FLUSH_TIMEOUT: Duration = Duration::from_secs(120);

/// What lies in the source's log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filled {
    pub(crate) batch_count: usize,
    pub(crate) stored_bytes: u64,
    pub(crate) records_per_batch: f64,
}

impl fmt::Display for Filled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.stored_bytes / 1_048_576;
        let (batches, records) = (self.batch_count, self.records_per_batch);
        write!(formatter, "{batches} batches of {records:.0} records, {mebibytes} MiB in the log")
    }
}

/// Makes and fills the workload's topic.
pub(crate) async fn fill(source: &KafkaCluster, workload: &Workload) -> anyhow::Result<Filled> {
    topics::create_topic(source, &workload.topic(), PARTITION_COUNT, &[]).await?;
    let producer: ThreadedProducer<DefaultProducerContext> = ClientConfig::new()
        .set("bootstrap.servers", source.bootstrap_servers())
        .set("enable.idempotence", "true")
        .set("compression.type", workload.codec)
        .set("batch.size", workload.batch_bytes.to_string())
        .set("batch.num.messages", "1000000")
        .set("linger.ms", "2000")
        .set("queue.buffering.max.messages", "500000")
        .set("queue.buffering.max.kbytes", "262144")
        .create()?;
    let work = *workload;
    tokio::task::spawn_blocking(move || send_all(&producer, &work)).await??;
    let ends: i64 = end_offsets(source, &workload.topic()).await?.values().sum();
    ensure!(
        ends == i64::try_from(workload.record_count)?,
        "{ends} of {} records arrived",
        workload.record_count
    );
    look_into_log(source, workload)
}

fn send_all(producer: &ThreadedProducer<DefaultProducerContext>, workload: &Workload) -> anyhow::Result<()> {
    let topic = workload.topic();
    let records =
        Numbered { producer: 1, partition_count: PARTITION_COUNT, value_bytes: workload.value_bytes };
    // Number 1 of 16 has a plain key and value.
    let values: Vec<Vec<u8>> =
        (0..VALUE_COUNT).map(|number| records.content(number * 16 + 1).value.unwrap_or_default()).collect();
    for number in 0..workload.record_count {
        let key = format!("{number:09}");
        let value = &values[(number % VALUE_COUNT) as usize];
        let partition = (number % PARTITION_COUNT as u64) as i32;
        let mut record =
            BaseRecord::to(&topic).partition(partition).key(key.as_str()).payload(value.as_slice());
        if workload.policy != Policy::None {
            record = record.headers(headers());
        }
        while let Err((error, back)) = producer.send(record) {
            let full = matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull));
            ensure!(full, "could not fill {topic}: {error}");
            record = back;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(producer.flush(FLUSH_TIMEOUT)?)
}

fn headers() -> OwnedHeaders {
    HEADERS.iter().fold(OwnedHeaders::new_with_capacity(HEADERS.len()), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(*value) })
    })
}

/// Bytes of a record's headers in the log, with their lengths.
fn header_bytes(workload: &Workload) -> usize {
    match workload.policy {
        Policy::None => 0,
        _ => HEADERS.iter().map(|(key, value)| key.len() + value.len() + 2).sum(),
    }
}

/// Most batches must be nearly as large as wanted, or the figures would be those of another workload.
fn look_into_log(source: &KafkaCluster, workload: &Workload) -> anyhow::Result<Filled> {
    let mut batches = Vec::new();
    for partition in 0..PARTITION_COUNT {
        batches.extend(stored_batches(source, &workload.topic(), partition)?);
    }
    let batch_count = batches.len().max(1);
    let records_per_batch = workload.record_count as f64 / batch_count as f64;
    let wanted =
        workload.batch_bytes as f64 / ((workload.value_bytes + header_bytes(workload)) as f64 + 20.0);
    ensure!(
        (0.7..1.3).contains(&(records_per_batch / wanted)),
        "batches hold {records_per_batch:.0} records on average instead of about {wanted:.0}"
    );
    Ok(Filled {
        batch_count,
        stored_bytes: batches.iter().map(|batch| batch.bytes as u64).sum(),
        records_per_batch,
    })
}
