//! The flow's positions topic on the target, created as Kafka Connect creates it for MirrorMaker 2.

use kafka_protocol::ResponseError;

use super::admin::{BrokerRefusal, ClusterAdmin, ConfigEntry};
use super::creation::NewTopic;
use crate::config::PositionsConfig;
use crate::names::{ClusterAlias, TopicName};

/// A new topic shows in metadata within so many looks …
const SEEN_ATTEMPTS_COUNT_MAX: u32 = 50;

/// … with this pause between them.
const SEEN_PAUSE_MS: u64 = 100;

/// Why the positions topic can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PositionsTopicError {
    /// It would lose positions: old records are deleted by time or size.
    #[error(
        "positions topic \"{topic}\" on target \"{target}\" has cleanup.policy = {found}, so old positions would be \
         deleted and their topics copied again; set cleanup.policy = compact on it (kafka-configs --alter)"
    )]
    NotCompacted {
        /// The topic.
        topic: String,
        /// The cluster.
        target: ClusterAlias,
        /// Its policy.
        found: String,
    },
    /// The broker would not create it.
    #[error("could not create positions topic \"{topic}\" on target \"{target}\": {reason}; {remedy}")]
    Refused {
        /// The topic.
        topic: String,
        /// The cluster.
        target: ClusterAlias,
        /// The broker's error and its words.
        reason: BrokerRefusal,
        /// What can be done.
        remedy: &'static str,
    },
    /// It was created and does not show.
    #[error(
        "positions topic \"{topic}\" on target \"{target}\" was created but does not show in the metadata; try again"
    )]
    NotSeen {
        /// The topic.
        topic: String,
        /// The cluster.
        target: ClusterAlias,
    },
    /// The connection.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// The positions topic as it was found or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionsTopic {
    /// Its partitions.
    pub slot_count: i32,
    /// It was not there before.
    pub is_new: bool,
}

impl ClusterAdmin {
    /// Makes sure that the positions topic is there and compacted. One that exists is used with the partitions that it
    /// has. May be called by several nodes at once.
    pub async fn ensure_positions_topic(
        &self,
        config: &PositionsConfig,
    ) -> Result<PositionsTopic, PositionsTopicError> {
        let name = TopicName::parse(&config.topic).map_err(anyhow::Error::from)?;
        if let Some(topic) = self.topic(&name).await? {
            self.check_compacted(&name).await?;
            return Ok(PositionsTopic { slot_count: topic.partition_count, is_new: false });
        }
        let outcomes = self.create_topics(&[positions_topic(name.clone(), config)]).await?;
        if let Some(Err(refusal)) = outcomes.get(&name) {
            return Err(PositionsTopicError::Refused {
                topic: config.topic.clone(),
                target: self.alias().clone(),
                reason: refusal.clone(),
                remedy: remedy(refusal.error),
            });
        }
        for _ in 0..SEEN_ATTEMPTS_COUNT_MAX {
            if let Some(topic) = self.topic(&name).await? {
                return Ok(PositionsTopic { slot_count: topic.partition_count, is_new: true });
            }
            tokio::time::sleep(std::time::Duration::from_millis(SEEN_PAUSE_MS)).await;
        }
        Err(PositionsTopicError::NotSeen { topic: config.topic.clone(), target: self.alias().clone() })
    }

    /// As Connect does: anything but `compact` alone is refused; where the settings can't be read, the topic is trusted.
    async fn check_compacted(&self, name: &TopicName) -> Result<(), PositionsTopicError> {
        let configs = self.topic_configs(std::slice::from_ref(name)).await?;
        match configs.get(name) {
            Some(Ok(entries)) => match foreign_policy(entries) {
                None => Ok(()),
                Some(found) => Err(PositionsTopicError::NotCompacted {
                    topic: name.to_string(),
                    target: self.alias().clone(),
                    found,
                }),
            },
            Some(Err(refusal)) => {
                tracing::warn!(topic = %name, %refusal, "could not check that the positions topic is compacted");
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// The topic as it is created.
fn positions_topic(name: TopicName, config: &PositionsConfig) -> NewTopic {
    let mut configs = config.topic_configs.clone();
    configs.retain(|(key, _)| key != "cleanup.policy");
    configs.push(("cleanup.policy".to_owned(), "compact".to_owned()));
    NewTopic {
        name,
        partition_count: config.partitions,
        replication_factor: config.replication_factor,
        configs,
    }
}

/// The cleanup policy if it is not `compact`.
pub(super) fn foreign_policy(entries: &[ConfigEntry]) -> Option<String> {
    let policy = entries.iter().find(|entry| entry.name == "cleanup.policy")?.value.as_deref()?;
    (policy.trim() != "compact").then(|| policy.to_owned())
}

fn remedy(error: ResponseError) -> &'static str {
    match error {
        ResponseError::InvalidReplicationFactor => {
            "set offset.storage.replication.factor to at most the number of brokers, or add brokers"
        }
        ResponseError::TopicAuthorizationFailed | ResponseError::ClusterAuthorizationFailed => {
            "allow CREATE on it, or create it by hand with cleanup.policy = compact"
        }
        ResponseError::InvalidConfig => "correct the offset.storage.<topic setting> lines of the file",
        _ => "create it by hand with cleanup.policy = compact, or mend what the broker names",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cluster::ConfigOrigin;

    #[test]
    fn it_is_created_as_connect_creates_it() {
        let config = PositionsConfig {
            topic: "mm2-offsets.A.internal".to_owned(),
            partitions: 25,
            replication_factor: 3,
            topic_configs: vec![
                ("segment.bytes".to_owned(), "1048576".to_owned()),
                ("cleanup.policy".to_owned(), "delete".to_owned()),
            ],
            flush_interval: Duration::from_secs(5),
        };
        let topic = positions_topic(TopicName::parse(&config.topic).unwrap(), &config);
        assert_eq!((topic.partition_count, topic.replication_factor), (25, 3));
        let expected = [("segment.bytes", "1048576"), ("cleanup.policy", "compact")];
        assert_eq!(topic.configs, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn only_compact_alone_will_do() {
        let check = |policy: &str, expected: Option<&str>| {
            let entry = ConfigEntry {
                name: "cleanup.policy".to_owned(),
                value: Some(policy.to_owned()),
                origin: ConfigOrigin::Topic,
                is_read_only: false,
                is_sensitive: false,
            };
            assert_eq!(foreign_policy(&[entry]).as_deref(), expected);
        };
        check("compact", None);
        check("delete", Some("delete"));
        check("compact,delete", Some("compact,delete"));
        let error = PositionsTopicError::NotCompacted {
            topic: "mm2-offsets.A.internal".to_owned(),
            target: ClusterAlias::new("B"),
            found: "delete".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "positions topic \"mm2-offsets.A.internal\" on target \"B\" has cleanup.policy = delete, so old positions \
             would be deleted and their topics copied again; set cleanup.policy = compact on it (kafka-configs --alter)"
        );
    }
}
