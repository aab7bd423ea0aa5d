//! A request on its way through the broker: who asked whom, in which version, and what is to go wrong.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::protocol::Request;

use crate::faults::{Injected, Touched};
use crate::refusal::Refusal;
use crate::state::Shared;

/// The surroundings of one request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) node: i32,
    pub(crate) version: i16,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) injected: Injected,
}

/// The part of a request that an outcome is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part<'a> {
    Whole,
    Topic(&'a str),
    Partition(&'a str, i32),
}

impl Call {
    /// Does one part of a request, unless a fault says otherwise.
    pub(crate) fn attempt<T>(
        &self,
        part: Part<'_>,
        apply: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self.injected(part) {
            None => apply(),
            Some((error, applied)) => {
                if applied {
                    let _done = apply();
                }
                Err(Refusal::new(error, "injected fault"))
            }
        }
    }

    /// The injected error for a part, and whether the part is to be done all the same.
    pub(crate) fn injected(&self, part: Part<'_>) -> Option<(ResponseError, bool)> {
        match part {
            Part::Whole => self.injected.error(None, None),
            Part::Topic(topic) => self.injected.error(Some(topic), None),
            Part::Partition(topic, partition) => self.injected.error(Some(topic), Some(partition)),
        }
    }
}

/// A request that this broker answers.
pub(crate) trait Serve: Request<Response: Send> + Send + 'static {
    /// The topics and partitions that it names, for faults to match.
    fn touched(&self) -> Vec<Touched> {
        Vec::new()
    }

    /// Whether the client waits for an answer: not so for Produce with acks=0.
    fn wants_answer(&self) -> bool {
        true
    }

    /// Whether a request without an answer went so wrong that the connection must be closed to say so.
    fn must_close(_answer: &Self::Response) -> bool {
        false
    }

    /// Does it.
    fn serve(self, call: &Call) -> impl Future<Output = Self::Response> + Send;
}
