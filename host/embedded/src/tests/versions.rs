//! Every version that ApiVersions offers is really served, and none beside it.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::Request;

use super::client::{Client, decode, request_frame, text, topic_name};
use super::cluster;
use crate::versions::SPOKEN;
use crate::{Cluster, ResponseError};

#[tokio::test]
async fn api_versions_offers_what_the_table_says() {
    let cluster = cluster(1).await;
    let mut client = Client::connect(&cluster, 1).await;
    for version in 0..=4 {
        let answer = client.call(&ApiVersionsRequest::default(), version).await;
        assert_eq!(answer.error_code, 0);
        let offered: Vec<_> =
            answer.api_keys.iter().map(|one| (one.api_key, one.min_version, one.max_version)).collect();
        let expected: Vec<_> = SPOKEN.iter().map(|one| (one.api as i16, one.min, one.max)).collect();
        assert_eq!(offered, expected, "version {version}");
    }
}

#[tokio::test]
async fn an_unknown_api_versions_version_is_answered_in_version_0() {
    let cluster = cluster(1).await;
    let mut client = Client::connect(&cluster, 1).await;
    let mut frame = request_frame(&ApiVersionsRequest::default(), 4, 77);
    frame[6..8].copy_from_slice(&99_i16.to_be_bytes());
    client.send_bytes(&frame).await;
    let (correlation_id, answer) = decode::<ApiVersionsRequest>(client.receive().await.unwrap(), 0).unwrap();
    assert_eq!((correlation_id, answer.error_code), (77, ResponseError::UnsupportedVersion.code()));
    assert_eq!(answer.api_keys.len(), 1);
    assert_eq!((answer.api_keys[0].api_key, answer.api_keys[0].max_version), (18, 4));
    // The connection goes on.
    assert_eq!(client.call(&ApiVersionsRequest::default(), 3).await.error_code, 0);
}

#[tokio::test]
async fn unknown_versions_and_apis_and_nonsense_hang_up() {
    let cluster = cluster(1).await;
    let mut produce = request_frame(&ProduceRequest::default(), 9, 1);
    produce[6..8].copy_from_slice(&10_i16.to_be_bytes());
    let mut unknown = request_frame(&ApiVersionsRequest::default(), 0, 1);
    unknown[4..6].copy_from_slice(&9999_i16.to_be_bytes());
    let mut cut = request_frame(&FetchRequest::default(), 12, 1);
    let length = i32::try_from(cut.len() - 4 - 3).unwrap();
    cut.truncate(cut.len() - 3);
    cut[..4].copy_from_slice(&length.to_be_bytes());
    let too_long = BytesMut::from(&i32::MAX.to_be_bytes()[..]);
    let negative = BytesMut::from(&(-1_i32).to_be_bytes()[..]);
    for bytes in [produce, unknown, cut, too_long, negative, BytesMut::from(&[0, 0, 0, 1, 9][..])] {
        let mut client = Client::connect(&cluster, 1).await;
        client.send_bytes(&bytes).await;
        assert_eq!(client.receive().await, None);
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let cluster = cluster(1).await;
    let mut client = Client::connect(&cluster, 1).await;
    let mut sent = Vec::new();
    for _ in 0..20 {
        sent.push(client.send(&MetadataRequest::default(), 12).await);
    }
    for correlation_id in sent {
        let (answered, _) = decode::<MetadataRequest>(client.receive().await.unwrap(), 12).unwrap();
        assert_eq!(answered, correlation_id);
    }
}

/// Sends an otherwise empty request in every version that is offered and decodes the answers.
async fn check_all<R: Request>(cluster: &Cluster, request: impl Fn(i16) -> R) {
    let spoken = SPOKEN.iter().find(|spoken| spoken.api as i16 == R::KEY).unwrap();
    let mut client = Client::connect(cluster, 1).await;
    for version in spoken.min..=spoken.max {
        let answer = client.try_call(&request(version), version).await;
        assert!(answer.is_some(), "{:?} version {version} was not answered", spoken.api);
    }
}

#[tokio::test]
async fn every_offered_version_is_answered() {
    let cluster = cluster(1).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    let group = || GroupId(text("g"));
    let only = |wanted: bool, name: &str| wanted.then(|| topic_name(name));
    check_all(&cluster, |_| super::producing::request("t", 0, Some(Bytes::new())).with_acks(1)).await;
    check_all(&cluster, |_| {
        super::producing::request("t", 0, Some(super::batch::BatchPlan::records(1).build()))
    })
    .await;
    check_all(&cluster, |_| super::fetching::request("t", 0, 0)).await;
    check_all(&cluster, |_| super::fetching::request("t", 0, 99)).await;
    check_all(&cluster, |_| {
        use list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
        let partitions = vec![ListOffsetsPartition::default().with_timestamp(-1)];
        let topic = ListOffsetsTopic::default().with_name(topic_name("t")).with_partitions(partitions);
        ListOffsetsRequest::default().with_topics(vec![topic])
    })
    .await;
    check_all(&cluster, |version| {
        use metadata_request::MetadataRequestTopic;
        let known = MetadataRequestTopic::default().with_name(Some(topic_name("t")));
        let unknown = MetadataRequestTopic::default().with_name(Some(topic_name("u")));
        let by_id = MetadataRequestTopic::default().with_name(None).with_topic_id(uuid::Uuid::from_u128(9));
        let mut topics = vec![known, unknown];
        topics.extend((version >= 12).then_some(by_id));
        MetadataRequest::default().with_topics(Some(topics))
    })
    .await;
    check_all(&cluster, |version| MetadataRequest::default().with_topics((version == 0).then(Vec::new)))
        .await;
    check_all(&cluster, |_| {
        use offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
        let partitions = vec![OffsetCommitRequestPartition::default().with_committed_offset(5)];
        let topic =
            OffsetCommitRequestTopic::default().with_name(topic_name("t")).with_partitions(partitions);
        OffsetCommitRequest::default()
            .with_group_id(group())
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![topic])
    })
    .await;
    check_all(&cluster, |version| {
        use offset_fetch_request::{
            OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
        };
        if version >= 8 {
            let topic = OffsetFetchRequestTopics::default()
                .with_name(topic_name("t"))
                .with_partition_indexes(vec![0, 1]);
            let group =
                OffsetFetchRequestGroup::default().with_group_id(group()).with_topics(Some(vec![topic]));
            return OffsetFetchRequest::default().with_groups(vec![group]);
        }
        let topic =
            OffsetFetchRequestTopic::default().with_name(topic_name("t")).with_partition_indexes(vec![0, 1]);
        OffsetFetchRequest::default().with_group_id(group()).with_topics(Some(vec![topic]))
    })
    .await;
    check_all(&cluster, |version| {
        let request = FindCoordinatorRequest::default();
        if version >= 4 {
            request.with_coordinator_keys(vec![text("g")])
        } else {
            request.with_key(text("g"))
        }
    })
    .await;
    check_all(&cluster, |_| JoinGroupRequest::default().with_group_id(group())).await;
    check_all(&cluster, |_| SyncGroupRequest::default().with_group_id(group())).await;
    check_all(&cluster, |_| HeartbeatRequest::default().with_group_id(group())).await;
    check_all(&cluster, |_| LeaveGroupRequest::default().with_group_id(group())).await;
    check_all(&cluster, |_| DescribeGroupsRequest::default().with_groups(vec![group()])).await;
    check_all(&cluster, |_| ListGroupsRequest::default()).await;
    check_all(&cluster, |version| {
        use create_topics_request::{CreatableTopic, CreatableTopicConfig};
        let name = format!("new-{version}");
        let config =
            CreatableTopicConfig::default().with_name(text("retention.ms")).with_value(Some(text("5")));
        let topic = CreatableTopic::default()
            .with_name(topic_name(&name))
            .with_num_partitions(2)
            .with_replication_factor(1)
            .with_configs(vec![config]);
        let bad = CreatableTopic::default().with_name(topic_name("t")).with_num_partitions(1);
        CreateTopicsRequest::default().with_topics(vec![topic, bad])
    })
    .await;
    check_all(&cluster, |version| {
        use create_partitions_request::CreatePartitionsTopic;
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name("t"))
            .with_count(2 + i32::from(version))
            .with_assignments(None);
        CreatePartitionsRequest::default().with_topics(vec![topic])
    })
    .await;
    check_all(&cluster, |version| {
        use delete_topics_request::DeleteTopicState;
        if version < 6 {
            return DeleteTopicsRequest::default()
                .with_topic_names(vec![topic_name("u"), topic_name(&format!("new-{version}"))]);
        }
        let state = DeleteTopicState::default().with_name(only(true, "new-6"));
        let by_id = DeleteTopicState::default().with_topic_id(uuid::Uuid::from_u128(9)).with_name(None);
        DeleteTopicsRequest::default().with_topics(vec![state, by_id])
    })
    .await;
    check_all(&cluster, |_| {
        use delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
        let topic = DeleteRecordsTopic::default()
            .with_name(topic_name("t"))
            .with_partitions(vec![DeleteRecordsPartition::default().with_offset(-1)]);
        DeleteRecordsRequest::default().with_topics(vec![topic])
    })
    .await;
    check_all(&cluster, |_| InitProducerIdRequest::default()).await;
    check_all(&cluster, |_| {
        use offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
        let topic = OffsetForLeaderTopic::default()
            .with_topic(topic_name("t"))
            .with_partitions(vec![OffsetForLeaderPartition::default()]);
        OffsetForLeaderEpochRequest::default().with_topics(vec![topic])
    })
    .await;
    check_all(&cluster, |_| {
        use describe_configs_request::DescribeConfigsResource;
        let topic = DescribeConfigsResource::default().with_resource_type(2).with_resource_name(text("t"));
        let unknown = DescribeConfigsResource::default().with_resource_type(2).with_resource_name(text("u"));
        let broker = DescribeConfigsResource::default().with_resource_type(4).with_resource_name(text("1"));
        DescribeConfigsRequest::default()
            .with_resources(vec![topic.with_configuration_keys(None), unknown, broker])
            .with_include_synonyms(true)
    })
    .await;
    check_all(&cluster, |_| {
        use alter_configs_request::AlterConfigsResource;
        let topic = AlterConfigsResource::default().with_resource_type(2).with_resource_name(text("t"));
        AlterConfigsRequest::default().with_resources(vec![topic])
    })
    .await;
    check_all(&cluster, |_| {
        use incremental_alter_configs_request::AlterConfigsResource;
        let topic = AlterConfigsResource::default().with_resource_type(2).with_resource_name(text("t"));
        let broker = AlterConfigsResource::default().with_resource_type(4).with_resource_name(text("1"));
        IncrementalAlterConfigsRequest::default().with_resources(vec![topic, broker])
    })
    .await;
    check_all(&cluster, |_| OffsetDeleteRequest::default().with_group_id(group())).await;
    check_all(&cluster, |_| DeleteGroupsRequest::default().with_groups_names(vec![group()])).await;
    check_all(&cluster, |_| DescribeClusterRequest::default()).await;
    check_all(&cluster, |_| ApiVersionsRequest::default()).await;
}
