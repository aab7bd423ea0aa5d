//! Reads one partition record by record outside the data path: from an offset to the end as the leader tells it with each
//! answer, and on from there by long poll. It asks for no offsets beforehand.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use kafka_protocol::ResponseError;
use tidegate_wire::batch::{Batch, Batches, Decompressor, record_timestamp};
use tidegate_wire::client::{Client, FetchParameters, FetchPartition, FetchedPartition, Isolation};
use tidegate_wire::list_offsets::OffsetAt;
use tidegate_wire::metadata::TopicSelection;

use crate::names::TopicName;

/// The most that one fetch answers. A batch that is larger comes whole all the same.
const FETCH_BYTES_MAX: i32 = 4 << 20;

/// A batch unpacks to at most so much.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// Errors in a row are borne so many times …
const ERRORS_COUNT_MAX: u32 = 40;

/// … with this pause between them, in milliseconds.
const RETRY_MS: u64 = 50;

/// A record as it lies in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Where.
    pub offset: i64,
    /// Its time, in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// As it was sent.
    pub key: Option<Bytes>,
    /// None for a tombstone.
    pub value: Option<Bytes>,
    /// Names and values, in order.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

impl LogRecord {
    /// The value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let found = self.headers.iter().find(|(own, _)| own.as_ref() == name.as_bytes())?;
        found.1.as_deref()
    }
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub struct LogPart {
    /// What came, in order.
    pub records: Vec<LogRecord>,
    /// Nothing lay behind them when the leader answered.
    pub is_end: bool,
}

/// Where one reads.
pub struct LogReader {
    client: Client,
    topic: Arc<str>,
    partition: i32,
    next_offset: i64,
    decompressor: Decompressor,
}

impl LogReader {
    /// Begins at `offset`, or where the log begins if that is later. For long polls the client's connections must be its own.
    pub fn new(client: Client, topic: &TopicName, partition: i32, offset: i64) -> Self {
        Self {
            client,
            topic: topic.as_str().into(),
            partition,
            next_offset: offset,
            decompressor: Decompressor::new(UNPACKED_BYTES_MAX),
        }
    }

    /// The offset that is read next.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The next records; waits up to `wait` for them at the log's end. Errors that may pass are tried again for some seconds.
    pub async fn poll(&mut self, wait: Duration) -> anyhow::Result<LogPart> {
        let context =
            format!("could not read {}[{}] from offset {}", self.topic, self.partition, self.next_offset);
        let mut errors_count = 0;
        loop {
            let problem = match self.fetch(wait).await {
                Ok(fetched) => return self.take(&fetched).context(context),
                Err(problem) => problem,
            };
            errors_count += 1;
            if errors_count == ERRORS_COUNT_MAX {
                return Err(problem.context(context));
            }
            tokio::time::sleep(Duration::from_millis(RETRY_MS)).await;
            // A failure shows in the next attempt.
            let named = TopicSelection::Named(vec![Arc::clone(&self.topic)]);
            let _ = self.client.refresh_metadata(named).await;
        }
    }

    /// All records from here to the log's end, `bytes_max` bytes of keys and values at the most.
    pub async fn read_to_end(&mut self, bytes_max: usize) -> anyhow::Result<Vec<LogRecord>> {
        let mut records = Vec::new();
        let mut bytes = 0;
        loop {
            let part = self.poll(Duration::ZERO).await?;
            bytes += part.records.iter().map(size).sum::<usize>();
            anyhow::ensure!(
                bytes <= bytes_max,
                "{}[{}] holds more than {bytes_max} bytes, which this is not made for",
                self.topic,
                self.partition
            );
            records.extend(part.records);
            if part.is_end {
                return Ok(records);
            }
        }
    }

    async fn fetch(&self, wait: Duration) -> anyhow::Result<FetchedPartition> {
        let metadata = self.client.metadata();
        let (leader, leader_epoch) =
            metadata.leader(&self.topic, self.partition).context("the partition has no leader")?;
        let parameters = FetchParameters {
            max_wait_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: 1,
            max_bytes: FETCH_BYTES_MAX,
            isolation: Isolation::ReadUncommitted,
        };
        let asked = FetchPartition {
            topic: Arc::clone(&self.topic),
            partition: self.partition,
            offset: self.next_offset,
            leader_epoch,
            max_bytes: FETCH_BYTES_MAX,
        };
        let answer = self.client.fetch(leader, &parameters, &[asked]).await?;
        let mut fetched = answer.partitions.into_iter().next().context("the broker answered nothing")?;
        match fetched.error {
            None => Ok(fetched),
            Some(ResponseError::OffsetOutOfRange) => {
                if fetched.log_start_offset < 0 {
                    // Brokers don't tell it along with this error.
                    fetched.log_start_offset = self.first_offset().await?;
                }
                Ok(fetched)
            }
            Some(error) => anyhow::bail!("the broker answered {error:?}"),
        }
    }

    /// Where the log begins now.
    async fn first_offset(&self) -> anyhow::Result<i64> {
        let asked = [(Arc::clone(&self.topic), self.partition)];
        let listed = self.client.list_offsets(&asked, OffsetAt::Earliest, Isolation::ReadUncommitted).await?;
        let listed = listed.first().context("the broker did not tell where the log begins")?;
        match listed.error {
            None => Ok(listed.offset.unwrap_or(0)),
            Some(error) => anyhow::bail!("the broker answered {error:?}"),
        }
    }

    fn take(&mut self, fetched: &FetchedPartition) -> anyhow::Result<LogPart> {
        if fetched.error.is_some() {
            // The log begins behind us, or was made anew and ends before us.
            let begin = fetched.log_start_offset.max(0);
            anyhow::ensure!(
                begin != self.next_offset,
                "the broker has no offset {begin}, where the log begins"
            );
            self.next_offset = begin;
            return Ok(LogPart::default());
        }
        let mut part = LogPart::default();
        for batch in Batches::new(fetched.records.clone()) {
            let batch = batch?;
            if batch.header.next_offset() <= self.next_offset {
                continue;
            }
            self.take_batch(&batch, &mut part.records)?;
            self.next_offset = batch.header.next_offset();
        }
        part.is_end = self.next_offset >= fetched.high_watermark;
        Ok(part)
    }

    fn take_batch(&mut self, batch: &Batch, records: &mut Vec<LogRecord>) -> anyhow::Result<()> {
        batch.check_crc()?;
        if batch.header.is_control() {
            return Ok(());
        }
        for record in self.decompressor.records(batch)? {
            let record = record?;
            let offset = batch.header.base_offset + i64::from(record.offset_delta);
            if offset < self.next_offset {
                continue;
            }
            let headers = record.headers.iter();
            let headers =
                headers.map(|(name, value)| (Bytes::copy_from_slice(name), copied(value))).collect();
            records.push(LogRecord {
                offset,
                timestamp_ms: record_timestamp(&batch.header, &record),
                key: copied(record.key),
                value: copied(record.value),
                headers,
            });
        }
        Ok(())
    }
}

fn copied(bytes: Option<&[u8]>) -> Option<Bytes> {
    bytes.map(Bytes::copy_from_slice)
}

fn size(record: &LogRecord) -> usize {
    let part = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
    part(&record.key) + part(&record.value)
}

#[cfg(test)]
mod tests {
    use tidegate_embedded::{Cluster, ClusterOptions};
    use tidegate_wire::batch::{BatchBuilder, Codec};
    use tidegate_wire::client::ClientOptions;

    use super::*;

    #[tokio::test]
    async fn a_log_whose_first_records_are_gone_is_read_from_where_it_begins() {
        let cluster = Cluster::start(ClusterOptions::default()).await.unwrap();
        cluster.create_topic("kept", 1, &[]).unwrap();
        for value in ["a", "b", "c"] {
            let mut builder = BatchBuilder::new();
            builder.start(Codec::None);
            builder.push_parts(None, Some(value.as_bytes()), &[], 1);
            let batch = builder.finish().unwrap().to_batch();
            cluster.append_at_end("kept", 0, &batch.bytes).unwrap();
        }
        cluster.delete_records("kept", 0, 2).unwrap();
        let options = ClientOptions {
            bootstrap_servers: vec![cluster.bootstrap_servers()],
            ..ClientOptions::default()
        };
        let client = Client::connect(options).await.unwrap();
        let mut reader = LogReader::new(client, &TopicName::parse("kept").unwrap(), 0, 0);

        let records = reader.read_to_end(1_000).await.unwrap();

        let seen: Vec<_> = records.iter().map(|record| (record.offset, record.value.as_deref())).collect();
        assert_eq!(seen, [(2, Some(b"c".as_slice()))]);
        cluster.shutdown().await;
    }
}
