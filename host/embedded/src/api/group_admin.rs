//! DescribeGroups, ListGroups, DeleteGroups.

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse, GroupId,
    ListGroupsRequest, ListGroupsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::group_membership::check_coordinator;
use crate::call::{Call, Part, Serve};
use crate::group::member::Member;
use crate::group::{Group, GroupState};
use crate::refusal::code_of;

/// What a group that does not exist is described as, before v6.
const DEAD: &str = "Dead";
/// The type that KIP-848 gave the groups of before.
const CLASSIC: &str = "classic";

fn text(word: &str) -> StrBytes {
    StrBytes::from_string(word.to_owned())
}

impl Serve for DescribeGroupsRequest {
    async fn serve(self, call: &Call) -> DescribeGroupsResponse {
        let describe = |id: &GroupId| {
            let answer = DescribedGroup::default().with_group_id(id.clone());
            let outcome = call.attempt(Part::Whole, || {
                let state = call.shared.lock();
                check_coordinator(&state, call.node, id)?;
                Ok(state.groups.get(id).map(|group| described(answer.clone(), group, call.version)))
            });
            match outcome {
                Ok(found) => found.unwrap_or_else(|| answer.with_group_state(text(DEAD))),
                Err(refusal) => answer.with_error_code(refusal.code()),
            }
        };
        DescribeGroupsResponse::default().with_groups(self.groups.iter().map(describe).collect())
    }
}

fn described(answer: DescribedGroup, group: &Group, version: i16) -> DescribedGroup {
    let is_stable = group.state == GroupState::Stable;
    let describe = |member: &Member| {
        DescribedGroupMember::default()
            .with_member_id(text(&member.id))
            .with_group_instance_id(member.instance_id.as_deref().filter(|_| version >= 4).map(text))
            .with_client_id(text(&member.client_id))
            .with_client_host(text(&member.client_host))
            .with_member_metadata(if is_stable {
                member.metadata(&group.protocol)
            } else {
                Default::default()
            })
            .with_member_assignment(member.assignment.clone())
    };
    answer
        .with_group_state(text(group.state.name()))
        .with_protocol_type(text(&group.protocol_type))
        .with_protocol_data(if is_stable { text(&group.protocol) } else { StrBytes::new() })
        .with_members(group.members.iter().map(describe).collect())
}

impl Serve for ListGroupsRequest {
    /// Each node lists the groups that it coordinates.
    async fn serve(self, call: &Call) -> ListGroupsResponse {
        let outcome = call.attempt(Part::Whole, || {
            let state = call.shared.lock();
            let wanted = |filter: &[StrBytes], word: &str| {
                filter.is_empty() || filter.iter().any(|one| one.eq_ignore_ascii_case(word))
            };
            let own = state.groups.iter().filter(|(id, group)| {
                state.coordinator(id) == Some(call.node)
                    && wanted(&self.states_filter, group.state.name())
                    && wanted(&self.types_filter, CLASSIC)
            });
            Ok(own.map(|(id, group)| listed(id, group, call.version)).collect::<Vec<_>>())
        });
        ListGroupsResponse::default()
            .with_error_code(code_of(&outcome))
            .with_groups(outcome.unwrap_or_default())
    }
}

fn listed(id: &str, group: &Group, version: i16) -> ListedGroup {
    let answer = ListedGroup::default()
        .with_group_id(GroupId(text(id)))
        .with_protocol_type(text(&group.protocol_type));
    let answer = if version >= 4 { answer.with_group_state(text(group.state.name())) } else { answer };
    if version >= 5 { answer.with_group_type(text(CLASSIC)) } else { answer }
}

impl Serve for DeleteGroupsRequest {
    async fn serve(self, call: &Call) -> DeleteGroupsResponse {
        let delete = |id: &GroupId| {
            let outcome = call.attempt(Part::Whole, || {
                let mut state = call.shared.lock();
                check_coordinator(&state, call.node, id)?;
                Ok(state.groups.delete(id)?)
            });
            DeletableGroupResult::default().with_group_id(id.clone()).with_error_code(code_of(&outcome))
        };
        DeleteGroupsResponse::default().with_results(self.groups_names.iter().map(delete).collect())
    }
}
