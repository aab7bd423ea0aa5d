//! What can go wrong between us and a broker, as sentences a person can act on. Code decides with
//! [`WireError::is_retriable`]; what a broker answered for one partition is not here but a [`ResponseError`] beside
//! that partition's data.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey;

/// A node's number in its cluster, as metadata gives it (`broker.id`, `node.id`).
pub type NodeId = i32;

/// Why a call to a cluster failed. Cheap to clone: one lost connection fails every request that was on it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WireError {
    /// An address in `bootstrap.servers` can't be read, or there is none.
    #[error(
        "bootstrap server \"{text}\" is not an address: {reason}; write host:port, several separated by commas"
    )]
    Address {
        /// What was written.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No connection could be made: name not resolved, refused, or no answer in time.
    #[error(
        "broker {address} could not be reached: {reason}; check that it runs and that this address can be reached from here"
    )]
    Unreachable {
        /// host:port.
        address: Arc<str>,
        /// The system's own words.
        reason: String,
    },
    /// Every server was tried, none served.
    #[error("no broker of the cluster answered; tried {tried}")]
    NoBroker {
        /// Each address with its failure, in the order of trying.
        tried: String,
    },
    /// The connection ended before the answer came. Whether the broker did what was asked is not known.
    #[error(
        "connection to broker {address} was lost before {api:?} was answered: {reason}; it is made again with the next request"
    )]
    Closed {
        /// host:port.
        address: Arc<str>,
        /// The request.
        api: ApiKey,
        /// How it ended.
        reason: String,
    },
    /// No answer in time. The connection was closed with it, since answers come in order.
    #[error(
        "broker {address} did not answer {api:?} within {timeout_ms} ms; see whether it is overloaded, or raise request.timeout.ms"
    )]
    TimedOut {
        /// host:port.
        address: Arc<str>,
        /// The request.
        api: ApiKey,
        /// The bound that passed.
        timeout_ms: u64,
    },
    /// The answer does not follow the protocol. The connection is closed only when the order of answers is in doubt.
    #[error(
        "answer of broker {address} to {api:?} is malformed at byte {position}: {reason}; see that this address is a Kafka broker's"
    )]
    Malformed {
        /// host:port.
        address: Arc<str>,
        /// The request.
        api: ApiKey,
        /// Where in the answer, counted from its first byte behind the header.
        position: usize,
        /// What was found there.
        reason: String,
    },
    /// Broker and we have no version of this request in common.
    #[error("broker {address} speaks {api:?} in {broker}, this program needs {ours}; {remedy}")]
    Unsupported {
        /// host:port.
        address: Arc<str>,
        /// The request.
        api: ApiKey,
        /// "versions 0 to 3", or "no version".
        broker: String,
        /// "versions 4 to 12".
        ours: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The broker refused the whole request.
    #[error("broker {address} refused {api:?}: {}", refusal(.error, .message))]
    Refused {
        /// host:port.
        address: Arc<str>,
        /// The request.
        api: ApiKey,
        /// Its error code.
        error: ResponseError,
        /// Its own words, where the protocol has room for them.
        message: Option<String>,
    },
    /// Metadata has no such broker (it left, or was never there).
    #[error("broker {node} is not in the cluster; its brokers are {known}; refresh the metadata")]
    UnknownNode {
        /// The number that was asked for.
        node: NodeId,
        /// "1, 2, 3", or "none".
        known: String,
    },
    /// A request could not be written as this version.
    #[error("{api:?} can't be written as version {version}: {reason}")]
    Unwritable {
        /// The request.
        api: ApiKey,
        /// The negotiated version.
        version: i16,
        /// What does not fit.
        reason: String,
    },
    /// More requests wait for this broker than its queue holds.
    #[error(
        "{waiting_max} requests already wait for broker {address}, {api:?} was not queued; send fewer at once"
    )]
    QueueFull {
        /// host:port.
        address: Arc<str>,
        /// The request.
        api: ApiKey,
        /// The queue's bound.
        waiting_max: usize,
    },
}

impl WireError {
    /// Whether the same call may succeed later without anybody changing anything: after a reconnect, a metadata refresh or
    /// a wait.
    pub fn is_retriable(&self) -> bool {
        match self {
            WireError::Unreachable { .. }
            | WireError::NoBroker { .. }
            | WireError::Closed { .. }
            | WireError::TimedOut { .. }
            | WireError::Malformed { .. }
            | WireError::UnknownNode { .. }
            | WireError::QueueFull { .. } => true,
            WireError::Refused { error, .. } => error.is_retriable(),
            WireError::Address { .. } | WireError::Unsupported { .. } | WireError::Unwritable { .. } => false,
        }
    }
}

/// "NotController", or "PolicyViolation (Topic replication factor must be 3)".
fn refusal(error: &ResponseError, message: &Option<String>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{error} ({message})"),
        _ => error.to_string(),
    }
}
