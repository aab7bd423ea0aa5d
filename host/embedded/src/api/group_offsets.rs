//! OffsetCommit, OffsetFetch, OffsetDelete.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequestPartition;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, OffsetFetchRequest,
    OffsetFetchResponse,
};
use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use super::group_membership::check_coordinator;
use super::topic_name;
use crate::call::{Call, Part, Serve};
use crate::faults::Touched;
use crate::group::Group;
use crate::group::offsets::{Committed, METADATA_BYTES_MAX};
use crate::refusal::{Refusal, code_of};

/// Version from which OffsetFetch asks for several groups at once (KIP-709).
const MANY_GROUPS_VERSION: i16 = 8;
/// Version from which answers carry the leader epoch of an offset (KIP-320).
const LEADER_EPOCH_VERSION: i16 = 5;

impl Serve for OffsetCommitRequest {
    fn touched(&self) -> Vec<Touched> {
        let partitions = self.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.name.to_string(), partition.partition_index))
        });
        partitions.map(|(topic, partition)| Touched { topic, partition: Some(partition) }).collect()
    }

    async fn serve(self, call: &Call) -> OffsetCommitResponse {
        let allowed = check_commit(&self, call);
        let topics = self.topics.iter().map(|topic| {
            let commit = |wanted: &OffsetCommitRequestPartition| {
                let part = Part::Partition(&topic.name, wanted.partition_index);
                let outcome = call.attempt(part, || {
                    allowed?;
                    commit(call, &self.group_id, &topic.name, wanted)
                });
                OffsetCommitResponsePartition::default()
                    .with_partition_index(wanted.partition_index)
                    .with_error_code(code_of(&outcome))
            };
            let partitions = topic.partitions.iter().map(commit).collect();
            OffsetCommitResponseTopic::default().with_name(topic.name.clone()).with_partitions(partitions)
        });
        OffsetCommitResponse::default().with_topics(topics.collect())
    }
}

/// The group's side of a commit; also a sign of life of the member.
fn check_commit(request: &OffsetCommitRequest, call: &Call) -> Result<(), ResponseError> {
    let now = Instant::now();
    let mut state = call.shared.lock();
    check_coordinator(&state, call.node, &request.group_id)?;
    let generation = request.generation_id_or_member_epoch;
    if generation >= 0 && state.groups.get(&request.group_id).is_none() {
        return Err(ResponseError::IllegalGeneration);
    }
    let group = state.groups.open(&request.group_id, now)?;
    group.check_commit(&request.member_id, request.group_instance_id.as_deref(), generation)?;
    if let Some(member) = group.member_mut(&request.member_id) {
        member.heard_of(now);
    }
    Ok(())
}

fn commit(
    call: &Call,
    group: &str,
    topic: &str,
    wanted: &OffsetCommitRequestPartition,
) -> Result<(), Refusal> {
    let mut state = call.shared.lock();
    state.partition(topic, wanted.partition_index)?;
    let metadata = wanted.committed_metadata.as_ref().map(ToString::to_string).unwrap_or_default();
    if metadata.len() > METADATA_BYTES_MAX {
        return Err(ResponseError::OffsetMetadataTooLarge.into());
    }
    let (offset, leader_epoch) = (wanted.committed_offset, wanted.committed_leader_epoch);
    let group = state.groups.get_mut(group).ok_or(ResponseError::UnknownMemberId)?;
    group.offsets.set(topic, wanted.partition_index, Committed { offset, leader_epoch, metadata });
    Ok(())
}

/// Partitions per topic that are asked for; `None`: all that have an offset.
type Wanted = Option<Vec<(String, Vec<i32>)>>;
/// Topic → partition and its offset, or why not.
type FoundTopic = (String, Vec<(i32, Result<Option<Committed>, Refusal>)>);

impl Serve for OffsetFetchRequest {
    fn touched(&self) -> Vec<Touched> {
        let old = self
            .topics
            .iter()
            .flatten()
            .map(|topic| (topic.name.to_string(), topic.partition_indexes.clone()));
        let new = self.groups.iter().flat_map(|group| group.topics.iter().flatten());
        let new = new.map(|topic| (topic.name.to_string(), topic.partition_indexes.clone()));
        let touch = |(topic, partitions): (String, Vec<i32>)| {
            partitions.into_iter().map(move |index| Touched { topic: topic.clone(), partition: Some(index) })
        };
        old.chain(new).flat_map(touch).collect()
    }

    async fn serve(self, call: &Call) -> OffsetFetchResponse {
        if call.version < MANY_GROUPS_VERSION {
            let wanted = self.topics.map(|topics| {
                topics.into_iter().map(|topic| (topic.name.to_string(), topic.partition_indexes)).collect()
            });
            return one_group(call, &self.group_id, wanted);
        }
        let groups = self.groups.into_iter().map(|group| {
            let wanted = group.topics.map(|topics| {
                topics.into_iter().map(|topic| (topic.name.to_string(), topic.partition_indexes)).collect()
            });
            let answer = OffsetFetchResponseGroup::default().with_group_id(group.group_id.clone());
            match find(call, &group.group_id, wanted) {
                Err(refusal) => answer.with_error_code(refusal.code()),
                Ok(found) => answer.with_topics(found.into_iter().map(new_topic).collect()),
            }
        });
        OffsetFetchResponse::default().with_groups(groups.collect())
    }
}

fn one_group(call: &Call, group: &str, wanted: Wanted) -> OffsetFetchResponse {
    let answer = OffsetFetchResponse::default();
    match find(call, group, wanted.clone()) {
        Ok(found) => {
            let topics = found.into_iter().map(|topic| old_topic(topic, call.version));
            answer.with_topics(topics.collect())
        }
        // v1 has no error for the whole: every partition carries it.
        Err(refusal) if call.version < 2 => {
            let fail = |index| (index, Err(refusal.clone()));
            let topics = wanted.into_iter().flatten();
            let failed = topics.map(|(topic, indexes)| (topic, indexes.into_iter().map(fail).collect()));
            answer.with_topics(failed.map(|topic| old_topic(topic, call.version)).collect())
        }
        Err(refusal) => answer.with_error_code(refusal.code()),
    }
}

fn find(call: &Call, group: &str, wanted: Wanted) -> Result<Vec<FoundTopic>, Refusal> {
    call.attempt(Part::Whole, || {
        let state = call.shared.lock();
        check_coordinator(&state, call.node, group)?;
        let group = state.groups.get(group);
        let wanted = wanted.unwrap_or_else(|| group.map(all_committed).unwrap_or_default());
        let look = |(topic, indexes): (String, Vec<i32>)| {
            let offset = |index: i32| {
                let committed = group.and_then(|group| group.offsets.get(&topic, index)).cloned();
                (index, call.attempt(Part::Partition(&topic, index), || Ok(committed)))
            };
            let found = indexes.into_iter().map(offset).collect();
            (topic.clone(), found)
        };
        Ok(wanted.into_iter().map(look).collect())
    })
}

fn all_committed(group: &Group) -> Vec<(String, Vec<i32>)> {
    let topics = group.offsets.topics();
    topics.map(|(topic, partitions)| (topic.to_owned(), partitions.keys().copied().collect())).collect()
}

/// What stands for "nothing committed": offset −1 without an error.
fn or_none(found: Result<Option<Committed>, Refusal>) -> (Committed, i16) {
    let none = Committed { offset: -1, leader_epoch: -1, metadata: String::new() };
    match found {
        Ok(found) => (found.unwrap_or(none), 0),
        Err(refusal) => (none, refusal.code()),
    }
}

fn old_topic((topic, partitions): FoundTopic, version: i16) -> OffsetFetchResponseTopic {
    let partitions = partitions.into_iter().map(|(index, found)| {
        let (committed, error_code) = or_none(found);
        let leader_epoch = if version < LEADER_EPOCH_VERSION { -1 } else { committed.leader_epoch };
        OffsetFetchResponsePartition::default()
            .with_partition_index(index)
            .with_error_code(error_code)
            .with_committed_offset(committed.offset)
            .with_committed_leader_epoch(leader_epoch)
            .with_metadata(Some(StrBytes::from_string(committed.metadata)))
    });
    OffsetFetchResponseTopic::default().with_name(topic_name(&topic)).with_partitions(partitions.collect())
}

fn new_topic((topic, partitions): FoundTopic) -> OffsetFetchResponseTopics {
    let partitions = partitions.into_iter().map(|(index, found)| {
        let (committed, error_code) = or_none(found);
        OffsetFetchResponsePartitions::default()
            .with_partition_index(index)
            .with_error_code(error_code)
            .with_committed_offset(committed.offset)
            .with_committed_leader_epoch(committed.leader_epoch)
            .with_metadata(Some(StrBytes::from_string(committed.metadata)))
    });
    OffsetFetchResponseTopics::default().with_name(topic_name(&topic)).with_partitions(partitions.collect())
}

impl Serve for OffsetDeleteRequest {
    async fn serve(self, call: &Call) -> OffsetDeleteResponse {
        let allowed = call.attempt(Part::Whole, || {
            let state = call.shared.lock();
            check_coordinator(&state, call.node, &self.group_id)?;
            let group = state.groups.get(&self.group_id).ok_or(ResponseError::GroupIdNotFound)?;
            // Kafka looks into the members' subscriptions; a group with members is refused here whatever it
            // reads.
            if group.members.is_empty() { Ok(()) } else { Err(ResponseError::NonEmptyGroup.into()) }
        });
        if let Err(refusal) = allowed {
            return OffsetDeleteResponse::default().with_error_code(refusal.code());
        }
        let mut state = call.shared.lock();
        let mut topics = Vec::with_capacity(self.topics.len());
        for topic in &self.topics {
            let mut delete = |wanted: &OffsetDeleteRequestPartition| {
                if let Some(group) = state.groups.get_mut(&self.group_id) {
                    group.offsets.remove(&topic.name, wanted.partition_index);
                }
                OffsetDeleteResponsePartition::default().with_partition_index(wanted.partition_index)
            };
            let partitions = topic.partitions.iter().map(&mut delete).collect();
            topics.push(
                OffsetDeleteResponseTopic::default()
                    .with_name(topic.name.clone())
                    .with_partitions(partitions),
            );
        }
        OffsetDeleteResponse::default().with_topics(topics)
    }
}
