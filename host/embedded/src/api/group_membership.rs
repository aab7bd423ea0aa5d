//! JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

use std::time::Duration;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};
use kafka_protocol::protocol::StrBytes;
use tokio::time::Instant;

use crate::call::{Call, Part, Serve};
use crate::group::member::{JoinAnswer, JoinRefusal, Joined, Joining, Protocol};
use crate::group::sync::Syncing;
use crate::refusal::{Refusal, code_of};
use crate::state::State;

/// Version from which a new member is first told its id (KIP-394).
const MEMBER_ID_VERSION: i16 = 4;
/// Version from which JoinGroup and SyncGroup answers name the protocol type (KIP-559).
const JOIN_PROTOCOL_TYPE_VERSION: i16 = 7;
/// Version from which several members may leave at once (KIP-345).
const LEAVE_MANY_VERSION: i16 = 3;

/// Whether this node coordinates the group.
pub(super) fn check_coordinator(state: &State, node: i32, group: &str) -> Result<(), ResponseError> {
    if group.is_empty() {
        return Err(ResponseError::InvalidGroupId);
    }
    if state.coordinator(group) == Some(node) { Ok(()) } else { Err(ResponseError::NotCoordinator) }
}

fn text(word: &str) -> StrBytes {
    StrBytes::from_string(word.to_owned())
}

fn duration_ms(ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

impl Serve for JoinGroupRequest {
    async fn serve(self, call: &Call) -> JoinGroupResponse {
        let member_id = self.member_id.to_string();
        let answer = join(self, call).await;
        let written = match answer {
            Ok(joined) => written_join(&joined, call.version),
            Err(refusal) => {
                let member_id = if refusal.member_id.is_empty() { member_id } else { refusal.member_id };
                JoinGroupResponse::default()
                    .with_error_code(refusal.error.code())
                    .with_generation_id(-1)
                    .with_member_id(StrBytes::from_string(member_id))
                    // Before v7 the protocol's name can't be null.
                    .with_protocol_name((call.version < JOIN_PROTOCOL_TYPE_VERSION).then(StrBytes::new))
            }
        };
        call.shared.group_clock.notify_one();
        written
    }
}

async fn join(request: JoinGroupRequest, call: &Call) -> JoinAnswer {
    let refuse = |error| JoinRefusal { error, member_id: String::new() };
    let injected = call.injected(Part::Whole);
    if let Some((error, false)) = injected {
        return Err(refuse(error));
    }
    let group_id = request.group_id.to_string();
    let joining = joining(request, call);
    let waiting = {
        let now = Instant::now();
        let mut state = call.shared.lock();
        check_coordinator(&state, call.node, &group_id).map_err(refuse)?;
        if !joining.member_id.is_empty() && state.groups.get(&group_id).is_none() {
            return Err(refuse(ResponseError::UnknownMemberId));
        }
        let new_id = state.groups.new_member_id(&call.client_id);
        state.groups.open(&group_id, now).map_err(refuse)?.join(joining, new_id, now)
    };
    call.shared.group_clock.notify_one();
    let answer = waiting.await.unwrap_or_else(|_| Err(refuse(ResponseError::UnknownMemberId)));
    match injected {
        Some((error, _)) => Err(refuse(error)),
        None => answer,
    }
}

fn joining(request: JoinGroupRequest, call: &Call) -> Joining {
    let session_timeout = duration_ms(request.session_timeout_ms);
    let protocols = request.protocols.into_iter();
    Joining {
        member_id: request.member_id.to_string(),
        must_know_its_id: call.version >= MEMBER_ID_VERSION && request.group_instance_id.is_none(),
        instance_id: request.group_instance_id.map(|id| id.to_string()),
        client_id: call.client_id.clone(),
        client_host: call.client_host.clone(),
        session_timeout,
        // v0 has one timeout for both.
        rebalance_timeout: if call.version == 0 {
            session_timeout
        } else {
            duration_ms(request.rebalance_timeout_ms)
        },
        protocol_type: request.protocol_type.to_string(),
        protocols: protocols
            .map(|own| Protocol { name: own.name.to_string(), metadata: own.metadata })
            .collect(),
    }
}

fn written_join(joined: &Joined, version: i16) -> JoinGroupResponse {
    let members = joined.members.iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(text(&member.id))
            .with_group_instance_id(member.instance_id.as_deref().filter(|_| version >= 5).map(text))
            .with_metadata(member.metadata.clone())
    });
    let answer = JoinGroupResponse::default()
        .with_generation_id(joined.generation)
        .with_protocol_name(Some(text(&joined.protocol)))
        .with_leader(text(&joined.leader))
        .with_member_id(text(&joined.member_id))
        .with_members(members.collect());
    if version < JOIN_PROTOCOL_TYPE_VERSION {
        return answer;
    }
    answer.with_protocol_type(Some(text(&joined.protocol_type)))
}

impl Serve for SyncGroupRequest {
    async fn serve(self, call: &Call) -> SyncGroupResponse {
        let answer = sync(self, call).await;
        call.shared.group_clock.notify_one();
        match answer {
            Err(refusal) => SyncGroupResponse::default().with_error_code(refusal.code()),
            Ok(synced) => {
                let answer = SyncGroupResponse::default().with_assignment(synced.assignment);
                if call.version < 5 {
                    return answer;
                }
                answer
                    .with_protocol_type(Some(text(&synced.protocol_type)))
                    .with_protocol_name(Some(text(&synced.protocol)))
            }
        }
    }
}

async fn sync(request: SyncGroupRequest, call: &Call) -> Result<crate::group::member::Synced, Refusal> {
    let injected = call.injected(Part::Whole);
    if let Some((error, false)) = injected {
        return Err(error.into());
    }
    let group_id = request.group_id.to_string();
    let assignments = request.assignments.into_iter();
    let syncing = Syncing {
        member_id: request.member_id.to_string(),
        instance_id: request.group_instance_id.map(|id| id.to_string()),
        generation: request.generation_id,
        protocol_type: request.protocol_type.map(|word| word.to_string()),
        protocol: request.protocol_name.map(|word| word.to_string()),
        assignments: assignments.map(|one| (one.member_id.to_string(), one.assignment)).collect(),
    };
    let waiting = {
        let mut state = call.shared.lock();
        check_coordinator(&state, call.node, &group_id)?;
        let group = state.groups.get_mut(&group_id).ok_or(ResponseError::UnknownMemberId)?;
        group.sync(syncing, Instant::now())
    };
    call.shared.group_clock.notify_one();
    let answer = waiting.await.unwrap_or(Err(ResponseError::UnknownMemberId));
    match injected {
        Some((error, _)) => Err(error.into()),
        None => answer.map_err(Refusal::from),
    }
}

impl Serve for HeartbeatRequest {
    async fn serve(self, call: &Call) -> HeartbeatResponse {
        let outcome = call.attempt(Part::Whole, || {
            let mut state = call.shared.lock();
            check_coordinator(&state, call.node, &self.group_id)?;
            let group = state.groups.get_mut(&self.group_id).ok_or(ResponseError::UnknownMemberId)?;
            let instance_id = self.group_instance_id.as_deref();
            Ok(group.heartbeat(&self.member_id, instance_id, self.generation_id, Instant::now())?)
        });
        call.shared.group_clock.notify_one();
        HeartbeatResponse::default().with_error_code(code_of(&outcome))
    }
}

impl Serve for LeaveGroupRequest {
    async fn serve(self, call: &Call) -> LeaveGroupResponse {
        let outcome = call.attempt(Part::Whole, || leave(&self, call));
        call.shared.group_clock.notify_one();
        let answer = LeaveGroupResponse::default().with_error_code(code_of(&outcome));
        match outcome {
            Err(_) => answer,
            // Before v3 the only member's error is the answer's own.
            Ok(members) if call.version < LEAVE_MANY_VERSION => {
                answer.with_error_code(members.first().map_or(0, |member| member.error_code))
            }
            Ok(members) => answer.with_members(members),
        }
    }
}

fn leave(request: &LeaveGroupRequest, call: &Call) -> Result<Vec<MemberResponse>, Refusal> {
    let mut state = call.shared.lock();
    check_coordinator(&state, call.node, &request.group_id)?;
    let only = [MemberIdentity::default().with_member_id(request.member_id.clone())];
    let leaving = if call.version < LEAVE_MANY_VERSION { &only[..] } else { &request.members[..] };
    let mut answers = Vec::with_capacity(leaving.len());
    for member in leaving {
        let outcome = match state.groups.get_mut(&request.group_id) {
            None => Err(ResponseError::UnknownMemberId),
            Some(group) => {
                group.leave(&member.member_id, member.group_instance_id.as_deref(), Instant::now())
            }
        };
        answers.push(
            MemberResponse::default()
                .with_member_id(member.member_id.clone())
                .with_group_instance_id(member.group_instance_id.clone())
                .with_error_code(outcome.err().map_or(0, |error| error.code())),
        );
    }
    Ok(answers)
}
