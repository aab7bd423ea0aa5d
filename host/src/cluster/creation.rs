//! Creates topics and adds partitions. Each may be asked twice: "exists already" and "has as many already" are fine
//! here, and whoever asked looks again before anything is produced.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{CreatePartitionsRequest, CreateTopicsRequest};
use kafka_protocol::protocol::Request;
use serde::Serialize;
use tidegate_wire::client::Misrouted;
use tidegate_wire::error::WireError;

use super::admin::{BrokerRefusal, ClusterAdmin, text};
use crate::names::TopicName;

/// How long the controller may take for one request, in milliseconds; the answer then says "timed out" and the next
/// round looks what came of it.
pub const CREATION_TIMEOUT_MS: i32 = 20_000;

/// Topics created by one request. A controller handles a request as one unit; a bound keeps that unit short.
pub const CREATED_TOPICS_COUNT_MAX: usize = 50;

/// A cluster without a controller is asked again so many times …
const CONTROLLER_ATTEMPTS_COUNT_MAX: u32 = 4;

/// … with this pause between them.
const CONTROLLER_RETRY_MS: u64 = 200;

/// A topic to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: TopicName,
    /// −1: the broker's default.
    pub partition_count: i32,
    /// −1: the broker's default.
    pub replication_factor: i16,
    /// Settings that are not the broker's defaults.
    pub configs: Vec<(String, String)>,
}

/// What came of one wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// We made it so.
    Done,
    /// It was so already.
    AlreadySo,
}

/// What came of each wish, by topic.
pub type Outcomes = BTreeMap<TopicName, Result<Outcome, BrokerRefusal>>;

impl ClusterAdmin {
    /// Creates topics. The outer error is one of the connection: what came of the rest is not known then.
    pub async fn create_topics(&self, topics: &[NewTopic]) -> anyhow::Result<Outcomes> {
        let mut outcomes = Outcomes::new();
        for some in topics.chunks(CREATED_TOPICS_COUNT_MAX) {
            outcomes.extend(self.create_some(some).await?);
        }
        Ok(outcomes)
    }

    /// Raises topics to a number of partitions, which must not be less than they have.
    pub async fn create_partitions(&self, counts: &BTreeMap<TopicName, i32>) -> anyhow::Result<Outcomes> {
        let wishes: Vec<_> = counts.iter().collect();
        let mut outcomes = Outcomes::new();
        for some in wishes.chunks(CREATED_TOPICS_COUNT_MAX) {
            outcomes.extend(self.create_some_partitions(some).await?);
        }
        Ok(outcomes)
    }

    async fn create_some(&self, topics: &[NewTopic]) -> anyhow::Result<Outcomes> {
        let request = CreateTopicsRequest::default()
            .with_topics(topics.iter().map(creatable).collect())
            .with_timeout_ms(CREATION_TIMEOUT_MS);
        let answer = self.call_controller(request).await.with_context(|| {
            format!("could not create {} topic(s) on cluster \"{}\"", topics.len(), self.alias())
        })?;
        let outcome = |topic: &kafka_protocol::messages::create_topics_response::CreatableTopicResult| {
            let name = TopicName::parse(&topic.name.0).ok()?;
            let refusal = BrokerRefusal::from_answer(topic.error_code, topic.error_message.as_ref());
            Some((name, settle(refusal, ResponseError::TopicAlreadyExists)))
        };
        Ok(answer.topics.iter().filter_map(outcome).collect())
    }

    async fn create_some_partitions(&self, wishes: &[(&TopicName, &i32)]) -> anyhow::Result<Outcomes> {
        let wish = |(topic, count): &(&TopicName, &i32)| {
            CreatePartitionsTopic::default()
                .with_name(kafka_protocol::messages::TopicName(text(topic.as_str())))
                .with_count(**count)
                .with_assignments(None)
        };
        let request = CreatePartitionsRequest::default()
            .with_topics(wishes.iter().map(wish).collect())
            .with_timeout_ms(CREATION_TIMEOUT_MS);
        let answer = self.call_controller(request).await.with_context(|| {
            format!("could not add partitions to {} topic(s) on cluster \"{}\"", wishes.len(), self.alias())
        })?;
        let outcome =
            |topic: &kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult| {
                let name = TopicName::parse(&topic.name.0).ok()?;
                let refusal = BrokerRefusal::from_answer(topic.error_code, topic.error_message.as_ref());
                // InvalidPartitions: someone else added them first (MirrorMaker 2 swallows it too).
                Some((name, settle(refusal, ResponseError::InvalidPartitions)))
            };
        Ok(answer.results.iter().filter_map(outcome).collect())
    }

    /// Asks the controller, and its successor while one is being elected. A request that was lost may have been done; the
    /// next answer then calls it "exists already".
    async fn call_controller<R>(&self, request: R) -> Result<R::Response, WireError>
    where
        R: Request + Clone + Send + 'static,
        R::Response: Misrouted + Send,
    {
        let mut attempt = 1;
        loop {
            let answer = self.client().call_controller(request.clone()).await;
            let again = match &answer {
                Ok(answer) => answer.misrouted(),
                Err(error) => error.is_retriable(),
            };
            if !again || attempt == CONTROLLER_ATTEMPTS_COUNT_MAX {
                return answer;
            }
            attempt += 1;
            tokio::time::sleep(Duration::from_millis(CONTROLLER_RETRY_MS)).await;
        }
    }
}

fn creatable(topic: &NewTopic) -> CreatableTopic {
    let config = |(name, value): &(String, String)| {
        CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
    };
    CreatableTopic::default()
        .with_name(kafka_protocol::messages::TopicName(text(topic.name.as_str())))
        .with_num_partitions(topic.partition_count)
        .with_replication_factor(topic.replication_factor)
        .with_configs(topic.configs.iter().map(config).collect())
}

fn settle(refusal: Option<BrokerRefusal>, already: ResponseError) -> Result<Outcome, BrokerRefusal> {
    match refusal {
        None => Ok(Outcome::Done),
        Some(refusal) if refusal.error == already => Ok(Outcome::AlreadySo),
        Some(refusal) => Err(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_before_is_done() {
        let refusal = |error| Some(BrokerRefusal { error, message: None });
        let exists = ResponseError::TopicAlreadyExists;
        assert_eq!(settle(None, exists), Ok(Outcome::Done));
        assert_eq!(settle(refusal(exists), exists), Ok(Outcome::AlreadySo));
        let other = ResponseError::PolicyViolation;
        assert_eq!(settle(refusal(other), exists), Err(BrokerRefusal { error: other, message: None }));
    }
}
