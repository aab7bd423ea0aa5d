//! Fetch: what is asked in each version, and what any answer does.

use kafka_protocol::messages::fetch_response::{
    AbortedTransaction as AnsweredAbort, FetchableTopicResponse, LeaderIdAndEpoch, PartitionData,
};
use kafka_protocol::messages::{FetchResponse, ProducerId};
use kafka_protocol::protocol::Decodable;
use proptest::prelude::*;

use super::*;
use crate::connection::stub;

const VERSIONS: std::ops::RangeInclusive<i16> = 4..=12;

fn asked(topic: &str, partition: i32) -> FetchPartition {
    FetchPartition { topic: topic.into(), partition, offset: 40, leader_epoch: 3, max_bytes: 1000 }
}

fn parameters() -> FetchParameters {
    FetchParameters { max_wait_ms: 500, min_bytes: 1, max_bytes: 5000, isolation: Isolation::ReadCommitted }
}

fn partition(number: i32, records: &'static [u8]) -> PartitionData {
    let aborted = AnsweredAbort::default().with_producer_id(ProducerId(9)).with_first_offset(41);
    PartitionData::default()
        .with_partition_index(number)
        .with_high_watermark(100)
        .with_last_stable_offset(90)
        .with_aborted_transactions(Some(vec![aborted.clone(), aborted]))
        .with_records(Some(Bytes::from_static(records)))
}

fn response(version: i16) -> FetchResponse {
    let mut failed = partition(7, b"").with_error_code(6).with_records(None).with_aborted_transactions(None);
    if version >= 12 {
        let leader = LeaderIdAndEpoch::default().with_leader_id(BrokerId(2)).with_leader_epoch(5);
        failed = failed.with_current_leader(leader);
    }
    let topic = |name: &str, partitions| {
        let name = TopicName(StrBytes::from_string(name.to_owned()));
        FetchableTopicResponse::default().with_topic(name).with_partitions(partitions)
    };
    let responses = vec![
        topic("orders", vec![partition(0, b"some records"), partition(1, b"others")]),
        topic("bills", vec![failed]),
    ];
    FetchResponse::default().with_throttle_time_ms(12).with_responses(responses)
}

fn question() -> Vec<FetchPartition> {
    vec![asked("orders", 0), asked("orders", 1), asked("bills", 7)]
}

#[test]
fn every_version_is_asked_with_what_it_has() {
    for version in VERSIONS {
        let body = encode(request(&parameters(), &question()), version).unwrap();
        let mut rest = body;
        let read = FetchRequest::decode(&mut rest, version).unwrap();
        assert!(rest.is_empty());
        assert_eq!((read.session_id, read.session_epoch, read.isolation_level), (0, -1, 1));
        assert_eq!(read.topics.len(), 2);
        let partition = &read.topics[1].partitions[0];
        let epoch = if version >= 9 { 3 } else { -1 };
        assert_eq!((partition.partition, partition.fetch_offset), (7, 40));
        assert_eq!((partition.current_leader_epoch, partition.partition_max_bytes), (epoch, 1000));
    }
}

#[test]
fn the_order_of_the_question_is_kept() {
    let question = [asked("a", 0), asked("b", 0), asked("a", 1)];
    let request = request(&parameters(), &question);
    let topics: Vec<&str> = request.topics.iter().map(|topic| topic.topic.as_str()).collect();
    assert_eq!(topics, ["a", "b", "a"]);
}

#[test]
fn every_version_is_read_and_records_are_slices_of_the_answer() {
    for version in VERSIONS {
        let question = question();
        let body = Bytes::from(stub::body(&response(version), version));
        let read = answer::read(&body, version, &question).unwrap();
        assert_eq!((read.throttle_ms, read.error, read.partitions.len()), (12, None, 3));
        let first = &read.partitions[0];
        assert_eq!((first.high_watermark, first.last_stable_offset), (100, 90));
        assert_eq!(first.aborted, [AbortedTransaction { producer_id: 9, first_offset: 41 }; 2]);
        assert_eq!(first.records, Bytes::from_static(b"some records"));
        assert!(body.as_ptr_range().contains(&first.records.as_ptr()));
        assert!(Arc::ptr_eq(&first.topic, &question[0].topic));
        assert_eq!(read.partitions[1].records, Bytes::from_static(b"others"));
        let failed = &read.partitions[2];
        assert_eq!((&*failed.topic, failed.partition), ("bills", 7));
        assert_eq!(failed.error, Some(ResponseError::NotLeaderOrFollower));
        assert!(failed.records.is_empty());
    }
}

#[test]
fn an_answer_cut_anywhere_is_an_error_with_its_place() {
    for version in VERSIONS {
        let body = Bytes::from(stub::body(&response(version), version));
        for length in 0..body.len() {
            let broken = answer::read(&body.slice(..length), version, &question()).unwrap_err();
            assert!(broken.position <= length, "version {version}, {length} bytes: {broken:?}");
        }
    }
}

#[test]
fn what_breaks_an_answer_is_told() {
    let check = |body: &[u8], version, position, reason| {
        let broken = answer::read(&Bytes::copy_from_slice(body), version, &question()).unwrap_err();
        assert_eq!(broken, answer::Broken { position, reason });
    };
    check(b"", 4, 0, "it ends within a field");
    check(b"\0\0\0\0\x7f\xff\xff\xff", 4, 8, "a list has more entries than the answer has bytes");
    check(b"\0\0\0\0\x80\0\0\0", 4, 8, "a length is negative");
    check(b"\0\0\0\0\0\0\0\x01\xff\xff", 4, 10, "a topic has no name");
    check(b"\0\0\0\0\0\0\0\x01\0\x09abc", 4, 10, "a length is more than the answer has bytes");
    check(b"\0\0\0\0\0\0\0\x01\0\x01x", 4, 11, "it names a topic that was not asked for");
    check(b"\0\0\0\0\0\0\0\0x", 4, 8, "bytes are left over behind its last field");
    check(b"\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\x01", 12, 15, "a varint has more than 5 bytes");
    let none_asked = Bytes::from_static(b"\0\0\0\0\0\0\0\x01\0\x01x");
    let broken = answer::read(&none_asked, 4, &[]).unwrap_err();
    assert_eq!(broken.reason, "it names a topic that was not asked for");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_changed_answer_never_panics(
        version in VERSIONS,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in any::<prop::sample::Index>(),
    ) {
        let mut body = stub::body(&response(version), version);
        for (index, byte) in changes {
            let index = index.index(body.len());
            body[index] = byte;
        }
        let _ = answer::read(&Bytes::from(body.clone()), version, &question());
        body.truncate(length.index(body.len()));
        let _ = answer::read(&Bytes::from(body), version, &question());
    }
}

mod committed {
    use super::super::*;
    use crate::batch::{Batch, BatchHeader, HEADER_BYTES};

    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const ABORT: i16 = 0;
    const COMMIT: i16 = 1;

    /// A batch of five offsets from `base_offset` on.
    fn batch(base_offset: i64, producer_id: i64, attributes: i16, payload: &[u8]) -> Batch {
        let header = BatchHeader {
            base_offset,
            batch_length: 0,
            partition_leader_epoch: 0,
            magic: 2,
            crc: 0,
            attributes,
            last_offset_delta: 4,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            record_count: 5,
        };
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend_from_slice(payload);
        Batch { header, bytes: bytes.into() }
    }

    fn data(base_offset: i64, producer_id: i64) -> Batch {
        batch(base_offset, producer_id, TRANSACTIONAL, b"records")
    }

    fn marker(base_offset: i64, producer_id: i64, kind: i16) -> Batch {
        let mut payload = b"\x20\0\0\0\x08\0\0".to_vec();
        payload.extend_from_slice(&kind.to_be_bytes());
        payload.extend_from_slice(b"\x0c\0\0\0\0\0\0\0");
        batch(base_offset, producer_id, TRANSACTIONAL | CONTROL, &payload)
    }

    fn check(aborted: &[(i64, i64)], batches: &[(Batch, bool)]) {
        let aborted = aborted
            .iter()
            .map(|&(producer_id, first_offset)| AbortedTransaction { producer_id, first_offset });
        let mut filter = CommittedFilter::new(aborted.collect());
        for (batch, wanted) in batches {
            assert_eq!(filter.keep(batch), *wanted, "at offset {}", batch.header.base_offset);
        }
    }

    #[test]
    fn an_aborted_transaction_is_skipped_up_to_its_marker() {
        check(
            &[(1, 10)],
            &[
                (data(0, 1), true),
                (data(10, 1), false),
                (data(20, 2), true),
                (data(30, 1), false),
                (marker(40, 1, ABORT), false),
                (data(50, 1), true),
            ],
        );
    }

    #[test]
    fn transactions_of_several_producers_are_told_apart_in_any_order_of_the_list() {
        check(
            &[(2, 30), (1, 10), (1, 60)],
            &[
                (data(10, 1), false),
                (data(20, 2), true),
                (marker(25, 2, COMMIT), false),
                (data(30, 2), false),
                (marker(40, 1, ABORT), false),
                (data(45, 1), true),
                (marker(50, 2, ABORT), false),
                (data(60, 1), false),
                (data(70, 2), true),
            ],
        );
    }

    #[test]
    fn a_transaction_that_began_before_the_answer_is_skipped() {
        check(&[(1, 3)], &[(data(100, 1), false), (marker(110, 1, ABORT), false), (data(120, 1), true)]);
    }

    #[test]
    fn a_commit_marker_ends_no_abort() {
        check(&[(1, 10)], &[(marker(9, 1, COMMIT), false), (data(14, 1), false)]);
    }

    #[test]
    fn batches_outside_of_transactions_are_always_seen_and_control_batches_never() {
        let plain = |offset, producer_id| batch(offset, producer_id, 0, b"records");
        check(&[(1, 0)], &[(plain(0, 1), true), (plain(5, -1), true), (batch(10, -1, CONTROL, b""), false)]);
        check(&[], &[(data(0, 1), true), (marker(5, 1, ABORT), false), (marker(10, 1, COMMIT), false)]);
    }

    #[test]
    fn an_unreadable_marker_ends_nothing() {
        for payload in [
            &b""[..],
            b"\x20\0\0\0",
            b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
            b"\x20\0\0\0\x08\0\0\0",
        ] {
            let broken = batch(20, 1, TRANSACTIONAL | CONTROL, payload);
            check(&[(1, 10)], &[(data(10, 1), false), (broken, false), (data(30, 1), false)]);
        }
    }
}
