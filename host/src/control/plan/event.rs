//! What changed behind our back: topics that were deleted or made anew under the same name. A plan only says so; what
//! the relay does about it is decided there.

use std::fmt;

use serde::Serialize;

use super::{Memory, Situation};
use crate::cluster::{ClusterView, TopicView};
use crate::names::TopicName;
use crate::topic_map::TopicMap;

/// A change that nobody planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Another topic has the name of a source topic: its stored positions mean nothing.
    SourceTopicRecreated {
        /// The source topic.
        topic: TopicName,
        /// Its copy.
        target: TopicName,
    },
    /// A copied source topic is gone.
    SourceTopicDeleted {
        /// The source topic.
        topic: TopicName,
        /// Its copy, which stays.
        target: TopicName,
    },
    /// A copy is gone.
    TargetTopicDeleted {
        /// The source topic.
        topic: TopicName,
        /// Its copy.
        target: TopicName,
    },
    /// Another topic has the name of a copy: what was copied before is gone.
    TargetTopicRecreated {
        /// The source topic.
        topic: TopicName,
        /// Its copy.
        target: TopicName,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceTopicRecreated { topic, target } => write!(
                formatter,
                "source topic \"{topic}\" was deleted and made anew; it is copied from its first record, behind the old \
                 one's in \"{target}\""
            ),
            Self::SourceTopicDeleted { topic, target } => {
                write!(
                    formatter,
                    "source topic \"{topic}\" was deleted; its copy \"{target}\" stays as it is"
                )
            }
            Self::TargetTopicDeleted { topic, target } => write!(
                formatter,
                "target topic \"{target}\" was deleted; it is made anew, but records of \"{topic}\" before the stored \
                 positions are not copied again unless the positions are reset"
            ),
            Self::TargetTopicRecreated { topic, target } => write!(
                formatter,
                "target topic \"{target}\" was deleted and made anew; records of \"{topic}\" before the stored positions \
                 are not copied again unless the positions are reset"
            ),
        }
    }
}

/// Compares what is seen with what earlier rounds saw.
pub(super) fn events(situation: &Situation<'_>, topic_map: &TopicMap) -> Vec<Event> {
    let observed = situation.observed;
    let memory = situation.memory;
    let mut events = Vec::new();
    for (topic, target) in memory.topic_map().iter() {
        if !observed.source.lists(topic) {
            events.push(Event::SourceTopicDeleted { topic: topic.clone(), target: target.clone() });
        }
    }
    for (topic, target) in topic_map.iter() {
        let pair = || (topic.clone(), target.clone());
        if Memory::is_another(memory.source_id(topic), id_of(&observed.source, topic)) {
            let (topic, target) = pair();
            events.push(Event::SourceTopicRecreated { topic, target });
        }
        let Some(seen) = memory.target_seen(target) else { continue };
        let (topic, target) = pair();
        if !observed.target.lists(&target) {
            events.push(Event::TargetTopicDeleted { topic, target });
        } else if Memory::is_another(seen, id_of(&observed.target, &target)) {
            events.push(Event::TargetTopicRecreated { topic, target });
        }
    }
    events
}

fn id_of(cluster: &ClusterView, topic: &TopicName) -> Option<crate::cluster::TopicId> {
    cluster.topics.get(topic).and_then(|view: &TopicView| view.id)
}
