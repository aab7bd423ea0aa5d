//! The classic group protocol, request by request.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest,
    OffsetFetchRequest, SyncGroupRequest,
};

use super::client::{Client, decode, text, topic_name};
use super::cluster;
use crate::{Cluster, ResponseError};

pub(crate) fn join_request(group: &str, member_id: &str, protocols: &[&str]) -> JoinGroupRequest {
    let protocols = protocols.iter().map(|name| {
        JoinGroupRequestProtocol::default()
            .with_name(text(name))
            .with_metadata(Bytes::from_static(b"subscription"))
    });
    JoinGroupRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_member_id(text(member_id))
        .with_protocol_type(text("consumer"))
        .with_protocols(protocols.collect())
        .with_session_timeout_ms(6000)
        .with_rebalance_timeout_ms(6000)
}

/// Asks for a member id, as a new client does.
async fn member_id(client: &mut Client, request: &JoinGroupRequest) -> String {
    let asked = client.call(request, 9).await;
    assert_eq!(asked.error_code, ResponseError::MemberIdRequired.code());
    asked.member_id.to_string()
}

/// Joins as a new client does: once without an id, once with the id that it was given.
pub(crate) async fn join(client: &mut Client, request: JoinGroupRequest) -> JoinGroupResponse {
    let id = member_id(client, &request).await;
    client.call(&request.with_member_id(text(&id)), 9).await
}

/// Joins with a session of 300 ms and hangs up.
pub(crate) async fn join_and_vanish(cluster: &Cluster, group: &str) {
    let mut client = Client::connect(cluster, 1).await;
    let session = Duration::from_millis(300);
    let request = join_request(group, "", &["range"])
        .with_session_timeout_ms(i32::try_from(session.as_millis()).unwrap());
    let joined = join(&mut client, request).await;
    assert_eq!(joined.error_code, 0);
}

fn sync(member_id: &str, generation: i32, assignments: &[(&str, &'static str)]) -> SyncGroupRequest {
    let assignments = assignments.iter().map(|(member, bytes)| {
        SyncGroupRequestAssignment::default()
            .with_member_id(text(member))
            .with_assignment(Bytes::from_static(bytes.as_bytes()))
    });
    SyncGroupRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_member_id(text(member_id))
        .with_generation_id(generation)
        .with_protocol_type(Some(text("consumer")))
        .with_protocol_name(Some(text("range")))
        .with_assignments(assignments.collect())
}

async fn heartbeat(client: &mut Client, member_id: &str, generation: i32) -> i16 {
    let request = HeartbeatRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_member_id(text(member_id))
        .with_generation_id(generation);
    client.call(&request, 4).await.error_code
}

fn commit(member_id: &str, generation: i32, topic: &str, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(offset)
        .with_committed_leader_epoch(3)
        .with_committed_metadata(Some(text("note")));
    let topic =
        OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(GroupId(text("g")))
        .with_member_id(text(member_id))
        .with_generation_id_or_member_epoch(generation)
        .with_topics(vec![topic])
}

async fn commit_error(client: &mut Client, request: &OffsetCommitRequest) -> i16 {
    client.call(request, 8).await.topics[0].partitions[0].error_code
}

async fn describe(client: &mut Client) -> (String, usize) {
    let request = DescribeGroupsRequest::default().with_groups(vec![GroupId(text("g"))]);
    let group = client.call(&request, 5).await.groups[0].clone();
    (group.group_state.to_string(), group.members.len())
}

#[tokio::test]
async fn two_members_go_through_a_rebalance() {
    let cluster = cluster(1).await;
    let (mut one, mut two) = (Client::connect(&cluster, 1).await, Client::connect(&cluster, 1).await);
    assert_eq!(describe(&mut one).await, ("Dead".to_owned(), 0));
    let first = join(&mut one, join_request("g", "", &["range", "other"])).await;
    assert_eq!((first.error_code, first.generation_id), (0, 1));
    assert_eq!((&first.leader, first.members.len()), (&first.member_id, 1));
    assert_eq!(heartbeat(&mut one, &first.member_id, 1).await, 0);
    let synced = one.call(&sync(&first.member_id, 1, &[(&first.member_id, "all")]), 5).await;
    assert_eq!((synced.error_code, &synced.assignment[..]), (0, &b"all"[..]));
    assert_eq!(describe(&mut one).await, ("Stable".to_owned(), 1));

    // The second one waits in JoinGroup until the first has heard of it and comes again.
    let request = join_request("g", "", &["range"]);
    let second_id = member_id(&mut two, &request).await;
    two.send(&request.with_member_id(text(&second_id)), 9).await;
    let mut third = Client::connect(&cluster, 1).await;
    while describe(&mut third).await.0 != "PreparingRebalance" {}
    assert_eq!(heartbeat(&mut one, &first.member_id, 1).await, ResponseError::RebalanceInProgress.code());
    let again = one.call(&join_request("g", &first.member_id, &["range", "other"]), 9).await;
    assert_eq!((again.error_code, again.generation_id, again.members.len()), (0, 2, 2));
    let (_, second) = decode::<JoinGroupRequest>(two.receive().await.unwrap(), 9).unwrap();
    assert_eq!((second.error_code, second.generation_id, second.members.len()), (0, 2, 0));
    assert_eq!((second.leader, second.protocol_name), (first.member_id.clone(), Some(text("range"))));

    // The follower's SyncGroup waits for the leader's.
    two.send(&sync(&second_id, 2, &[]), 5).await;
    let halves = [(&*first.member_id, "left"), (&*second_id, "right")];
    let left = one.call(&sync(&first.member_id, 2, &halves), 5).await;
    let (_, right) = decode::<SyncGroupRequest>(two.receive().await.unwrap(), 5).unwrap();
    assert_eq!((&left.assignment[..], &right.assignment[..]), (&b"left"[..], &b"right"[..]));

    // One leaves; the other is told, and is alone after its next JoinGroup.
    let leaver = MemberIdentity::default().with_member_id(text(&second_id)).with_group_instance_id(None);
    let leave = LeaveGroupRequest::default().with_group_id(GroupId(text("g"))).with_members(vec![leaver]);
    assert_eq!(two.call(&leave, 5).await.members[0].error_code, 0);
    assert_eq!(heartbeat(&mut one, &first.member_id, 2).await, ResponseError::RebalanceInProgress.code());
    let alone = one.call(&join_request("g", &first.member_id, &["range"]), 9).await;
    assert_eq!((alone.generation_id, alone.members.len()), (3, 1));
}

#[tokio::test]
async fn strangers_and_old_generations_are_refused() {
    let cluster = cluster(1).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    let mut client = Client::connect(&cluster, 1).await;
    let unknown = ResponseError::UnknownMemberId.code();
    assert_eq!(heartbeat(&mut client, "nobody", 1).await, unknown);
    let joined = join(&mut client, join_request("g", "", &["range"])).await;
    assert_eq!(heartbeat(&mut client, "nobody", 1).await, unknown);
    let illegal = ResponseError::IllegalGeneration.code();
    assert_eq!(heartbeat(&mut client, &joined.member_id, 7).await, illegal);
    assert_eq!(client.call(&sync("nobody", 1, &[]), 5).await.error_code, unknown);
    assert_eq!(client.call(&sync(&joined.member_id, 0, &[]), 5).await.error_code, illegal);
    let other_protocol = join_request("g", "", &["sticky"]);
    let refused = client.call(&other_protocol, 9).await.error_code;
    assert_eq!(refused, ResponseError::InconsistentGroupProtocol.code());
    let other_type = join_request("g", "", &["range"]).with_protocol_type(text("connect"));
    assert_eq!(client.call(&other_type, 9).await.error_code, refused);
    let impatient = join_request("g", "", &["range"]).with_session_timeout_ms(5999);
    let refused = client.call(&impatient, 9).await.error_code;
    assert_eq!(refused, ResponseError::InvalidSessionTimeout.code());
    let rebalancing = ResponseError::RebalanceInProgress.code();
    assert_eq!(commit_error(&mut client, &commit(&joined.member_id, 1, "t", 5)).await, rebalancing);
    assert_eq!(commit_error(&mut client, &commit("nobody", 1, "t", 5)).await, unknown);
    assert_eq!(commit_error(&mut client, &commit("", -1, "t", 5)).await, unknown);
    assert_eq!(cluster.committed_offset("g", "t", 0), None);
}

#[tokio::test]
async fn offsets_are_committed_without_a_membership_and_read_back() {
    let cluster = cluster(1).await;
    cluster.create_topic("t", 2, &[]).unwrap();
    let mut client = Client::connect(&cluster, 1).await;
    assert_eq!(commit_error(&mut client, &commit("", -1, "t", 42)).await, 0);
    let unknown = ResponseError::UnknownTopicOrPartition.code();
    assert_eq!(commit_error(&mut client, &commit("", -1, "u", 42)).await, unknown);
    let all = OffsetFetchRequestGroup::default().with_group_id(GroupId(text("g"))).with_topics(None);
    let answer = client.call(&OffsetFetchRequest::default().with_groups(vec![all]), 8).await;
    let group = &answer.groups[0];
    assert_eq!((group.error_code, group.topics.len(), group.topics[0].partitions.len()), (0, 1, 1));
    let found = &group.topics[0].partitions[0];
    assert_eq!((found.committed_offset, found.committed_leader_epoch), (42, 3));
    assert_eq!(found.metadata, Some(text("note")));
    let list = client.call(&ListGroupsRequest::default(), 5).await;
    assert_eq!((list.groups.len(), list.groups[0].group_state.as_str()), (1, "Empty"));
    let delete =
        DeleteGroupsRequest::default().with_groups_names(vec![GroupId(text("g")), GroupId(text("h"))]);
    let errors: Vec<i16> = client.call(&delete, 2).await.results.iter().map(|one| one.error_code).collect();
    assert_eq!(errors, [0, ResponseError::GroupIdNotFound.code()]);
    assert_eq!(cluster.committed_offset("g", "t", 0), None);
}

#[tokio::test]
async fn a_group_has_one_coordinator() {
    let cluster = cluster(3).await;
    let mut client = Client::connect(&cluster, 1).await;
    let find = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("g")]);
    let found = client.call(&find, 4).await.coordinators[0].clone();
    assert_eq!(found.port, i32::from(cluster.port(found.node_id.0).unwrap()));
    for node in 1..=3 {
        let mut client = Client::connect(&cluster, node).await;
        let expected = if node == found.node_id.0 {
            ResponseError::UnknownMemberId.code()
        } else {
            ResponseError::NotCoordinator.code()
        };
        assert_eq!(heartbeat(&mut client, "m", 1).await, expected);
    }
    let transactions = find.with_key_type(1);
    let refused = client.call(&transactions, 4).await.coordinators[0].error_code;
    assert_eq!(refused, ResponseError::InvalidRequest.code());
}
