//! The group on the target whose members share the slots, as the brokers see it: who is in it, of which kind it is, and
//! how a dead member is sent away.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::{
    ApiKey, ConsumerGroupDescribeRequest, DescribeGroupsRequest, GroupId, LeaveGroupRequest,
};
use tidegate_wire::client::Client;
use tidegate_wire::error::WireError;

use super::admin::text;

/// `member_epoch` of a heartbeat that says good-bye (KIP-848).
const LEAVE_EPOCH: i32 = -1;

/// The protocol type of Kafka Connect's workers, MirrorMaker 2's among them.
const CONNECT_PROTOCOL: &str = "connect";

/// Which protocol a group speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Nobody knows the group, or it is empty.
    Free,
    /// The classic protocol between consumers.
    Classic,
    /// The protocol of KIP-848.
    Consumer,
    /// Kafka Connect: MirrorMaker 2 runs.
    Connect,
    /// Something else.
    Other,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// The broker's or the client's name for it.
    pub member_id: String,
    /// `client.id`.
    pub client_id: String,
    /// Where it connects from.
    pub host: String,
}

/// A group at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Its kind.
    pub kind: GroupKind,
    /// Its members.
    pub members: Vec<GroupMember>,
}

impl GroupView {
    fn free() -> Self {
        Self { kind: GroupKind::Free, members: Vec::new() }
    }
}

/// Whether the cluster serves the protocol of KIP-848.
pub async fn serves_consumer_protocol(client: &Client) -> Result<bool, WireError> {
    let versions = client.api_versions().await?;
    Ok(versions.range(ApiKey::ConsumerGroupHeartbeat).is_some())
}

/// Looks at a group.
pub async fn view_group(client: &Client, group: &str) -> Result<GroupView, WireError> {
    if serves_consumer_protocol(client).await?
        && let Some(view) = view_consumer_group(client, group).await?
    {
        return Ok(view);
    }
    view_classic_group(client, group).await
}

/// None when it is no group of this kind.
async fn view_consumer_group(client: &Client, group: &str) -> Result<Option<GroupView>, WireError> {
    let request = ConsumerGroupDescribeRequest::default().with_group_ids(vec![GroupId(text(group))]);
    let answer = client.call_coordinator(group, request).await?;
    let Some(found) = answer.groups.into_iter().find(|found| found.error_code == 0) else { return Ok(None) };
    if found.members.is_empty() {
        return Ok(Some(GroupView::free()));
    }
    let member = |member: kafka_protocol::messages::consumer_group_describe_response::Member| GroupMember {
        member_id: member.member_id.to_string(),
        client_id: member.client_id.to_string(),
        host: member.client_host.to_string(),
    };
    Ok(Some(GroupView {
        kind: GroupKind::Consumer,
        members: found.members.into_iter().map(member).collect(),
    }))
}

async fn view_classic_group(client: &Client, group: &str) -> Result<GroupView, WireError> {
    let request = DescribeGroupsRequest::default().with_groups(vec![GroupId(text(group))]);
    let answer = client.call_coordinator(group, request).await?;
    let Some(found) = answer.groups.into_iter().find(|found| found.error_code == 0) else {
        return Ok(GroupView::free());
    };
    if found.members.is_empty() {
        return Ok(GroupView::free());
    }
    let kind = match found.protocol_type.as_str() {
        "consumer" => GroupKind::Classic,
        CONNECT_PROTOCOL => GroupKind::Connect,
        _ => GroupKind::Other,
    };
    let member =
        |member: kafka_protocol::messages::describe_groups_response::DescribedGroupMember| GroupMember {
            member_id: member.member_id.to_string(),
            client_id: member.client_id.to_string(),
            host: member.client_host.to_string(),
        };
    Ok(GroupView { kind, members: found.members.into_iter().map(member).collect() })
}

/// Sends away every member that has one of `client_ids`; answers how many went. Only for client ids that are proven dead:
/// a living member would lose its slots.
pub async fn remove_members(client: &Client, group: &str, client_ids: &[String]) -> Result<usize, WireError> {
    let view = view_group(client, group).await?;
    let mut removed_count = 0;
    for member in view.members.iter().filter(|member| client_ids.contains(&member.client_id)) {
        let refused = match view.kind {
            GroupKind::Consumer => remove_consumer_member(client, group, &member.member_id).await?,
            GroupKind::Classic => remove_classic_member(client, group, &member.member_id).await?,
            GroupKind::Free | GroupKind::Connect | GroupKind::Other => continue,
        };
        match refused {
            None => removed_count += 1,
            Some(error) => {
                tracing::debug!(group, member = member.member_id, ?error, "could not remove a dead member");
            }
        }
    }
    Ok(removed_count)
}

async fn remove_consumer_member(
    client: &Client,
    group: &str,
    member_id: &str,
) -> Result<Option<ResponseError>, WireError> {
    let request = ConsumerGroupHeartbeatRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_member_id(text(member_id))
        .with_member_epoch(LEAVE_EPOCH)
        .with_rebalance_timeout_ms(-1)
        .with_subscribed_topic_names(None)
        .with_topic_partitions(None);
    let answer = client.call_coordinator(group, request).await?;
    Ok(ResponseError::try_from_code(answer.error_code))
}

async fn remove_classic_member(
    client: &Client,
    group: &str,
    member_id: &str,
) -> Result<Option<ResponseError>, WireError> {
    // Version 3 and later name several members; 2.4 and later brokers have it.
    let request = LeaveGroupRequest::default()
        .with_group_id(GroupId(text(group)))
        .with_members(vec![MemberIdentity::default().with_member_id(text(member_id))]);
    let answer = client.call_coordinator(group, request).await?;
    let first = answer.members.first().map_or(0, |member| member.error_code);
    Ok(ResponseError::try_from_code(answer.error_code).or(ResponseError::try_from_code(first)))
}
