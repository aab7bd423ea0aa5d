//! The names and numbers that must not be mixed up. Parse once, at the edge; below it nothing is a bare string.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Kafka's limit for a topic name, in bytes (`org.apache.kafka.common.internals.Topic`).
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

/// A cluster's alias in MirrorMaker 2's file, such as `east`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ClusterAlias(Arc<str>);

impl ClusterAlias {
    /// Takes any text: MirrorMaker 2 puts no bound on aliases, the configuration's checks do.
    pub fn new(alias: &str) -> Self {
        Self(alias.into())
    }

    /// The alias as written in the file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterAlias {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One direction, `source->target`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowName {
    /// The cluster that is read.
    pub source: ClusterAlias,
    /// The cluster that is written.
    pub target: ClusterAlias,
}

impl fmt::Display for FlowName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}->{}", self.source, self.target)
    }
}

impl Serialize for FlowName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text is no topic name; the wording follows `org.apache.kafka.common.internals.Topic`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IllegalTopicName {
    /// The empty text.
    #[error("a topic name can't be empty")]
    Empty,
    /// `.` or `..`.
    #[error("a topic can't be called \"{0}\"")]
    Dots(String),
    /// More bytes than Kafka takes.
    #[error("\"{name}\" has {bytes} characters, Kafka takes at most {TOPIC_NAME_BYTES_MAX}")]
    TooLong {
        /// The name.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// A character outside `[a-zA-Z0-9._-]`.
    #[error("\"{name}\" holds {character:?}; Kafka takes ASCII letters, digits, '.', '_' and '-'")]
    Character {
        /// The name.
        name: String,
        /// The first character that is not allowed.
        character: char,
    },
}

/// A legal Kafka topic name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TopicName(Arc<str>);

impl TopicName {
    /// Checks `name` as a Kafka broker does.
    pub fn parse(name: &str) -> Result<Self, IllegalTopicName> {
        if name.is_empty() {
            return Err(IllegalTopicName::Empty);
        }
        if name == "." || name == ".." {
            return Err(IllegalTopicName::Dots(name.to_owned()));
        }
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(character) = name.chars().find(|c| !is_legal(*c)) {
            return Err(IllegalTopicName::Character { name: name.to_owned(), character });
        }
        if name.len() > TOPIC_NAME_BYTES_MAX {
            return Err(IllegalTopicName::TooLong { name: name.to_owned(), bytes: name.len() });
        }
        Ok(Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An offset in a partition of the source cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SourceOffset(pub i64);

impl SourceOffset {
    /// The offset behind this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for SourceOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// An offset in a partition of the target cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TargetOffset(pub i64);

impl fmt::Display for TargetOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A partition of a topic on the source cluster. Its number is the same on the target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SourcePartition {
    /// The topic's name on the source.
    pub topic: TopicName,
    /// 0, 1, …
    pub partition: i32,
}

impl fmt::Display for SourcePartition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.topic, self.partition)
    }
}

/// A partition of the flow's positions topic: one unit of ownership. Whoever owns slot `p` relays the source
/// partitions whose position keys hash to `p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Slot(pub i32);

impl fmt::Display for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_as_kafka_checks_them() {
        let check = |name: &str, problem: Option<&str>| {
            assert_eq!(TopicName::parse(name).err().map(|e| e.to_string()).as_deref(), problem, "{name:?}");
        };
        check("orders", None);
        check("A.b_c-9", None);
        check(&"x".repeat(249), None);
        check("", Some("a topic name can't be empty"));
        check("..", Some("a topic can't be called \"..\""));
        check("a/b", Some("\"a/b\" holds '/'; Kafka takes ASCII letters, digits, '.', '_' and '-'"));
        assert_eq!(
            TopicName::parse(&"x".repeat(250)),
            Err(IllegalTopicName::TooLong { name: "x".repeat(250), bytes: 250 })
        );
    }
}
