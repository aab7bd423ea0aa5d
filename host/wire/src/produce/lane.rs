//! One partition of the target: its unacked batches in order, and what may be sent next. Pure: every step is told the time
//! and leaves its events in a list.

mod entry;
mod outcome;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub(super) use self::entry::{Entry, Place};
pub(super) use self::outcome::Outcome;
pub(super) use self::settle::Retired;
use super::numbering::Numbering;
use super::options::ProducerOptions;
use super::{CallId, Lane, OutBatch, ProducerIdentity};
use crate::error::NodeId;

/// Batches of a lane, counted from its first unacked one, that may have been sent: a broker recognises a resend only
/// among the last five of a producer and partition (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
pub const LANE_BATCHES_MAX: usize = 5;

/// How long after its last ack a silent lane may still count on the broker's memory of its producer. Brokers forget after
/// `producer.id.expiration.ms` (a day by default); behind this, the next batch goes alone again.
const TRUST_AGE_MAX: Duration = Duration::from_secs(60);

/// Sends of a batch that answered CORRUPT_MESSAGE before it counts as failed.
const CORRUPT_SENDS_MAX: u8 = 5;

/// What a lane may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Nothing,
    /// Send the batch at this place of the queue.
    Send(usize),
    /// Take a new batch and send it.
    TakeNew,
}

/// A lane.
#[derive(Debug)]
pub(super) struct LaneState {
    lane: Lane,
    /// Index of the topic's name in the producer.
    pub(super) topic: usize,
    pub(super) partition: i32,
    /// Where metadata says that the partition is led.
    pub(super) leader: Option<NodeId>,
    numbering: Numbering,
    /// Everything that is not acked, in order; an acked batch stays only while an earlier one is not. Batches with a
    /// number stand before those without.
    queue: VecDeque<Entry>,
    in_flight: usize,
    /// Broker of what is in flight.
    flight_node: Option<NodeId>,
    /// A batch has failed: nothing is sent until all in flight is back.
    is_muted: bool,
    /// The failure asks for a wait before the next send.
    backs_off: bool,
    /// The broker's state is not ours: a new epoch as soon as nothing is in flight.
    needs_bump: bool,
    /// A batch that may be in the log has lost its number, which therefore may not be used again in this epoch: a new
    /// epoch before the first batch without a number is sent.
    numbers_spoilt: bool,
    /// Batches that were replaced since the last bump and may be in the log nevertheless.
    replaced_in_doubt: usize,
    /// No epoch is left.
    needs_identity: bool,
    /// Last ack under this epoch, unless an error came after it. `None`: the broker may have no state of this producer, so
    /// it would take any sequence number; one batch at a time.
    trusted_at: Option<Instant>,
    attempts: u32,
    retry_at: Option<Instant>,
}

impl LaneState {
    pub(super) fn new(lane: Lane, topic: usize, partition: i32, numbering: Numbering) -> Self {
        LaneState {
            lane,
            topic,
            partition,
            leader: None,
            numbering,
            queue: VecDeque::new(),
            in_flight: 0,
            flight_node: None,
            is_muted: false,
            backs_off: false,
            needs_bump: false,
            numbers_spoilt: false,
            replaced_in_doubt: 0,
            needs_identity: false,
            trusted_at: None,
            attempts: 0,
            retry_at: None,
        }
    }

    /// A lane for a partition that had one before.
    pub(super) fn again(lane: Lane, topic: usize, partition: i32, retired: Retired) -> Self {
        let state = LaneState::new(lane, topic, partition, retired.numbering);
        LaneState { needs_bump: retired.is_spoilt, ..state }
    }

    #[cfg(test)]
    pub(super) fn start_at_sequence(&mut self, next_sequence: i32) {
        self.numbering.next_sequence = next_sequence;
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The leader moved. What is in flight stays with the old one; a lane without anything on the way tries at once.
    pub(super) fn set_leader(&mut self, leader: Option<NodeId>) {
        if self.leader != leader {
            self.leader = leader;
            self.retry_at = None;
        }
    }

    /// When the lane can go on by itself; `None` if it waits for something else than time.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let waits_for_time = self.in_flight == 0 && !self.needs_identity && !self.is_held();
        self.retry_at.filter(|_| waits_for_time)
    }

    /// The first unacked batch has failed and waits for the caller.
    fn is_held(&self) -> bool {
        self.queue.front().is_some_and(|entry| entry.place == Place::Failed)
    }

    /// What the lane may send to `node` now.
    pub(super) fn turn(&self, node: NodeId, now: Instant) -> Turn {
        let is_elsewhere =
            self.leader != Some(node) || (self.in_flight > 0 && self.flight_node != Some(node));
        let is_waiting = self.retry_at.is_some_and(|at| at > now);
        if is_elsewhere || is_waiting || self.is_muted || self.needs_identity {
            return Turn::Nothing;
        }
        if self.in_flight >= self.in_flight_max(now) {
            return Turn::Nothing;
        }
        self.next_in_order()
    }

    fn in_flight_max(&self, now: Instant) -> usize {
        let is_trusted = match self.trusted_at {
            None => false,
            Some(_) if self.in_flight > 0 => true,
            Some(at) => now.saturating_duration_since(at) <= TRUST_AGE_MAX,
        };
        if is_trusted { LANE_BATCHES_MAX } else { 1 }
    }

    fn next_in_order(&self) -> Turn {
        for (index, entry) in self.queue.iter().take(LANE_BATCHES_MAX).enumerate() {
            match entry.place {
                Place::InFlight(_) | Place::Acked => {}
                Place::Waiting if entry.sequence.is_none() && self.numbers_spoilt => return Turn::Nothing,
                Place::Waiting => return Turn::Send(index),
                Place::Failed => return Turn::Nothing,
            }
        }
        if self.queue.len() >= LANE_BATCHES_MAX || self.numbers_spoilt {
            Turn::Nothing
        } else {
            Turn::TakeNew
        }
    }

    /// Puts a new batch behind all others; returns its place.
    pub(super) fn push(&mut self, batch: OutBatch) -> usize {
        self.queue.push_back(Entry::new(batch));
        self.queue.len() - 1
    }

    /// Size of the batch at `index`, header included.
    pub(super) fn batch_bytes(&self, index: usize) -> usize {
        self.queue[index].batch.total_bytes()
    }

    /// Marks the batch at `index` as on its way with `call`, numbers it if it has no number yet, and gives what to write.
    pub(super) fn send(&mut self, index: usize, call: CallId, node: NodeId, now: Instant) -> SentBatch<'_> {
        if self.in_flight == 0 && self.in_flight_max(now) == 1 {
            self.trusted_at = None; // also for those that would join this one
        }
        self.in_flight += 1;
        self.flight_node = Some(node);
        self.retry_at = None;
        let entry = &mut self.queue[index];
        entry.place = Place::InFlight(call);
        let records = entry.batch.header.record_count;
        let sequence = *entry.sequence.get_or_insert_with(|| self.numbering.take(records));
        SentBatch { batch: &entry.batch, identity: self.numbering.identity, sequence }
    }
}

/// What a step may look at besides its lane.
#[derive(Debug)]
pub(super) struct Moment<'p> {
    pub(super) now: Instant,
    pub(super) options: &'p ProducerOptions,
    /// The producer's newest identity.
    pub(super) newest: ProducerIdentity,
}

/// A batch that goes out, and under which number.
#[derive(Debug)]
pub(super) struct SentBatch<'l> {
    pub(super) batch: &'l OutBatch,
    pub(super) identity: ProducerIdentity,
    pub(super) sequence: i32,
}
