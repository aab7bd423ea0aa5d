//! Writes single batches outside the data path: decisions about plugins, quarantined records that are played again.
//! Waits for all in-sync replicas; a batch whose answer was lost is sent again under the same sequence number, so it stands in
//! the log once.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use tidegate_wire::batch::{BatchBuilder, Codec, ProducerFields, produce_header};
use tidegate_wire::client::Client;
use tidegate_wire::metadata::TopicSelection;
use tidegate_wire::produce::{ProducerIdentity, init_producer_id};

use super::admin::text;
use crate::names::TopicName;

/// How long the leader may wait for its replicas, in milliseconds.
const ACKS_TIMEOUT_MS: i32 = 10_000;

/// A batch is tried so many times …
const ATTEMPTS_COUNT_MAX: u32 = 40;

/// … with this pause between them, in milliseconds.
const RETRY_MS: u64 = 50;

/// A record to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRecord {
    /// Null for none.
    pub key: Option<Bytes>,
    /// Null for a tombstone.
    pub value: Option<Bytes>,
    /// Names and values, in order.
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    /// Its time, in milliseconds since the epoch.
    pub timestamp_ms: i64,
}

/// Writes one batch at a time. Knows no lanes and no workers; for bulk there is the relay.
pub struct Appender {
    client: Client,
    identity: Option<ProducerIdentity>,
    /// The next sequence number of each partition that was written to.
    sequences: HashMap<(TopicName, i32), i32>,
}

impl Appender {
    /// Asks for nothing yet. The client's connections should be its own: a fetch that waits would hold the batch up.
    pub fn new(client: Client) -> Self {
        Self { client, identity: None, sequences: HashMap::new() }
    }

    /// The client that it writes with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Appends `records` as one uncompressed batch; gives the offset of the first. After an error it is not known whether they
    /// were written.
    pub async fn append(
        &mut self,
        topic: &TopicName,
        partition: i32,
        records: &[NewRecord],
    ) -> anyhow::Result<i64> {
        let end = self.try_append(topic, partition, records).await;
        if end.is_err() {
            // What the broker has seen of this identity is not known any more.
            self.identity = None;
            self.sequences.clear();
        }
        end.with_context(|| format!("could not write to {topic}[{partition}]"))
    }

    async fn try_append(
        &mut self,
        topic: &TopicName,
        partition: i32,
        records: &[NewRecord],
    ) -> anyhow::Result<i64> {
        let identity = match self.identity {
            Some(identity) => identity,
            None => *self.identity.insert(init_producer_id(&self.client).await?),
        };
        let key = (topic.clone(), partition);
        let base_sequence = self.sequences.get(&key).copied().unwrap_or(0);
        let batch = encode(records, identity, base_sequence)?;
        let offset = self.send(topic, partition, batch).await?;
        let count = i32::try_from(records.len()).unwrap_or(i32::MAX);
        // Sequence numbers go round after the largest one.
        let next = base_sequence.checked_add(count).unwrap_or_else(|| base_sequence - i32::MAX + count - 1);
        self.sequences.insert(key, next);
        Ok(offset)
    }

    async fn send(&self, topic: &TopicName, partition: i32, batch: Bytes) -> anyhow::Result<i64> {
        let mut problem = anyhow::anyhow!("the partition has no leader");
        for attempt in 0..ATTEMPTS_COUNT_MAX {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(RETRY_MS)).await;
                let named = TopicSelection::Named(vec![topic.as_str().into()]);
                // A failure shows in the attempt that follows.
                let _ = self.client.refresh_metadata(named).await;
            }
            let Some((leader, _)) = self.client.metadata().leader(topic.as_str(), partition) else {
                continue;
            };
            let answer = self.client.call(leader, request(topic, partition, batch.clone())).await;
            match answer {
                Err(error) if error.is_retriable() => problem = error.into(),
                Err(error) => return Err(error.into()),
                Ok(answer) => {
                    let topics = answer.responses.first();
                    let Some(told) = topics.and_then(|topic| topic.partition_responses.first()) else {
                        bail!("the broker's answer is empty")
                    };
                    match ResponseError::try_from_code(told.error_code) {
                        // Written by an earlier attempt, whose answer was lost.
                        None | Some(ResponseError::DuplicateSequenceNumber) => return Ok(told.base_offset),
                        Some(error) if error.is_retriable() => {
                            problem = anyhow::anyhow!("the broker answered {error:?}");
                        }
                        Some(error) => {
                            let words =
                                told.error_message.as_ref().map(|words| format!(": {}", words.as_str()));
                            bail!("the broker answered {error:?}{}", words.unwrap_or_default())
                        }
                    }
                }
            }
        }
        Err(problem.context(format!("{ATTEMPTS_COUNT_MAX} attempts failed")))
    }
}

fn encode(records: &[NewRecord], identity: ProducerIdentity, base_sequence: i32) -> anyhow::Result<Bytes> {
    let mut builder = BatchBuilder::new();
    builder.start(Codec::None);
    for record in records {
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            record.headers.iter().map(|(name, value)| (name.as_ref(), value.as_deref())).collect();
        builder.push_parts(record.key.as_deref(), record.value.as_deref(), &headers, record.timestamp_ms);
    }
    let built = builder.finish()?;
    let fields = ProducerFields { producer_id: identity.id, producer_epoch: identity.epoch, base_sequence };
    let mut bytes = BytesMut::with_capacity(built.header.total_bytes());
    bytes.put_slice(&produce_header(&built.header, fields));
    bytes.put_slice(&built.payload);
    Ok(bytes.freeze())
}

fn request(topic: &TopicName, partition: i32, batch: Bytes) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch));
    let topic = TopicProduceData::default()
        .with_name(kafka_protocol::messages::TopicName(text(topic.as_str())))
        .with_partition_data(vec![data]);
    ProduceRequest::default().with_acks(-1).with_timeout_ms(ACKS_TIMEOUT_MS).with_topic_data(vec![topic])
}
