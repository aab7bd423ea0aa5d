//! Who uses the producer in the simulation, what it was told, and whether that is true.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;

use super::super::{
    BatchSource, LANE_BATCHES_MAX, Lane, OutBatch, ProduceEvent, Producer, ProducerIdentity, ProducerOptions,
};
use super::broker::{Cluster, Faults, PartitionLog};
use super::dice::Dice;
use super::network::Network;
use crate::batch::{BatchHeader, HEADER_BYTES};
use crate::error::{NodeId, WireError};

const NODES: [NodeId; 3] = [1, 2, 3];
const STEPS: usize = 900;
/// Steps without faults and without any ack behind which the producer is stuck.
const SILENT_STEPS_MAX: usize = 10_000;
const REQUEST_BYTES_MAX: usize = 2_000;

/// One lane as its caller sees it.
#[derive(Debug)]
struct Feed {
    place: (String, i32),
    /// Not yet given to the producer.
    waiting: VecDeque<OutBatch>,
    /// All record numbers in order.
    expected: Vec<u64>,
    dropped: HashSet<u64>,
    /// Given and not acked, in order of giving.
    unacked: BTreeMap<u64, OutBatch>,
    may_have_duplicates: bool,
}

/// What happened, summed over seeds, so that a simulation in which nothing happens is noticed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    counts: BTreeMap<String, usize>,
}

impl Seen {
    fn note(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Seen) {
        for (what, count) in &other.counts {
            *self.counts.entry(what.clone()).or_default() += count;
        }
    }

    pub(super) fn check_nothing_was_left_out(&self) {
        let all = [
            "bump",
            "bump in doubt",
            "identity exhausted",
            "failed",
            "split",
            "dropped",
            "retried",
            "moved",
            "truncated",
            "cut",
            "ghost read",
            "bad answer",
            "lane removed",
            "pipelined 5",
            "large batch alone",
            "wrapped",
            "offset unknown",
            "forgotten",
            "exactly once in spite of cuts",
        ];
        let missing: Vec<&str> = all.into_iter().filter(|what| !self.counts.contains_key(*what)).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}; happened: {:?}", self.counts);
    }
}

pub(super) struct Caller {
    dice: Dice,
    now: Instant,
    producer: Producer,
    cluster: Cluster,
    network: Network,
    feeds: BTreeMap<Lane, Feed>,
    /// Lanes whose metadata is to be refreshed.
    stale: BTreeSet<Lane>,
    failed: Vec<(Lane, u64)>,
    /// Base offset of each acked batch, with its records.
    acked: HashMap<u64, (Lane, i64, Vec<u64>)>,
    contents: HashMap<u64, Vec<u64>>,
    next_tag: u64,
    next_identity: i64,
    pub(super) seen: Seen,
}

struct Source<'a> {
    feeds: &'a mut BTreeMap<Lane, Feed>,
    dice: &'a mut Dice,
}

impl BatchSource for Source<'_> {
    fn next(&mut self, lane: Lane, bytes_max: usize) -> Option<OutBatch> {
        let feed = self.feeds.get_mut(&lane).unwrap();
        let fits = feed.waiting.front()?.total_bytes() <= bytes_max;
        // A source may give a batch that is too large, and may have none at the moment.
        if !fits && bytes_max < REQUEST_BYTES_MAX / 2 && self.dice.chance(700) || self.dice.chance(100) {
            return None;
        }
        let batch = feed.waiting.pop_front()?;
        feed.unacked.insert(batch.tag, batch.clone());
        Some(batch)
    }
}

impl Caller {
    pub(super) fn new(mut dice: Dice) -> Self {
        let options = ProducerOptions {
            request_bytes_max: REQUEST_BYTES_MAX,
            in_flight_max: dice.pick(&[1, 2, 5, 5, 5]),
            version: dice.pick(&[3, 5, 7, 8, 8]),
            ..ProducerOptions::default()
        };
        // Late epochs run out, late sequences wrap.
        let epoch = dice.pick(&[0, 0, 0, i16::MAX - 1, i16::MAX]);
        let identity = ProducerIdentity { id: 1000, epoch };
        let faults = Faults {
            error_per_mille: dice.pick(&[0, 5, 20, 100, 300]),
            garble_per_mille: dice.pick(&[0, 0, 0, 10]),
            is_old: dice.chance(300),
            denied_topics: HashSet::new(),
        };
        let cluster = Cluster { partitions: HashMap::new(), faults, answered: HashMap::new() };
        let mut caller = Caller {
            dice,
            now: Instant::now(),
            producer: Producer::new(identity, options),
            cluster,
            network: Network::default(),
            feeds: BTreeMap::new(),
            stale: BTreeSet::new(),
            failed: Vec::new(),
            acked: HashMap::new(),
            contents: HashMap::new(),
            next_tag: 1,
            next_identity: 1001,
            seen: Seen::default(),
        };
        for place in [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)] {
            caller.add_feed(place.0, place.1);
        }
        caller
    }

    fn add_feed(&mut self, topic: &str, partition: i32) {
        let lane = self.producer.add_lane(topic.into(), partition);
        if self.dice.chance(300) {
            self.producer.start_at_sequence(lane, i32::MAX - 200);
        }
        let place = (topic.to_owned(), partition);
        let leader = self.dice.pick(&NODES);
        let asleep = self.dice.pick(&[0, 1, 3]);
        self.cluster.partitions.insert(place.clone(), PartitionLog::new(leader, usize::MAX, asleep));
        let feed = Feed {
            place,
            waiting: VecDeque::new(),
            expected: Vec::new(),
            dropped: HashSet::new(),
            unacked: BTreeMap::new(),
            may_have_duplicates: false,
        };
        self.feeds.insert(lane, feed);
        self.stale.insert(lane);
        let mut number = u64::from(lane.0 as u32 + 1) * 1_000_000;
        // Batches of one size make numbers that are used twice look alike.
        let sizes: &[u64] = self.dice.pick(&[&[1, 2, 3, 10, 60, 300], &[10]]);
        for _ in 0..self.dice.below(40) {
            let count = self.dice.pick(sizes);
            let records: Vec<u64> = (number..number + count).collect();
            number += count;
            let batch = self.batch(&records);
            let feed = self.feeds.get_mut(&lane).unwrap();
            feed.expected.extend(records);
            feed.waiting.push_back(batch);
        }
    }

    fn batch(&mut self, records: &[u64]) -> OutBatch {
        let payload: Bytes = records.iter().flat_map(|number| number.to_be_bytes()).collect();
        let tag = self.next_tag;
        self.next_tag += 1;
        self.contents.insert(tag, records.to_vec());
        OutBatch { header: header_of(&payload, records.len() as i32), payload, tag }
    }

    pub(super) fn run(&mut self) {
        for _ in 0..STEPS {
            self.step_with_faults();
        }
        self.end_faults();
        let (mut acked_count, mut silent_steps) = (0, 0);
        while !self.is_done() {
            self.step();
            silent_steps = if self.acked.len() > acked_count { 0 } else { silent_steps + 1 };
            acked_count = self.acked.len();
            assert!(silent_steps < SILENT_STEPS_MAX, "stuck: {:#?}", self.producer);
        }
    }

    fn end_faults(&mut self) {
        let old = self.cluster.faults.is_old;
        self.cluster.faults =
            Faults { error_per_mille: 0, garble_per_mille: 0, is_old: old, denied_topics: HashSet::new() };
        self.cluster.partitions.values_mut().for_each(|log| log.records_max = log.records_max.max(1));
        self.stale.extend(self.feeds.keys().copied());
        if self.network.cuts > 0 {
            self.seen.note("cut");
        }
        if self.network.ghosts_read > 0 {
            self.seen.note("ghost read");
        }
    }

    fn is_done(&self) -> bool {
        self.feeds.values().all(|feed| feed.waiting.is_empty() && feed.unacked.is_empty())
    }

    fn step_with_faults(&mut self) {
        match self.dice.below(1000) {
            0..10 => self.move_leader(),
            10..18 => self.cut(),
            18..30 => self.network.ghost_is_read(&mut self.cluster, self.now, &mut self.dice),
            30..36 => self.change_size_limit(),
            36..40 => self.deny_or_grant(),
            40..44 => self.move_a_lane_away_and_back(),
            44..46 => self.forget_producers(),
            46..50 => self.mislead(),
            _ => self.step(),
        }
    }

    fn step(&mut self) {
        match self.dice.below(10) {
            0 | 1 => self.send(),
            2..=4 => {
                let node = self.dice.pick(&NODES);
                self.network.broker_reads(node, &mut self.cluster, self.now, &mut self.dice);
            }
            5..=7 => self.receive(),
            8 => self.decide_or_refresh(),
            _ => self.pass_time(),
        }
    }

    fn send(&mut self) {
        let ready: Vec<NodeId> = self.producer.nodes_ready(self.now).collect();
        let mut is_idle = true;
        for node in ready {
            let mut source = Source { feeds: &mut self.feeds, dice: &mut self.dice };
            let Some(call) = self.producer.next_request(node, self.now, &mut source) else { continue };
            is_idle = false;
            assert_eq!(call.bytes, call.parts.iter().map(Bytes::len).sum::<usize>());
            assert!(
                call.bytes <= REQUEST_BYTES_MAX || call.batches == 1,
                "a request of {} bytes",
                call.bytes
            );
            if call.bytes > REQUEST_BYTES_MAX {
                self.seen.note("large batch alone");
            }
            self.network.send(&call);
            assert!(self.network.in_flight(node) <= 5);
        }
        let wake = self.producer.next_wake();
        assert!(!is_idle || wake.is_none_or(|at| at > self.now), "woken for nothing: {:#?}", self.producer);
        for lane in self.feeds.keys() {
            let in_flight = self.producer.in_flight(*lane);
            assert!(in_flight <= LANE_BATCHES_MAX);
            if in_flight == LANE_BATCHES_MAX {
                self.seen.note("pipelined 5");
            }
        }
    }

    fn receive(&mut self) {
        let node = self.dice.pick(&NODES);
        let Some((call, mut body)) = self.network.answer(node) else { return };
        if self.cluster.faults.error_per_mille > 0 && self.dice.chance(10) {
            body.truncate(self.dice.below(body.len()));
        }
        self.tell(|producer, now, events| producer.on_answer(call, Ok(body), now, events));
    }

    fn tell(&mut self, step: impl FnOnce(&mut Producer, Instant, &mut Vec<ProduceEvent>)) {
        let mut events = Vec::new();
        step(&mut self.producer, self.now, &mut events);
        for event in events {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: ProduceEvent) {
        match event {
            ProduceEvent::Acked { lane, tag, base_offset } => {
                let feed = self.feeds.get_mut(&lane).unwrap();
                assert!(feed.unacked.remove(&tag).is_some(), "acked twice or never given");
                self.acked.insert(tag, (lane, base_offset, self.contents[&tag].clone()));
                if base_offset < 0 {
                    self.seen.note("offset unknown");
                }
            }
            ProduceEvent::Failed { lane, tag, .. } => {
                self.seen.note("failed");
                self.failed.push((lane, tag));
            }
            ProduceEvent::RefreshMetadata { lane, .. } => {
                self.stale.insert(lane);
            }
            ProduceEvent::Retrying { .. } => {}
            ProduceEvent::EpochBumped { lane, duplicates_possible } => {
                self.seen.note("bump");
                self.note_doubt(lane, duplicates_possible);
            }
            ProduceEvent::IdentityExhausted { lane, duplicates_possible } => {
                self.seen.note("identity exhausted");
                self.note_doubt(lane, duplicates_possible);
                self.producer.set_identity(ProducerIdentity { id: self.next_identity, epoch: 0 });
                self.next_identity += 1;
            }
            ProduceEvent::BadAnswer { .. } => self.seen.note("bad answer"),
        }
    }

    fn note_doubt(&mut self, lane: Lane, duplicates_possible: usize) {
        if duplicates_possible > 0 {
            self.seen.note("bump in doubt");
            self.feeds.get_mut(&lane).unwrap().may_have_duplicates = true;
        }
    }

    fn decide_or_refresh(&mut self) {
        if !self.failed.is_empty() && self.dice.chance(500) {
            let index = self.dice.below(self.failed.len());
            let (lane, tag) = self.failed.swap_remove(index);
            self.decide(lane, tag);
        }
        if let Some(lane) = self.stale.pop_first() {
            let leader = self.cluster.partitions[&self.feeds[&lane].place].leader;
            self.producer.set_leader(lane, Some(leader));
        }
    }

    fn decide(&mut self, lane: Lane, tag: u64) {
        let place = self.feeds[&lane].place.clone();
        let is_denied = self.cluster.faults.denied_topics.contains(&place.0);
        let records = self.contents[&tag].clone();
        let records_max = self.cluster.partitions[&place].records_max;
        if is_denied || records.len() <= records_max {
            self.seen.note("retried");
            assert!(self.producer.retry(lane, tag));
        } else if records_max == 0 || self.dice.chance(200) {
            self.seen.note("dropped");
            let feed = self.feeds.get_mut(&lane).unwrap();
            feed.dropped.extend(&records);
            feed.unacked.remove(&tag);
            assert!(self.producer.replace(lane, tag, Vec::new()));
        } else {
            self.seen.note("split");
            let smaller: Vec<OutBatch> = records.chunks(records_max).map(|chunk| self.batch(chunk)).collect();
            let feed = self.feeds.get_mut(&lane).unwrap();
            feed.unacked.remove(&tag);
            feed.unacked.extend(smaller.iter().map(|batch| (batch.tag, batch.clone())));
            assert!(self.producer.replace(lane, tag, smaller));
        }
        assert!(!self.producer.replace(lane, tag, Vec::new()), "decided twice");
        self.tell(|producer, _, events| producer.take_events(events));
    }

    fn pass_time(&mut self) {
        let wake = self.producer.next_wake();
        let is_ready = self.producer.nodes_ready(self.now).next().is_some();
        match wake {
            Some(at) if !is_ready && self.dice.chance(300) => self.now = at.max(self.now),
            _ => self.now += Duration::from_millis(self.dice.below(40) as u64),
        }
    }

    fn move_leader(&mut self) {
        let place = self.random_place();
        let (leader, truncates) = (self.dice.pick(&NODES), self.dice.chance(500));
        let log = self.cluster.partitions.get_mut(&place).unwrap();
        log.move_leader(leader, truncates, self.now);
        self.seen.note("moved");
        if truncates {
            self.seen.note("truncated");
        }
    }

    fn cut(&mut self) {
        let node = self.dice.pick(&NODES);
        for call in self.network.cut(node, &mut self.dice) {
            let error = WireError::Closed {
                address: "broker:9092".into(),
                api: ApiKey::Produce,
                reason: "connection reset".to_owned(),
            };
            self.tell(|producer, now, events| producer.on_answer(call, Err(error), now, events));
        }
    }

    fn change_size_limit(&mut self) {
        let place = self.random_place();
        let records_max = self.dice.pick(&[0, 1, 5, 50, usize::MAX, usize::MAX]);
        self.cluster.partitions.get_mut(&place).unwrap().records_max = records_max;
    }

    fn deny_or_grant(&mut self) {
        let topic = self.random_place().0;
        if !self.cluster.faults.denied_topics.remove(&topic) {
            self.cluster.faults.denied_topics.insert(topic);
        }
    }

    /// Metadata can be wrong or have no leader.
    fn mislead(&mut self) {
        let lanes: Vec<Lane> = self.feeds.keys().copied().collect();
        let lane = self.dice.pick(&lanes);
        let leader = self.dice.pick(&[None, Some(1), Some(2), Some(3)]);
        self.producer.set_leader(lane, leader);
        self.stale.insert(lane);
    }

    /// A slot is taken away and comes back: the caller gives again what was not acked.
    fn move_a_lane_away_and_back(&mut self) {
        let lanes: Vec<Lane> = self.feeds.keys().copied().collect();
        let lane = self.dice.pick(&lanes);
        let Ok(tags) = self.producer.remove_lane(lane) else { return };
        self.seen.note("lane removed");
        let mut feed = self.feeds.remove(&lane).unwrap();
        assert_eq!(tags.iter().copied().collect::<BTreeSet<_>>(), feed.unacked.keys().copied().collect());
        feed.may_have_duplicates |= !tags.is_empty();
        for tag in tags.iter().rev() {
            feed.waiting.push_front(feed.unacked.remove(tag).unwrap());
        }
        self.failed.retain(|(other, _)| *other != lane);
        let (topic, partition) = feed.place.clone();
        let lane = self.producer.add_lane(Arc::from(topic), partition);
        self.feeds.insert(lane, feed);
        self.stale.insert(lane);
        self.tell(|producer, _, events| producer.take_events(events));
    }

    /// The brokers forget producers that are silent for long. Only where nothing is unacked: a batch whose ack was lost
    /// for a day can't be known again by any broker.
    fn forget_producers(&mut self) {
        self.now += Duration::from_secs(62);
        self.network.let_ghosts_go(); // no broker keeps a request for so long
        for feed in self.feeds.values().filter(|feed| feed.unacked.is_empty()) {
            let log = self.cluster.partitions.get_mut(&feed.place).unwrap();
            if log.forget_silent_producers(self.now) {
                self.seen.note("forgotten");
            }
        }
    }

    fn random_place(&mut self) -> (String, i32) {
        let mut places: Vec<(String, i32)> = self.cluster.partitions.keys().cloned().collect();
        places.sort();
        let index = self.dice.below(places.len());
        places.swap_remove(index)
    }

    pub(super) fn check_promises(&mut self) {
        let mut is_exact = true;
        for feed in self.feeds.values() {
            let log = &self.cluster.partitions[&feed.place];
            if log.has_wrapped() {
                self.seen.note("wrapped");
            }
            let numbers: Vec<u64> = log.log.iter().flat_map(|batch| batch.records.iter().copied()).collect();
            let mut known = HashSet::new();
            let first_times: Vec<u64> =
                numbers.iter().copied().filter(|number| known.insert(*number)).collect();
            let has_duplicates = first_times.len() < numbers.len();
            is_exact &= !has_duplicates;
            assert!(
                !has_duplicates || feed.may_have_duplicates,
                "{:?}: duplicates without a warning in\n{}",
                feed.place,
                log.describe()
            );
            let is_kept = |number: &&u64| !feed.dropped.contains(number);
            let arrived: Vec<u64> = first_times.iter().filter(is_kept).copied().collect();
            let expected: Vec<u64> = feed.expected.iter().filter(is_kept).copied().collect();
            let difference = (0..).find(|i| arrived.get(*i) != expected.get(*i) || expected.len() <= *i);
            let at = difference.and_then(|i| expected.get(i));
            assert!(arrived == expected, "{:?}: order or loss at {at:?} in\n{}", feed.place, log.describe());
        }
        for (tag, (lane, base_offset, records)) in &self.acked {
            let Some(feed) = self.feeds.get(lane) else { continue };
            let log = &self.cluster.partitions[&feed.place].log;
            let is_there =
                log.iter().any(|batch| batch.base_offset == *base_offset && batch.records == *records);
            assert!(is_there || *base_offset < 0, "batch {tag} was acked at {base_offset}, where it is not");
        }
        if is_exact && self.network.cuts > 0 {
            self.seen.note("exactly once in spite of cuts");
        }
    }
}

/// A header as a source's log has it, with marks that must not reach the target.
fn header_of(payload: &Bytes, record_count: i32) -> BatchHeader {
    let mut header = BatchHeader {
        base_offset: 77_000,
        batch_length: (HEADER_BYTES - 12 + payload.len()) as i32,
        partition_leader_epoch: 9,
        magic: 2,
        crc: 0,
        attributes: 0b1_1000,
        last_offset_delta: record_count - 1,
        base_timestamp: 1,
        max_timestamp: 2,
        producer_id: 5,
        producer_epoch: 6,
        base_sequence: 7,
        record_count,
    };
    let whole = [&header.encode()[..], payload].concat();
    header.crc = crc32c::crc32c(&whole[21..]);
    header
}
