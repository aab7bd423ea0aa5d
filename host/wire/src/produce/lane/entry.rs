//! A batch in a lane's queue.

use super::super::class::ErrorClass;
use super::super::{CallId, OutBatch};
use super::CORRUPT_SENDS_MAX;

/// Where a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Place {
    /// Here; it goes when its turn comes.
    Waiting,
    /// On its way.
    InFlight(CallId),
    /// In the log and reported; kept only while an earlier one is not.
    Acked,
    /// Refused for good; nothing behind it is sent.
    Failed,
}

/// A batch and what is known of it.
#[derive(Debug)]
pub(in super::super) struct Entry {
    pub(in super::super) batch: OutBatch,
    pub(in super::super) place: Place,
    /// Its first sequence number in the lane's epoch; `None` before the first send and after the number was withdrawn.
    pub(in super::super) sequence: Option<i32>,
    /// A send in this epoch ended without a clear no.
    pub(in super::super) may_be_in_log: bool,
    corrupt_sends: u8,
}

impl Entry {
    pub(super) fn new(batch: OutBatch) -> Self {
        Entry { batch, place: Place::Waiting, sequence: None, may_be_in_log: false, corrupt_sends: 0 }
    }

    /// `class` for this batch: a bounded retry that has reached its bound is fatal.
    pub(super) fn effective(&mut self, class: ErrorClass) -> ErrorClass {
        if class != ErrorClass::RetryBounded {
            return class;
        }
        self.corrupt_sends += 1;
        if self.corrupt_sends < CORRUPT_SENDS_MAX {
            return ErrorClass::RetryBounded;
        }
        self.corrupt_sends = 0; // if the caller retries it, it has as many sends again
        ErrorClass::Fatal
    }
}
