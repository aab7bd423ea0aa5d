//! What the producer tells its caller.

use kafka_protocol::ResponseError;

use super::{Lane, RecordError};
use crate::error::NodeId;

/// What became of a batch, or what the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProduceEvent {
    /// The batch is in the log of all in-sync replicas. Comes exactly once for each batch that was taken.
    Acked {
        /// The lane.
        lane: Lane,
        /// The caller's number of the batch.
        tag: u64,
        /// Offset of the batch's first record; −1 if the broker says "duplicate" and no longer knows where.
        base_offset: i64,
    },
    /// The broker will not take the batch as it is. The lane is held at this batch (what lies before it goes on) until
    /// [`super::Producer::replace`], [`super::Producer::retry`] or the lane's removal.
    Failed {
        /// The lane.
        lane: Lane,
        /// The caller's number of the batch.
        tag: u64,
        /// Why.
        error: ResponseError,
        /// The broker's own words (brokers 2.4 and later).
        message: Option<String>,
        /// Which records it refuses (brokers 2.4 and later); empty if it does not say.
        record_errors: Vec<RecordError>,
    },
    /// The leader is not where we thought, or its connection is lost: refresh the metadata of the lane's topic, then
    /// [`super::Producer::set_leader`]. The lane tries again by itself after its backoff.
    RefreshMetadata {
        /// The lane.
        lane: Lane,
        /// Why.
        error: ResponseError,
    },
    /// An error that passes by itself; the lane tries again after its backoff. To be counted or logged.
    Retrying {
        /// The lane.
        lane: Lane,
        /// Why.
        error: ResponseError,
        /// Rounds of this lane since its last ack.
        attempts: u32,
    },
    /// The lane goes on under a new producer epoch, its unacked batches numbered from 0.
    EpochBumped {
        /// The lane.
        lane: Lane,
        /// Unacked batches of which an earlier copy may already be in the log: they may come to lie there twice.
        duplicates_possible: usize,
    },
    /// The lane needs a new epoch and there is none left: get a new identity and call
    /// [`super::Producer::set_identity`]; until then the lane sends nothing.
    IdentityExhausted {
        /// The lane.
        lane: Lane,
        /// As in [`ProduceEvent::EpochBumped`].
        duplicates_possible: usize,
    },
    /// An answer that could not be read, or that lacks partitions; what it should have answered is sent again.
    BadAnswer {
        /// The broker.
        node: NodeId,
        /// What is wrong with it.
        problem: String,
    },
}
