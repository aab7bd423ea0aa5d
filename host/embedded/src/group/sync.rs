//! SyncGroup: the second half of a rebalance, in which the leader hands out the assignments.

use std::collections::HashMap;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::member::{SyncAnswer, Synced};
use super::{Group, GroupState};

/// What a SyncGroup request says.
#[derive(Debug)]
pub(crate) struct Syncing {
    pub(crate) member_id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) generation: i32,
    pub(crate) protocol_type: Option<String>,
    pub(crate) protocol: Option<String>,
    /// Member id → assignment; empty unless it comes from the leader.
    pub(crate) assignments: HashMap<String, Bytes>,
}

impl Group {
    /// The answer comes when the leader has handed out the assignments.
    pub(crate) fn sync(&mut self, syncing: Syncing, now: Instant) -> oneshot::Receiver<SyncAnswer> {
        let (sender, receiver) = oneshot::channel();
        let id = syncing.member_id.clone();
        if let Err(error) = self.check_sync(&syncing) {
            let _gone = sender.send(Err(error));
            return receiver;
        }
        if let Some(member) = self.member_mut(&id) {
            member.heard_of(now);
        }
        if self.state == GroupState::Stable {
            let _gone = sender.send(Ok(self.synced(&id)));
            return receiver;
        }
        if let Some(member) = self.member_mut(&id) {
            member.sync = Some(sender);
        }
        if self.leader == id {
            self.hand_out(syncing.assignments, now);
        }
        receiver
    }

    fn check_sync(&self, syncing: &Syncing) -> Result<(), ResponseError> {
        self.check_member(&syncing.member_id, syncing.instance_id.as_deref())?;
        if syncing.generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        let differs = |said: &Option<String>, own: &String| said.as_ref().is_some_and(|said| said != own);
        if differs(&syncing.protocol_type, &self.protocol_type) || differs(&syncing.protocol, &self.protocol)
        {
            return Err(ResponseError::InconsistentGroupProtocol);
        }
        match self.state {
            GroupState::Empty => Err(ResponseError::UnknownMemberId),
            GroupState::PreparingRebalance => Err(ResponseError::RebalanceInProgress),
            GroupState::CompletingRebalance | GroupState::Stable => Ok(()),
        }
    }

    fn hand_out(&mut self, mut assignments: HashMap<String, Bytes>, now: Instant) {
        self.state = GroupState::Stable;
        for member in &mut self.members {
            member.assignment = assignments.remove(&member.id).unwrap_or_default();
        }
        let answers: Vec<Synced> = self.members.iter().map(|member| self.synced(&member.id)).collect();
        for (member, answer) in self.members.iter_mut().zip(answers) {
            member.heard_of(now);
            if let Some(waiting) = member.sync.take() {
                let _gone = waiting.send(Ok(answer));
            }
        }
    }

    fn synced(&self, id: &str) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: self.member(id).map(|member| member.assignment.clone()).unwrap_or_default(),
        }
    }

    /// The time for SyncGroup is over: who has not sent one is out, and the rest start again.
    pub(super) fn throw_out_unsynced(&mut self, now: Instant) {
        self.members.retain(|member| member.sync.is_some());
        self.start_rebalance(now);
    }
}
