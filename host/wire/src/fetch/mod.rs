//! Reading batches from a leader: Fetch 4 to 12, by topic name and without a fetch session. Records are slices of the answer, never
//! copied; the codec of all other requests is not used for the answer.

mod answer;
mod committed;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::fetch_request::{FetchPartition as AskedPartition, FetchTopic};
use kafka_protocol::messages::{ApiKey, BrokerId, FetchRequest, TopicName};
use kafka_protocol::protocol::{Encodable, StrBytes};

use crate::client::{Client, Isolation};
use crate::connection::malformed;
use crate::error::{NodeId, WireError};

pub use committed::CommittedFilter;

/// "No session": the whole list of partitions comes with every request (KIP-227).
const SESSION_ID_NONE: i32 = 0;
const SESSION_EPOCH_NONE: i32 = -1;
/// We are no replica.
const REPLICA_NONE: i32 = -1;
/// Leader epochs are sent from this version on (KIP-320).
const LEADER_EPOCH_VERSION: i16 = 9;
/// The request names a session from this version on.
const SESSION_VERSION: i16 = 7;

/// What holds for a whole fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchParameters {
    /// How long the broker may wait for `min_bytes` (`fetch.max.wait.ms`).
    pub max_wait_ms: i32,
    /// What is worth an answer before that (`fetch.min.bytes`).
    pub min_bytes: i32,
    /// Bound on the records of an answer (`fetch.max.bytes`); a first batch that is larger comes all the same.
    pub max_bytes: i32,
    /// Whether transactions that are open or aborted are seen.
    pub isolation: Isolation,
}

/// One partition that is asked for. The broker fills the answer in this order, so callers rotate it to be fair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchPartition {
    /// Its topic.
    pub topic: Arc<str>,
    /// Its number.
    pub partition: i32,
    /// First offset that is wanted; the batch that holds it comes whole.
    pub offset: i64,
    /// From metadata; the broker refuses when its own differs. −1 to not check.
    pub leader_epoch: i32,
    /// Bound on this partition's records (`max.partition.fetch.bytes`), first batch as above.
    pub max_bytes: i32,
}

/// A broker's answer.
#[derive(Debug, Clone)]
pub struct FetchAnswer {
    /// What the broker asked us to wait; the connection has it in hand.
    pub throttle_ms: i32,
    /// In the broker's order. A broker that throttles leaves them all out: look by topic and number, never by place.
    pub partitions: Vec<FetchedPartition>,
}

/// What came of one partition.
#[derive(Debug, Clone)]
pub struct FetchedPartition {
    /// Its topic: the same allocation as in the question.
    pub topic: Arc<str>,
    /// Its number.
    pub partition: i32,
    /// Why there are no records.
    pub error: Option<ResponseError>,
    /// First offset that is not replicated yet.
    pub high_watermark: i64,
    /// First offset of an open transaction, else the high watermark. −1 when not told.
    pub last_stable_offset: i64,
    /// First offset that retention has left. −1 when not told.
    pub log_start_offset: i64,
    /// Aborted transactions among the records; only for [`Isolation::ReadCommitted`].
    pub aborted: Vec<AbortedTransaction>,
    /// Whole batches, the last perhaps cut off. A slice of the answer.
    pub records: Bytes,
}

/// Batches of this producer from this offset up to its abort marker are not to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Whose.
    pub producer_id: i64,
    /// From where.
    pub first_offset: i64,
}

impl Client {
    /// Fetches from `node`, which leads these partitions. Blocks the node's connection while the broker waits.
    pub async fn fetch(
        &self,
        node: NodeId,
        parameters: &FetchParameters,
        partitions: &[FetchPartition],
    ) -> Result<FetchAnswer, WireError> {
        let connection = self.connection(node)?;
        let request = request(parameters, partitions);
        let queued = connection.queue(ApiKey::Fetch, move |version| encode(request, version)).await?;
        let answer = queued.answer().await?;
        let read = answer::read(&answer.body, answer.version, partitions)
            .map_err(|broken| malformed(ApiKey::Fetch, &answer, broken.position, broken.reason.to_owned()))?;
        match read.error {
            None => Ok(FetchAnswer { throttle_ms: read.throttle_ms, partitions: read.partitions }),
            Some(error) => Err(WireError::Refused {
                address: Arc::clone(connection.address()),
                api: ApiKey::Fetch,
                error,
                message: None,
            }),
        }
    }
}

/// The request for the newest version that we speak.
fn request(parameters: &FetchParameters, partitions: &[FetchPartition]) -> FetchRequest {
    let mut topics: Vec<FetchTopic> = Vec::new();
    // The broker's order of filling is the order here, so a topic may come several times.
    for run in partitions.chunk_by(|one, next| one.topic == next.topic) {
        let name = TopicName(StrBytes::from_string(run[0].topic.to_string()));
        topics.push(FetchTopic::default().with_topic(name).with_partitions(run.iter().map(asked).collect()));
    }
    FetchRequest::default()
        .with_replica_id(BrokerId(REPLICA_NONE))
        .with_max_wait_ms(parameters.max_wait_ms)
        .with_min_bytes(parameters.min_bytes)
        .with_max_bytes(parameters.max_bytes)
        .with_isolation_level(parameters.isolation.level())
        .with_session_id(SESSION_ID_NONE)
        .with_session_epoch(SESSION_EPOCH_NONE)
        .with_topics(topics)
}

fn asked(partition: &FetchPartition) -> AskedPartition {
    AskedPartition::default()
        .with_partition(partition.partition)
        .with_current_leader_epoch(partition.leader_epoch)
        .with_fetch_offset(partition.offset)
        .with_partition_max_bytes(partition.max_bytes)
}

/// Older versions lack fields that the codec refuses to leave out when they are set.
fn encode(mut request: FetchRequest, version: i16) -> Result<Bytes, WireError> {
    if version < SESSION_VERSION {
        request.session_epoch = FetchRequest::default().session_epoch;
    }
    if version < LEADER_EPOCH_VERSION {
        for partition in request.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            partition.current_leader_epoch = AskedPartition::default().current_leader_epoch;
        }
    }
    let mut body = BytesMut::new();
    match request.encode(&mut body, version) {
        Ok(()) => Ok(body.freeze()),
        Err(error) => Err(WireError::Unwritable { api: ApiKey::Fetch, version, reason: error.to_string() }),
    }
}
