//! One rule each. A lane is given batches of ten records, tagged 1, 2, …; `sends` lets it send all that it may.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use kafka_protocol::ResponseError;

use super::super::{ProduceEvent, ProducerIdentity};
use super::*;
use crate::batch::BatchHeader;

const NODE: NodeId = 1;
const RECORDS: i32 = 10;

/// Tag, epoch, first sequence number.
type Sent = (u64, i16, i32);

struct Trial {
    lane: LaneState,
    supply: VecDeque<OutBatch>,
    calls: HashMap<u64, CallId>,
    next_call: u64,
    options: ProducerOptions,
    newest: ProducerIdentity,
    now: Instant,
    events: Vec<ProduceEvent>,
}

fn batch(tag: u64) -> OutBatch {
    let header = BatchHeader {
        base_offset: 0,
        batch_length: 49 + 80,
        partition_leader_epoch: -1,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: RECORDS - 1,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: RECORDS,
    };
    OutBatch { header, payload: Bytes::from_static(&[0; 80]), tag }
}

impl Trial {
    /// A lane of a new producer.
    fn new() -> Self {
        let newest = ProducerIdentity { id: 7, epoch: 0 };
        let mut lane = LaneState::new(Lane(0), 0, 0, Numbering::start(newest));
        lane.set_leader(Some(NODE));
        Trial {
            lane,
            supply: (1..=50).map(batch).collect(),
            calls: HashMap::new(),
            next_call: 0,
            options: ProducerOptions::default(),
            newest,
            now: Instant::now(),
            events: Vec::new(),
        }
    }

    /// A lane whose batch 1 was acked and whose batches 2 to 6 are on their way.
    fn pipelined() -> Self {
        let mut trial = Trial::new();
        trial.sends();
        trial.acked(1);
        assert_eq!(trial.sends(), [(2, 0, 10), (3, 0, 20), (4, 0, 30), (5, 0, 40), (6, 0, 50)]);
        trial.events.clear();
        trial
    }

    fn sends(&mut self) -> Vec<Sent> {
        self.sends_to(NODE)
    }

    fn sends_to(&mut self, node: NodeId) -> Vec<Sent> {
        let mut sent = Vec::new();
        loop {
            let index = match self.lane.turn(node, self.now) {
                Turn::Nothing => return sent,
                Turn::Send(index) => index,
                Turn::TakeNew => match self.supply.pop_front() {
                    Some(batch) => self.lane.push(batch),
                    None => return sent,
                },
            };
            self.next_call += 1;
            let call = CallId(self.next_call);
            let out = self.lane.send(index, call, node, self.now);
            sent.push((out.batch.tag, out.identity.epoch, out.sequence));
            self.calls.insert(out.batch.tag, call);
        }
    }

    fn outcome(&mut self, tag: u64, outcome: Outcome) {
        let at = Moment { now: self.now, options: &self.options, newest: self.newest };
        self.lane.on_outcome(self.calls[&tag], outcome, &mut self.events, &at);
    }

    fn acked(&mut self, tag: u64) {
        self.outcome(tag, Outcome::Acked { base_offset: tag as i64 * 100 });
    }

    fn refused(&mut self, tag: u64, error: ResponseError) {
        self.outcome(
            tag,
            Outcome::Refused { error, base_offset: -1, message: None, record_errors: Vec::new() },
        );
    }

    fn lost(&mut self, tag: u64) {
        self.outcome(tag, Outcome::Lost { may_be_in_log: true });
    }

    fn replace(&mut self, tag: u64, smaller: &[u64]) {
        let smaller = smaller.iter().copied().map(batch).collect();
        assert!(self.lane.replace(tag, smaller, self.newest, &mut self.events));
    }

    fn wait(&mut self) {
        self.now += self.options.retry_backoff_max;
    }

    fn bumps(&self) -> Vec<usize> {
        let doubt = |event: &ProduceEvent| match event {
            ProduceEvent::EpochBumped { duplicates_possible, .. } => Some(*duplicates_possible),
            _ => None,
        };
        self.events.iter().filter_map(doubt).collect()
    }

    fn acks(&self) -> Vec<(u64, i64)> {
        let ack = |event: &ProduceEvent| match event {
            ProduceEvent::Acked { tag, base_offset, .. } => Some((*tag, *base_offset)),
            _ => None,
        };
        self.events.iter().filter_map(ack).collect()
    }
}

use ResponseError as E;

#[test]
fn the_first_batch_goes_alone_until_the_broker_knows_the_producer() {
    let mut trial = Trial::new();
    assert_eq!(trial.sends(), [(1, 0, 0)]);
    trial.refused(1, E::NotLeaderOrFollower);
    trial.wait();
    assert_eq!(trial.sends(), [(1, 0, 0)]);
    trial.acked(1);
    assert_eq!(trial.sends().len(), LANE_BATCHES_MAX);
}

#[test]
fn no_more_batches_than_a_broker_remembers_are_unacked() {
    let mut trial = Trial::pipelined();
    assert_eq!(trial.sends(), []);
    trial.acked(2);
    assert_eq!(trial.sends(), [(7, 0, 60)]);
}

#[test]
fn acked_batches_behind_an_unacked_one_still_count() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::RequestTimedOut);
    (3..=6).for_each(|tag| trial.acked(tag));
    trial.wait();
    assert_eq!(trial.sends(), [(2, 0, 10)]);
    assert_eq!(trial.sends(), []);
    trial.acked(2);
    assert_eq!(trial.acks(), [(3, 300), (4, 400), (5, 500), (6, 600), (2, 200)]);
    assert_eq!(trial.sends().len(), LANE_BATCHES_MAX);
}

#[test]
fn new_batches_stay_within_what_a_broker_remembers_from_the_first_unacked_one() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::RequestTimedOut);
    trial.refused(3, E::RequestTimedOut);
    (4..=6).for_each(|tag| trial.acked(tag));
    trial.wait();
    trial.sends();
    trial.acked(2);
    assert_eq!(trial.sends(), [(3, 0, 20), (7, 0, 60)]);
}

#[test]
fn smaller_batches_of_a_split_stay_within_what_a_broker_remembers() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::MessageTooLarge);
    (3..=6).for_each(|tag| trial.refused(tag, E::OutOfOrderSequenceNumber));
    trial.replace(2, &[201, 202, 203, 204, 205, 206]);
    trial.sends();
    trial.acked(201);
    assert_eq!(trial.sends().len(), LANE_BATCHES_MAX);
    (202..=203).for_each(|tag| trial.refused(tag, E::RequestTimedOut));
    (204..=206).for_each(|tag| trial.acked(tag));
    trial.wait();
    trial.sends();
    trial.acked(202);
    assert_eq!(trial.sends(), [(203, 0, 30), (3, 0, 70)]);
}

#[test]
fn an_ack_amid_errors_does_not_end_the_silence() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::RequestTimedOut);
    trial.acked(3);
    trial.wait();
    assert_eq!(trial.sends(), []);
}

#[test]
fn a_lane_that_was_silent_for_long_starts_with_one_batch_again() {
    let mut trial = Trial::pipelined();
    (2..=6).for_each(|tag| trial.acked(tag));
    trial.now += TRUST_AGE_MAX + Duration::from_millis(1);
    assert_eq!(trial.sends(), [(7, 0, 60)]);
}

#[test]
fn after_an_error_nothing_is_sent_until_all_is_back_then_all_goes_again_in_order() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::NotEnoughReplicas);
    for tag in 3..=6 {
        trial.wait();
        assert_eq!(trial.sends(), [], "before {tag} is back");
        trial.refused(tag, E::OutOfOrderSequenceNumber);
    }
    assert_eq!(trial.sends(), [], "backoff");
    trial.wait();
    assert_eq!(trial.sends(), [(2, 0, 10)]);
    trial.acked(2);
    assert_eq!(trial.sends(), [(3, 0, 20), (4, 0, 30), (5, 0, 40), (6, 0, 50), (7, 0, 60)]);
    assert_eq!(trial.bumps(), []);
}

#[test]
fn a_lost_connection_resends_what_was_on_it() {
    let mut trial = Trial::pipelined();
    trial.acked(2);
    (3..=6).for_each(|tag| trial.lost(tag));
    trial.wait();
    assert_eq!(trial.sends(), [(3, 0, 20)]);
    trial.acked(3);
    assert_eq!(trial.sends().first(), Some(&(4, 0, 30)));
}

#[test]
fn backoffs_grow_by_round_and_an_ack_ends_them() {
    let mut trial = Trial::new();
    let mut waits = Vec::new();
    for _ in 0..3 {
        trial.sends();
        trial.lost(1);
        let wake = trial.lane.wake_at().unwrap();
        waits.push(wake.duration_since(trial.now).as_millis());
        trial.now = wake;
    }
    assert_eq!(waits, [100, 200, 400]);
    trial.sends();
    assert_eq!(trial.lane.wake_at(), None);
    trial.acked(1);
    trial.sends();
    (2..=6).for_each(|tag| trial.lost(tag));
    assert_eq!(trial.lane.wake_at().unwrap().duration_since(trial.now).as_millis(), 100);
}

#[test]
fn a_lane_moves_after_everything_in_flight_is_back() {
    let mut trial = Trial::pipelined();
    trial.acked(2);
    trial.lane.set_leader(Some(2));
    assert_eq!((trial.sends(), trial.sends_to(2)), (vec![], vec![]));
    trial.acked(3);
    (4..=6).for_each(|tag| trial.refused(tag, E::NotLeaderOrFollower));
    trial.wait();
    assert_eq!((trial.sends(), trial.sends_to(2)), (vec![], vec![(4, 0, 30)]));
}

#[test]
fn a_new_leader_is_tried_at_once() {
    let mut trial = Trial::new();
    trial.sends();
    trial.refused(1, E::NotLeaderOrFollower);
    trial.lane.set_leader(Some(NODE));
    assert_eq!(trial.sends(), []);
    trial.lane.set_leader(Some(2));
    assert_eq!(trial.sends_to(2), [(1, 0, 0)]);
}

#[test]
fn duplicates_are_acked_with_the_offset_that_the_broker_knows() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::DuplicateSequenceNumber);
    assert_eq!(trial.acks(), [(2, -1)]);
    assert_eq!(trial.sends(), [(7, 0, 60)]);
}

#[test]
fn a_failed_batch_holds_what_is_behind_it_and_not_what_is_before() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::NotEnoughReplicas);
    trial.refused(3, E::MessageTooLarge);
    (4..=6).for_each(|tag| trial.refused(tag, E::OutOfOrderSequenceNumber));
    let failed =
        trial.events.iter().filter(|event| matches!(event, ProduceEvent::Failed { tag: 3, .. })).count();
    assert_eq!(failed, 1);
    trial.wait();
    assert_eq!(trial.sends(), [(2, 0, 10)]);
    trial.acked(2);
    assert_eq!(trial.sends(), []);
    assert_eq!(trial.lane.wake_at(), None);
}

#[test]
fn replacements_take_the_numbers_of_the_failed_batch() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::MessageTooLarge);
    (3..=6).for_each(|tag| trial.refused(tag, E::OutOfOrderSequenceNumber));
    trial.replace(2, &[101, 102, 103]);
    assert_eq!(trial.sends(), [(101, 0, 10)]);
    trial.acked(101);
    assert_eq!(trial.sends(), [(102, 0, 20), (103, 0, 30), (3, 0, 40), (4, 0, 50), (5, 0, 60)]);
    assert_eq!(trial.bumps(), []);
}

#[test]
fn a_dropped_batch_leaves_its_numbers_to_the_next() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::InvalidRecord);
    (3..=6).for_each(|tag| trial.refused(tag, E::OutOfOrderSequenceNumber));
    trial.replace(2, &[]);
    assert_eq!(trial.sends(), [(3, 0, 10)]);
    trial.acked(3);
    assert_eq!(trial.sends(), [(4, 0, 20), (5, 0, 30), (6, 0, 40), (7, 0, 50), (8, 0, 60)]);
    assert_eq!(trial.bumps(), []);
}

#[test]
fn a_batch_replaced_early_waits_for_the_echoes_of_the_others() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::MessageTooLarge);
    trial.replace(2, &[]);
    for tag in 3..=6 {
        assert_eq!(trial.sends(), []);
        trial.refused(tag, E::OutOfOrderSequenceNumber);
    }
    assert_eq!(trial.bumps(), [], "an echo is no reason for a new epoch");
    assert_eq!(trial.sends(), [(3, 0, 10)]);
}

#[test]
fn two_failed_batches_are_replaced_in_any_order() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::MessageTooLarge);
    trial.refused(3, E::MessageTooLarge);
    (4..=6).for_each(|tag| trial.refused(tag, E::OutOfOrderSequenceNumber));
    trial.replace(3, &[301]);
    assert_eq!(trial.sends(), []);
    trial.replace(2, &[201]);
    assert_eq!(trial.sends(), [(201, 0, 10)]);
    trial.acked(201);
    assert_eq!(trial.sends()[..2], [(301, 0, 20), (4, 0, 30)]);
}

#[test]
fn numbers_that_may_be_used_are_not_given_to_another_batch() {
    let mut trial = Trial::pipelined();
    (2..=6).for_each(|tag| trial.lost(tag));
    trial.wait();
    trial.sends();
    trial.refused(2, E::TopicAuthorizationFailed);
    trial.replace(2, &[]);
    assert_eq!(trial.bumps(), [5]);
    assert_eq!(trial.sends(), [(3, 1, 0)]);
}

#[test]
fn a_new_epoch_waits_for_what_is_in_flight() {
    let mut trial = Trial::pipelined();
    (2..=6).for_each(|tag| trial.lost(tag));
    trial.wait();
    trial.sends();
    trial.acked(2);
    assert_eq!(trial.sends().len(), 5);
    trial.refused(3, E::TopicAuthorizationFailed);
    trial.replace(3, &[]);
    for tag in 4..=7 {
        assert_eq!(trial.bumps(), []);
        trial.refused(tag, E::OutOfOrderSequenceNumber);
    }
    assert_eq!(trial.bumps(), [4], "3 to 6 were lost before");
    assert_eq!(trial.sends(), [(4, 1, 0)]);
}

#[test]
fn a_batch_lost_after_its_number_was_withdrawn_asks_for_a_new_epoch() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::MessageTooLarge);
    trial.replace(2, &[]);
    (3..=6).for_each(|tag| trial.lost(tag));
    trial.wait();
    assert_eq!(trial.bumps(), [4]);
    assert_eq!(trial.sends(), [(3, 1, 0)]);
}

#[test]
fn what_still_has_its_number_is_resent_before_the_new_epoch() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::RequestTimedOut);
    trial.refused(3, E::MessageTooLarge);
    (4..=6).for_each(|tag| trial.lost(tag));
    trial.replace(3, &[301]);
    trial.wait();
    assert_eq!((trial.sends(), trial.bumps()), (vec![(2, 0, 10)], vec![]));
    trial.acked(2);
    assert_eq!((trial.sends(), trial.bumps()), (vec![(301, 1, 0)], vec![3]));
}

#[test]
fn out_of_order_at_the_head_is_a_new_epoch_once_nothing_is_in_flight() {
    let mut trial = Trial::pipelined();
    for tag in 2..=6 {
        assert_eq!(trial.bumps(), []);
        trial.refused(tag, E::OutOfOrderSequenceNumber);
    }
    assert_eq!(trial.bumps(), [0]);
    trial.wait();
    assert_eq!(trial.sends(), [(2, 1, 0)]);
    trial.acked(2);
    assert_eq!(trial.sends(), [(3, 1, 10), (4, 1, 20), (5, 1, 30), (6, 1, 40), (7, 1, 50)]);
}

#[test]
fn a_forgotten_producer_id_is_a_new_epoch_and_unclear_batches_are_counted() {
    let mut trial = Trial::pipelined();
    trial.acked(2);
    (3..=6).for_each(|tag| trial.lost(tag));
    trial.wait();
    trial.sends();
    trial.refused(3, E::UnknownProducerId);
    assert_eq!(trial.bumps(), [4]);
}

#[test]
fn a_stale_epoch_is_raised_wherever_it_is_seen() {
    let mut trial = Trial::pipelined();
    trial.refused(2, E::NotEnoughReplicas);
    (3..=6).for_each(|tag| trial.refused(tag, E::InvalidProducerEpoch));
    assert_eq!(trial.bumps(), [0]);
}

#[test]
fn a_lane_without_epochs_waits_for_an_identity_with_another_id() {
    let mut trial = Trial::new();
    trial.newest.epoch = i16::MAX;
    trial.lane.numbering = Numbering::start(trial.newest);
    trial.sends();
    trial.refused(1, E::InvalidProducerEpoch);
    let exhausted = ProduceEvent::IdentityExhausted { lane: Lane(0), duplicates_possible: 0 };
    assert_eq!(trial.events, [exhausted]);
    trial.wait();
    trial.lane.on_new_identity(ProducerIdentity { id: 7, epoch: 0 });
    assert_eq!((trial.sends(), trial.lane.wake_at()), (vec![], None));
    trial.lane.on_new_identity(ProducerIdentity { id: 8, epoch: 3 });
    assert_eq!(trial.sends(), [(1, 3, 0)]);
}

#[test]
fn a_corrupt_batch_is_resent_a_few_times_then_fails() {
    let mut trial = Trial::new();
    for send in 1..CORRUPT_SENDS_MAX {
        assert_eq!(trial.sends(), [(1, 0, 0)]);
        trial.refused(1, E::CorruptMessage);
        let retrying =
            ProduceEvent::Retrying { lane: Lane(0), error: E::CorruptMessage, attempts: send.into() };
        assert_eq!(trial.events.pop(), Some(retrying));
        trial.wait();
    }
    trial.sends();
    trial.refused(1, E::CorruptMessage);
    assert!(matches!(
        trial.events.pop(),
        Some(ProduceEvent::Failed { tag: 1, error: E::CorruptMessage, .. })
    ));
}

#[test]
fn a_failed_batch_can_be_sent_again_as_it_was() {
    let mut trial = Trial::new();
    trial.sends();
    trial.refused(1, E::TopicAuthorizationFailed);
    assert!(!trial.lane.retry(2));
    assert!(trial.lane.retry(1));
    assert_eq!(trial.sends(), [(1, 0, 0)]);
    assert!(!trial.lane.replace(1, Vec::new(), trial.newest, &mut trial.events), "it is no longer failed");
}

#[test]
fn a_closed_lane_leaves_its_numbers_to_the_next() {
    let check = |trial: Trial, tags: &[u64], next_sequence: i32, is_spoilt: bool| {
        let (unacked, retired) = trial.lane.close();
        assert_eq!(unacked, tags);
        assert_eq!((retired.numbering.next_sequence, retired.is_spoilt), (next_sequence, is_spoilt));
    };
    let mut all_acked = Trial::pipelined();
    (2..=6).for_each(|tag| all_acked.acked(tag));
    check(all_acked, &[], 60, false);

    let mut all_refused = Trial::pipelined();
    (2..=6).for_each(|tag| all_refused.refused(tag, E::NotEnoughReplicas));
    check(all_refused, &[2, 3, 4, 5, 6], 10, false);

    let mut in_doubt = Trial::pipelined();
    (2..=5).for_each(|tag| in_doubt.refused(tag, E::NotEnoughReplicas));
    in_doubt.lost(6);
    check(in_doubt, &[2, 3, 4, 5, 6], 10, true);

    let mut spoilt = Trial::pipelined();
    spoilt.refused(2, E::NotEnoughReplicas);
    spoilt.refused(3, E::OutOfOrderSequenceNumber);
    spoilt.lost(4);
    (5..=6).for_each(|tag| spoilt.refused(tag, E::OutOfOrderSequenceNumber));
    spoilt.wait();
    spoilt.sends();
    spoilt.acked(2);
    spoilt.sends();
    spoilt.refused(3, E::NotEnoughReplicas);
    spoilt.refused(4, E::MessageTooLarge);
    (5..=7).for_each(|tag| spoilt.refused(tag, E::OutOfOrderSequenceNumber));
    spoilt.replace(4, &[]);
    check(spoilt, &[3, 5, 6, 7], 20, true);

    let mut exhausted = Trial::new();
    exhausted.newest.epoch = i16::MAX;
    exhausted.lane.numbering = Numbering::start(exhausted.newest);
    exhausted.sends();
    exhausted.refused(1, E::InvalidProducerEpoch);
    check(exhausted, &[1], 0, true);
}

#[test]
fn a_lane_that_comes_back_in_doubt_starts_a_new_epoch() {
    let mut trial = Trial::new();
    trial.sends();
    trial.lost(1);
    let (_, retired) = trial.lane.close();
    let mut events = Vec::new();
    let mut again = LaneState::again(Lane(3), 0, 0, retired);
    again.bump_if_due(trial.newest, &mut events);
    assert_eq!(events, [ProduceEvent::EpochBumped { lane: Lane(3), duplicates_possible: 0 }]);
    assert_eq!(again.numbering, Numbering::start(ProducerIdentity { id: 7, epoch: 1 }));
}

#[test]
fn an_answer_to_an_unknown_call_changes_nothing() {
    let mut trial = Trial::pipelined();
    trial.calls.insert(99, CallId(424_242));
    trial.acked(99);
    assert_eq!((trial.events.len(), trial.lane.in_flight()), (0, 5));
}
