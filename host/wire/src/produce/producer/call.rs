//! Requests in flight.

use super::{CallId, Lane};
use crate::error::NodeId;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) node: NodeId,
    pub(super) version: i16,
    /// Sorted by topic and partition.
    pub(super) batches: Vec<CallBatch>,
}

/// One lane's part of a request.
#[derive(Debug)]
pub(super) struct CallBatch {
    pub(super) topic: usize,
    pub(super) partition: i32,
    pub(super) lane: Lane,
    pub(super) is_answered: bool,
}
