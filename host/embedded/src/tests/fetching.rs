//! Fetch, ListOffsets and OffsetForLeaderEpoch.

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use kafka_protocol::messages::{BrokerId, FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest};

use super::batch::BatchPlan;
use super::client::{Client, decode, topic_name};
use super::cluster;
use crate::{Cluster, ResponseError};

pub(crate) fn request(topic: &str, partition: i32, offset: i64) -> FetchRequest {
    let partition = FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(offset)
        .with_current_leader_epoch(-1)
        .with_partition_max_bytes(1 << 20);
    let topic = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]);
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(0)
        .with_min_bytes(1)
        .with_max_bytes(1 << 20)
        .with_session_epoch(-1)
        .with_topics(vec![topic])
}

async fn fetch(client: &mut Client, request: &FetchRequest) -> PartitionData {
    let answer = client.call(request, 12).await;
    assert_eq!((answer.error_code, answer.session_id), (0, 0));
    answer.responses[0].partitions[0].clone()
}

fn size_of(data: &PartitionData) -> usize {
    data.records.as_ref().map_or(0, Bytes::len)
}

/// A topic "t" with three batches of two records.
async fn filled() -> (Cluster, Client, usize) {
    let cluster = cluster(1).await;
    cluster.create_topic("t", 2, &[]).unwrap();
    let batch = BatchPlan::records(2).build();
    for _ in 0..3 {
        cluster.append_at_end("t", 0, &batch).unwrap();
    }
    let client = Client::connect(&cluster, 1).await;
    (cluster, client, batch.len())
}

#[tokio::test]
async fn a_fetch_starts_with_the_batch_that_holds_the_offset() {
    let (cluster, mut client, size) = filled().await;
    for (offset, batches) in [(0, 3), (1, 3), (2, 2), (3, 2), (4, 1), (5, 1), (6, 0)] {
        let data = fetch(&mut client, &request("t", 0, offset)).await;
        assert_eq!(size_of(&data), batches * size, "offset {offset}");
        assert_eq!((data.high_watermark, data.last_stable_offset, data.log_start_offset), (6, 6, 0));
    }
    let log = cluster.log("t", 0).concat();
    assert_eq!(fetch(&mut client, &request("t", 0, 0)).await.records, Some(Bytes::from(log)));
}

#[tokio::test]
async fn offsets_outside_the_log_are_out_of_range() {
    let (cluster, mut client, _) = filled().await;
    cluster.delete_records("t", 0, 3).unwrap();
    for (offset, error) in [(2, 1), (3, 0), (6, 0), (7, 1)] {
        let data = fetch(&mut client, &request("t", 0, offset)).await;
        assert_eq!(data.error_code, error, "offset {offset}");
    }
}

#[tokio::test]
async fn the_first_batch_comes_whole_and_the_last_may_be_cut() {
    let (_cluster, mut client, size) = filled().await;
    for (bytes_max, expected) in [(1, size), (size, size), (size + 10, size + 10), (3 * size, 3 * size)] {
        let mut by_partition = request("t", 0, 0);
        by_partition.topics[0].partitions[0].partition_max_bytes = i32::try_from(bytes_max).unwrap();
        assert_eq!(size_of(&fetch(&mut client, &by_partition).await), expected);
        let by_request = request("t", 0, 0).with_max_bytes(i32::try_from(bytes_max).unwrap());
        assert_eq!(size_of(&fetch(&mut client, &by_request).await), expected);
    }
}

#[tokio::test]
async fn only_the_first_partition_with_data_may_exceed_the_limit() {
    let (cluster, mut client, size) = filled().await;
    cluster.append_at_end("t", 1, &BatchPlan::records(2).build()).unwrap();
    let mut both = request("t", 0, 0).with_max_bytes(1);
    let mut second = both.topics[0].partitions[0].clone();
    second.partition = 1;
    both.topics[0].partitions.push(second);
    let answer = client.call(&both, 12).await;
    let sizes: Vec<usize> = answer.responses[0].partitions.iter().map(size_of).collect();
    assert_eq!(sizes, [size, 0]);
}

#[tokio::test]
async fn a_fetch_waits_for_data() {
    let (cluster, mut client, size) = filled().await;
    client.send(&request("t", 0, 6).with_max_wait_ms(20_000), 12).await;
    tokio::task::yield_now().await;
    cluster.append_at_end("t", 0, &BatchPlan::records(2).build()).unwrap();
    let start = Instant::now();
    let (_, answer) = decode::<FetchRequest>(client.receive().await.unwrap(), 12).unwrap();
    assert_eq!(size_of(&answer.responses[0].partitions[0]), size);
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_fetch_waits_for_as_much_as_it_wants() {
    let (cluster, mut client, size) = filled().await;
    let wanted = i32::try_from(2 * size).unwrap();
    client.send(&request("t", 0, 6).with_max_wait_ms(20_000).with_min_bytes(wanted), 12).await;
    cluster.append_at_end("t", 0, &BatchPlan::records(2).build()).unwrap();
    tokio::task::yield_now().await;
    cluster.append_at_end("t", 0, &BatchPlan::records(2).build()).unwrap();
    let (_, answer) = decode::<FetchRequest>(client.receive().await.unwrap(), 12).unwrap();
    assert_eq!(size_of(&answer.responses[0].partitions[0]), 2 * size);
}

#[tokio::test]
async fn a_fetch_ends_empty_when_its_time_is_over() {
    let (_cluster, mut client, _) = filled().await;
    let start = Instant::now();
    let data = fetch(&mut client, &request("t", 0, 6).with_max_wait_ms(50)).await;
    assert_eq!((size_of(&data), data.error_code), (0, 0));
    assert!(start.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn a_leader_move_ends_a_waiting_fetch() {
    let cluster = cluster(2).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    let mut client = Client::connect(&cluster, 1).await;
    client.send(&request("t", 0, 0).with_max_wait_ms(20_000), 12).await;
    tokio::task::yield_now().await;
    cluster.move_leader("t", 0, 2).unwrap();
    let (_, answer) = decode::<FetchRequest>(client.receive().await.unwrap(), 12).unwrap();
    let error = answer.responses[0].partitions[0].error_code;
    assert_eq!(error, ResponseError::NotLeaderOrFollower.code());
}

#[tokio::test]
async fn leader_epochs_are_checked() {
    let (cluster, mut client, _) = filled().await;
    cluster.move_leader("t", 0, 1).unwrap();
    let mut error_at = async |epoch: i32| {
        let mut request = request("t", 0, 0);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        fetch(&mut client, &request).await.error_code
    };
    assert_eq!(error_at(-1).await, 0);
    assert_eq!(error_at(0).await, ResponseError::FencedLeaderEpoch.code());
    assert_eq!(error_at(1).await, 0);
    assert_eq!(error_at(2).await, ResponseError::UnknownLeaderEpoch.code());
}

#[tokio::test]
async fn zstd_needs_version_10() {
    let (cluster, mut client, _) = filled().await;
    cluster.append_at_end("t", 1, &BatchPlan::records(1).attributes(4).build()).unwrap();
    let old = client.call(&request("t", 1, 0), 9).await;
    let error = old.responses[0].partitions[0].error_code;
    assert_eq!(error, ResponseError::UnsupportedCompressionType.code());
    assert_eq!(fetch(&mut client, &request("t", 1, 0)).await.error_code, 0);
}

#[tokio::test]
async fn a_fetch_session_that_was_never_given_is_not_found() {
    let (_cluster, mut client, _) = filled().await;
    let answer = client.call(&request("t", 0, 0).with_session_id(5).with_session_epoch(1), 12).await;
    assert_eq!(answer.error_code, ResponseError::FetchSessionIdNotFound.code());
}

#[tokio::test]
async fn committed_readers_see_up_to_the_last_stable_offset_and_what_was_aborted() {
    let cluster = cluster(1).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    let data = |producer| BatchPlan::records(2).attributes(0x10).producer(producer, 0, 0).build();
    let append = |batch: &[u8]| cluster.append_at_end("t", 0, batch).unwrap();
    append(&data(7)); // 0..2, aborted by offset 4
    append(&data(8)); // 2..4, committed by offset 5
    append(&BatchPlan::marker(7, false).build());
    append(&BatchPlan::marker(8, true).build());
    append(&data(9)); // 6..8, open
    append(&BatchPlan::records(1).build()); // 8
    let mut client = Client::connect(&cluster, 1).await;
    let committed = fetch(&mut client, &request("t", 0, 0).with_isolation_level(1)).await;
    assert_eq!((committed.high_watermark, committed.last_stable_offset), (9, 6));
    let aborted = committed.aborted_transactions.as_ref().unwrap();
    let aborted: Vec<_> = aborted.iter().map(|one| (one.producer_id.0, one.first_offset)).collect();
    assert_eq!(aborted, [(7, 0)]);
    assert_eq!(size_of(&committed), cluster.log("t", 0)[..4].iter().map(Bytes::len).sum::<usize>());
    let later = fetch(&mut client, &request("t", 0, 5).with_isolation_level(1)).await;
    assert_eq!(later.aborted_transactions, Some(Vec::new()));
    let all = fetch(&mut client, &request("t", 0, 0)).await;
    assert_eq!(all.aborted_transactions, None);
    assert_eq!(size_of(&all), cluster.log("t", 0).concat().len());
    append(&BatchPlan::marker(9, false).build());
    assert_eq!(cluster.partition("t", 0).unwrap().last_stable_offset, 10);
}

#[tokio::test]
async fn raw_batches_keep_their_offsets_and_gaps() {
    let cluster = cluster(1).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    let mut gaps = BatchPlan::records(3).base_offset(10);
    gaps.records[2].0 = 7;
    assert_eq!(cluster.append_raw("t", 0, &gaps.build()).unwrap(), 10);
    assert_eq!(cluster.end_offset("t", 0), 18);
    let error = cluster.append_raw("t", 0, &gaps.build()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not append a batch to t[0]: its base offset 10 lies before the log's end 18"
    );
    let mut client = Client::connect(&cluster, 1).await;
    let data = fetch(&mut client, &request("t", 0, 15)).await;
    assert_eq!(data.records, Some(cluster.log("t", 0)[0].clone()));
}

async fn list(client: &mut Client, timestamp: i64, isolation_level: i8) -> (i64, i64, i16) {
    let wanted = ListOffsetsPartition::default().with_timestamp(timestamp).with_current_leader_epoch(-1);
    let topic = ListOffsetsTopic::default().with_name(topic_name("t")).with_partitions(vec![wanted]);
    let request = ListOffsetsRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_isolation_level(isolation_level)
        .with_topics(vec![topic]);
    let answer = client.call(&request, 7).await;
    let found = &answer.topics[0].partitions[0];
    (found.offset, found.timestamp, found.error_code)
}

#[tokio::test]
async fn offsets_are_listed_by_end_start_and_timestamp() {
    let cluster = cluster(1).await;
    cluster.create_topic("t", 1, &[]).unwrap();
    for timestamp in [100, 300, 200] {
        let plan = BatchPlan { base_timestamp: timestamp, ..BatchPlan::records(2) };
        cluster.append_at_end("t", 0, &plan.build()).unwrap();
    }
    let open = BatchPlan::records(1).attributes(0x10).producer(7, 0, 0);
    cluster.append_at_end("t", 0, &BatchPlan { base_timestamp: 50, ..open }.build()).unwrap();
    cluster.delete_records("t", 0, 1).unwrap();
    let mut client = Client::connect(&cluster, 1).await;
    assert_eq!(list(&mut client, -1, 0).await, (7, -1, 0));
    assert_eq!(list(&mut client, -1, 1).await, (6, -1, 0));
    assert_eq!(list(&mut client, -2, 0).await, (1, -1, 0));
    assert_eq!(list(&mut client, -3, 0).await, (2, 300, 0));
    assert_eq!(list(&mut client, 50, 0).await, (1, 100, 0));
    assert_eq!(list(&mut client, 150, 0).await, (2, 300, 0));
    assert_eq!(list(&mut client, 301, 0).await, (-1, -1, 0));
    assert_eq!(list(&mut client, -9, 0).await, (-1, -1, ResponseError::UnsupportedVersion.code()));
}

#[tokio::test]
async fn the_end_of_an_epoch_is_known() {
    let (cluster, mut client, _) = filled().await;
    cluster.move_leader("t", 0, 1).unwrap();
    cluster.move_leader("t", 0, 1).unwrap();
    cluster.append_at_end("t", 0, &BatchPlan::records(2).build()).unwrap();
    let mut end_of = async |epoch: i32| {
        let wanted =
            OffsetForLeaderPartition::default().with_leader_epoch(epoch).with_current_leader_epoch(-1);
        let topic = OffsetForLeaderTopic::default().with_topic(topic_name("t")).with_partitions(vec![wanted]);
        let request =
            OffsetForLeaderEpochRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
        let answer = client.call(&request, 4).await;
        let found = &answer.topics[0].partitions[0];
        (found.leader_epoch, found.end_offset)
    };
    assert_eq!(end_of(0).await, (0, 6));
    assert_eq!(end_of(1).await, (0, 6));
    assert_eq!(end_of(2).await, (2, 8));
}
