//! One batch to one partition, without a producer id: for the few records that a program writes beside its flow.

use std::fmt;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::ApiKey;

use super::answer::{AnswerError, decode_answer};
use super::options::PRODUCE_VERSION;
use super::request::{RequestBatch, encode_request};
use crate::batch::BuiltBatch;
use crate::client::Client;
use crate::error::{NodeId, WireError};

/// Why it is not known that a batch lies in its partition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OnceError {
    /// There was no answer; the batch may lie there all the same.
    #[error(transparent)]
    Lost(#[from] WireError),
    /// The answer makes no sense; the batch may lie there all the same.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The answer says nothing of the partition that was written to.
    #[error("the broker answered for other partitions than that which was written to")]
    Silence,
    /// The broker did not take it, or (some errors come later) not as safely as it should.
    #[error("{}", Words(.error, .message))]
    Refused {
        /// Its error.
        error: ResponseError,
        /// Its words, where it has some.
        message: Option<String>,
    },
}

struct Words<'a>(&'a ResponseError, &'a Option<String>);

impl fmt::Display for Words<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(message) => write!(formatter, "{:?}: {message}", self.0),
            None => write!(formatter, "{:?}", self.0),
        }
    }
}

impl OnceError {
    /// Whether fewer or smaller records would be taken.
    pub fn is_too_large(&self) -> bool {
        let error = match self {
            OnceError::Refused { error, .. } => error,
            _ => return false,
        };
        matches!(error, ResponseError::MessageTooLarge | ResponseError::RecordListTooLarge)
    }
}

/// Sends a batch to `node`, the leader of the partition, and waits until all in-sync replicas have it. Answers the offset of
/// its first record. Nothing is sent again from here; who sends it again after an error may find it there twice.
pub async fn produce_once(
    client: &Client,
    node: NodeId,
    topic: &str,
    partition: i32,
    batch: &BuiltBatch,
    acks_timeout_ms: i32,
) -> Result<i64, OnceError> {
    let header = batch.header.encode();
    let request = [RequestBatch { topic: 0, partition, header, payload: batch.payload.clone() }];
    let parts = encode_request(acks_timeout_ms, &request, |_| topic);
    let answer = client.send_parts(node, ApiKey::Produce, PRODUCE_VERSION, parts).await?;
    let mut outcome = Err(OnceError::Silence);
    decode_answer(&answer, PRODUCE_VERSION, |found| {
        if found.topic == topic.as_bytes() && found.partition == partition {
            outcome = match ResponseError::try_from_code(found.error_code) {
                None => Ok(found.base_offset),
                Some(error) => Err(OnceError::Refused { error, message: found.message }),
            };
        }
    })?;
    outcome
}
