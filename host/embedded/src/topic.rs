//! Topics and partitions: names, ids, replicas, leaders and their epochs.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::log::Log;
use crate::refusal::Refusal;
use crate::settings::TopicSettings;

/// Longest legal topic name (`Topic.MAX_NAME_LENGTH`).
const NAME_BYTES_MAX: usize = 249;

/// A topic and all its data.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) settings: TopicSettings,
    pub(crate) partitions: Vec<Partition>,
}

/// One partition. Its data belongs to the cluster, not to a node: a move of the leader moves no bytes.
#[derive(Debug)]
pub(crate) struct Partition {
    /// Node ids; the first is the preferred leader.
    pub(crate) replicas: Vec<i32>,
    /// `None` while no replica is up.
    pub(crate) leader: Option<i32>,
    pub(crate) leader_epoch: i32,
    pub(crate) log: Log,
    /// Fetch requests that wait for data here. Those whose request has ended are cleared out when another one
    /// comes.
    waiting: Vec<Arc<Notify>>,
}

impl Partition {
    pub(crate) fn new(replicas: Vec<i32>, leader: Option<i32>) -> Partition {
        Partition { replicas, leader, leader_epoch: 0, log: Log::new(), waiting: Vec::new() }
    }

    /// A new leader (or the same one elected again): the epoch grows and whoever waits looks again.
    pub(crate) fn elect(&mut self, leader: Option<i32>) {
        if leader.is_some() {
            self.leader_epoch += 1;
        }
        self.leader = leader;
        self.ring();
    }

    /// The checks that every request to a leader passes, in Kafka's order: the epoch that the client knows
    /// (−1: it does not say), then whether this node leads.
    pub(crate) fn check_leader(&self, node: i32, client_epoch: i32) -> Result<(), ResponseError> {
        if !self.replicas.contains(&node) {
            return Err(ResponseError::NotLeaderOrFollower);
        }
        if client_epoch >= 0 && client_epoch < self.leader_epoch {
            return Err(ResponseError::FencedLeaderEpoch);
        }
        if client_epoch > self.leader_epoch {
            return Err(ResponseError::UnknownLeaderEpoch);
        }
        if self.leader == Some(node) { Ok(()) } else { Err(ResponseError::NotLeaderOrFollower) }
    }

    /// Lets `bell` ring at the next change.
    pub(crate) fn wait_with(&mut self, bell: &Arc<Notify>) {
        self.waiting.retain(|waiting| Arc::strong_count(waiting) > 1 && !Arc::ptr_eq(waiting, bell));
        self.waiting.push(Arc::clone(bell));
    }

    /// Wakes every waiting fetch.
    pub(crate) fn ring(&mut self) {
        for bell in self.waiting.drain(..) {
            bell.notify_one();
        }
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        self.ring();
    }
}

/// Kafka's rule for topic names (`Topic.validate`).
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty()
        || name == "."
        || name == ".."
        || name.len() > NAME_BYTES_MAX
        || !name.chars().all(legal)
    {
        return Err(Refusal::new(
            ResponseError::InvalidTopicException,
            format!(
                "topic name {name:?} is illegal: it takes 1 to {NAME_BYTES_MAX} of a-z, A-Z, 0-9, '.', '_' and '-', and may not be \".\" or \"..\""
            ),
        ));
    }
    Ok(())
}
