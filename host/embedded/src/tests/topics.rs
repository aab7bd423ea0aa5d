//! Topics, partitions, settings, nodes.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteRecordsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest, MetadataRequest,
};

use super::batch::BatchPlan;
use super::client::{Client, text, topic_name};
use super::cluster;
use crate::{Cluster, ClusterOptions, ResponseError};

async fn bench(nodes: usize) -> (Cluster, Client) {
    let cluster = cluster(nodes).await;
    let client = Client::connect(&cluster, 1).await;
    (cluster, client)
}

fn creation(name: &str, partitions: i32, factor: i16, configs: &[(&str, &str)]) -> CreateTopicsRequest {
    let configs = configs.iter().map(|(key, value)| {
        CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value)))
    });
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(partitions)
        .with_replication_factor(factor)
        .with_configs(configs.collect());
    CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(1000)
}

#[tokio::test]
async fn a_created_topic_is_described_at_once() {
    let (cluster, mut client) = bench(3).await;
    let answer = client.call(&creation("orders", 4, 2, &[("cleanup.policy", "compact")]), 7).await;
    let created = &answer.topics[0];
    assert_eq!((created.error_code, created.num_partitions, created.replication_factor), (0, 4, 2));
    let configs = created.configs.as_ref().unwrap();
    let policy = configs.iter().find(|config| config.name.as_str() == "cleanup.policy").unwrap();
    assert_eq!((policy.value.as_deref(), policy.config_source), (Some("compact"), 1));
    let metadata = client.metadata("orders").await;
    assert_eq!(metadata.topics[0].topic_id, created.topic_id);
    assert_eq!(metadata.cluster_id.as_deref(), Some("embedded"));
    let leaders: Vec<i32> =
        metadata.topics[0].partitions.iter().map(|partition| partition.leader_id.0).collect();
    assert_eq!(leaders, [1, 2, 3, 1]);
    let replicas: Vec<i32> =
        metadata.topics[0].partitions[2].replica_nodes.iter().map(|node| node.0).collect();
    assert_eq!(replicas, [3, 1]);
    let set = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
    assert_eq!(cluster.topic_configs("orders"), set);
}

#[tokio::test]
async fn bad_topics_are_refused_in_words() {
    let (cluster, mut client) = bench(1).await;
    cluster.create_topic("a.b", 1, &[]).unwrap();
    let mut check = async |request: CreateTopicsRequest, error: ResponseError, message: &str| {
        let answer = client.call(&request, 7).await;
        assert_eq!(answer.topics[0].error_code, error.code(), "{message}");
        assert_eq!(answer.topics[0].error_message.as_deref(), Some(message));
    };
    check(creation("a.b", 1, 1, &[]), ResponseError::TopicAlreadyExists, "topic 'a.b' already exists").await;
    check(
        creation("a_b", 1, 1, &[]),
        ResponseError::InvalidTopicException,
        "topic 'a_b' collides with existing topic: a.b",
    )
    .await;
    check(
        creation("a b", 1, 1, &[]),
        ResponseError::InvalidTopicException,
        "topic name \"a b\" is illegal: it takes 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', and may not be \".\" or \"..\"",
    )
    .await;
    check(
        creation("c", 0, 1, &[]),
        ResponseError::InvalidPartitions,
        "number of partitions was set to 0; it takes 1 to 10000",
    )
    .await;
    check(
        creation("c", 1, 2, &[]),
        ResponseError::InvalidReplicationFactor,
        "replication factor is 2, but there are 1 brokers alive",
    )
    .await;
    check(
        creation("c", 1, 1, &[("retention.mss", "1")]),
        ResponseError::InvalidConfig,
        "unknown topic config name: retention.mss",
    )
    .await;
    check(
        creation("c", 1, 1, &[("retention.ms", "soon")]),
        ResponseError::InvalidConfig,
        "invalid value soon for configuration retention.ms",
    )
    .await;
    assert_eq!(cluster.topics(), ["a.b"]);
    client.call(&creation("c", 1, 1, &[]).with_validate_only(true), 7).await;
    assert_eq!(cluster.topics(), ["a.b"]);
    client.call(&creation("c", -1, -1, &[]), 7).await;
    assert_eq!(cluster.partition_count("c"), 1);
}

#[tokio::test]
async fn a_topic_recreated_under_its_name_has_another_id() {
    let (cluster, mut client) = bench(1).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    let first = client.metadata("t").await.topics[0].topic_id;
    let by_id = DeleteTopicState::default().with_name(None).with_topic_id(first);
    let deleted = client.call(&DeleteTopicsRequest::default().with_topics(vec![by_id]), 6).await;
    assert_eq!((deleted.responses[0].error_code, deleted.responses[0].topic_id), (0, first));
    assert_eq!(
        client.metadata("t").await.topics[0].error_code,
        ResponseError::UnknownTopicOrPartition.code()
    );
    cluster.create_topic("t", 1, &[]).unwrap();
    let second = client.metadata("t").await.topics[0].topic_id;
    assert_ne!(first, second);
    let old = MetadataRequestTopic::default().with_name(None).with_topic_id(first);
    let answer = client.call(&MetadataRequest::default().with_topics(Some(vec![old])), 12).await;
    assert_eq!(answer.topics[0].error_code, ResponseError::UnknownTopicId.code());
}

#[tokio::test]
async fn partitions_only_grow() {
    let (cluster, mut client) = bench(2).await;
    cluster.create_topic("t", 2, &[]).unwrap();
    let mut grow = async |count: i32| {
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name("t"))
            .with_count(count)
            .with_assignments(None);
        client.call(&CreatePartitionsRequest::default().with_topics(vec![topic]), 3).await.results[0]
            .error_code
    };
    assert_eq!(grow(2).await, ResponseError::InvalidPartitions.code());
    assert_eq!(grow(1).await, ResponseError::InvalidPartitions.code());
    assert_eq!(grow(5).await, 0);
    assert_eq!(cluster.partition_count("t"), 5);
    assert_eq!(cluster.partition("t", 3).unwrap().leader, Some(2));
}

#[tokio::test]
async fn records_are_deleted_up_to_an_offset_or_to_the_end() {
    let (cluster, mut client) = bench(1).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    for _ in 0..3 {
        cluster.append_at_end("t", 0, &BatchPlan::records(2).build()).unwrap();
    }
    let mut delete = async |offset: i64| {
        let wanted = DeleteRecordsPartition::default().with_offset(offset);
        let topic = DeleteRecordsTopic::default().with_name(topic_name("t")).with_partitions(vec![wanted]);
        let answer = client.call(&DeleteRecordsRequest::default().with_topics(vec![topic]), 2).await;
        let found = &answer.topics[0].partitions[0];
        (found.low_watermark, found.error_code)
    };
    assert_eq!(delete(3).await, (3, 0));
    assert_eq!(cluster.log("t", 0).len(), 2);
    assert_eq!(delete(1).await, (3, 0));
    assert_eq!(delete(7).await, (-1, ResponseError::OffsetOutOfRange.code()));
    assert_eq!(delete(-1).await, (6, 0));
    assert_eq!(cluster.log("t", 0).len(), 0);
    assert_eq!(cluster.end_offset("t", 0), 6);
}

#[tokio::test]
async fn settings_are_described_with_their_source_and_changed_one_by_one() {
    let (cluster, mut client) = bench(1).await;
    cluster.create_topic("t", 1, &[("retention.ms", "5000")]).unwrap();
    let edit = |operation: i8, name: &str, value: Option<&str>| {
        AlterableConfig::default()
            .with_name(text(name))
            .with_config_operation(operation)
            .with_value(value.map(text))
    };
    let resource = AlterConfigsResource::default().with_resource_type(2).with_resource_name(text("t"));
    let edits = vec![
        edit(1, "retention.ms", None),
        edit(0, "segment.ms", Some("7000")),
        edit(2, "cleanup.policy", Some("compact")),
        edit(3, "cleanup.policy", Some("delete")),
    ];
    let request =
        IncrementalAlterConfigsRequest::default().with_resources(vec![resource.clone().with_configs(edits)]);
    assert_eq!(client.call(&request, 1).await.responses[0].error_code, 0);
    // One bad edit spoils the lot.
    let edits = vec![edit(0, "segment.ms", Some("1")), edit(0, "segment.ms", Some("never"))];
    let request =
        IncrementalAlterConfigsRequest::default().with_resources(vec![resource.with_configs(edits)]);
    assert_eq!(client.call(&request, 1).await.responses[0].error_code, ResponseError::InvalidConfig.code());
    let wanted = DescribeConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text("t"))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default().with_resources(vec![wanted]).with_include_synonyms(true);
    let answer = client.call(&request, 4).await;
    let configs = &answer.results[0].configs;
    assert_eq!(configs.len(), 33);
    let own: Vec<_> = configs
        .iter()
        .filter(|config| config.config_source == 1)
        .map(|config| {
            (config.name.to_string(), config.value.as_ref().unwrap().to_string(), config.synonyms.len())
        })
        .collect();
    let expected = [("cleanup.policy", "compact"), ("segment.ms", "7000")];
    assert_eq!(own, expected.map(|(name, value)| (name.to_owned(), value.to_owned(), 2)));
}

#[tokio::test]
async fn leaders_move_with_their_epoch() {
    let (cluster, mut client) = bench(3).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    cluster.move_leader("t", 0, 3).unwrap();
    let partition = client.metadata("t").await.topics[0].partitions[0].clone();
    assert_eq!((partition.leader_id.0, partition.leader_epoch), (3, 1));
    let error = cluster.move_leader("t", 0, 9).unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not move t[0] to node 9: the new leader is not up; alive: [1, 2, 3]"
    );
}

#[tokio::test]
async fn a_stopped_node_hangs_up_and_comes_back_on_its_port() {
    let options = ClusterOptions { nodes: 2, default_replication_factor: 2, ..ClusterOptions::default() };
    let cluster = Cluster::start(options).await.unwrap();
    cluster.create_topic("t", 2, &[]).unwrap();
    let mut client = Client::connect(&cluster, 2).await;
    let port = cluster.port(2);
    cluster.stop_node(2).await.unwrap();
    assert_eq!(client.receive().await, None);
    let mut other = Client::connect(&cluster, 1).await;
    let metadata = other.metadata("t").await;
    assert_eq!(metadata.brokers.len(), 1);
    let partition = &metadata.topics[0].partitions[1];
    assert_eq!((partition.leader_id.0, partition.leader_epoch, partition.isr_nodes.len()), (1, 1, 1));
    cluster.start_node(2).await.unwrap();
    assert_eq!(cluster.port(2), port);
    let mut client = Client::connect(&cluster, 2).await;
    assert_eq!(client.metadata("t").await.brokers.len(), 2);
    assert_eq!(
        cluster.start_node(2).await.unwrap_err().to_string(),
        "could not start node 2: it runs already"
    );
    cluster.shutdown().await;
}

#[tokio::test]
async fn without_another_replica_a_partition_has_no_leader_while_its_node_is_down() {
    let (cluster, mut client) = bench(2).await;
    cluster.create_topic("t", 2, &[]).unwrap();
    cluster.append_at_end("t", 1, &BatchPlan::records(3).build()).unwrap();
    cluster.stop_node(2).await.unwrap();
    let partition = client.metadata("t").await.topics[0].partitions[1].clone();
    assert_eq!((partition.leader_id.0, partition.error_code), (-1, ResponseError::LeaderNotAvailable.code()));
    cluster.start_node(2).await.unwrap();
    let info = cluster.partition("t", 1).unwrap();
    assert_eq!((info.leader, info.leader_epoch, info.end_offset), (Some(2), 1, 3));
}

#[tokio::test]
async fn the_cluster_describes_itself() {
    let (cluster, mut client) = bench(2).await;
    let answer = client.call(&DescribeClusterRequest::default(), 1).await;
    assert_eq!(
        (answer.cluster_id.as_str(), answer.controller_id.0, answer.brokers.len()),
        ("embedded", 1, 2)
    );
    let servers = format!("127.0.0.1:{},127.0.0.1:{}", cluster.port(1).unwrap(), cluster.port(2).unwrap());
    assert_eq!(cluster.bootstrap_servers(), servers);
}

#[tokio::test]
async fn a_taken_port_is_said() {
    let cluster = cluster(1).await;
    let port = cluster.port(1).unwrap();
    let options = ClusterOptions { ports: vec![port], ..ClusterOptions::default() };
    let error = Cluster::start(options).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("could not listen on 127.0.0.1:{port}; is another process using the port?")
    );
}
