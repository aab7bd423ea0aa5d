//! Metadata. Never creates a topic, whatever the client allows.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse};
use kafka_protocol::protocol::StrBytes;

use super::topic_name;
use crate::call::{Call, Part, Serve};
use crate::faults::Touched;
use crate::node::HOST;
use crate::state::State;
use crate::topic::{self, Partition, Topic};

impl Serve for MetadataRequest {
    fn touched(&self) -> Vec<Touched> {
        let names = self.topics.iter().flatten().filter_map(|topic| topic.name.as_ref());
        names.map(|name| Touched { topic: name.to_string(), partition: None }).collect()
    }

    async fn serve(self, call: &Call) -> MetadataResponse {
        let state = call.shared.lock();
        let all = match &self.topics {
            None => true,
            Some(topics) => call.version == 0 && topics.is_empty(),
        };
        let topics = if all {
            state.topics.keys().map(|name| known_topic(call, &state, name)).collect()
        } else {
            self.topics.iter().flatten().map(|wanted| wanted_topic(call, &state, wanted)).collect()
        };
        MetadataResponse::default()
            .with_throttle_time_ms(call.injected.throttle_ms)
            .with_brokers(brokers(&state))
            .with_cluster_id(Some(StrBytes::from_string(call.shared.options.cluster_id.clone())))
            .with_controller_id(BrokerId(state.controller()))
            .with_topics(topics)
    }
}

fn brokers(state: &State) -> Vec<MetadataResponseBroker> {
    let alive = state.nodes.iter().filter(|(_, node)| node.alive);
    alive
        .map(|(id, node)| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(*id))
                .with_host(StrBytes::from_static_str(HOST))
                .with_port(i32::from(node.port))
        })
        .collect()
}

fn wanted_topic(call: &Call, state: &State, wanted: &MetadataRequestTopic) -> MetadataResponseTopic {
    let by_id = !wanted.topic_id.is_nil();
    let name = match &wanted.name {
        Some(name) => Some(name.as_str()),
        None => state.name_of(wanted.topic_id),
    };
    let Some(name) = name else {
        let error = if by_id { ResponseError::UnknownTopicId } else { ResponseError::InvalidTopicException };
        // Before v12 an answer without a name can't be written.
        let name = (call.version < 12).then(|| topic_name(""));
        let answer = MetadataResponseTopic::default().with_topic_id(wanted.topic_id).with_name(name);
        return answer.with_error_code(error.code());
    };
    known_topic(call, state, name)
}

fn known_topic(call: &Call, state: &State, name: &str) -> MetadataResponseTopic {
    let answer = MetadataResponseTopic::default().with_name(Some(topic_name(name)));
    let outcome = call.attempt(Part::Topic(name), || {
        topic::check_name(name)?;
        state.topics.get(name).ok_or_else(|| ResponseError::UnknownTopicOrPartition.into())
    });
    match outcome {
        Ok(topic) => answer.with_topic_id(topic.id).with_partitions(partitions(state, topic)),
        Err(refusal) => answer.with_error_code(refusal.code()),
    }
}

fn partitions(state: &State, topic: &Topic) -> Vec<MetadataResponsePartition> {
    (0..).zip(&topic.partitions).map(|(index, partition)| partition_answer(state, index, partition)).collect()
}

fn partition_answer(state: &State, index: i32, partition: &Partition) -> MetadataResponsePartition {
    let (up, down): (Vec<i32>, Vec<i32>) = partition.replicas.iter().partition(|node| state.is_alive(**node));
    let error = if partition.leader.is_some() { 0 } else { ResponseError::LeaderNotAvailable.code() };
    MetadataResponsePartition::default()
        .with_error_code(error)
        .with_partition_index(index)
        .with_leader_id(BrokerId(partition.leader.unwrap_or(-1)))
        .with_leader_epoch(partition.leader_epoch)
        .with_replica_nodes(partition.replicas.iter().copied().map(BrokerId).collect())
        .with_isr_nodes(up.into_iter().map(BrokerId).collect())
        .with_offline_replicas(down.into_iter().map(BrokerId).collect())
}
