//! The record plugins of a flow, in order, over whole batches. One worker has one chain of one generation.
//!
//! Each plugin sees what the one before left; what it dropped is not shown. A plugin is asked in calls of at most 500
//! records or about 256 KiB. What happens when it fails is in `search`.

use std::collections::HashMap;
use std::fmt;

use crate::names::{SourceOffset, TopicName};
use crate::record::RecordSet;

use super::load::LoadError;

mod question;
mod search;
mod stage;

use search::{Guilty, Search, Verdicts};
use stage::{Buffers, Stage};
pub use stage::{ChainPlugin, FAULTED_CALL_COUNT_MAX, FAULTED_CALL_COUNT_MIN};

/// Answers of topic lists that are remembered; more topics than a worker has partitions.
const KNOWN_TOPIC_COUNT_MAX: usize = 10_000;

/// Where a batch comes from.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The topic's name on the source.
    pub topic: &'a TopicName,
    /// The partition.
    pub partition: i32,
}

/// A record that is not copied, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condemned {
    /// Its index in the batch's set.
    pub index: usize,
    /// Where it lies on the source.
    pub offset: SourceOffset,
    /// Name of the plugin that failed on it or rejected it.
    pub plugin: String,
    /// The plugin's version.
    pub version: String,
    /// SHA-256 of its module.
    pub digest: String,
    /// The generation that judged it.
    pub generation: u64,
    /// The plugin rejected it; else the plugin failed.
    pub is_reject: bool,
    /// The plugin's words, or a sentence about its fault.
    pub reason: String,
}

/// What a chain did to a batch, beside what stands in its set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// Records that must be in the quarantine topic before anything passes them. They are dropped from the set. In rising
    /// order.
    pub quarantined: Vec<Condemned>,
    /// The partition must stop at this record. Those before it are edited and final; from it on they are as they were read,
    /// and will be edited when the partition goes on.
    pub halt: Option<Condemned>,
}

/// One worker's instances of the record plugins of one generation.
pub struct Chain {
    generation: u64,
    stages: Vec<Stage>,
    buffers: Buffers,
    /// Which stages apply to a topic.
    known_topics: HashMap<TopicName, Box<[bool]>>,
}

impl Chain {
    /// Makes an instance of each plugin. Takes up to two seconds for each, so it is done beside the worker's thread.
    pub fn of(generation: u64, plugins: Vec<ChainPlugin>) -> Result<Self, LoadError> {
        let stages = plugins.into_iter().map(Stage::start).collect::<Result<_, _>>()?;
        Ok(Self { generation, stages, buffers: Buffers::default(), known_topics: HashMap::new() })
    }

    /// Number of the generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// No plugin edits records.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether some plugin edits the records of this topic. Asks regular expressions; to be asked once a topic.
    pub fn applies_to(&self, topic: &TopicName) -> bool {
        self.stages.iter().any(|stage| stage.plugin.applies_to(topic))
    }

    /// Edits the records of one batch. `base` is what they were pushed with.
    pub fn edit(&mut self, place: Place<'_>, base: &[u8], records: &mut RecordSet) -> Edited {
        self.know(place.topic);
        let applying = self.known_topics.get(place.topic).map(|known| &**known).unwrap_or_default();
        let mut edited = Edited::default();
        let mut end = records.len();
        for (stage, applies) in self.stages.iter_mut().zip(applying) {
            if !applies {
                continue;
            }
            let buffers = &mut self.buffers;
            let verdicts = Verdicts::default();
            let (faulted_call_count, answered_call_count) = (0, 0);
            let search = Search {
                stage,
                buffers,
                place,
                base,
                records,
                end,
                faulted_call_count,
                answered_call_count,
                verdicts,
            };
            let verdicts = search.run();
            let condemned = |guilty: Guilty| condemned(self.generation, &stage.plugin, records, guilty);
            edited.quarantined.extend(verdicts.quarantined.into_iter().map(condemned));
            if let Some(guilty) = verdicts.halt {
                end = guilty.index;
                edited.halt = Some(condemned(guilty));
                edited.quarantined.retain(|earlier| earlier.index < end);
                records.restore_from(end);
            }
        }
        edited.quarantined.sort_unstable_by_key(|condemned| condemned.index);
        edited
    }

    fn know(&mut self, topic: &TopicName) {
        if self.known_topics.contains_key(topic) {
            return;
        }
        if self.known_topics.len() >= KNOWN_TOPIC_COUNT_MAX {
            self.known_topics.clear();
        }
        let applying = self.stages.iter().map(|stage| stage.plugin.applies_to(topic)).collect();
        self.known_topics.insert(topic.clone(), applying);
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugins: Vec<&str> = self.stages.iter().map(|stage| stage.plugin.name.as_str()).collect();
        let mut text = formatter.debug_struct("Chain");
        text.field("generation", &self.generation).field("plugins", &plugins).finish_non_exhaustive()
    }
}

fn condemned(generation: u64, plugin: &ChainPlugin, records: &RecordSet, guilty: Guilty) -> Condemned {
    Condemned {
        index: guilty.index,
        offset: question::offset(records, guilty.index),
        plugin: plugin.name.clone(),
        version: plugin.version.clone(),
        digest: plugin.digest.clone(),
        generation,
        is_reject: guilty.is_reject,
        reason: guilty.reason,
    }
}

#[cfg(test)]
mod tests;
