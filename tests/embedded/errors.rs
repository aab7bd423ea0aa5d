//! Every error that the protocol calls retriable, in the middle of a copy.

use std::time::{Duration, Instant};

use tidegate_embedded::{ApiKey, Effect, Fault, ResponseError};

use super::{FaultOn, Pair, TARGET_TOPIC, TOPIC};
use crate::scenario::stops;

/// Some requests go well first; then three in a row fail.
fn some(effect: Effect, api: ApiKey) -> Fault {
    Fault::new(effect).api(api).after(2).times(3)
}

#[tokio::test(flavor = "multi_thread")]
async fn produce_errors_before_the_append() {
    use ResponseError::{
        BrokerNotAvailable, CorruptMessage, FencedLeaderEpoch, KafkaStorageError, LeaderNotAvailable,
        NetworkException, NotEnoughReplicas, NotLeaderOrFollower, ReplicaNotAvailable,
        ThrottlingQuotaExceeded, UnknownLeaderEpoch, UnknownTopicOrPartition,
    };
    for error in [
        NotLeaderOrFollower,
        UnknownTopicOrPartition,
        NotEnoughReplicas,
        KafkaStorageError,
        LeaderNotAvailable,
        NetworkException,
        FencedLeaderEpoch,
        UnknownLeaderEpoch,
        ReplicaNotAvailable,
        BrokerNotAvailable,
        ThrottlingQuotaExceeded,
        CorruptMessage,
    ] {
        let pair = Pair::start(1).await;
        let fault = some(Effect::Error(error), ApiKey::Produce).topic(TARGET_TOPIC);
        pair.copies_whole_in_spite_of(&[FaultOn::Target(fault)]).await;
    }
}

/// The records are in the log although the answer is an error: only the sequence numbers keep them from coming twice.
#[tokio::test(flavor = "multi_thread")]
async fn produce_errors_after_the_append() {
    use ResponseError::{NotEnoughReplicasAfterAppend, RequestTimedOut, UnknownServerError};
    for error in [RequestTimedOut, NotEnoughReplicasAfterAppend, UnknownServerError] {
        let pair = Pair::start(1).await;
        let fault = some(Effect::ErrorAfterApply(error), ApiKey::Produce).topic(TARGET_TOPIC);
        pair.copies_whole_in_spite_of(&[FaultOn::Target(fault)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fetch_errors() {
    use ResponseError::{
        FencedLeaderEpoch, KafkaStorageError, NotLeaderOrFollower, OffsetNotAvailable, UnknownLeaderEpoch,
        UnknownTopicOrPartition,
    };
    for error in [
        NotLeaderOrFollower,
        UnknownTopicOrPartition,
        FencedLeaderEpoch,
        UnknownLeaderEpoch,
        OffsetNotAvailable,
        KafkaStorageError,
    ] {
        let pair = Pair::start(1).await;
        let fault = some(Effect::Error(error), ApiKey::Fetch).topic(TOPIC);
        pair.copies_whole_in_spite_of(&[FaultOn::Source(fault)]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_while_it_starts() {
    use ResponseError::{CoordinatorLoadInProgress, CoordinatorNotAvailable, NotLeaderOrFollower};
    let first = |error, api| Fault::new(Effect::Error(error)).api(api).times(2);
    let pair = Pair::start(1).await;
    let list_offsets = first(NotLeaderOrFollower, ApiKey::ListOffsets).topic(TOPIC);
    pair.copies_whole_in_spite_of(&[
        FaultOn::Target(first(CoordinatorNotAvailable, ApiKey::FindCoordinator)),
        FaultOn::Target(first(CoordinatorLoadInProgress, ApiKey::InitProducerId)),
        FaultOn::Source(list_offsets),
    ])
    .await;
}

/// The group's client asks for the topic when it joins, and again when it shares the slots out: an error in the latter
/// answer would leave the flow without slots for good. Each of the first requests fails once.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_while_slots_are_shared_out_costs_seconds() {
    const DELAY_MAX: Duration = Duration::from_secs(45);
    for nth in 1..=8 {
        let pair = Pair::start(1).await;
        pair.produce(0..400).await;
        let fault = Fault::new(Effect::Error(ResponseError::LeaderNotAvailable)).api(ApiKey::Metadata);
        pair.target.faults().add(fault.topic("mm2-offsets.mem.internal").nth(nth));
        let scenario = pair.scenario();
        let started = Instant::now();
        let mut process = scenario.run();
        scenario.arrives(&mut process, TOPIC, TARGET_TOPIC).await;
        let took = started.elapsed();
        assert!(took < DELAY_MAX, "request {nth}: {took:?}\n{}", process.log_tail());
        stops(process).await;
    }
}
