//! What concerns several lanes, brokers and requests.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{ApiKey, ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use super::*;
use crate::error::WireError;

/// Gives every lane batches of a size, tagged 1000 × lane + 1, 2, ….
struct Endless {
    payload_bytes: BTreeMap<Lane, usize>,
    given: BTreeMap<Lane, u64>,
    asked: Vec<(Lane, usize)>,
}

impl Endless {
    fn new(payload_bytes: &[(Lane, usize)]) -> Self {
        Endless {
            payload_bytes: payload_bytes.iter().copied().collect(),
            given: BTreeMap::new(),
            asked: Vec::new(),
        }
    }
}

impl BatchSource for Endless {
    fn next(&mut self, lane: Lane, bytes_max: usize) -> Option<OutBatch> {
        self.asked.push((lane, bytes_max));
        let payload = Bytes::from(vec![0; *self.payload_bytes.get(&lane)?]);
        let given = self.given.entry(lane).or_default();
        *given += 1;
        let header = BatchHeader {
            base_offset: 0,
            batch_length: (49 + payload.len()) as i32,
            partition_leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 1,
        };
        Some(OutBatch { header, payload, tag: lane.0 as u64 * 1000 + *given })
    }
}

fn producer(request_bytes_max: usize) -> Producer {
    let identity = ProducerIdentity { id: 1, epoch: 0 };
    Producer::new(identity, ProducerOptions { request_bytes_max, ..ProducerOptions::default() })
}

fn lanes<const N: usize>(producer: &mut Producer, node: NodeId) -> [Lane; N] {
    std::array::from_fn(|partition| {
        let lane = producer.add_lane("orders".into(), partition as i32);
        producer.set_leader(lane, Some(node));
        lane
    })
}

/// The partitions of a request, as a broker reads them.
fn partitions(call: &ProduceCall) -> Vec<(String, i32)> {
    let mut body: Bytes = call.parts.concat().into();
    let request = ProduceRequest::decode(&mut body, call.version).unwrap();
    let of_topic = |topic: &kafka_protocol::messages::produce_request::TopicProduceData| {
        topic.partition_data.iter().map(|data| (topic.name.to_string(), data.index)).collect::<Vec<_>>()
    };
    request.topic_data.iter().flat_map(of_topic).collect()
}

fn answer(topic: &'static str, partitions: &[(i32, i16, i64)]) -> Bytes {
    let responses = partitions.iter().map(|(index, error_code, base_offset)| {
        PartitionProduceResponse::default()
            .with_index(*index)
            .with_error_code(*error_code)
            .with_base_offset(*base_offset)
    });
    let topic = TopicProduceResponse::default()
        .with_name(StrBytes::from_static_str(topic).into())
        .with_partition_responses(responses.collect());
    let mut body = BytesMut::new();
    ProduceResponse::default().with_responses(vec![topic]).encode(&mut body, 8).unwrap();
    body.freeze()
}

#[test]
fn a_request_has_one_batch_of_each_lane_grouped_by_topic() {
    let mut producer = producer(10_000);
    let places = [("b", 1), ("a", 1), ("b", 0), ("a", 0)];
    let lanes = places.map(|(topic, partition)| producer.add_lane(topic.into(), partition));
    lanes.iter().for_each(|lane| producer.set_leader(*lane, Some(1)));
    let mut source = Endless::new(&lanes.map(|lane| (lane, 10)));
    let call = producer.next_request(1, Instant::now(), &mut source).unwrap();
    let expected = [("b", 0), ("b", 1), ("a", 0), ("a", 1)].map(|(topic, index)| (topic.to_owned(), index));
    assert_eq!(partitions(&call), expected);
    assert_eq!((call.batches, call.node, call.version), (4, 1, 8));
}

#[test]
fn a_request_stays_within_its_bytes_and_a_larger_batch_goes_alone() {
    let mut producer = producer(1000);
    let lanes: [Lane; 3] = lanes(&mut producer, 1);
    let mut source = Endless::new(&[(lanes[0], 300), (lanes[1], 5000), (lanes[2], 300)]);
    let now = Instant::now();
    let sizes: Vec<(usize, usize)> = std::iter::from_fn(|| producer.next_request(1, now, &mut source))
        .map(|c| (c.batches, c.bytes))
        .collect();
    assert_eq!(sizes, [(2, 762), (1, 5093)]);
    let first_asked = source.asked.iter().find(|(lane, _)| *lane == lanes[0]).unwrap().1;
    let overhead_bytes = 12 + 2 + 4 + "orders".len() + 8;
    assert_eq!(first_asked, 1000 - overhead_bytes);
}

#[test]
fn every_lane_is_served_in_turn_when_a_request_takes_only_one() {
    let mut producer = producer(400);
    let lanes: [Lane; 4] = lanes(&mut producer, 1);
    let mut source = Endless::new(&lanes.map(|lane| (lane, 300)));
    let mut served = Vec::new();
    for _ in 0..8 {
        let call = producer.next_request(1, Instant::now(), &mut source).unwrap();
        let partition = partitions(&call)[0].1;
        served.push(partition);
        let body = answer("orders", &[(partition, 0, 5)]);
        producer.on_answer(call.id, Ok(body), Instant::now(), &mut Vec::new());
    }
    assert_eq!(served, [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn a_broker_has_no_more_requests_than_allowed() {
    let mut producer = producer(100);
    let lanes: [Lane; 9] = lanes(&mut producer, 1);
    let mut source = Endless::new(&lanes.map(|lane| (lane, 300)));
    let now = Instant::now();
    let calls: Vec<ProduceCall> = std::iter::from_fn(|| producer.next_request(1, now, &mut source)).collect();
    assert_eq!((calls.len(), producer.calls_in_flight()), (5, 5));
    assert_eq!(producer.nodes_ready(now).next(), None);
    let body = answer("orders", &[(0, 0, 5)]);
    producer.on_answer(calls[0].id, Ok(body), now, &mut Vec::new());
    assert_eq!(producer.nodes_ready(now).collect::<Vec<_>>(), [1]);
}

#[test]
fn lanes_of_a_request_have_their_own_fates() {
    let mut producer = producer(10_000);
    let lanes: [Lane; 3] = lanes(&mut producer, 1);
    let mut source = Endless::new(&lanes.map(|lane| (lane, 10)));
    let now = Instant::now();
    let call = producer.next_request(1, now, &mut source).unwrap();
    let mut events = Vec::new();
    let body = answer("orders", &[(2, 10, -1), (0, 0, 77), (1, 6, -1)]);
    producer.on_answer(call.id, Ok(body), now, &mut events);
    let failed = ProduceEvent::Failed {
        lane: lanes[2],
        tag: 2001,
        error: ResponseError::MessageTooLarge,
        message: None,
        record_errors: Vec::new(),
    };
    let acked = ProduceEvent::Acked { lane: lanes[0], tag: 1, base_offset: 77 };
    let moved = ProduceEvent::RefreshMetadata { lane: lanes[1], error: ResponseError::NotLeaderOrFollower };
    assert_eq!(events, [failed, acked, moved]);
    assert_eq!(producer.next_wake(), Some(now + Duration::from_millis(100)));
    let next = producer.next_request(1, now, &mut source).unwrap();
    assert_eq!(partitions(&next), [("orders".to_owned(), 0)]);
}

#[test]
fn partitions_that_an_answer_lacks_are_sent_again_and_doubled_ones_count_once() {
    let mut producer = producer(10_000);
    let lanes: [Lane; 2] = lanes(&mut producer, 1);
    let mut source = Endless::new(&lanes.map(|lane| (lane, 10)));
    let now = Instant::now();
    let call = producer.next_request(1, now, &mut source).unwrap();
    let mut events = Vec::new();
    let body = answer("orders", &[(0, 0, 7), (0, 6, -1), (9, 0, 1)]);
    producer.on_answer(call.id, Ok(body), now, &mut events);
    let expected = [
        ProduceEvent::Acked { lane: lanes[0], tag: 1, base_offset: 7 },
        ProduceEvent::BadAnswer { node: 1, problem: "1 of 2 partitions are missing".to_owned() },
        ProduceEvent::RefreshMetadata { lane: lanes[1], error: ResponseError::NetworkException },
    ];
    assert_eq!(events, expected);
    let later = now + Duration::from_secs(1);
    assert_eq!(partitions(&producer.next_request(1, later, &mut source).unwrap()).len(), 2);
}

#[test]
fn an_answer_counts_once() {
    let mut producer = producer(10_000);
    let lanes: [Lane; 1] = lanes(&mut producer, 1);
    let mut source = Endless::new(&[(lanes[0], 10)]);
    let now = Instant::now();
    let call = producer.next_request(1, now, &mut source).unwrap();
    let mut events = Vec::new();
    for _ in 0..2 {
        producer.on_answer(call.id, Ok(answer("orders", &[(0, 0, 7)])), now, &mut events);
    }
    assert_eq!(events.len(), 1);
}

#[test]
fn a_request_that_never_left_leaves_no_doubt() {
    let check = |error: WireError, duplicates: usize| {
        let mut producer = producer(10_000);
        let lanes: [Lane; 1] = lanes(&mut producer, 1);
        let mut source = Endless::new(&[(lanes[0], 10)]);
        let mut events = Vec::new();
        let mut now = Instant::now();
        let call = producer.next_request(1, now, &mut source).unwrap();
        producer.on_answer(call.id, Err(error), now, &mut events);
        now += Duration::from_secs(1);
        let call = producer.next_request(1, now, &mut source).unwrap();
        producer.on_answer(call.id, Ok(answer("orders", &[(0, 59, -1)])), now, &mut events);
        let bumped = ProduceEvent::EpochBumped { lane: lanes[0], duplicates_possible: duplicates };
        assert_eq!(events.last(), Some(&bumped));
    };
    let address: Arc<str> = "b:9092".into();
    check(WireError::Unreachable { address: address.clone(), reason: "refused".into() }, 0);
    check(WireError::UnknownNode { node: 1, known: "2".into() }, 0);
    check(WireError::Closed { address: address.clone(), api: ApiKey::Produce, reason: "reset".into() }, 1);
    check(WireError::TimedOut { address, api: ApiKey::Produce, timeout_ms: 5 }, 1);
}

#[test]
fn a_backoff_that_is_over_wakes_nobody_twice() {
    let mut producer = producer(10_000);
    let lanes: [Lane; 1] = lanes(&mut producer, 1);
    let mut source = Endless::new(&[(lanes[0], 10)]);
    let now = Instant::now();
    let call = producer.next_request(1, now, &mut source).unwrap();
    producer.on_answer(call.id, Ok(answer("orders", &[(0, 10, -1)])), now, &mut Vec::new());
    assert_eq!(producer.next_wake(), None, "a failed batch waits for its caller, not for time");
    assert!(producer.retry(lanes[0], 1));
    let call = producer.next_request(1, now, &mut source).unwrap();
    producer.on_answer(call.id, Ok(answer("orders", &[(0, 19, -1)])), now, &mut Vec::new());
    let wake = producer.next_wake().unwrap();
    assert_eq!(wake, now + Duration::from_millis(100));
    assert!(producer.next_request(1, now, &mut source).is_none());
    assert!(producer.next_request(1, wake, &mut source).is_some());
    assert_eq!(producer.next_wake(), None);
}

#[test]
fn a_lane_without_new_batches_forgets_its_backoff() {
    let mut producer = producer(10_000);
    let lanes: [Lane; 1] = lanes(&mut producer, 1);
    let mut source = Endless::new(&[(lanes[0], 10)]);
    let now = Instant::now();
    let first = producer.next_request(1, now, &mut source).unwrap();
    producer.on_answer(first.id, Ok(answer("orders", &[(0, 0, 5)])), now, &mut Vec::new());
    let calls = [(); 2].map(|()| producer.next_request(1, now, &mut source).unwrap());
    producer.on_answer(calls[0].id, Ok(answer("orders", &[(0, 7, -1)])), now, &mut Vec::new());
    producer.on_answer(calls[1].id, Ok(answer("orders", &[(0, 10, -1)])), now, &mut Vec::new());
    let wake = producer.next_wake().unwrap();
    let again = producer.next_request(1, wake, &mut source).unwrap();
    producer.on_answer(again.id, Ok(answer("orders", &[(0, 19, -1)])), wake, &mut Vec::new());
    let wake = producer.next_wake().unwrap();
    let again = producer.next_request(1, wake, &mut source).unwrap();
    producer.on_answer(again.id, Ok(answer("orders", &[(0, 0, 6)])), wake, &mut Vec::new());
    assert!(producer.replace(lanes[0], 3, Vec::new()));
    let mut empty = Endless::new(&[]);
    assert!(producer.next_request(1, wake, &mut empty).is_none());
    assert_eq!(producer.next_wake(), None);
}

#[test]
fn a_lane_in_flight_is_not_removed_and_a_removed_one_goes_on_where_it_was() {
    let mut producer = producer(10_000);
    let lanes: [Lane; 2] = lanes(&mut producer, 1);
    let mut source = Endless::new(&[(lanes[0], 10)]);
    let now = Instant::now();
    let call = producer.next_request(1, now, &mut source).unwrap();
    let busy = producer.remove_lane(lanes[0]).unwrap_err();
    assert_eq!(
        busy.to_string(),
        "1 batches of the lane are still in flight; set no leader and wait for their answers"
    );
    producer.on_answer(call.id, Ok(answer("orders", &[(0, 0, 7)])), now, &mut Vec::new());
    assert_eq!(producer.remove_lane(lanes[0]), Ok(vec![]));
    assert_eq!(producer.remove_lane(lanes[0]), Ok(vec![]));
    let other = producer.add_lane("payments".into(), 0);
    assert_eq!(other, lanes[0], "the place of a removed lane is used again");
    let again = producer.add_lane("orders".into(), 0);
    assert_eq!(producer.add_lane("orders".into(), 0), again);
    producer.set_leader(again, Some(1));
    let mut source = Endless::new(&[(again, 10)]);
    let call = producer.next_request(1, now, &mut source).unwrap();
    let body: Bytes = call.parts.concat().into();
    let header = BatchHeader::parse(&body[12 + 2 + 6 + 4 + 8..]).unwrap();
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (1, 0, 1));
}

#[test]
fn a_lane_without_leader_is_not_asked_for_batches() {
    let mut producer = producer(10_000);
    let lanes: [Lane; 1] = lanes(&mut producer, 1);
    producer.set_leader(lanes[0], None);
    let mut source = Endless::new(&[(lanes[0], 10)]);
    assert!(producer.next_request(1, Instant::now(), &mut source).is_none());
    assert_eq!(source.asked, []);
    producer.set_leader(lanes[0], Some(4));
    assert_eq!(producer.nodes_ready(Instant::now()).collect::<Vec<_>>(), [4]);
}
