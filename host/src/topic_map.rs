//! The one answer to "what is it called over there". Data, settings, access rules, groups and verification all ask
//! here, so no two of them can disagree (invariant I5).

use std::collections::BTreeMap;

use crate::names::TopicName;

/// Source topic → target topic, one to one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicMap {
    to_target: BTreeMap<TopicName, TopicName>,
    to_source: BTreeMap<TopicName, TopicName>,
}

/// Two source topics would share one target topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "target topic \"{target}\" is already the copy of source topic \"{held_by}\", so \"{source_topic}\" can't use it"
)]
pub struct NameTaken {
    /// The topic that came second.
    pub source_topic: TopicName,
    /// The name that both want.
    pub target: TopicName,
    /// The topic that has it.
    pub held_by: TopicName,
}

impl TopicMap {
    /// Adds a pair. A repeated equal pair is fine; a target name that another source topic has is refused, and the
    /// map stays as it was.
    pub fn insert(&mut self, source: TopicName, target: TopicName) -> Result<(), NameTaken> {
        if let Some(held_by) = self.to_source.get(&target)
            && *held_by != source
        {
            return Err(NameTaken { source_topic: source, target, held_by: held_by.clone() });
        }
        if let Some(old_target) = self.to_target.insert(source.clone(), target.clone())
            && old_target != target
        {
            self.to_source.remove(&old_target);
        }
        self.to_source.insert(target, source);
        Ok(())
    }

    /// The name on the target of a replicated source topic.
    pub fn target_of(&self, source: &TopicName) -> Option<&TopicName> {
        self.to_target.get(source)
    }

    /// The source topic whose copy `target` is.
    pub fn source_of(&self, target: &TopicName) -> Option<&TopicName> {
        self.to_source.get(target)
    }

    /// All pairs (source, target), by source name.
    pub fn iter(&self) -> impl Iterator<Item = (&TopicName, &TopicName)> {
        self.to_target.iter()
    }

    /// How many topics are replicated.
    pub fn len(&self) -> usize {
        self.to_target.len()
    }

    /// Whether nothing is replicated.
    pub fn is_empty(&self) -> bool {
        self.to_target.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> TopicName {
        TopicName::parse(name).unwrap()
    }

    #[test]
    fn no_two_source_topics_share_a_target_topic() {
        let mut map = TopicMap::default();
        map.insert(topic("a"), topic("x")).unwrap();
        map.insert(topic("a"), topic("x")).unwrap();
        let refused = map.insert(topic("b"), topic("x")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "target topic \"x\" is already the copy of source topic \"a\", so \"b\" can't use it"
        );
        assert_eq!(map.source_of(&topic("x")), Some(&topic("a")));
        assert_eq!(map.len(), 1);
    }

    #[test]
    fn a_renamed_topic_frees_its_old_name() {
        let mut map = TopicMap::default();
        map.insert(topic("a"), topic("x")).unwrap();
        map.insert(topic("a"), topic("y")).unwrap();
        map.insert(topic("b"), topic("x")).unwrap();
        assert_eq!(map.target_of(&topic("a")), Some(&topic("y")));
        assert_eq!(map.source_of(&topic("x")), Some(&topic("b")));
    }
}
