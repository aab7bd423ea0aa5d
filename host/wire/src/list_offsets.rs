//! Where partitions begin and end, and where a time lies in them: ListOffsets to each leader, asked again after a metadata refresh
//! for partitions whose leader has moved.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::{ApiKey, BrokerId, ListOffsetsRequest, ListOffsetsResponse, TopicName};
use kafka_protocol::protocol::{Encodable, StrBytes};

use crate::backoff::{Backoff, seed_by_chance};
use crate::client::{Client, Isolation};
use crate::connection::{Queued, decode_answer};
use crate::error::{NodeId, WireError};
use crate::metadata::{ClusterMetadata, TopicSelection};

/// Rounds over the leaders before what still fails is told.
const ROUNDS_MAX: u32 = 8;
const ROUND_BACKOFF: Duration = Duration::from_millis(50);
const ROUND_BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Leader epochs are sent from this version on (KIP-320).
const LEADER_EPOCH_VERSION: i16 = 4;
/// The request has a bound on its time from this version on (KIP-1075).
const TIMEOUT_VERSION: i16 = 10;
const REPLICA_NONE: i32 = -1;

/// Which offset is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetAt {
    /// First that retention has left.
    Earliest,
    /// Behind the last record; with [`Isolation::ReadCommitted`] behind the last that is decided.
    Latest,
    /// First record with this timestamp or a later one.
    TimestampMs(i64),
}

impl OffsetAt {
    fn timestamp(self) -> i64 {
        match self {
            OffsetAt::Latest => -1,
            OffsetAt::Earliest => -2,
            OffsetAt::TimestampMs(timestamp) => timestamp,
        }
    }
}

/// What came of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedOffset {
    /// Its topic.
    pub topic: Arc<str>,
    /// Its number.
    pub partition: i32,
    /// The offset. None with an error, or when no record is as late as the time that was asked for.
    pub offset: Option<i64>,
    /// The found record's timestamp; −1 unless a time was asked for.
    pub timestamp_ms: i64,
    /// Epoch of the leader that wrote there; −1 when not told.
    pub leader_epoch: i32,
    /// Why there is none, after all rounds.
    pub error: Option<ResponseError>,
}

/// A request on its way and the partitions in it.
struct Asked {
    queued: Result<Queued, WireError>,
    partitions: Vec<(Arc<str>, i32)>,
}

/// What one round brought.
#[derive(Default)]
struct Round {
    listed: Vec<ListedOffset>,
    /// To be asked again: the leader is unknown or has moved.
    moved: Vec<ListedOffset>,
    /// The last failure of a whole request.
    failure: Option<WireError>,
}

impl Client {
    /// Asks the leaders of these partitions, all at once, and follows moves for a bounded number of rounds. What a partition's leader
    /// refuses is told in its entry; an error is a cluster that can't be asked.
    pub async fn list_offsets(
        &self,
        partitions: &[(Arc<str>, i32)],
        at: OffsetAt,
        isolation: Isolation,
    ) -> Result<Vec<ListedOffset>, WireError> {
        let mut backoff = Backoff::new(ROUND_BACKOFF, ROUND_BACKOFF_MAX, seed_by_chance());
        let mut listed = Vec::with_capacity(partitions.len());
        let mut missing = partitions.to_vec();
        let mut round_count = 0;
        if missing.iter().any(|(topic, number)| self.metadata().leader(topic, *number).is_none()) {
            self.refresh_metadata(topics_of(&missing)).await?;
        }
        while !missing.is_empty() {
            round_count += 1;
            let round = self.list_round(missing, at, isolation).await?;
            listed.extend(round.listed);
            if round.moved.is_empty() {
                break;
            }
            if round_count >= ROUNDS_MAX {
                match round.failure {
                    Some(failure) => return Err(failure),
                    None => listed.extend(round.moved),
                }
                break;
            }
            missing = round.moved.into_iter().map(|moved| (moved.topic, moved.partition)).collect();
            tokio::time::sleep(backoff.next_wait()).await;
            self.refresh_metadata(topics_of(&missing)).await?;
        }
        Ok(listed)
    }

    async fn list_round(
        &self,
        partitions: Vec<(Arc<str>, i32)>,
        at: OffsetAt,
        isolation: Isolation,
    ) -> Result<Round, WireError> {
        let metadata = self.metadata();
        let mut round = Round::default();
        let mut by_leader: BTreeMap<NodeId, Vec<(Arc<str>, i32)>> = BTreeMap::new();
        for (topic, partition) in partitions {
            match metadata.leader(&topic, partition) {
                Some((leader, _)) => by_leader.entry(leader).or_default().push((topic, partition)),
                None => round.no_leader(&metadata, topic, partition),
            }
        }
        let mut asked = Vec::with_capacity(by_leader.len());
        for (leader, partitions) in by_leader {
            let request = request(&metadata, &partitions, at, isolation, self.options().request_timeout);
            let queued = self.queue_list(leader, request).await;
            asked.push(Asked { queued, partitions });
        }
        for asked in asked {
            let answer = match asked.queued {
                Ok(queued) => queued.answer().await,
                Err(error) => Err(error),
            };
            match answer.and_then(|answer| decode_answer(ApiKey::ListOffsets, &answer)) {
                Ok(answer) => round.take(asked.partitions, &answer),
                Err(error) if error.is_retriable() => round.failed(asked.partitions, error),
                Err(error) => return Err(error),
            }
        }
        Ok(round)
    }

    async fn queue_list(&self, leader: NodeId, request: ListOffsetsRequest) -> Result<Queued, WireError> {
        let connection = self.connection(leader)?;
        connection.queue(ApiKey::ListOffsets, move |version| encode(request, version)).await
    }
}

impl Round {
    fn no_leader(&mut self, metadata: &ClusterMetadata, topic: Arc<str>, partition: i32) {
        let known = metadata.topics.get(&topic);
        let error = known.and_then(|known| {
            known.error.or_else(|| known.partitions.get(&partition).and_then(|partition| partition.error))
        });
        let error = error.unwrap_or(match known {
            Some(known) if known.partitions.contains_key(&partition) => ResponseError::LeaderNotAvailable,
            _ => ResponseError::UnknownTopicOrPartition,
        });
        self.sort_in(unlisted(topic, partition, error));
    }

    /// Sorts the answer's partitions into done and moved.
    fn take(&mut self, asked: Vec<(Arc<str>, i32)>, answer: &ListOffsetsResponse) {
        let mut found: BTreeMap<(&str, i32), &ListOffsetsPartitionResponse> = BTreeMap::new();
        for topic in &answer.topics {
            for partition in &topic.partitions {
                found.insert((topic.name.as_str(), partition.partition_index), partition);
            }
        }
        for (topic, partition) in asked {
            let found = found.get(&(&*topic, partition)).copied();
            let listed = match found {
                Some(found) => listed(topic, found),
                // A broker that leaves out what it was asked for has nothing to say about it.
                None => unlisted(topic, partition, ResponseError::UnknownTopicOrPartition),
            };
            self.sort_in(listed);
        }
    }

    fn failed(&mut self, asked: Vec<(Arc<str>, i32)>, error: WireError) {
        let moved = |(topic, partition)| unlisted(topic, partition, ResponseError::LeaderNotAvailable);
        self.moved.extend(asked.into_iter().map(moved));
        self.failure = Some(error);
    }

    fn sort_in(&mut self, listed: ListedOffset) {
        if listed.error.is_some_and(|error| error.is_retriable()) {
            self.moved.push(listed);
        } else {
            self.listed.push(listed);
        }
    }
}

fn listed(topic: Arc<str>, found: &ListOffsetsPartitionResponse) -> ListedOffset {
    let error = ResponseError::try_from_code(found.error_code);
    ListedOffset {
        topic,
        partition: found.partition_index,
        offset: Some(found.offset).filter(|offset| error.is_none() && *offset >= 0),
        timestamp_ms: found.timestamp,
        leader_epoch: found.leader_epoch,
        error,
    }
}

fn unlisted(topic: Arc<str>, partition: i32, error: ResponseError) -> ListedOffset {
    ListedOffset { topic, partition, offset: None, timestamp_ms: -1, leader_epoch: -1, error: Some(error) }
}

fn topics_of(partitions: &[(Arc<str>, i32)]) -> TopicSelection {
    let mut topics: Vec<Arc<str>> = partitions.iter().map(|(topic, _)| Arc::clone(topic)).collect();
    topics.sort_unstable();
    topics.dedup();
    TopicSelection::Named(topics)
}

fn request(
    metadata: &ClusterMetadata,
    partitions: &[(Arc<str>, i32)],
    at: OffsetAt,
    isolation: Isolation,
    timeout: Duration,
) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for (topic, partition) in partitions {
        let epoch = metadata.leader(topic, *partition).map_or(-1, |(_, epoch)| epoch);
        let asked = ListOffsetsPartition::default()
            .with_partition_index(*partition)
            .with_current_leader_epoch(epoch)
            .with_timestamp(at.timestamp());
        topics.entry(topic).or_default().push(asked);
    }
    let topics = topics.into_iter().map(|(topic, partitions)| {
        let name = TopicName(StrBytes::from_string(topic.to_owned()));
        ListOffsetsTopic::default().with_name(name).with_partitions(partitions)
    });
    ListOffsetsRequest::default()
        .with_replica_id(BrokerId(REPLICA_NONE))
        .with_isolation_level(isolation.level())
        .with_topics(topics.collect())
        .with_timeout_ms(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
}

/// Older versions lack fields that the codec refuses to leave out when they are set.
fn encode(mut request: ListOffsetsRequest, version: i16) -> Result<Bytes, WireError> {
    if version < TIMEOUT_VERSION {
        request.timeout_ms = ListOffsetsRequest::default().timeout_ms;
    }
    if version < LEADER_EPOCH_VERSION {
        for partition in request.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            partition.current_leader_epoch = ListOffsetsPartition::default().current_leader_epoch;
        }
    }
    let mut body = BytesMut::new();
    match request.encode(&mut body, version) {
        Ok(()) => Ok(body.freeze()),
        Err(error) => {
            Err(WireError::Unwritable { api: ApiKey::ListOffsets, version, reason: error.to_string() })
        }
    }
}
