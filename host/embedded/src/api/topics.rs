//! CreateTopics, CreatePartitions, DeleteTopics, DeleteRecords. Every node takes them, as KRaft brokers do.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::delete_records_request::DeleteRecordsPartition;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteRecordsRequest, DeleteRecordsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::topic_name;
use crate::call::{Call, Part, Serve};
use crate::faults::Touched;
use crate::refusal::{Refusal, code_of};
use crate::settings::{TOPIC_SETTINGS, TopicSettings};
use crate::state::{NewTopic, PARTITIONS_PER_TOPIC_MAX, State};
use crate::topic::Topic;

/// Version from which CreateTopics answers with the topic's settings (KIP-525).
const DESCRIBING_VERSION: i16 = 5;
/// DeleteRecords: everything before the high watermark.
const TO_HIGH_WATERMARK: i64 = -1;

fn touch(names: impl Iterator<Item = String>) -> Vec<Touched> {
    names.map(|topic| Touched { topic, partition: None }).collect()
}

impl Serve for CreateTopicsRequest {
    fn touched(&self) -> Vec<Touched> {
        touch(self.topics.iter().map(|topic| topic.name.to_string()))
    }

    async fn serve(self, call: &Call) -> CreateTopicsResponse {
        let names: Vec<_> = self.topics.iter().map(|topic| topic.name.clone()).collect();
        let create = |topic: &CreatableTopic| {
            let twice = names.iter().filter(|name| **name == topic.name).count() > 1;
            let outcome = call.attempt(Part::Topic(&topic.name), || {
                if twice {
                    return Err(Refusal::new(ResponseError::InvalidRequest, "duplicate topic name"));
                }
                create(call, topic, self.validate_only)
            });
            outcome.unwrap_or_else(|refusal| {
                CreatableTopicResult::default()
                    .with_name(topic.name.clone())
                    .with_error_code(refusal.code())
                    .with_error_message(refusal.wire_message())
                    .with_configs(Some(Vec::new()))
            })
        };
        CreateTopicsResponse::default().with_topics(self.topics.iter().map(create).collect())
    }
}

fn create(call: &Call, topic: &CreatableTopic, validate_only: bool) -> Result<CreatableTopicResult, Refusal> {
    let mut settings = TopicSettings::default();
    for config in &topic.configs {
        settings.set(&config.name, config.value.as_deref())?;
    }
    let new = NewTopic {
        partition_count: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: assignments(&topic.assignments)?,
        settings: settings.clone(),
    };
    let answer = CreatableTopicResult::default().with_name(topic.name.clone()).with_error_message(None);
    let mut state = call.shared.lock();
    state.create_topic(&topic.name, new, call.shared.options.default_replication_factor, validate_only)?;
    let answer = match state.topics.get(topic.name.as_str()) {
        Some(created) => describe(answer, created),
        None => answer,
    };
    let described = (call.version >= DESCRIBING_VERSION).then(|| configs(&settings));
    Ok(answer.with_configs(described.or(Some(Vec::new()))))
}

/// Partitions must be numbered 0, 1, 2 … without gaps.
fn assignments(wanted: &[CreatableReplicaAssignment]) -> Result<Vec<Vec<i32>>, Refusal> {
    let mut sorted: Vec<_> = wanted.iter().collect();
    sorted.sort_by_key(|assignment| assignment.partition_index);
    if !(0..).zip(&sorted).all(|(index, assignment): (i32, _)| index == assignment.partition_index) {
        return Err(Refusal::new(
            ResponseError::InvalidReplicaAssignment,
            "partitions should be a consecutive 0-based integer sequence",
        ));
    }
    Ok(sorted.iter().map(|assignment| assignment.broker_ids.iter().map(|id| id.0).collect()).collect())
}

fn describe(answer: CreatableTopicResult, topic: &Topic) -> CreatableTopicResult {
    let partitions = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
    let replicas = topic.partitions.first().map_or(0, |partition| partition.replicas.len());
    answer
        .with_topic_id(topic.id)
        .with_num_partitions(partitions)
        .with_replication_factor(i16::try_from(replicas).unwrap_or(i16::MAX))
}

fn configs(settings: &TopicSettings) -> Vec<CreatableTopicConfigs> {
    let describe = |setting: &crate::settings::Setting| {
        CreatableTopicConfigs::default()
            .with_name(StrBytes::from_static_str(setting.name))
            .with_value(Some(StrBytes::from_string(settings.get(setting).to_owned())))
            .with_config_source(settings.source(setting) as i8)
    };
    TOPIC_SETTINGS.iter().map(describe).collect()
}

impl Serve for CreatePartitionsRequest {
    fn touched(&self) -> Vec<Touched> {
        touch(self.topics.iter().map(|topic| topic.name.to_string()))
    }

    async fn serve(self, call: &Call) -> CreatePartitionsResponse {
        let grow = |topic: &CreatePartitionsTopic| {
            let outcome = call.attempt(Part::Topic(&topic.name), || {
                grow(&mut call.shared.lock(), topic, self.validate_only)
            });
            CreatePartitionsTopicResult::default()
                .with_name(topic.name.clone())
                .with_error_code(code_of(&outcome))
                .with_error_message(outcome.err().and_then(|refusal| refusal.wire_message()))
        };
        CreatePartitionsResponse::default().with_results(self.topics.iter().map(grow).collect())
    }
}

fn grow(state: &mut State, topic: &CreatePartitionsTopic, validate_only: bool) -> Result<(), Refusal> {
    let Some(existing) = state.topics.get(topic.name.as_str()) else {
        return Err(ResponseError::UnknownTopicOrPartition.into());
    };
    let current = i32::try_from(existing.partitions.len()).unwrap_or(i32::MAX);
    let replicas = existing.partitions.first().map_or(1, |partition| partition.replicas.len());
    if topic.count <= current || topic.count > PARTITIONS_PER_TOPIC_MAX {
        return Err(Refusal::new(
            ResponseError::InvalidPartitions,
            format!(
                "the topic has {current} partitions; {} would not be an increase that we can make",
                topic.count
            ),
        ));
    }
    let added = match &topic.assignments {
        None => state.spread(current, topic.count, i16::try_from(replicas).unwrap_or(i16::MAX))?,
        Some(wanted) => {
            let wanted: Vec<Vec<i32>> =
                wanted.iter().map(|one| one.broker_ids.iter().map(|id| id.0).collect()).collect();
            state.check_assignments(&wanted)?;
            if i32::try_from(wanted.len()) != Ok(topic.count - current) {
                return Err(ResponseError::InvalidReplicaAssignment.into());
            }
            wanted
        }
    };
    if validate_only {
        return Ok(());
    }
    let added: Vec<_> = added.into_iter().map(|replicas| state.new_partition(replicas)).collect();
    if let Some(existing) = state.topics.get_mut(topic.name.as_str()) {
        existing.partitions.extend(added);
    }
    Ok(())
}

impl Serve for DeleteTopicsRequest {
    fn touched(&self) -> Vec<Touched> {
        let by_name = self.topic_names.iter().map(|name| name.to_string());
        touch(
            by_name.chain(
                self.topics.iter().filter_map(|topic| topic.name.as_ref().map(|name| name.to_string())),
            ),
        )
    }

    async fn serve(self, call: &Call) -> DeleteTopicsResponse {
        // Before v6 there is a list of names alone.
        let by_name =
            self.topic_names.into_iter().map(|name| DeleteTopicState::default().with_name(Some(name)));
        let all = by_name.chain(self.topics);
        DeleteTopicsResponse::default().with_responses(all.map(|topic| delete(call, topic)).collect())
    }
}

fn delete(call: &Call, wanted: DeleteTopicState) -> DeletableTopicResult {
    let known = |id| call.shared.lock().name_of(id).map(str::to_owned);
    let name = wanted.name.as_ref().map(|name| name.to_string()).or_else(|| known(wanted.topic_id));
    let Some(name) = name else {
        return DeletableTopicResult::default()
            .with_topic_id(wanted.topic_id)
            .with_error_code(ResponseError::UnknownTopicId.code());
    };
    let outcome = call.attempt(Part::Topic(&name), || {
        let mut state = call.shared.lock();
        let gone = state.topics.remove(&name).ok_or(ResponseError::UnknownTopicOrPartition)?;
        state.groups.forget_topic(&name);
        Ok(gone.id)
    });
    let answer = DeletableTopicResult::default()
        .with_name(Some(topic_name(&name)))
        .with_error_code(code_of(&outcome))
        .with_topic_id(outcome.as_ref().copied().unwrap_or(wanted.topic_id));
    let message = outcome.err().and_then(|refusal| refusal.wire_message());
    // The message came with v5.
    if call.version >= 5 { answer.with_error_message(message) } else { answer }
}

impl Serve for DeleteRecordsRequest {
    fn touched(&self) -> Vec<Touched> {
        let partitions = self.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.name.to_string(), partition.partition_index))
        });
        partitions.map(|(topic, partition)| Touched { topic, partition: Some(partition) }).collect()
    }

    async fn serve(self, call: &Call) -> DeleteRecordsResponse {
        let topics = self.topics.into_iter().map(|topic| {
            let delete = |wanted: &DeleteRecordsPartition| {
                let part = Part::Partition(&topic.name, wanted.partition_index);
                let outcome = call.attempt(part, || delete_records(call, &topic.name, wanted));
                DeleteRecordsPartitionResult::default()
                    .with_partition_index(wanted.partition_index)
                    .with_error_code(code_of(&outcome))
                    .with_low_watermark(outcome.unwrap_or(-1))
            };
            let partitions = topic.partitions.iter().map(delete).collect();
            DeleteRecordsTopicResult::default().with_name(topic.name.clone()).with_partitions(partitions)
        });
        DeleteRecordsResponse::default().with_topics(topics.collect())
    }
}

fn delete_records(call: &Call, topic: &str, wanted: &DeleteRecordsPartition) -> Result<i64, Refusal> {
    let mut state = call.shared.lock();
    let partition = state.partition_mut(topic, wanted.partition_index)?;
    partition.check_leader(call.node, -1)?;
    let log = &mut partition.log;
    let before = if wanted.offset == TO_HIGH_WATERMARK { log.end_offset() } else { wanted.offset };
    if !(0..=log.end_offset()).contains(&before) {
        return Err(ResponseError::OffsetOutOfRange.into());
    }
    log.delete_before(before);
    Ok(log.start_offset())
}
