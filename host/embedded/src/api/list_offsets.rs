//! ListOffsets and OffsetForLeaderEpoch: questions about a log that don't read it.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{
    ListOffsetsRequest, ListOffsetsResponse, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
};

use crate::call::{Call, Part, Serve};
use crate::faults::Touched;
use crate::log::Stored;
use crate::refusal::Refusal;

/// Version from which answers carry a leader epoch (KIP-320).
const LEADER_EPOCH_VERSION: i16 = 4;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;

impl Serve for ListOffsetsRequest {
    fn touched(&self) -> Vec<Touched> {
        let partitions = self.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.name.to_string(), partition.partition_index))
        });
        partitions.map(|(topic, partition)| Touched { topic, partition: Some(partition) }).collect()
    }

    async fn serve(self, call: &Call) -> ListOffsetsResponse {
        let committed_only = self.isolation_level == 1;
        let topics = self.topics.into_iter().map(|topic| {
            let find = |wanted: &ListOffsetsPartition| {
                let part = Part::Partition(&topic.name, wanted.partition_index);
                let outcome = call.attempt(part, || find_offset(call, &topic.name, wanted, committed_only));
                offset_answer(call.version, wanted.partition_index, outcome)
            };
            let partitions = topic.partitions.iter().map(find).collect();
            ListOffsetsTopicResponse::default().with_name(topic.name.clone()).with_partitions(partitions)
        });
        ListOffsetsResponse::default()
            .with_topics(topics.collect())
            .with_throttle_time_ms(call.injected.throttle_ms)
    }
}

struct FoundOffset {
    offset: i64,
    timestamp: i64,
    leader_epoch: i32,
}

fn find_offset(
    call: &Call,
    topic: &str,
    wanted: &ListOffsetsPartition,
    committed_only: bool,
) -> Result<FoundOffset, Refusal> {
    let state = call.shared.lock();
    let partition = state.partition(topic, wanted.partition_index)?;
    partition.check_leader(call.node, wanted.current_leader_epoch)?;
    let log = &partition.log;
    let end = if committed_only { log.last_stable_offset() } else { log.end_offset() };
    let at_batch = |stored: &Stored| FoundOffset {
        offset: stored.header.base_offset.max(log.start_offset()),
        timestamp: stored.header.max_timestamp,
        leader_epoch: log.epoch_at(stored.header.base_offset),
    };
    let nowhere = FoundOffset { offset: -1, timestamp: -1, leader_epoch: -1 };
    match wanted.timestamp {
        LATEST => Ok(FoundOffset { offset: end, timestamp: -1, leader_epoch: partition.leader_epoch }),
        EARLIEST => {
            let offset = log.start_offset();
            Ok(FoundOffset { offset, timestamp: -1, leader_epoch: log.epoch_at(offset) })
        }
        MAX_TIMESTAMP => Ok(log.max_timestamp().map_or(nowhere, at_batch)),
        timestamp if timestamp >= 0 => {
            let found = log.find_timestamp(timestamp).filter(|stored| stored.header.base_offset < end);
            Ok(found.map_or(nowhere, at_batch))
        }
        other => Err(Refusal::new(
            ResponseError::UnsupportedVersion,
            format!("timestamp {other} has no meaning in this version"),
        )),
    }
}

fn offset_answer(
    version: i16,
    index: i32,
    outcome: Result<FoundOffset, Refusal>,
) -> ListOffsetsPartitionResponse {
    let answer = ListOffsetsPartitionResponse::default().with_partition_index(index);
    match outcome {
        Ok(found) => {
            let leader_epoch = if version < LEADER_EPOCH_VERSION { -1 } else { found.leader_epoch };
            answer.with_offset(found.offset).with_timestamp(found.timestamp).with_leader_epoch(leader_epoch)
        }
        Err(refusal) => {
            answer.with_error_code(refusal.code()).with_offset(-1).with_timestamp(-1).with_leader_epoch(-1)
        }
    }
}

impl Serve for OffsetForLeaderEpochRequest {
    fn touched(&self) -> Vec<Touched> {
        let partitions = self.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.topic.to_string(), partition.partition))
        });
        partitions.map(|(topic, partition)| Touched { topic, partition: Some(partition) }).collect()
    }

    async fn serve(self, call: &Call) -> OffsetForLeaderEpochResponse {
        let topics = self.topics.into_iter().map(|topic| {
            let find = |wanted: &OffsetForLeaderPartition| {
                let part = Part::Partition(&topic.topic, wanted.partition);
                let outcome = call.attempt(part, || end_of_epoch(call, &topic.topic, wanted));
                epoch_answer(wanted.partition, outcome)
            };
            let partitions = topic.partitions.iter().map(find).collect();
            OffsetForLeaderTopicResult::default().with_topic(topic.topic.clone()).with_partitions(partitions)
        });
        OffsetForLeaderEpochResponse::default().with_topics(topics.collect())
    }
}

fn end_of_epoch(call: &Call, topic: &str, wanted: &OffsetForLeaderPartition) -> Result<(i32, i64), Refusal> {
    let state = call.shared.lock();
    let partition = state.partition(topic, wanted.partition)?;
    partition.check_leader(call.node, wanted.current_leader_epoch)?;
    Ok(partition.log.end_of_epoch(wanted.leader_epoch, partition.leader_epoch))
}

fn epoch_answer(index: i32, outcome: Result<(i32, i64), Refusal>) -> EpochEndOffset {
    let answer = EpochEndOffset::default().with_partition(index);
    match outcome {
        Ok((leader_epoch, end_offset)) => answer.with_leader_epoch(leader_epoch).with_end_offset(end_offset),
        Err(refusal) => answer.with_error_code(refusal.code()).with_leader_epoch(-1).with_end_offset(-1),
    }
}
