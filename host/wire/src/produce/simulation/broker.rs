//! The model of a cluster's logs: appends as `UnifiedLog` and `ProducerAppendInfo` do (Kafka 4), with faults.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::{Decodable, Encodable};

use super::super::sequence::sequence_after;
use super::dice::Dice;
use crate::batch::{BatchHeader, HEADER_BYTES};
use crate::error::NodeId;

/// A broker forgets a producer that was silent for longer.
const FORGET_AGE: Duration = Duration::from_secs(61);

/// Records of one batch as they lie in the log.
#[derive(Debug)]
pub(super) struct LogBatch {
    pub(super) base_offset: i64,
    /// Each record's number.
    pub(super) records: Vec<u64>,
    producer: (i64, i16),
    first_sequence: i32,
    /// Replicated: no leader move takes it away.
    is_committed: bool,
}

/// What a leader knows of one producer (`ProducerStateEntry`).
#[derive(Debug)]
struct ProducerState {
    epoch: i16,
    /// First and last sequence, base offset, records.
    cache: VecDeque<(i32, i32, i64, Vec<u64>)>,
    last_append: Instant,
}

#[derive(Debug)]
pub(super) struct PartitionLog {
    pub(super) leader: NodeId,
    pub(super) log: Vec<LogBatch>,
    end_offset: i64,
    producers: HashMap<i64, ProducerState>,
    /// Largest batch in records; can change as `max.message.bytes` can.
    pub(super) records_max: usize,
    /// Answers NOT_LEADER_OR_FOLLOWER so many times, as a new partition does.
    pub(super) asleep: usize,
}

/// What the faults of this run are.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) error_per_mille: usize,
    pub(super) garble_per_mille: usize,
    /// Brokers before 2.5: UNKNOWN_PRODUCER_ID where newer ones take any sequence.
    pub(super) is_old: bool,
    pub(super) denied_topics: HashSet<String>,
}

#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) partitions: HashMap<(String, i32), PartitionLog>,
    pub(super) faults: Faults,
    pub(super) answered: HashMap<i16, usize>,
}

impl Cluster {
    /// Processes a request at `node` and gives the answer's body.
    pub(super) fn produce(
        &mut self,
        node: NodeId,
        body: &Bytes,
        version: i16,
        now: Instant,
        dice: &mut Dice,
    ) -> Bytes {
        let mut rest = body.clone();
        let request = ProduceRequest::decode(&mut rest, version).unwrap();
        assert!(rest.is_empty() && request.acks == -1 && request.transactional_id.is_none());
        let mut seen = HashSet::new();
        let mut responses = Vec::new();
        for topic in &request.topic_data {
            let name = topic.name.to_string();
            let mut answers = Vec::new();
            for data in &topic.partition_data {
                assert!(seen.insert((name.clone(), data.index)), "two batches of one partition in a request");
                let records = data.records.clone().unwrap();
                let (error, base_offset) = self.append(node, &name, data.index, &records, now, dice);
                let code = error.map_or(0, |error| error.code());
                *self.answered.entry(code).or_default() += 1;
                answers.push(
                    PartitionProduceResponse::default()
                        .with_index(data.index)
                        .with_error_code(code)
                        .with_base_offset(base_offset),
                );
            }
            if dice.chance(300) {
                answers.reverse();
            }
            let answer = TopicProduceResponse::default().with_name(topic.name.clone());
            responses.push(answer.with_partition_responses(answers));
        }
        assert_eq!(
            responses.len(),
            responses.iter().map(|topic| &topic.name).collect::<HashSet<_>>().len(),
            "a topic stands twice in a request"
        );
        if dice.chance(300) {
            responses.reverse();
        }
        let mut answer = bytes::BytesMut::new();
        ProduceResponse::default().with_responses(responses).encode(&mut answer, version).unwrap();
        answer.freeze()
    }

    fn append(
        &mut self,
        node: NodeId,
        topic: &str,
        partition: i32,
        records: &Bytes,
        now: Instant,
        dice: &mut Dice,
    ) -> (Option<ResponseError>, i64) {
        use ResponseError as E;
        let refuse = |error| (Some(error), -1);
        let header = check_batch(records);
        let log = self.partitions.get_mut(&(topic.to_owned(), partition)).unwrap();
        if self.faults.denied_topics.contains(topic) {
            return refuse(E::TopicAuthorizationFailed);
        }
        if log.leader != node {
            return refuse(E::NotLeaderOrFollower);
        }
        if log.asleep > 0 {
            log.asleep -= 1;
            return refuse(dice.pick(&[E::NotLeaderOrFollower, E::UnknownTopicOrPartition]));
        }
        if dice.chance(self.faults.error_per_mille) {
            let before_append =
                [E::NotEnoughReplicas, E::CorruptMessage, E::UnknownServerError, E::KafkaStorageError];
            return refuse(dice.pick(&before_append));
        }
        if header.record_count as usize > log.records_max {
            return refuse(dice.pick(&[E::MessageTooLarge, E::RecordListTooLarge, E::InvalidRecord]));
        }
        if dice.chance(self.faults.garble_per_mille) {
            log.garble(header.producer_id, dice);
        }
        match log.append(&header, records, self.faults.is_old, now) {
            Err(error) => refuse(error),
            Ok(Appended { base_offset, is_duplicate: true }) if dice.chance(100) => {
                log.commit(base_offset);
                refuse(E::DuplicateSequenceNumber)
            }
            Ok(_) if dice.chance(self.faults.error_per_mille) => {
                let after_append = [
                    E::RequestTimedOut,
                    E::NotEnoughReplicasAfterAppend,
                    E::NotLeaderOrFollower,
                    E::UnknownServerError,
                ];
                refuse(dice.pick(&after_append))
            }
            Ok(Appended { base_offset, .. }) => {
                log.commit(base_offset);
                (None, base_offset)
            }
        }
    }
}

/// The checks of `LogValidator` on the batch itself; gives its header.
fn check_batch(records: &Bytes) -> BatchHeader {
    let header = BatchHeader::parse(records).unwrap();
    assert_eq!(header.total_bytes(), records.len(), "exactly one batch per partition");
    assert_eq!(crc32c::crc32c(&records[21..]), header.crc, "checksum");
    assert_eq!(header.record_count, header.last_offset_delta + 1, "count");
    assert_eq!(header.record_count as usize, numbers_of(records).len(), "header belongs to another payload");
    assert_eq!((header.base_offset, header.partition_leader_epoch), (0, -1));
    assert!(header.producer_id >= 0 && header.producer_epoch >= 0 && header.base_sequence >= 0);
    assert!(!header.is_transactional() && !header.is_control() && !header.is_log_append_time());
    header
}

/// The numbers that a batch's payload is made of.
fn numbers_of(records: &[u8]) -> Vec<u64> {
    records[HEADER_BYTES..]
        .chunks_exact(8)
        .map(|eight| u64::from_be_bytes(eight.try_into().unwrap()))
        .collect()
}

struct Appended {
    base_offset: i64,
    is_duplicate: bool,
}

impl PartitionLog {
    pub(super) fn new(leader: NodeId, records_max: usize, asleep: usize) -> Self {
        let (log, producers) = (Vec::new(), HashMap::new());
        PartitionLog { leader, log, end_offset: 0, producers, records_max, asleep }
    }

    fn append(
        &mut self,
        header: &BatchHeader,
        records: &Bytes,
        is_old: bool,
        now: Instant,
    ) -> Result<Appended, ResponseError> {
        let first = header.base_sequence;
        let last = sequence_after(first, header.record_count - 1);
        let numbers = numbers_of(records);
        if let Some(state) = self.producers.get(&header.producer_id) {
            if header.producer_epoch < state.epoch {
                return Err(ResponseError::InvalidProducerEpoch);
            }
            let is_same_epoch = header.producer_epoch == state.epoch;
            let known = state.cache.iter().find(|known| is_same_epoch && (known.0, known.1) == (first, last));
            if let Some(known) = known {
                assert_eq!(known.3, numbers, "another batch under used numbers: it would be lost");
                return Ok(Appended { base_offset: known.2, is_duplicate: true });
            }
            let expected = match state.cache.back() {
                Some((_, last, ..)) if is_same_epoch => sequence_after(*last, 1),
                _ => 0,
            };
            if first != expected {
                return Err(ResponseError::OutOfOrderSequenceNumber);
            }
        } else if is_old && first != 0 {
            return Err(ResponseError::UnknownProducerId);
        }
        let base_offset = self.end_offset;
        self.end_offset += i64::from(header.record_count);
        self.log.push(LogBatch {
            base_offset,
            records: numbers,
            producer: (header.producer_id, header.producer_epoch),
            first_sequence: first,
            is_committed: false,
        });
        self.remember(self.log.len() - 1, now);
        Ok(Appended { base_offset, is_duplicate: false })
    }

    fn remember(&mut self, index: usize, now: Instant) {
        let batch = &self.log[index];
        let (id, epoch) = batch.producer;
        let fresh = ProducerState { epoch, cache: VecDeque::new(), last_append: now };
        let state = self.producers.entry(id).or_insert(fresh);
        if state.epoch != epoch {
            state.epoch = epoch;
            state.cache.clear();
        }
        if state.cache.len() == 5 {
            state.cache.pop_front();
        }
        let last = sequence_after(batch.first_sequence, batch.records.len() as i32 - 1);
        state.cache.push_back((batch.first_sequence, last, batch.base_offset, batch.records.clone()));
        state.last_append = now;
    }

    /// A producer's sequence went past its largest number within an epoch.
    pub(super) fn has_wrapped(&self) -> bool {
        self.log
            .windows(2)
            .any(|two| two[0].producer == two[1].producer && two[1].first_sequence < two[0].first_sequence)
    }

    /// The log, a line for each batch.
    pub(super) fn describe(&self) -> String {
        let line = |batch: &LogBatch| {
            let (first, last) = (batch.records.first(), batch.records.last());
            format!(
                "{} {:?} {}: {first:?}..={last:?}\n",
                batch.base_offset, batch.producer, batch.first_sequence
            )
        };
        self.log.iter().map(line).collect()
    }

    /// Everything up to the batch at `base_offset` is on all in-sync replicas.
    fn commit(&mut self, base_offset: i64) {
        self.log.iter_mut().filter(|b| b.base_offset <= base_offset).for_each(|b| b.is_committed = true);
    }

    /// The leader dies; the new one may lack what was not replicated.
    pub(super) fn move_leader(&mut self, leader: NodeId, truncates: bool, now: Instant) {
        self.leader = leader;
        if !truncates {
            return;
        }
        self.log.retain(|batch| batch.is_committed);
        self.end_offset = self.log.last().map_or(0, |b| b.base_offset + b.records.len() as i64);
        self.producers.clear();
        for index in 0..self.log.len() {
            self.remember(index, now);
        }
    }

    /// The broker's idea of the producer is no longer right: another epoch was seen, or its sequence is elsewhere.
    fn garble(&mut self, producer_id: i64, dice: &mut Dice) {
        let Some(state) = self.producers.get_mut(&producer_id) else { return };
        if dice.chance(300) {
            state.epoch = state.epoch.saturating_add(1);
        }
        let elsewhere = 1_000_000 + dice.below(1000) as i32;
        state.cache = VecDeque::from([(elsewhere, elsewhere, -1, Vec::new())]);
    }

    /// `producer.id.expiration.ms` passed.
    pub(super) fn forget_silent_producers(&mut self, now: Instant) -> bool {
        let before = self.producers.len();
        self.producers.retain(|_, state| now.saturating_duration_since(state.last_append) <= FORGET_AGE);
        self.producers.len() < before
    }
}
