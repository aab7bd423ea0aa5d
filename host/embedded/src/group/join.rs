//! JoinGroup: the first half of a rebalance.

use kafka_protocol::error::ResponseError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::member::{JoinAnswer, JoinRefusal, Joined, JoinedMember, Joining, Member};
use super::{Group, GroupState, MEMBERS_MAX, SESSION_TIMEOUT_MAX};

impl Group {
    /// Lets a member in, or back in; `new_id` is its id if it has none. The answer comes when the rebalance
    /// is through.
    pub(crate) fn join(
        &mut self,
        joining: Joining,
        new_id: String,
        now: Instant,
    ) -> oneshot::Receiver<JoinAnswer> {
        let (sender, receiver) = oneshot::channel();
        let own_id = joining.member_id.clone();
        match self.admit(joining, new_id, now) {
            Err(refusal) => {
                let member_id = if refusal.member_id.is_empty() { own_id } else { refusal.member_id };
                let _gone = sender.send(Err(JoinRefusal { error: refusal.error, member_id }));
            }
            Ok(Admitted::Current(member_id)) => {
                let answer = self.joined(&member_id);
                let _gone = sender.send(Ok(answer));
            }
            Ok(Admitted::Rebalance(member_id)) => {
                if let Some(member) = self.member_mut(&member_id) {
                    member.join = Some(sender);
                }
                self.end_join_if_all_are_here(now);
            }
        }
        receiver
    }

    fn admit(&mut self, joining: Joining, new_id: String, now: Instant) -> Result<Admitted, JoinRefusal> {
        let refuse = |error| JoinRefusal { error, member_id: String::new() };
        if joining.session_timeout < self.rules.session_timeout_min
            || joining.session_timeout > SESSION_TIMEOUT_MAX
        {
            return Err(refuse(ResponseError::InvalidSessionTimeout));
        }
        if !self.fits(&joining) {
            return Err(refuse(ResponseError::InconsistentGroupProtocol));
        }
        if joining.member_id.is_empty() {
            return self.admit_unknown(joining, new_id, now);
        }
        if self.pending.remove(&joining.member_id).is_some() {
            let id = joining.member_id.clone();
            return Ok(self.add(id, &joining, now));
        }
        self.check_member(&joining.member_id, joining.instance_id.as_deref()).map_err(refuse)?;
        Ok(self.rejoin(&joining, now))
    }

    fn admit_unknown(
        &mut self,
        joining: Joining,
        new_id: String,
        now: Instant,
    ) -> Result<Admitted, JoinRefusal> {
        if self.members.len() + self.pending.len() >= MEMBERS_MAX {
            return Err(JoinRefusal { error: ResponseError::GroupMaxSizeReached, member_id: String::new() });
        }
        if let Some(instance_id) = &joining.instance_id {
            // The same static member after a restart: the new process takes the old one's place.
            self.members.retain(|member| member.instance_id.as_ref() != Some(instance_id));
            return Ok(self.add(new_id, &joining, now));
        }
        if joining.must_know_its_id {
            self.pending.insert(new_id.clone(), now + joining.session_timeout);
            return Err(JoinRefusal { error: ResponseError::MemberIdRequired, member_id: new_id });
        }
        Ok(self.add(new_id, &joining, now))
    }

    /// Same protocol type as the others, and at least one protocol that all of them can do.
    fn fits(&self, joining: &Joining) -> bool {
        let others: Vec<&Member> =
            self.members.iter().filter(|member| member.id != joining.member_id).collect();
        if joining.protocols.is_empty() || joining.protocol_type.is_empty() {
            return false;
        }
        if others.is_empty() {
            return true;
        }
        let shared = |name: &str| others.iter().all(|member| member.supports(name));
        joining.protocol_type == self.protocol_type && joining.protocols.iter().any(|own| shared(&own.name))
    }

    fn add(&mut self, id: String, joining: &Joining, now: Instant) -> Admitted {
        if self.members.is_empty() {
            self.protocol_type.clone_from(&joining.protocol_type);
        }
        self.members.push(Member::new(id.clone(), joining, now));
        if self.state != GroupState::PreparingRebalance {
            self.start_rebalance(now);
        }
        Admitted::Rebalance(id)
    }

    /// A known member asks again. If nothing has changed for it and it need not lead, the current generation
    /// is the answer.
    fn rejoin(&mut self, joining: &Joining, now: Instant) -> Admitted {
        let id = joining.member_id.clone();
        let is_leader = self.leader == id;
        let state = self.state;
        let Some(member) = self.member_mut(&id) else { return Admitted::Current(id) };
        let unchanged = member.protocols == joining.protocols;
        member.update(joining, now);
        let is_current = match state {
            GroupState::CompletingRebalance => unchanged,
            GroupState::Stable => unchanged && !is_leader,
            GroupState::Empty | GroupState::PreparingRebalance => false,
        };
        if is_current {
            return Admitted::Current(id);
        }
        if state != GroupState::PreparingRebalance {
            self.start_rebalance(now);
        }
        Admitted::Rebalance(id)
    }

    pub(super) fn start_rebalance(&mut self, now: Instant) {
        for member in &mut self.members {
            if let Some(waiting) = member.sync.take() {
                let _gone = waiting.send(Err(ResponseError::RebalanceInProgress));
                member.heard_of(now);
            }
        }
        let was_empty = self.state == GroupState::Empty;
        self.state = GroupState::PreparingRebalance;
        let delay = if was_empty { self.rules.initial_rebalance_delay } else { Default::default() };
        self.join_opens = now + delay;
        self.join_closes = now + self.rebalance_timeout().max(delay);
        self.end_join_if_all_are_here(now);
    }

    pub(super) fn all_are_here(&self) -> bool {
        self.pending.is_empty() && self.members.iter().all(|member| member.join.is_some())
    }

    pub(super) fn end_join_if_all_are_here(&mut self, now: Instant) {
        let ends = self.state == GroupState::PreparingRebalance && self.all_are_here();
        // Right after `add` the newcomer's own answer is not in place yet, so a group is never ended too
        // early.
        if ends && (now >= self.join_opens || self.members.is_empty()) {
            self.end_join(now);
        }
    }

    /// Closes the doors: who has not joined is out, the others learn the new generation.
    pub(super) fn end_join(&mut self, now: Instant) {
        self.members.retain(|member| member.join.is_some());
        self.generation += 1;
        if self.members.is_empty() {
            self.state = GroupState::Empty;
            self.protocol.clear();
            self.leader.clear();
            return;
        }
        self.protocol = self.elect_protocol();
        if self.member(&self.leader).is_none() {
            self.leader = self.members.first().map(|member| member.id.clone()).unwrap_or_default();
        }
        self.state = GroupState::CompletingRebalance;
        self.sync_closes = now + self.rebalance_timeout();
        let answers: Vec<Joined> = self.members.iter().map(|member| self.joined(&member.id)).collect();
        for (member, answer) in self.members.iter_mut().zip(answers) {
            member.assignment.clear();
            member.heard_of(now);
            if let Some(waiting) = member.join.take() {
                let _gone = waiting.send(Ok(answer));
            }
        }
    }

    /// Every member votes for the first of its protocols that all can do; most votes win, ties by name.
    fn elect_protocol(&self) -> String {
        let shared = |name: &str| self.members.iter().all(|member| member.supports(name));
        let vote = |member: &Member| {
            member.protocols.iter().find(|own| shared(&own.name)).map(|own| own.name.clone())
        };
        let votes: Vec<String> = self.members.iter().filter_map(vote).collect();
        let count = |name: &String| votes.iter().filter(|vote| *vote == name).count();
        votes
            .iter()
            .max_by_key(|name| (count(name), std::cmp::Reverse((*name).clone())))
            .cloned()
            .unwrap_or_default()
    }

    fn joined(&self, member_id: &str) -> Joined {
        let describe = |member: &Member| JoinedMember {
            id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(&self.protocol),
        };
        let leads = self.leader == member_id;
        Joined {
            member_id: member_id.to_owned(),
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            members: if leads { self.members.iter().map(describe).collect() } else { Vec::new() },
        }
    }
}

/// What becomes of a member that was let in.
enum Admitted {
    /// It gets the current generation at once.
    Current(String),
    /// It waits for the rebalance.
    Rebalance(String),
}
