//! `selection` in the contract's types.

use super::{Instance, selection};
use crate::{Selection, Topic};

impl<P: Selection> Instance<P> {
    pub fn select_topics(&self, topics: Vec<selection::Topic>) -> Result<Vec<bool>, String> {
        let topics: Vec<_> = topics.into_iter().map(from_wit).collect();
        self.with(|plugin| plugin.topics(&topics))
    }
}

fn from_wit(topic: selection::Topic) -> Topic {
    Topic {
        name: topic.name,
        partition_count: topic.partitions,
        is_internal: topic.internal,
        settings: topic.config,
    }
}
