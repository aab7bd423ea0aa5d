//! What Produce accepts and refuses, by batches made by hand.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{InitProducerIdRequest, ProduceRequest, TransactionalId};

use super::batch::BatchPlan;
use super::client::{Client, text, topic_name};
use super::{cluster, eventually};
use crate::{Cluster, ResponseError, crc_is_right};

pub(crate) fn request(topic: &str, partition: i32, records: Option<Bytes>) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(records);
    let topic = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
    ProduceRequest::default().with_acks(-1).with_timeout_ms(1000).with_topic_data(vec![topic])
}

pub(crate) async fn produce(
    client: &mut Client,
    version: i16,
    topic: &str,
    records: Bytes,
) -> PartitionProduceResponse {
    let answer = client.call(&request(topic, 0, Some(records)), version).await;
    answer.responses[0].partition_responses[0].clone()
}

struct Bench {
    cluster: Cluster,
    client: Client,
}

impl Bench {
    async fn new(configs: &[(&str, &str)]) -> Bench {
        let cluster = cluster(1).await;
        cluster.create_topic("t", 1, configs).unwrap();
        let client = Client::connect(&cluster, 1).await;
        Bench { cluster, client }
    }

    async fn refused(&mut self, records: Bytes, error: ResponseError, message: &str) {
        let before = self.cluster.end_offset("t", 0);
        let answer = produce(&mut self.client, 9, "t", records).await;
        assert_eq!(answer.error_code, error.code());
        assert_eq!(answer.base_offset, -1);
        assert_eq!(answer.error_message.as_ref().map_or("", |message| message.as_str()), message);
        assert_eq!(self.cluster.end_offset("t", 0), before);
    }

    async fn accepted(&mut self, plan: &BatchPlan) -> i64 {
        let answer = produce(&mut self.client, 9, "t", plan.build()).await;
        assert_eq!((answer.error_code, answer.error_message), (0, None));
        answer.base_offset
    }
}

#[tokio::test]
async fn a_sound_batch_is_stored_byte_for_byte_but_for_offset_and_epoch() {
    let mut bench = Bench::new(&[]).await;
    let plan = BatchPlan::records(3);
    assert_eq!(bench.accepted(&plan).await, 0);
    assert_eq!(bench.accepted(&plan).await, 3);
    let log = bench.cluster.log("t", 0);
    let sent = plan.build();
    let mut expected = BytesMut::from(&sent[..]);
    expected[..8].copy_from_slice(&3_i64.to_be_bytes());
    expected[12..16].copy_from_slice(&0_i32.to_be_bytes());
    assert_eq!(log[1], expected.freeze());
    assert!(crc_is_right(&log[1]));
}

#[tokio::test]
async fn exactly_one_batch_per_partition() {
    let mut bench = Bench::new(&[]).await;
    let message = "Produce requests with version 9 must have exactly one record batch per partition";
    let one = BatchPlan::records(1).build();
    let two = [one.as_ref(), one.as_ref()].concat();
    bench.refused(Bytes::from(two), ResponseError::InvalidRecord, message).await;
    bench.refused(Bytes::new(), ResponseError::InvalidRecord, message).await;
}

#[tokio::test]
async fn damaged_batches_are_corrupt() {
    let mut bench = Bench::new(&[]).await;
    let plan = BatchPlan { crc_xor: 1, ..BatchPlan::records(2) };
    bench
        .refused(plan.build(), ResponseError::CorruptMessage, "the batch's CRC does not match its bytes")
        .await;
    // A batch that is cut short is no batch.
    let message = "Produce requests with version 9 must have exactly one record batch per partition";
    let whole = BatchPlan::records(2).build();
    for length in [10, 60, whole.len() - 1] {
        bench.refused(whole.slice(..length), ResponseError::InvalidRecord, message).await;
    }
}

#[tokio::test]
async fn the_count_is_the_last_delta_plus_one() {
    let mut bench = Bench::new(&[]).await;
    let plan = BatchPlan { last_offset_delta: Some(5), ..BatchPlan::records(3) };
    let message = "batch with 3 records has last offset delta 5: a produced batch may not have gaps";
    bench.refused(plan.build(), ResponseError::InvalidRecord, message).await;
    let plan = BatchPlan { last_offset_delta: Some(0), record_count: Some(0), ..BatchPlan::records(0) };
    let message = "batch with 0 records and last offset delta 0: a client may not produce an empty batch";
    bench.refused(plan.build(), ResponseError::InvalidRecord, message).await;
}

#[tokio::test]
async fn inner_offsets_count_up_from_zero() {
    let mut bench = Bench::new(&[]).await;
    let mut plan = BatchPlan::records(3);
    plan.records[1].0 = 2;
    let message = "record 1 of the batch has no offset delta 1: inner offsets must count up from 0";
    bench.refused(plan.build(), ResponseError::InvalidRecord, message).await;
    let plan = BatchPlan { record_count: Some(2), last_offset_delta: Some(1), ..BatchPlan::records(3) };
    let message = "14 bytes are left over behind the batch's last record";
    bench.refused(plan.build(), ResponseError::InvalidRecord, message).await;
}

#[tokio::test]
async fn forbidden_attributes_are_refused() {
    let mut bench = Bench::new(&[]).await;
    let control = BatchPlan::marker(7, true).attributes(0x20).producer(-1, -1, -1);
    let message = "clients are not allowed to write control records";
    bench.refused(control.build(), ResponseError::InvalidRecord, message).await;
    let stamped = BatchPlan::records(1).attributes(0x08);
    let message = "a producer should not set the timestamp type to LogAppendTime";
    bench.refused(stamped.build(), ResponseError::InvalidTimestamp, message).await;
    let transactional = BatchPlan::records(1).attributes(0x10).producer(7, 0, 0);
    let message = "this broker has no transaction coordinator, so there is no transaction that the batch could belong to";
    bench.refused(transactional.build(), ResponseError::TransactionalIdAuthorizationFailed, message).await;
    let unknown_codec = BatchPlan::records(1).attributes(5);
    bench
        .refused(unknown_codec.build(), ResponseError::UnknownServerError, "unknown compression type id: 5")
        .await;
}

#[tokio::test]
async fn base_offset_and_magic_are_fixed() {
    let mut bench = Bench::new(&[]).await;
    let message = "the base offset of a produced batch should be 0, but it is 4";
    bench.refused(BatchPlan::records(1).base_offset(4).build(), ResponseError::InvalidRecord, message).await;
    let old = BatchPlan { magic: 1, ..BatchPlan::records(1) };
    let message =
        "Produce requests with version 9 are only allowed to contain record batches with magic version 2";
    bench.refused(old.build(), ResponseError::InvalidRecord, message).await;
    let newer = BatchPlan { magic: 3, ..BatchPlan::records(1) };
    bench.refused(newer.build(), ResponseError::CorruptMessage, "invalid magic found in record: 3").await;
}

#[tokio::test]
async fn a_producer_needs_a_sequence_number() {
    let mut bench = Bench::new(&[]).await;
    let plan = BatchPlan::records(1).producer(7, 0, -1);
    let message = "invalid sequence number -1 in a batch of producer id 7";
    bench.refused(plan.build(), ResponseError::InvalidRecord, message).await;
}

#[tokio::test]
async fn zstd_needs_version_7() {
    let mut bench = Bench::new(&[]).await;
    // What is inside is not looked at, so it need not be zstd.
    let zstd = BatchPlan::records(1).attributes(4).build();
    let answer = produce(&mut bench.client, 6, "t", zstd.clone()).await;
    assert_eq!(answer.error_code, ResponseError::UnsupportedCompressionType.code());
    assert_eq!(produce(&mut bench.client, 7, "t", zstd).await.error_code, 0);
}

#[tokio::test]
async fn max_message_bytes_obeyed_and_exceeded() {
    let size = BatchPlan::records(3).build().len();
    let mut bench = Bench::new(&[("max.message.bytes", &size.to_string())]).await;
    bench.accepted(&BatchPlan::records(3)).await;
    let message = format!("the batch has {} bytes, but the topic takes at most {size}", size + 14);
    bench.refused(BatchPlan::records(4).build(), ResponseError::MessageTooLarge, &message).await;
}

#[tokio::test]
async fn timestamps_may_stray_as_far_as_the_topic_lets_them() {
    let mut bench = Bench::new(&[]).await;
    let future = BatchPlan { max_timestamp: Some(i64::MAX), ..BatchPlan::records(1) };
    let answer = produce(&mut bench.client, 9, "t", future.build()).await;
    assert_eq!(answer.error_code, ResponseError::InvalidTimestamp.code());
    assert_eq!(answer.record_errors[0].batch_index, 0);
    for timestamp in [-1, 0, 1] {
        bench.accepted(&BatchPlan { base_timestamp: timestamp, ..BatchPlan::records(1) }).await;
    }
    let mut open = Bench::new(&[("message.timestamp.after.max.ms", &i64::MAX.to_string())]).await;
    open.accepted(&future).await;
}

#[tokio::test]
async fn a_log_append_time_topic_stamps_the_header() {
    let mut bench = Bench::new(&[("message.timestamp.type", "LogAppendTime")]).await;
    let answer = produce(&mut bench.client, 9, "t", BatchPlan::records(2).build()).await;
    assert!(answer.log_append_time_ms > 1_700_000_000_000);
    let stored = bench.cluster.log("t", 0).remove(0);
    assert!(crc_is_right(&stored));
    assert_eq!(stored[22] & 0x08, 0x08);
    assert_eq!(stored[35..43], answer.log_append_time_ms.to_be_bytes());
    assert_eq!(stored[27..35], 1_000_i64.to_be_bytes());
}

#[tokio::test]
async fn sequence_numbers_go_on() {
    let mut bench = Bench::new(&[]).await;
    let plan = |sequence, epoch| BatchPlan::records(10).producer(7, epoch, sequence);
    assert_eq!(bench.accepted(&plan(0, 0)).await, 0);
    assert_eq!(bench.accepted(&plan(10, 0)).await, 10);
    let message = "out of order sequence number for producer 7 epoch 0: 30 (incoming), 20 (expected)";
    bench.refused(plan(30, 0).build(), ResponseError::OutOfOrderSequenceNumber, message).await;
    let message = "out of order sequence number for producer 7 epoch 1: 20 (incoming), 0 (expected)";
    bench.refused(plan(20, 1).build(), ResponseError::OutOfOrderSequenceNumber, message).await;
    assert_eq!(bench.accepted(&plan(0, 1)).await, 20);
    let message = "epoch of producer 7 is 0, which is smaller than the last seen epoch 1";
    bench.refused(plan(20, 0).build(), ResponseError::InvalidProducerEpoch, message).await;
}

#[tokio::test]
async fn a_duplicate_gets_the_first_answer_as_long_as_it_is_remembered() {
    let mut bench = Bench::new(&[]).await;
    let plan = |sequence| BatchPlan::records(2).producer(7, 0, sequence);
    for sequence in 0..6 {
        assert_eq!(bench.accepted(&plan(sequence * 2)).await, i64::from(sequence) * 2);
    }
    for sequence in 1..6 {
        assert_eq!(bench.accepted(&plan(sequence * 2)).await, i64::from(sequence) * 2);
    }
    // Kafka's oddity: a duplicate's append time is the batch's timestamp, though the topic has CreateTime.
    let duplicate = produce(&mut bench.client, 9, "t", plan(10).build()).await;
    assert_eq!((duplicate.base_offset, duplicate.log_append_time_ms), (10, 1_000));
    assert_eq!(bench.cluster.end_offset("t", 0), 12);
    let message = "out of order sequence number for producer 7 epoch 0: 0 (incoming), 12 (expected)";
    bench.refused(plan(0).build(), ResponseError::OutOfOrderSequenceNumber, message).await;
}

#[tokio::test]
async fn sequence_numbers_wrap() {
    let mut bench = Bench::new(&[]).await;
    // Records MAX−1, MAX, 0: the next is 1.
    bench.accepted(&BatchPlan::records(3).producer(7, 0, i32::MAX - 1)).await;
    bench.accepted(&BatchPlan::records(1).producer(7, 0, 1)).await;
    bench.accepted(&BatchPlan::records(1).producer(8, 0, i32::MAX)).await;
    bench.accepted(&BatchPlan::records(1).producer(8, 0, 0)).await;
}

#[tokio::test]
async fn an_unknown_producer_may_start_anywhere() {
    let mut bench = Bench::new(&[]).await;
    bench.accepted(&BatchPlan::records(1).producer(7, 3, 500)).await;
    bench.cluster.forget_producer("t", 7);
    bench.accepted(&BatchPlan::records(1).producer(7, 3, 900)).await;
}

#[tokio::test]
async fn the_wrong_place_is_refused() {
    let cluster = cluster(2).await;
    cluster.create_topic("t", 2, &[]).unwrap();
    let mut client = Client::connect(&cluster, 1).await;
    let mut error_of = async |topic: &str, partition: i32| {
        let batch = BatchPlan::records(1).build();
        let answer = client.call(&request(topic, partition, Some(batch)), 9).await;
        answer.responses[0].partition_responses[0].error_code
    };
    assert_eq!(error_of("t", 0).await, 0);
    assert_eq!(error_of("t", 1).await, ResponseError::NotLeaderOrFollower.code());
    assert_eq!(error_of("t", 2).await, ResponseError::UnknownTopicOrPartition.code());
    assert_eq!(error_of("u", 0).await, ResponseError::UnknownTopicOrPartition.code());
}

#[tokio::test]
async fn acks_zero_has_no_answer_and_an_error_hangs_up() {
    let mut bench = Bench::new(&[]).await;
    let quiet = request("t", 0, Some(BatchPlan::records(1).build())).with_acks(0);
    bench.client.send(&quiet, 9).await;
    let end = || bench.cluster.end_offset("t", 0);
    eventually("the batch is there", || end() == 1).await;
    // The next answer belongs to the next request.
    let answer =
        bench.client.call(&request("t", 0, Some(BatchPlan::records(1).build())).with_acks(1), 9).await;
    assert_eq!(answer.responses[0].partition_responses[0].base_offset, 1);
    bench.client.send(&request("nowhere", 0, Some(BatchPlan::records(1).build())).with_acks(0), 9).await;
    assert_eq!(bench.client.receive().await, None);
}

#[tokio::test]
async fn other_acks_are_refused() {
    let mut bench = Bench::new(&[]).await;
    let odd = request("t", 0, Some(BatchPlan::records(1).build())).with_acks(2);
    let answer = bench.client.call(&odd, 9).await;
    let error = answer.responses[0].partition_responses[0].error_code;
    assert_eq!(error, ResponseError::InvalidRequiredAcks.code());
}

#[tokio::test]
async fn producer_ids_are_never_given_twice() {
    let mut bench = Bench::new(&[]).await;
    let idempotent = InitProducerIdRequest::default().with_transactional_id(None);
    let first = bench.client.call(&idempotent, 4).await;
    let again = idempotent.with_producer_id(first.producer_id).with_producer_epoch(0);
    let second = bench.client.call(&again, 4).await;
    assert_eq!((first.error_code, first.producer_id.0, first.producer_epoch), (0, 1000, 0));
    assert_eq!((second.error_code, second.producer_id.0, second.producer_epoch), (0, 1001, 0));
    let transactional =
        InitProducerIdRequest::default().with_transactional_id(Some(TransactionalId(text("tx"))));
    let refused = bench.client.call(&transactional, 4).await;
    assert_eq!(refused.error_code, ResponseError::TransactionalIdAuthorizationFailed.code());
}

#[tokio::test]
async fn retention_by_bytes_moves_the_log_start() {
    let size = BatchPlan::records(1).build().len();
    let mut bench = Bench::new(&[("retention.bytes", &(size * 3).to_string())]).await;
    for _ in 0..10 {
        bench.accepted(&BatchPlan::records(1)).await;
    }
    let info = bench.cluster.partition("t", 0).unwrap();
    assert_eq!((info.start_offset, info.end_offset, info.bytes), (7, 10, size * 3));
}
