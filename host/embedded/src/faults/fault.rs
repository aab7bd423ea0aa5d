//! One fault: a filter over requests, the times it counts, and its effect.

use std::fmt;
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey;

use super::{RequestFacts, Touched};

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The answer carries this error for what the fault names, and that part of the request is not done.
    Error(ResponseError),
    /// The answer carries this error, though the request was done: what a client sees of a time-out or of
    /// NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    ErrorAfterApply(ResponseError),
    /// The request waits this long before it is served; so do the ones behind it on its connection.
    Delay(Duration),
    /// The answers of Produce, Fetch, ListOffsets and Metadata ask the client to be quiet this long
    /// (KIP-219).
    Throttle {
        /// `throttle_time_ms` of the answer.
        throttle_ms: i32,
    },
    /// The connection is cut; the request is not done.
    CutBefore,
    /// The request is done; then the connection is cut without an answer.
    CutAfter,
    /// The request is done; its answer is a whole frame whose body ends too early.
    TruncateAnswer {
        /// Bytes of the body, behind the answer's header, that are left.
        body_bytes_max: usize,
    },
    /// The request is done; the connection is cut in the middle of the answer's frame.
    CutWithinAnswer {
        /// Bytes of the frame, its length field included, that are still sent.
        frame_bytes_max: usize,
    },
    /// The leader of the partitions that the request names moves before it is served, so that this node
    /// usually no longer leads.
    MoveLeader {
        /// The new leader; `None`: the next node that is up. With one node, that one is elected again.
        to: Option<i32>,
    },
}

/// Which of the matching requests a fault happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Matching requests that are let through first.
    pub skip: u64,
    /// How many are hit then; `None`: all.
    pub count: Option<u64>,
}

impl Times {
    /// Every matching request.
    pub const ALWAYS: Times = Times { skip: 0, count: None };

    pub(crate) fn includes(self, request: u64) -> bool {
        request > self.skip && self.count.is_none_or(|count| request - self.skip <= count)
    }

    pub(crate) fn is_over_after(self, seen: u64) -> bool {
        self.count.is_none_or(|count| seen >= self.skip.saturating_add(count))
    }
}

/// A fault: all its filters must match. Build it as `Fault::new(effect).api(…).topic(…).nth(3)`; without a
/// word about times it happens to every matching request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Only requests of this API.
    pub api: Option<ApiKey>,
    /// Only on this node.
    pub node: Option<i32>,
    /// Only requests that name this topic; an error is given for it alone.
    pub topic: Option<String>,
    /// Only requests that name this partition; an error is given for it alone.
    pub partition: Option<i32>,
    /// Only from this client.
    pub client_id: Option<String>,
    /// Which matching requests.
    pub times: Times,
    /// What happens.
    pub effect: Effect,
}

impl Fault {
    /// A fault that happens to every request.
    pub fn new(effect: Effect) -> Fault {
        let times = Times::ALWAYS;
        Fault { api: None, node: None, topic: None, partition: None, client_id: None, times, effect }
    }

    /// Only requests of this API.
    #[must_use]
    pub fn api(mut self, api: ApiKey) -> Fault {
        self.api = Some(api);
        self
    }

    /// Only on this node.
    #[must_use]
    pub fn node(mut self, node: i32) -> Fault {
        self.node = Some(node);
        self
    }

    /// Only requests that name this topic.
    #[must_use]
    pub fn topic(mut self, topic: &str) -> Fault {
        self.topic = Some(topic.to_owned());
        self
    }

    /// Only requests that name this partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Fault {
        self.partition = Some(partition);
        self
    }

    /// Only from this client.
    #[must_use]
    pub fn client_id(mut self, client_id: &str) -> Fault {
        self.client_id = Some(client_id.to_owned());
        self
    }

    /// Only the n-th matching request, from 1.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Fault {
        self.times = Times { skip: nth.saturating_sub(1), count: Some(1) };
        self
    }

    /// Only the first `count` matching requests, or, after [`Fault::after`], the first ones behind those
    /// skipped.
    #[must_use]
    pub fn times(mut self, count: u64) -> Fault {
        self.times.count = Some(count);
        self
    }

    /// Lets `skip` matching requests through first.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Fault {
        self.times.skip = skip;
        self
    }

    pub(crate) fn matches(&self, facts: &RequestFacts<'_>) -> bool {
        self.api.is_none_or(|api| api == facts.api)
            && self.node.is_none_or(|node| node == facts.node)
            && self.client_id.as_deref().is_none_or(|client| client == facts.client_id)
            && ((self.topic.is_none() && self.partition.is_none())
                || facts.touched.iter().any(|touched| self.names(touched)))
    }

    /// Whether the fault's topic and partition are this one.
    pub(crate) fn names(&self, touched: &Touched) -> bool {
        self.topic.as_ref().is_none_or(|topic| *topic == touched.topic)
            && (self.partition.is_none()
                || touched.partition.is_none()
                || self.partition == touched.partition)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.api {
            Some(api) => write!(f, "{api:?}")?,
            None => f.write_str("any request")?,
        }
        match (&self.topic, self.partition) {
            (Some(topic), Some(partition)) => write!(f, " of {topic}[{partition}]")?,
            (Some(topic), None) => write!(f, " of {topic}")?,
            (None, Some(partition)) => write!(f, " of partition {partition}")?,
            (None, None) => {}
        }
        if let Some(client) = &self.client_id {
            write!(f, " from {client}")?;
        }
        if let Some(node) = self.node {
            write!(f, " on node {node}")?;
        }
        write!(f, ", {}: {}", self.times, self.effect)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.skip + 1;
        match self.count {
            None if self.skip == 0 => f.write_str("always"),
            None => write!(f, "from request {first} on"),
            Some(1) => write!(f, "request {first}"),
            Some(count) => write!(f, "requests {first} to {}", self.skip.saturating_add(count)),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Error(error) => write!(f, "answer {error}"),
            Effect::ErrorAfterApply(error) => write!(f, "do it, but answer {error}"),
            Effect::Delay(delay) => write!(f, "delay by {} ms", delay.as_millis()),
            Effect::Throttle { throttle_ms } => write!(f, "throttle for {throttle_ms} ms"),
            Effect::CutBefore => f.write_str("cut the connection before it is done"),
            Effect::CutAfter => f.write_str("cut the connection after it is done"),
            Effect::TruncateAnswer { body_bytes_max } => {
                write!(f, "end the answer's body at byte {body_bytes_max}")
            }
            Effect::CutWithinAnswer { frame_bytes_max } => {
                write!(f, "cut the connection at byte {frame_bytes_max} of the answer")
            }
            Effect::MoveLeader { to: Some(node) } => write!(f, "move the leader to node {node}"),
            Effect::MoveLeader { to: None } => f.write_str("move the leader to the next node"),
        }
    }
}
