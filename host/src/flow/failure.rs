//! Why a flow can't start or go on, and which errors of a cluster mean what.

use kafka_protocol::ResponseError;
use tidegate_wire::error::WireError;

use crate::cluster::{BrokerRefusal, PositionsTopicError};
use crate::names::{ClusterAlias, FlowName};

/// Why a flow can't start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum FlowFailure {
    /// A cluster did not answer for as long as a start may take.
    #[error(
        "flow {flow}: {side} \"{alias}\" ({servers}) can't be reached for {waited_s} s: {problem}; check \
         {alias}.bootstrap.servers and that a broker runs there (tidegate.start.timeout.ms sets how long to wait)"
    )]
    Unreachable {
        /// The flow.
        flow: FlowName,
        /// source or target.
        side: &'static str,
        /// The cluster.
        alias: ClusterAlias,
        /// Its bootstrap servers.
        servers: String,
        /// How long it was tried.
        waited_s: u64,
        /// The last attempt's problem.
        problem: String,
    },
    /// A cluster was reached, but did not answer what a start must know.
    #[error(
        "flow {flow}: {problem:#}; it was tried for {waited_s} s (tidegate.start.timeout.ms sets how long to wait)"
    )]
    Unavailable {
        /// The flow.
        flow: FlowName,
        /// How long it was tried.
        waited_s: u64,
        /// The last attempt's problem.
        problem: anyhow::Error,
    },
    /// MirrorMaker 2 has the group.
    #[error(
        "MirrorMaker 2 is still running flow {flow}: it holds the group of its positions on the target; stop it first, \
         or start with --wait-for-mirror-maker (tidegate.wait.for.mirror.maker = true) to take over when it ends"
    )]
    MirrorMakerRunning {
        /// The flow.
        flow: FlowName,
    },
    /// The group can't be joined.
    #[error("{0}")]
    Membership(String),
    /// What we will not do.
    #[error("{0}")]
    Refused(String),
    /// The naming plugin can't be used.
    #[error("{0:#}")]
    Plugin(anyhow::Error),
    /// A cluster does not allow it.
    #[error("{0:#}")]
    NotAllowed(anyhow::Error),
    /// Something else; what ran before is started again.
    #[error("{0:#}")]
    Internal(anyhow::Error),
}

impl FlowFailure {
    /// Whether it may go by itself. The others stay until a person changes something.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Unavailable { .. }
            | Self::MirrorMakerRunning { .. }
            | Self::Membership(_)
            | Self::Internal(_) => true,
            Self::Refused(_) | Self::Plugin(_) | Self::NotAllowed(_) => false,
        }
    }
}

/// What an error of a control client means while a flow starts.
#[derive(Debug)]
pub(super) enum Setback {
    /// The same may succeed in a moment.
    Again(anyhow::Error),
    /// It will not.
    Final(FlowFailure),
}

impl From<anyhow::Error> for Setback {
    fn from(error: anyhow::Error) -> Self {
        if refusal(&error).is_some_and(is_authorization) {
            Self::Final(FlowFailure::NotAllowed(error))
        } else if is_retriable(&error) {
            Self::Again(error)
        } else {
            Self::Final(FlowFailure::Internal(error))
        }
    }
}

impl From<PositionsTopicError> for Setback {
    fn from(error: PositionsTopicError) -> Self {
        match error {
            PositionsTopicError::Other(error) => error.into(),
            PositionsTopicError::NotSeen { .. } => Self::Again(error.into()),
            PositionsTopicError::Refused { ref reason, .. } if is_authorization(reason.error) => {
                Self::Final(FlowFailure::NotAllowed(error.into()))
            }
            PositionsTopicError::Refused { ref reason, .. } if reason.error.is_retriable() => {
                Self::Again(error.into())
            }
            PositionsTopicError::Refused { .. } | PositionsTopicError::NotCompacted { .. } => {
                Self::Final(FlowFailure::Refused(error.to_string()))
            }
        }
    }
}

/// The broker's no, wherever in the chain of reasons it is.
fn refusal(error: &anyhow::Error) -> Option<ResponseError> {
    error.chain().find_map(|cause| match cause.downcast_ref::<WireError>() {
        Some(WireError::Refused { error, .. }) => Some(*error),
        _ => cause.downcast_ref::<BrokerRefusal>().map(|refusal| refusal.error),
    })
}

fn is_authorization(error: ResponseError) -> bool {
    matches!(
        error,
        ResponseError::TopicAuthorizationFailed
            | ResponseError::ClusterAuthorizationFailed
            | ResponseError::GroupAuthorizationFailed
            | ResponseError::TransactionalIdAuthorizationFailed
    )
}

fn is_retriable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<WireError>() {
        Some(problem) => problem.is_retriable(),
        None => cause.downcast_ref::<BrokerRefusal>().is_some_and(|refusal| refusal.error.is_retriable()),
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use kafka_protocol::messages::ApiKey;

    use super::*;

    fn refused(error: ResponseError) -> WireError {
        WireError::Refused { address: "b:1".into(), api: ApiKey::CreateTopics, error, message: None }
    }

    fn by_the_broker(error: ResponseError) -> PositionsTopicError {
        PositionsTopicError::Refused {
            topic: "mm2-offsets.A.internal".to_owned(),
            target: ClusterAlias::new("B"),
            reason: BrokerRefusal { error, message: None },
            remedy: "do something",
        }
    }

    /// What becomes of it, in a word, and its text.
    fn outcome(setback: Setback) -> (&'static str, String) {
        match setback {
            Setback::Again(error) => ("again", format!("{error:#}")),
            Setback::Final(failure) => {
                let word = match failure {
                    FlowFailure::NotAllowed(_) => "not allowed",
                    FlowFailure::Refused(_) => "refused",
                    FlowFailure::Internal(_) => "internal",
                    _ => "another",
                };
                (word, failure.to_string())
            }
        }
    }

    #[test]
    fn errors_of_a_cluster_are_told_apart_wherever_they_are_in_the_chain() {
        let check = |error: WireError, expected: &'static str| {
            let words = error.to_string();
            assert_eq!(outcome(anyhow::Error::new(error.clone()).into()), (expected, words.clone()));
            let deep: Result<(), WireError> = Err(error);
            let deep = deep.context("could not look").context("could not start").unwrap_err();
            assert_eq!(outcome(deep.into()), (expected, format!("could not start: could not look: {words}")));
        };
        for error in [
            ResponseError::TopicAuthorizationFailed,
            ResponseError::ClusterAuthorizationFailed,
            ResponseError::GroupAuthorizationFailed,
            ResponseError::TransactionalIdAuthorizationFailed,
        ] {
            check(refused(error), "not allowed");
        }
        check(refused(ResponseError::NotController), "again");
        check(refused(ResponseError::InvalidRequest), "internal");
        check(WireError::NoBroker { tried: "b:1 refused".to_owned() }, "again");
        check(WireError::Unreachable { address: "b:1".into(), reason: "refused".to_owned() }, "again");
        let timed_out =
            WireError::TimedOut { address: "b:1".into(), api: ApiKey::Metadata, timeout_ms: 30_000 };
        check(timed_out, "again");
        assert_eq!(outcome(anyhow::anyhow!("something").into()), ("internal", "something".to_owned()));
        let refusal = BrokerRefusal { error: ResponseError::TopicAuthorizationFailed, message: None };
        assert_eq!(outcome(anyhow::Error::new(refusal).into()).0, "not allowed");
    }

    #[test]
    fn a_positions_topic_that_is_refused_says_whose_turn_it_is() {
        let check = |error: PositionsTopicError, expected: &'static str| {
            let words = error.to_string();
            assert_eq!(outcome(error.into()), (expected, words));
        };
        check(by_the_broker(ResponseError::InvalidReplicationFactor), "refused");
        check(by_the_broker(ResponseError::InvalidConfig), "refused");
        check(by_the_broker(ResponseError::PolicyViolation), "refused");
        check(by_the_broker(ResponseError::TopicAuthorizationFailed), "not allowed");
        check(by_the_broker(ResponseError::ClusterAuthorizationFailed), "not allowed");
        check(by_the_broker(ResponseError::RequestTimedOut), "again");
        let (topic, target) = ("mm2-offsets.A.internal".to_owned(), ClusterAlias::new("B"));
        check(PositionsTopicError::NotSeen { topic: topic.clone(), target: target.clone() }, "again");
        let found = "delete".to_owned();
        check(PositionsTopicError::NotCompacted { topic, target, found }, "refused");
        let wire = anyhow::Error::new(refused(ResponseError::ClusterAuthorizationFailed));
        check(PositionsTopicError::Other(wire), "not allowed");
        assert_eq!(
            outcome(by_the_broker(ResponseError::PolicyViolation).into()).1,
            "could not create positions topic \"mm2-offsets.A.internal\" on target \"B\": PolicyViolation; do something"
        );
    }
}
