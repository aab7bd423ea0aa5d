//! What a flow remembers from round to round, for as long as it runs.

use std::collections::BTreeMap;

use super::{Observed, Plan};
use crate::cluster::TopicId;
use crate::names::TopicName;
use crate::topic_map::TopicMap;

/// The last plan's topics and the topic ids that were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    topic_map: TopicMap,
    /// Kept when a topic is gone: its positions are still stored, and another topic may take its name.
    source_ids: BTreeMap<TopicName, TopicId>,
    /// Copies that were seen, with their ids where brokers have some.
    targets: BTreeMap<TopicName, Option<TopicId>>,
}

impl Memory {
    /// The last plan's topics.
    pub fn topic_map(&self) -> &TopicMap {
        &self.topic_map
    }

    /// The id that a copied source topic had.
    pub(super) fn source_id(&self, topic: &TopicName) -> Option<TopicId> {
        self.source_ids.get(topic).copied()
    }

    /// None: the copy was not there in the last round.
    pub(super) fn target_seen(&self, target: &TopicName) -> Option<Option<TopicId>> {
        self.targets.get(target).copied()
    }

    /// Two known ids that differ. Where one is not known (brokers before 2.8), nothing can be said.
    pub(super) fn is_another(before: Option<TopicId>, now: Option<TopicId>) -> bool {
        matches!((before, now), (Some(before), Some(now)) if before != now)
    }

    /// Keeps what the next round compares with.
    pub fn remember(&mut self, observed: &Observed, plan: &Plan) {
        self.topic_map = plan.topic_map.clone();
        self.targets.clear();
        for (topic, target) in plan.topic_map.iter() {
            if let Some(id) = observed.source.topics.get(topic).and_then(|view| view.id) {
                self.source_ids.insert(topic.clone(), id);
            }
            if let Some(view) = observed.target.topics.get(target) {
                self.targets.insert(target.clone(), view.id);
            }
        }
    }
}
