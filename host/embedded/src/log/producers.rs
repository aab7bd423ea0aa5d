//! What a partition remembers of idempotent producers: epoch and the last five batches, as Kafka's
//! `ProducerStateManager` and `ProducerAppendInfo` do.

use std::collections::{HashMap, VecDeque};

use kafka_protocol::error::ResponseError;

use super::header::Header;
use crate::refusal::Refusal;

/// Batches remembered per producer (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`): the reason why a client may
/// have at most five requests in flight.
pub(crate) const BATCHES_REMEMBERED: usize = 5;
/// Producers remembered per partition; the one that has been quiet for longest is forgotten first. Kafka
/// forgets by time (`producer.id.expiration.ms`).
pub(crate) const PRODUCERS_REMEMBERED_MAX: usize = 1000;

/// One appended batch of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remembered {
    pub(crate) first_sequence: i32,
    pub(crate) last_sequence: i32,
    pub(crate) base_offset: i64,
    /// The batch's largest timestamp: what Kafka gives as append time when it answers a duplicate, in every
    /// topic.
    pub(crate) timestamp_ms: i64,
}

#[derive(Debug)]
struct ProducerState {
    epoch: i16,
    recent: VecDeque<Remembered>,
    last_used: u64,
}

/// What the sequence number of a batch means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SequenceVerdict {
    /// The next batch of its producer, or a batch without a producer.
    Append,
    /// Appended before: to be answered as it was the first time.
    Duplicate(Remembered),
    /// Out of order, or from a fenced epoch.
    Refuse(Refusal),
}

/// All producers of a partition.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    states: HashMap<i64, ProducerState>,
    clock: u64,
}

impl Producers {
    /// Judges a batch; changes nothing.
    pub(crate) fn judge(&self, header: &Header) -> SequenceVerdict {
        if header.producer_id < 0 {
            return SequenceVerdict::Append;
        }
        // A producer that is not known may start anywhere: its history may have been deleted (KIP-360).
        let Some(state) = self.states.get(&header.producer_id) else { return SequenceVerdict::Append };
        if let Some(earlier) = state.duplicate_of(header) {
            return SequenceVerdict::Duplicate(earlier);
        }
        if header.producer_epoch < state.epoch {
            return SequenceVerdict::Refuse(Refusal::new(
                ResponseError::InvalidProducerEpoch,
                format!(
                    "epoch of producer {} is {}, which is smaller than the last seen epoch {}",
                    header.producer_id, header.producer_epoch, state.epoch
                ),
            ));
        }
        match state.expected_sequence(header.producer_epoch) {
            Some(expected) if expected != header.base_sequence => SequenceVerdict::Refuse(Refusal::new(
                ResponseError::OutOfOrderSequenceNumber,
                format!(
                    "out of order sequence number for producer {} epoch {}: {} (incoming), {expected} (expected)",
                    header.producer_id, header.producer_epoch, header.base_sequence
                ),
            )),
            _ => SequenceVerdict::Append,
        }
    }

    /// Remembers an appended batch.
    pub(crate) fn note(&mut self, header: &Header) {
        if header.producer_id < 0 {
            return;
        }
        self.clock += 1;
        let clock = self.clock;
        let state = self.states.entry(header.producer_id).or_insert_with(|| ProducerState {
            epoch: header.producer_epoch,
            recent: VecDeque::with_capacity(BATCHES_REMEMBERED),
            last_used: clock,
        });
        state.last_used = clock;
        if state.epoch != header.producer_epoch {
            state.epoch = header.producer_epoch;
            state.recent.clear();
        }
        if !header.is_control() {
            state.remember(Remembered {
                first_sequence: header.base_sequence,
                last_sequence: header.last_sequence(),
                base_offset: header.base_offset,
                timestamp_ms: header.max_timestamp,
            });
        }
        self.forget_quiet();
    }

    /// Forgets everything about a producer, as a broker does when its records are gone.
    pub(crate) fn forget(&mut self, producer_id: i64) {
        self.states.remove(&producer_id);
    }

    fn forget_quiet(&mut self) {
        if self.states.len() <= PRODUCERS_REMEMBERED_MAX {
            return;
        }
        let quietest = self.states.iter().min_by_key(|(_, state)| state.last_used).map(|(id, _)| *id);
        if let Some(id) = quietest {
            self.states.remove(&id);
        }
    }
}

impl ProducerState {
    fn duplicate_of(&self, header: &Header) -> Option<Remembered> {
        if header.producer_epoch != self.epoch {
            return None;
        }
        let same = |batch: &&Remembered| {
            batch.first_sequence == header.base_sequence && batch.last_sequence == header.last_sequence()
        };
        self.recent.iter().find(same).copied()
    }

    /// `None` when any sequence number will do.
    fn expected_sequence(&self, epoch: i16) -> Option<i32> {
        if epoch != self.epoch {
            return Some(0);
        }
        match self.recent.back() {
            Some(last) if last.last_sequence == i32::MAX => Some(0),
            Some(last) => Some(last.last_sequence + 1),
            // Only a marker has been seen in this epoch: the first sequence must be 0 (`inSequence(-1, 0)`).
            None => Some(0),
        }
    }

    fn remember(&mut self, batch: Remembered) {
        if self.recent.len() == BATCHES_REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(batch);
    }
}
