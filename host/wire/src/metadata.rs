//! What a cluster consists of: brokers, topics, partitions and who leads them. Pure; asking is `client`'s.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{MetadataResponsePartition, MetadataResponseTopic};
use kafka_protocol::messages::{MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::error::{NodeId, WireError};

/// From this version on leader epochs can be trusted (Kafka's `MetadataResponse.hasReliableLeaderEpochs`): before, the broker's answer
/// could mix a new leader with an old epoch.
const RELIABLE_EPOCHS_VERSION: i16 = 9;

/// Where a broker listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// Name or address, as the broker advertises it; IPv6 without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// `broker.rack`.
    pub rack: Option<String>,
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

impl BrokerAddress {
    /// Reads one entry of `bootstrap.servers` as Kafka does: host:port, \[IPv6\]:port, and a listener name in front
    /// (`PLAINTEXT://host:port`) is taken and ignored.
    pub fn parse(text: &str) -> Result<BrokerAddress, WireError> {
        let wrong = |reason: &str| WireError::Address { text: text.to_owned(), reason: reason.to_owned() };
        let trimmed = text.trim();
        let address = trimmed.split_once("://").map_or(trimmed, |(_, address)| address);
        let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(bracketed) => bracketed,
            None if host.contains(':') => return Err(wrong("an IPv6 address stands in brackets")),
            None => host,
        };
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let port = port.parse().map_err(|_| wrong("its port is not a number from 1 to 65535"))?;
        if port == 0 {
            return Err(wrong("its port is not a number from 1 to 65535"));
        }
        Ok(BrokerAddress { host: host.to_owned(), port, rack: None })
    }
}

/// A cluster as one of its brokers last described it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterMetadata {
    /// The cluster's own name for itself.
    pub cluster_id: Option<String>,
    /// Who takes changes of topics. With KRaft any broker, which passes them on.
    pub controller: Option<NodeId>,
    /// Live brokers.
    pub brokers: BTreeMap<NodeId, BrokerAddress>,
    /// Topics that were asked for, with their last known state.
    pub topics: BTreeMap<Arc<str>, TopicMetadata>,
}

/// One topic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopicMetadata {
    /// Its id (KIP-516): differs when a topic was deleted and made again. None from brokers before 2.8.
    pub id: Option<[u8; 16]>,
    /// The broker's own (`__consumer_offsets` and the like).
    pub internal: bool,
    /// Why nothing is known of it: it does not exist, may not be seen, is being made.
    pub error: Option<ResponseError>,
    /// By number.
    pub partitions: BTreeMap<i32, PartitionMetadata>,
}

/// One partition.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionMetadata {
    /// None while there is no leader.
    pub leader: Option<NodeId>,
    /// Grows with every change of the leader; −1 where the broker is too old to say it reliably.
    pub leader_epoch: i32,
    /// Replicas, in sync or not.
    pub replicas: usize,
    /// What is wrong with it, for instance LEADER_NOT_AVAILABLE.
    pub error: Option<ResponseError>,
}

/// Which topics a refresh asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicSelection {
    /// Brokers only; what is known of topics stays.
    None,
    /// Every topic that we may see; what is not in the answer is forgotten.
    All,
    /// These; what is known of others stays.
    Named(Vec<Arc<str>>),
}

impl TopicSelection {
    /// The request. It never creates a topic.
    pub fn request(&self) -> MetadataRequest {
        let topics = match self {
            TopicSelection::None => Some(Vec::new()),
            TopicSelection::All => None,
            TopicSelection::Named(names) => Some(names.iter().map(|name| requested(name)).collect()),
        };
        MetadataRequest::default().with_topics(topics).with_allow_auto_topic_creation(false)
    }
}

fn requested(name: &str) -> MetadataRequestTopic {
    let name = TopicName(StrBytes::from_string(name.to_owned()));
    MetadataRequestTopic::default().with_name(Some(name))
}

impl ClusterMetadata {
    /// Who leads this partition, and under which epoch.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<(NodeId, i32)> {
        let partition = self.topics.get(topic)?.partitions.get(&partition)?;
        partition.leader.map(|leader| (leader, partition.leader_epoch))
    }

    /// This state after a broker's answer of that version. A leader of an older epoch than the one known is a broker's that lags
    /// behind, and not taken (KIP-320), unless the topic was made anew.
    pub fn updated(&self, selection: &TopicSelection, answer: &MetadataResponse, version: i16) -> Self {
        let mut topics = match selection {
            TopicSelection::All => BTreeMap::new(),
            TopicSelection::None | TopicSelection::Named(_) => self.topics.clone(),
        };
        for answered in &answer.topics {
            let Some(name) = &answered.name else { continue };
            let (name, known) = match self.topics.get_key_value(name.as_str()) {
                Some((name, known)) => (Arc::clone(name), Some(known)),
                None => (Arc::from(name.as_str()), None),
            };
            topics.insert(name, topic(answered, known, version >= RELIABLE_EPOCHS_VERSION));
        }
        ClusterMetadata {
            cluster_id: answer.cluster_id.as_ref().map(|id| id.to_string()),
            controller: node(*answer.controller_id),
            brokers: answer.brokers.iter().filter_map(broker).collect(),
            topics,
        }
    }
}

fn broker(
    answered: &kafka_protocol::messages::metadata_response::MetadataResponseBroker,
) -> Option<(NodeId, BrokerAddress)> {
    // A port outside 1..=65535 can't be connected to, so such a broker is as good as absent.
    let port = u16::try_from(answered.port).ok().filter(|port| *port > 0)?;
    let rack = answered.rack.as_ref().map(|rack| rack.to_string());
    Some((*answered.node_id, BrokerAddress { host: answered.host.to_string(), port, rack }))
}

fn topic(
    answered: &MetadataResponseTopic,
    known: Option<&TopicMetadata>,
    reliable_epochs: bool,
) -> TopicMetadata {
    let id = (!answered.topic_id.is_nil()).then(|| answered.topic_id.into_bytes());
    // Without ids a topic that was made anew could not be told from a broker that lags behind; then the answer is taken, and
    // the leader itself refuses a stale epoch.
    let same = known.filter(|known| id.is_some() && known.id == id);
    let partitions = answered
        .partitions
        .iter()
        .map(|answered| {
            let number = answered.partition_index;
            let fresh = partition(answered, reliable_epochs);
            let newer = same
                .and_then(|known| known.partitions.get(&number))
                .filter(|known| known.leader_epoch > fresh.leader_epoch && fresh.leader_epoch >= 0);
            (number, newer.cloned().unwrap_or(fresh))
        })
        .collect();
    TopicMetadata {
        id,
        internal: answered.is_internal,
        error: ResponseError::try_from_code(answered.error_code),
        partitions,
    }
}

fn partition(answered: &MetadataResponsePartition, reliable_epochs: bool) -> PartitionMetadata {
    PartitionMetadata {
        leader: node(*answered.leader_id),
        leader_epoch: if reliable_epochs { answered.leader_epoch } else { -1 },
        replicas: answered.replica_nodes.len(),
        error: ResponseError::try_from_code(answered.error_code),
    }
}

fn node(id: i32) -> Option<NodeId> {
    (id >= 0).then_some(id)
}

#[cfg(test)]
mod tests;
