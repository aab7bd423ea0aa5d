//! Consumer groups with the classic protocol: Kafka's states `Empty → PreparingRebalance →
//! CompletingRebalance → Stable`, driven by requests and by deadlines. Time is an argument; nothing in here
//! sleeps.

mod join;
pub(crate) mod member;
pub(crate) mod offsets;
pub(crate) mod sync;

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use tokio::time::Instant;

use self::member::Member;
use self::offsets::Offsets;
use crate::options::ClusterOptions;

/// Groups per cluster.
pub(crate) const GROUPS_MAX: usize = 10_000;
/// Members per group (`group.max.size`, which Kafka leaves open).
pub(crate) const MEMBERS_MAX: usize = 1_000;
/// Longest session timeout (`group.max.session.timeout.ms`).
const SESSION_TIMEOUT_MAX: Duration = Duration::from_secs(30 * 60);

/// Where a group stands; the names are Kafka's, as DescribeGroups and ListGroups give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl GroupState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
        }
    }
}

/// All groups of a cluster.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: BTreeMap<String, Group>,
    rules: Rules,
    next_member: u64,
}

/// What the cluster's options say about groups.
#[derive(Debug, Clone, Copy)]
struct Rules {
    initial_rebalance_delay: Duration,
    session_timeout_min: Duration,
}

/// One group: its members and its committed offsets.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) state: GroupState,
    pub(crate) generation: i32,
    pub(crate) protocol_type: String,
    pub(crate) protocol: String,
    pub(crate) leader: String,
    /// In the order in which they came.
    pub(crate) members: Vec<Member>,
    /// Ids that were handed out with MEMBER_ID_REQUIRED and have not come back yet, and until when they may.
    pending: BTreeMap<String, Instant>,
    /// The current rebalance does not end before this.
    join_opens: Instant,
    /// Who has not joined by then is thrown out.
    join_closes: Instant,
    /// Who has not synced by then is thrown out.
    sync_closes: Instant,
    pub(crate) offsets: Offsets,
    rules: Rules,
}

impl Groups {
    pub(crate) fn new(options: &ClusterOptions) -> Groups {
        let rules = Rules {
            initial_rebalance_delay: options.group_initial_rebalance_delay,
            session_timeout_min: options.group_session_timeout_min,
        };
        Groups { groups: BTreeMap::new(), rules, next_member: 0 }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Group> {
        self.groups.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Group> {
        self.groups.get_mut(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Group)> {
        self.groups.iter().map(|(id, group)| (id.as_str(), group))
    }

    /// The group with this id, made if it is new.
    pub(crate) fn open(&mut self, id: &str, now: Instant) -> Result<&mut Group, ResponseError> {
        if id.is_empty() {
            return Err(ResponseError::InvalidGroupId);
        }
        if !self.groups.contains_key(id) && self.groups.len() >= GROUPS_MAX {
            return Err(ResponseError::PolicyViolation);
        }
        let rules = self.rules;
        Ok(self.groups.entry(id.to_owned()).or_insert_with(|| Group::new(rules, now)))
    }

    /// A member id that nobody has yet, in Kafka's form: client id, dash, something unique.
    pub(crate) fn new_member_id(&mut self, client_id: &str) -> String {
        self.next_member += 1;
        format!("{client_id}-{:08}", self.next_member)
    }

    /// Removes a group that has no members.
    pub(crate) fn delete(&mut self, id: &str) -> Result<(), ResponseError> {
        let group = self.groups.get(id).ok_or(ResponseError::GroupIdNotFound)?;
        if !group.members.is_empty() {
            return Err(ResponseError::NonEmptyGroup);
        }
        self.groups.remove(id);
        Ok(())
    }

    /// Forgets the committed offsets of a deleted topic.
    pub(crate) fn forget_topic(&mut self, topic: &str) {
        for group in self.groups.values_mut() {
            group.offsets.forget_topic(topic);
        }
    }

    /// Throws out whoever is late, in all groups.
    pub(crate) fn expire(&mut self, now: Instant) {
        for group in self.groups.values_mut() {
            group.expire(now);
        }
    }

    /// When `expire` has something to do next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.groups.values().filter_map(Group::next_deadline).min()
    }
}

impl Group {
    fn new(rules: Rules, now: Instant) -> Group {
        Group {
            state: GroupState::Empty,
            generation: 0,
            protocol_type: String::new(),
            protocol: String::new(),
            leader: String::new(),
            members: Vec::new(),
            pending: BTreeMap::new(),
            join_opens: now,
            join_closes: now,
            sync_closes: now,
            offsets: Offsets::default(),
            rules,
        }
    }

    pub(crate) fn member(&self, id: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub(crate) fn member_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }

    /// Whether a request speaks for a current member: static members are known by instance id, and a second
    /// process with the same one is fenced (KIP-345).
    fn check_member(&self, id: &str, instance_id: Option<&str>) -> Result<(), ResponseError> {
        if let Some(instance_id) = instance_id {
            let holder =
                self.members.iter().find(|member| member.instance_id.as_deref() == Some(instance_id));
            return match holder {
                None => Err(ResponseError::UnknownMemberId),
                Some(member) if member.id != id => Err(ResponseError::FencedInstanceId),
                Some(_) => Ok(()),
            };
        }
        self.member(id).map(|_| ()).ok_or(ResponseError::UnknownMemberId)
    }

    /// A sign of life.
    pub(crate) fn heartbeat(
        &mut self,
        id: &str,
        instance_id: Option<&str>,
        generation: i32,
        now: Instant,
    ) -> Result<(), ResponseError> {
        self.check_member(id, instance_id)?;
        if generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if let Some(member) = self.member_mut(id) {
            member.heard_of(now);
        }
        if self.state == GroupState::PreparingRebalance {
            return Err(ResponseError::RebalanceInProgress);
        }
        Ok(())
    }

    /// A member goes of its own accord.
    pub(crate) fn leave(
        &mut self,
        id: &str,
        instance_id: Option<&str>,
        now: Instant,
    ) -> Result<(), ResponseError> {
        if self.pending.remove(id).is_some() {
            self.end_join_if_all_are_here(now);
            return Ok(());
        }
        let holder = self.members.iter().find(|member| {
            if id.is_empty() { member.instance_id.as_deref() == instance_id } else { member.id == id }
        });
        let id = holder.map(|member| member.id.clone()).ok_or(ResponseError::UnknownMemberId)?;
        self.check_member(&id, instance_id)?;
        self.remove(&id, now);
        Ok(())
    }

    /// Takes a member out and lets the others know.
    fn remove(&mut self, id: &str, now: Instant) {
        // Dropping the member drops its waiting answers; their requests end with UNKNOWN_MEMBER_ID.
        self.members.retain(|member| member.id != id);
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => self.start_rebalance(now),
            GroupState::PreparingRebalance => self.end_join_if_all_are_here(now),
            GroupState::Empty => {}
        }
    }

    fn expire(&mut self, now: Instant) {
        self.pending.retain(|_, until| *until > now);
        let late = |member: &Member| !member.is_waiting() && member.expires <= now;
        let gone: Vec<String> = self.members.iter().filter(|m| late(m)).map(|m| m.id.clone()).collect();
        for id in gone {
            self.remove(&id, now);
        }
        match self.state {
            GroupState::PreparingRebalance if self.join_closes <= now => self.end_join(now),
            GroupState::PreparingRebalance => self.end_join_if_all_are_here(now),
            GroupState::CompletingRebalance if self.sync_closes <= now => self.throw_out_unsynced(now),
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let sessions = self.members.iter().filter(|member| !member.is_waiting()).map(|member| member.expires);
        let phase = match self.state {
            // Once all are here, only the opening time can be what the rebalance waits for.
            GroupState::PreparingRebalance if self.all_are_here() => Some(self.join_opens),
            GroupState::PreparingRebalance => Some(self.join_closes),
            GroupState::CompletingRebalance => Some(self.sync_closes),
            GroupState::Empty | GroupState::Stable => None,
        };
        sessions.chain(self.pending.values().copied()).chain(phase).min()
    }

    fn rebalance_timeout(&self) -> Duration {
        self.members.iter().map(|member| member.rebalance_timeout).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
