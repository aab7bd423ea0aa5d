//! Every kind of fault, seen by a client.

use std::time::{Duration, Instant};

use kafka_protocol::messages::{HeartbeatRequest, MetadataRequest};

use super::batch::BatchPlan;
use super::client::{Client, decode};
use super::{PATIENCE, cluster};
use crate::{ApiKey, Cluster, Effect, Fault, FaultId, ResponseError};

struct Bench {
    cluster: Cluster,
    client: Client,
}

impl Bench {
    async fn new() -> Bench {
        let cluster = cluster(2).await;
        cluster.create_topic("t", 2, &[]).unwrap();
        let client = Client::connect(&cluster, 1).await;
        Bench { cluster, client }
    }

    fn arm(&self, effect: Effect) -> FaultId {
        self.cluster.faults().add(Fault::new(effect).api(ApiKey::Produce).topic("t").partition(0).nth(2))
    }

    /// Error code and base offset of a Produce answer; `None` if the broker hung up.
    async fn produce(&mut self) -> Option<(i16, i64)> {
        let request = super::producing::request("t", 0, Some(BatchPlan::records(1).build()));
        let answer = self.client.try_call(&request, 9).await?;
        let partition = &answer.responses[0].partition_responses[0];
        Some((partition.error_code, partition.base_offset))
    }

    async fn reconnect(&mut self) {
        self.client = Client::connect(&self.cluster, 1).await;
    }

    fn end(&self) -> i64 {
        self.cluster.end_offset("t", 0)
    }
}

#[tokio::test]
async fn an_error_is_answered_and_the_request_is_not_done() {
    let mut bench = Bench::new().await;
    let id = bench.arm(Effect::Error(ResponseError::NotEnoughReplicas));
    assert_eq!(bench.produce().await, Some((0, 0)));
    assert_eq!(bench.produce().await, Some((ResponseError::NotEnoughReplicas.code(), -1)));
    assert_eq!(bench.end(), 1);
    assert_eq!(bench.produce().await, Some((0, 1)));
    assert_eq!(bench.cluster.faults().hits(id), 1);
}

#[tokio::test]
async fn an_error_after_apply_is_answered_though_the_request_is_done() {
    let mut bench = Bench::new().await;
    bench.arm(Effect::ErrorAfterApply(ResponseError::RequestTimedOut));
    assert_eq!(bench.produce().await, Some((0, 0)));
    assert_eq!(bench.produce().await, Some((ResponseError::RequestTimedOut.code(), -1)));
    assert_eq!(bench.end(), 2);
}

#[tokio::test]
async fn a_delay_holds_up_the_answer() {
    let mut bench = Bench::new().await;
    bench.arm(Effect::Delay(Duration::from_millis(80)));
    bench.produce().await.unwrap();
    let start = Instant::now();
    assert_eq!(bench.produce().await, Some((0, 1)));
    assert!(start.elapsed() >= Duration::from_millis(80));
}

#[tokio::test]
async fn a_cut_before_leaves_nothing_behind() {
    let mut bench = Bench::new().await;
    bench.arm(Effect::CutBefore);
    bench.produce().await.unwrap();
    assert_eq!(bench.produce().await, None);
    assert_eq!(bench.end(), 1);
    bench.reconnect().await;
    assert_eq!(bench.produce().await, Some((0, 1)));
}

#[tokio::test]
async fn a_cut_after_leaves_the_batch_behind() {
    let mut bench = Bench::new().await;
    bench.arm(Effect::CutAfter);
    bench.produce().await.unwrap();
    assert_eq!(bench.produce().await, None);
    assert_eq!(bench.end(), 2);
}

#[tokio::test]
async fn a_truncated_answer_is_a_whole_frame_that_ends_too_early() {
    let mut bench = Bench::new().await;
    bench.arm(Effect::TruncateAnswer { body_bytes_max: 3 });
    bench.produce().await.unwrap();
    let request = super::producing::request("t", 0, Some(BatchPlan::records(1).build()));
    bench.client.send(&request, 9).await;
    let frame = bench.client.receive().await.unwrap();
    // Correlation id, no tagged fields, three bytes.
    assert_eq!(frame.len(), 4 + 1 + 3);
    assert!(decode::<kafka_protocol::messages::ProduceRequest>(frame, 9).is_err());
    assert_eq!(bench.end(), 2);
    assert_eq!(bench.produce().await, Some((0, 2)));
}

#[tokio::test]
async fn a_cut_within_the_answer_sends_its_beginning() {
    let mut bench = Bench::new().await;
    bench.arm(Effect::CutWithinAnswer { frame_bytes_max: 7 });
    bench.produce().await.unwrap();
    let request = super::producing::request("t", 0, Some(BatchPlan::records(1).build()));
    bench.client.send(&request, 9).await;
    assert_eq!(bench.client.receive_to_end().await.len(), 7);
    assert_eq!(bench.end(), 2);
}

#[tokio::test]
async fn a_leader_move_makes_the_request_come_too_late() {
    let mut bench = Bench::new().await;
    bench.arm(Effect::MoveLeader { to: None });
    bench.produce().await.unwrap();
    assert_eq!(bench.produce().await, Some((ResponseError::NotLeaderOrFollower.code(), -1)));
    let moved = bench.cluster.partition("t", 0).unwrap();
    assert_eq!((moved.leader, moved.leader_epoch, moved.end_offset), (Some(2), 1, 1));
    assert_eq!(bench.cluster.partition("t", 1).unwrap().leader_epoch, 0);
}

#[tokio::test]
async fn a_throttle_is_announced() {
    let mut bench = Bench::new().await;
    let throttle = Effect::Throttle { throttle_ms: 250 };
    bench.cluster.faults().add(Fault::new(throttle).api(ApiKey::Metadata).times(1));
    let request = MetadataRequest::default().with_topics(None);
    assert_eq!(bench.client.call(&request, 12).await.throttle_time_ms, 250);
    assert_eq!(bench.client.call(&request, 12).await.throttle_time_ms, 0);
}

#[tokio::test]
async fn an_error_hits_only_the_partition_that_it_names() {
    let mut bench = Bench::new().await;
    let error = Effect::Error(ResponseError::KafkaStorageError);
    bench.cluster.faults().add(Fault::new(error).topic("t").partition(1));
    assert_eq!(bench.produce().await, Some((0, 0)));
    bench.cluster.faults().clear();
    let error = Effect::Error(ResponseError::LeaderNotAvailable);
    bench.cluster.faults().add(Fault::new(error).api(ApiKey::Metadata).topic("t").node(1));
    let answer = bench.client.metadata("t").await;
    assert_eq!(answer.topics[0].error_code, ResponseError::LeaderNotAvailable.code());
    assert_eq!(answer.brokers.len(), 2);
    let mut other = Client::connect(&bench.cluster, 2).await;
    assert_eq!(other.metadata("t").await.topics[0].error_code, 0);
}

#[tokio::test]
async fn requests_without_topics_can_fail_too() {
    let mut bench = Bench::new().await;
    let error = Effect::Error(ResponseError::CoordinatorLoadInProgress);
    bench.cluster.faults().add(Fault::new(error).api(ApiKey::Heartbeat).client_id("plain").times(1));
    let code = bench.client.call(&HeartbeatRequest::default(), 4).await.error_code;
    assert_eq!(code, ResponseError::CoordinatorLoadInProgress.code());
    let code = bench.client.call(&HeartbeatRequest::default(), 4).await.error_code;
    assert_eq!(code, ResponseError::InvalidGroupId.code());
}

#[tokio::test]
async fn a_test_can_wait_for_a_fault() {
    let mut bench = Bench::new().await;
    let id = bench.arm(Effect::CutAfter);
    let wait =
        async { tokio::time::timeout(PATIENCE, bench.cluster.faults().wait_for(id, 1)).await.unwrap() };
    let mut client = Client::connect(&bench.cluster, 1).await;
    let send = async {
        for _ in 0..2 {
            let request = super::producing::request("t", 0, Some(BatchPlan::records(1).build()));
            client.try_call(&request, 9).await;
        }
    };
    tokio::join!(wait, send);
    assert!(bench.cluster.faults().is_exhausted());
    let fired = bench.cluster.faults().fired();
    assert_eq!((fired.len(), fired[0].request, fired[0].node, fired[0].api), (1, 2, 1, ApiKey::Produce));
    bench.cluster.faults().remove(id);
    bench.reconnect().await;
    assert_eq!(bench.produce().await, Some((0, 2)));
}
