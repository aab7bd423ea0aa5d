//! Does what a plan says. Every action may be done twice and by several nodes at once; one that fails leaves the others
//! alone and is planned again.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use serde::Serialize;

use super::plan::{Action, Plan};
use crate::cluster::creation::{CREATED_TOPICS_COUNT_MAX, Outcomes};
use crate::cluster::{BrokerRefusal, ClusterAdmin, NewTopic, Outcome};
use crate::config::{FlowConfig, QuarantineSide};
use crate::names::TopicName;

/// What came of one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionResult {
    /// The action.
    pub action: Action,
    /// Done, or why not: what, which, why, and the way out.
    pub result: Result<Outcome, String>,
}

/// Does the plan's actions: on `target`, but for the quarantine topic, which may be the source's.
pub async fn apply(
    source: &ClusterAdmin,
    target: &ClusterAdmin,
    flow: &FlowConfig,
    plan: &Plan,
) -> Vec<ActionResult> {
    let mut results = Vec::new();
    for action in &plan.actions {
        let result = match action {
            Action::CreatePositionsTopic { .. } => {
                let made = target.ensure_positions_topic(&flow.positions).await;
                made.map(|_| Outcome::Done).map_err(|error| words(&error.into()))
            }
            Action::CreateQuarantineTopic { topic, side, replication_factor } => {
                let cluster = match side {
                    QuarantineSide::Source => source,
                    QuarantineSide::Target => target,
                };
                create_quarantine_topic(cluster, *side, topic, *replication_factor).await
            }
            Action::CreateTopic { .. } | Action::AddPartitions { .. } => continue,
        };
        results.push(ActionResult { action: action.clone(), result });
    }
    let creations: Vec<&Action> =
        plan.actions.iter().filter(|action| matches!(action, Action::CreateTopic { .. })).collect();
    for some in creations.chunks(CREATED_TOPICS_COUNT_MAX) {
        let topics: Vec<NewTopic> = some.iter().filter_map(|action| new_topic(action)).collect();
        let outcomes = target.create_topics(&topics).await;
        results.extend(results_of(some, outcomes, target));
    }
    let additions: Vec<&Action> =
        plan.actions.iter().filter(|action| matches!(action, Action::AddPartitions { .. })).collect();
    for some in additions.chunks(CREATED_TOPICS_COUNT_MAX) {
        let counts: BTreeMap<TopicName, i32> = some.iter().filter_map(|action| new_count(action)).collect();
        let outcomes = target.create_partitions(&counts).await;
        results.extend(results_of(some, outcomes, target));
    }
    results
}

/// A quarantined record is one that some topic of the source took, as large as that may be, and some headers; a broker reads
/// no request of more than 100 MiB (`socket.request.max.bytes`).
const QUARANTINED_BYTES_MAX: usize = 64 * 1_048_576;

/// Records stay until somebody has looked at them.
async fn create_quarantine_topic(
    cluster: &ClusterAdmin,
    side: QuarantineSide,
    topic: &TopicName,
    replication_factor: i16,
) -> Result<Outcome, String> {
    let config = |name: &str, value: String| (name.to_owned(), value);
    let wish = NewTopic {
        name: topic.clone(),
        partition_count: 1,
        replication_factor,
        configs: vec![
            config("cleanup.policy", "delete".to_owned()),
            config("retention.ms", "-1".to_owned()),
            config("max.message.bytes", QUARANTINED_BYTES_MAX.to_string()),
        ],
    };
    let failed = |why: String, remedy: &str| {
        format!(
            "could not create quarantine topic \"{topic}\" on {side} \"{}\": {why}; {remedy}; until it is there, a partition with \
             a record for it waits",
            cluster.alias()
        )
    };
    let mut outcomes = cluster.create_topics(&[wish]).await.map_err(|error| words(&error))?;
    match outcomes.remove(topic) {
        Some(Ok(outcome)) => Ok(outcome),
        Some(Err(refusal)) if refusal.error == ResponseError::InvalidReplicationFactor => {
            Err(failed(refusal.to_string(), "set tidegate.quarantine.replication.factor"))
        }
        Some(Err(refusal)) => Err(failed(refusal.to_string(), remedy(refusal.error))),
        None => Err(failed("no answer".to_owned(), "it is tried again at the next refresh")),
    }
}

fn new_topic(action: &Action) -> Option<NewTopic> {
    match action {
        Action::CreateTopic { topic, partition_count, replication_factor, settings, .. } => Some(NewTopic {
            name: topic.clone(),
            partition_count: *partition_count,
            replication_factor: *replication_factor,
            configs: settings.clone(),
        }),
        _ => None,
    }
}

fn new_count(action: &Action) -> Option<(TopicName, i32)> {
    match action {
        Action::AddPartitions { topic, to_count, .. } => Some((topic.clone(), *to_count)),
        _ => None,
    }
}

fn results_of(
    actions: &[&Action],
    outcomes: anyhow::Result<Outcomes>,
    target: &ClusterAdmin,
) -> Vec<ActionResult> {
    let result = |action: &Action| match (&outcomes, action.topic()) {
        (Err(error), _) => Err(words(error)),
        (Ok(outcomes), Some(topic)) => match outcomes.get(topic) {
            Some(Ok(outcome)) => Ok(*outcome),
            Some(Err(refusal)) => Err(refused(action, topic, refusal, target.alias().as_str())),
            None => Err(format!("cluster \"{}\" did not answer for topic \"{topic}\"", target.alias())),
        },
        (Ok(_), None) => Ok(Outcome::AlreadySo),
    };
    actions.iter().map(|action| ActionResult { action: (*action).clone(), result: result(action) }).collect()
}

fn refused(action: &Action, topic: &TopicName, refusal: &BrokerRefusal, target: &str) -> String {
    let what = match action {
        Action::AddPartitions { .. } => "add partitions to",
        _ => "create",
    };
    format!("could not {what} topic \"{topic}\" on target \"{target}\": {refusal}; {}", remedy(refusal.error))
}

fn remedy(error: ResponseError) -> &'static str {
    match error {
        ResponseError::InvalidReplicationFactor => {
            "set replication.factor to at most the number of brokers, or add brokers"
        }
        ResponseError::InvalidConfig => "add the setting to config.properties.exclude",
        ResponseError::TopicAuthorizationFailed | ResponseError::ClusterAuthorizationFailed => {
            "allow it, or do it by hand; it is tried again at every refresh"
        }
        ResponseError::PolicyViolation => "change the target's policy or do it by hand",
        _ => "it is tried again at the next refresh",
    }
}

/// An error with all its reasons.
fn words(error: &anyhow::Error) -> String {
    format!("{error:#}")
}
