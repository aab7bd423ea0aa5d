//! The offsets that a group has committed.

use std::collections::BTreeMap;

use kafka_protocol::error::ResponseError;

use super::{Group, GroupState};

/// Longest metadata text of a committed offset (`offset.metadata.max.bytes`).
pub(crate) const METADATA_BYTES_MAX: usize = 4096;

/// One committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: String,
}

/// Topic → partition → offset. Bounded by the partitions that exist, for an offset of another one is refused.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    topics: BTreeMap<String, BTreeMap<i32, Committed>>,
}

impl Offsets {
    pub(crate) fn get(&self, topic: &str, partition: i32) -> Option<&Committed> {
        self.topics.get(topic)?.get(&partition)
    }

    pub(crate) fn set(&mut self, topic: &str, partition: i32, committed: Committed) {
        self.topics.entry(topic.to_owned()).or_default().insert(partition, committed);
    }

    pub(crate) fn remove(&mut self, topic: &str, partition: i32) {
        if let Some(partitions) = self.topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                self.topics.remove(topic);
            }
        }
    }

    pub(crate) fn forget_topic(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    pub(crate) fn topics(&self) -> impl Iterator<Item = (&str, &BTreeMap<i32, Committed>)> {
        self.topics.iter().map(|(topic, partitions)| (topic.as_str(), partitions))
    }
}

impl Group {
    /// Whether this member may commit now. Who is no member (generation −1) may, as long as the group has
    /// none.
    pub(crate) fn check_commit(
        &self,
        member_id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<(), ResponseError> {
        if generation < 0 && self.state == GroupState::Empty {
            return Ok(());
        }
        self.check_member(member_id, instance_id)?;
        if generation != self.generation {
            return Err(ResponseError::IllegalGeneration);
        }
        if self.state == GroupState::CompletingRebalance {
            return Err(ResponseError::RebalanceInProgress);
        }
        Ok(())
    }
}
