//! Reads a cluster: its id, topics and topic settings.
//!
//! It speaks through tidegate-wire and not through a second Kafka library: a refusal then carries the broker's own
//! words, start-up does not wait for another client's bootstrap, and one implementation of the protocol meets the
//! brokers. The safe interface of rdkafka lacks topic ids, settings' origins and half of what else is asked here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::Context;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use kafka_protocol::protocol::StrBytes;
use tidegate_wire::client::{Client, ClientOptions};
use tidegate_wire::error::WireError;
use tidegate_wire::metadata::{ClusterMetadata, TopicMetadata, TopicSelection};

use crate::names::{ClusterAlias, TopicName};

/// Settings of at most so many topics are asked for in one request; a topic has about 40 settings, so an answer stays
/// below a megabyte.
pub const DESCRIBED_TOPICS_COUNT_MAX: usize = 100;

/// `ConfigResource.Type.TOPIC`.
const RESOURCE_TOPIC: i8 = 2;

/// A broker's no to one thing that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRefusal {
    /// The error code.
    pub error: ResponseError,
    /// The broker's own words, if it found some.
    pub message: Option<String>,
}

impl BrokerRefusal {
    /// None for code 0.
    pub(crate) fn from_answer(code: i16, message: Option<&StrBytes>) -> Option<Self> {
        let error = ResponseError::try_from_code(code)?;
        let message = message.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        Some(Self { error, message })
    }
}

impl fmt::Display for BrokerRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            // Brokers end sentences; ours go on.
            Some(message) => write!(formatter, "{:?}: {}", self.error, message.trim_end_matches('.')),
            None => write!(formatter, "{:?}", self.error),
        }
    }
}

impl std::error::Error for BrokerRefusal {}

/// A topic's id (KIP-516): another one under the same name is another topic. Brokers before 2.8 have none.
pub type TopicId = [u8; 16];

/// One topic as metadata show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicView {
    /// None where the brokers have no topic ids.
    pub id: Option<TopicId>,
    /// Partitions 0 up to this.
    pub partition_count: i32,
    /// The broker's own topic, such as `__consumer_offsets`.
    pub is_internal: bool,
}

/// A cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// None where brokers don't tell.
    pub cluster_id: Option<String>,
    /// Brokers that are alive.
    pub broker_count: usize,
    /// Every topic that we may see.
    pub topics: BTreeMap<TopicName, TopicView>,
    /// Topics that are listed with an error in place of their partitions: they are there, but nothing is known of them at
    /// this moment. A topic that was deleted is in neither list.
    pub unclear: BTreeSet<TopicName>,
}

impl ClusterView {
    /// Takes what an earlier look knew of the topics that are unclear now. They stay in `unclear`.
    pub fn fill_unclear(&mut self, earlier: &Self) {
        for topic in &self.unclear {
            if let Some(known) = earlier.topics.get(topic) {
                self.topics.entry(topic.clone()).or_insert_with(|| known.clone());
            }
        }
    }

    /// Whether the topic is there, as far as anyone can say.
    pub fn lists(&self, topic: &TopicName) -> bool {
        self.topics.contains_key(topic) || self.unclear.contains(topic)
    }
}

/// Where a setting's value comes from (`DescribeConfigsResponse.ConfigSource`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigOrigin {
    /// Set on the topic.
    Topic,
    /// Set for one broker or all of them while they run.
    DynamicBroker,
    /// In a broker's `server.properties`.
    StaticBroker,
    /// Kafka's default.
    Default,
    /// A number that we don't know.
    Unknown(i8),
}

impl ConfigOrigin {
    fn from_number(number: i8) -> Self {
        match number {
            1 => Self::Topic,
            2 | 3 => Self::DynamicBroker,
            4 => Self::StaticBroker,
            5 => Self::Default,
            other => Self::Unknown(other),
        }
    }
}

/// One setting of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Such as `retention.ms`.
    pub name: String,
    /// None for sensitive settings.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: ConfigOrigin,
    /// Can't be set.
    pub is_read_only: bool,
    /// Its value is hidden.
    pub is_sensitive: bool,
}

/// The settings of several topics, or why one of them was not told.
pub type TopicConfigs = BTreeMap<TopicName, Result<Vec<ConfigEntry>, BrokerRefusal>>;

/// Control client of one cluster. Cheap to clone.
#[derive(Clone)]
pub struct ClusterAdmin {
    alias: ClusterAlias,
    client: Client,
}

impl ClusterAdmin {
    /// Connects; one round over the bootstrap servers. How long to try again is the caller's decision.
    pub async fn connect(alias: ClusterAlias, options: ClientOptions) -> Result<Self, WireError> {
        Ok(Self::new(alias, Client::connect(options).await?))
    }

    /// Uses a client that is there already.
    pub fn new(alias: ClusterAlias, client: Client) -> Self {
        Self { alias, client }
    }

    /// The cluster's name in the file.
    pub fn alias(&self) -> &ClusterAlias {
        &self.alias
    }

    /// The client below.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Looks at the whole cluster. Never makes a broker create a topic.
    pub async fn view(&self) -> anyhow::Result<ClusterView> {
        let metadata = self
            .client
            .refresh_metadata(TopicSelection::All)
            .await
            .with_context(|| format!("could not list the topics of cluster \"{}\"", self.alias))?;
        Ok(cluster_view(&metadata))
    }

    /// Looks at one topic; None when there is none, or none that can be seen at this moment.
    pub async fn topic(&self, name: &TopicName) -> anyhow::Result<Option<TopicView>> {
        let wanted = TopicSelection::Named(vec![name.as_str().into()]);
        let metadata =
            self.client.refresh_metadata(wanted).await.with_context(|| {
                format!("could not look up topic \"{name}\" on cluster \"{}\"", self.alias)
            })?;
        Ok(metadata.topics.get(name.as_str()).and_then(topic_view))
    }

    /// Looks whether there is a topic; None only when the cluster says that there is none. Whatever else it says instead of
    /// showing the topic is an error: what the topic holds would be taken for nothing.
    pub async fn find_topic(&self, name: &TopicName) -> anyhow::Result<Option<TopicView>> {
        let wanted = TopicSelection::Named(vec![name.as_str().into()]);
        let context = || format!("could not look up topic \"{name}\" on cluster \"{}\"", self.alias);
        let metadata = self.client.refresh_metadata(wanted).await.with_context(context)?;
        found_topic(metadata.topics.get(name.as_str())).with_context(context)
    }

    /// The settings of `topics`, some hundred a request.
    pub async fn topic_configs(&self, topics: &[TopicName]) -> anyhow::Result<TopicConfigs> {
        let mut found = TopicConfigs::new();
        for some in topics.chunks(DESCRIBED_TOPICS_COUNT_MAX) {
            let answer = self.client.call_any(describe_request(some)).await.with_context(|| {
                let count = topics.len();
                format!("could not read the settings of {count} topic(s) of cluster \"{}\"", self.alias)
            })?;
            found.extend(answer.results.iter().filter_map(described_topic));
        }
        Ok(found)
    }
}

fn describe_request(topics: &[TopicName]) -> DescribeConfigsRequest {
    let resource = |topic: &TopicName| {
        DescribeConfigsResource::default()
            .with_resource_type(RESOURCE_TOPIC)
            .with_resource_name(text(topic.as_str()))
            .with_configuration_keys(None)
    };
    DescribeConfigsRequest::default().with_resources(topics.iter().map(resource).collect())
}

fn described_topic(
    result: &DescribeConfigsResult,
) -> Option<(TopicName, Result<Vec<ConfigEntry>, BrokerRefusal>)> {
    let topic = TopicName::parse(&result.resource_name).ok()?;
    let entries = match BrokerRefusal::from_answer(result.error_code, result.error_message.as_ref()) {
        Some(refusal) => Err(refusal),
        None => Ok(result.configs.iter().map(config_entry).collect()),
    };
    Some((topic, entries))
}

fn config_entry(config: &DescribeConfigsResourceResult) -> ConfigEntry {
    ConfigEntry {
        name: config.name.to_string(),
        value: config.value.as_ref().map(ToString::to_string),
        origin: ConfigOrigin::from_number(config.config_source),
        is_read_only: config.read_only,
        is_sensitive: config.is_sensitive,
    }
}

fn cluster_view(metadata: &ClusterMetadata) -> ClusterView {
    let mut topics = BTreeMap::new();
    let mut unclear = BTreeSet::new();
    for (name, metadata) in &metadata.topics {
        let Ok(name) = TopicName::parse(name) else { continue };
        match topic_view(metadata) {
            Some(view) => drop(topics.insert(name, view)),
            None => drop(unclear.insert(name)),
        }
    }
    ClusterView {
        cluster_id: metadata.cluster_id.clone(),
        broker_count: metadata.brokers.len(),
        topics,
        unclear,
    }
}

/// None for a topic that came with an error: what else the answer says of it counts for nothing.
fn topic_view(topic: &TopicMetadata) -> Option<TopicView> {
    if topic.error.is_some() {
        return None;
    }
    let (last, _) = topic.partitions.last_key_value()?;
    Some(TopicView { id: topic.id, partition_count: last + 1, is_internal: topic.internal })
}

fn found_topic(topic: Option<&TopicMetadata>) -> anyhow::Result<Option<TopicView>> {
    match topic.map(|topic| (topic.error, topic_view(topic))) {
        None | Some((Some(ResponseError::UnknownTopicOrPartition), _)) => Ok(None),
        Some((Some(ResponseError::TopicAuthorizationFailed), _)) => {
            anyhow::bail!("the broker answered TopicAuthorizationFailed; allow DESCRIBE and READ on it")
        }
        Some((Some(error), _)) => anyhow::bail!("the broker answered {error:?}"),
        Some((None, Some(view))) => Ok(Some(view)),
        Some((None, None)) => anyhow::bail!("the broker shows no partition of it"),
    }
}

pub(super) fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_wire::metadata::PartitionMetadata;

    use super::*;

    /// A listing with these topics: name, error, number of partitions.
    fn listing(topics: &[(&str, Option<ResponseError>, i32)]) -> ClusterView {
        let partition = PartitionMetadata { leader: None, leader_epoch: -1, replicas: 1, error: None };
        let topic = |(name, error, partition_count): &(&str, Option<ResponseError>, i32)| {
            let partitions = (0..*partition_count).map(|number| (number, partition.clone())).collect();
            let topic = TopicMetadata { id: Some([7; 16]), internal: false, error: *error, partitions };
            (Arc::from(*name), topic)
        };
        let topics = topics.iter().map(topic).collect();
        cluster_view(&ClusterMetadata { topics, ..ClusterMetadata::default() })
    }

    #[test]
    fn a_topic_that_is_listed_with_an_error_is_unclear_and_not_gone() {
        use ResponseError::{LeaderNotAvailable, UnknownTopicId, UnknownTopicOrPartition};
        let name = |name| TopicName::parse(name).unwrap();
        let earlier = listing(&[("orders", None, 3), ("bills", None, 2), ("gone", None, 1)]);
        assert!(earlier.unclear.is_empty());
        let mut now = listing(&[
            ("orders", Some(LeaderNotAvailable), 0),
            ("bills", Some(UnknownTopicId), 2),
            ("new", Some(UnknownTopicOrPartition), 0),
        ]);
        assert!(now.topics.is_empty());
        assert_eq!(now.unclear, ["orders", "bills", "new"].map(name).into());
        now.fill_unclear(&earlier);
        let known: Vec<(&str, i32)> =
            now.topics.iter().map(|(name, view)| (name.as_str(), view.partition_count)).collect();
        assert_eq!(known, [("bills", 2), ("orders", 3)]);
        assert!(now.lists(&name("new")) && now.lists(&name("orders")) && !now.lists(&name("gone")));
    }

    #[test]
    fn a_topic_that_is_not_shown_is_only_absent_when_the_broker_says_so() {
        use ResponseError::{LeaderNotAvailable, TopicAuthorizationFailed, UnknownTopicOrPartition};
        let partition = PartitionMetadata { leader: None, leader_epoch: -1, replicas: 1, error: None };
        let look = |error, count| {
            let partitions = (0..count).map(|number| (number, partition.clone())).collect();
            let topic = TopicMetadata { id: None, internal: false, error, partitions };
            found_topic(Some(&topic)).map(|found| found.map(|view| view.partition_count))
        };
        assert_eq!(found_topic(None).unwrap(), None);
        assert_eq!(look(Some(UnknownTopicOrPartition), 0).unwrap(), None);
        assert_eq!(look(None, 2).unwrap(), Some(2));
        for (error, count, text) in [
            (Some(LeaderNotAvailable), 1, "the broker answered LeaderNotAvailable"),
            (
                Some(TopicAuthorizationFailed),
                0,
                "the broker answered TopicAuthorizationFailed; allow DESCRIBE and READ on it",
            ),
            (None, 0, "the broker shows no partition of it"),
        ] {
            assert_eq!(look(error, count).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn refusals_carry_the_brokers_words() {
        let refusal = |message: Option<&'static str>| {
            let message = message.map(StrBytes::from_static_str);
            BrokerRefusal::from_answer(38, message.as_ref()).unwrap().to_string()
        };
        assert_eq!(
            refusal(Some("Replication factor: 3 larger than available brokers: 1.")),
            "InvalidReplicationFactor: Replication factor: 3 larger than available brokers: 1"
        );
        assert_eq!(refusal(Some(" ")), "InvalidReplicationFactor");
        assert_eq!(refusal(None), "InvalidReplicationFactor");
        assert_eq!(BrokerRefusal::from_answer(0, None), None);
    }
}
