//! Random faults that can be had again: a plan is made of a seed and prints as a list.

use std::fmt;
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ApiKey;

use super::fault::{Effect, Fault};
use super::random::SplitMix;

/// What a random plan may choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultSpace {
    /// Number of faults. Default 10.
    pub fault_count: usize,
    /// APIs to disturb. Default: Produce, Fetch, Metadata, ListOffsets and InitProducerId.
    pub apis: Vec<ApiKey>,
    /// Topics, with their number of partitions, that a fault may single out. Default none: faults hit whole
    /// requests.
    pub topics: Vec<(String, i32)>,
    /// Every fault happens to one of the first so many matching requests. Default 20.
    pub within_requests: u64,
    /// Longest delay, in milliseconds. Default 200.
    pub delay_ms_max: u64,
}

impl Default for FaultSpace {
    fn default() -> FaultSpace {
        FaultSpace {
            fault_count: 10,
            apis: vec![
                ApiKey::Produce,
                ApiKey::Fetch,
                ApiKey::Metadata,
                ApiKey::ListOffsets,
                ApiKey::InitProducerId,
            ],
            topics: Vec::new(),
            within_requests: 20,
            delay_ms_max: 200,
        }
    }
}

/// A list of faults and the seed that it came from. A client that retries as Kafka's does survives every one
/// of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultPlan {
    /// The seed; the same seed and space always give the same plan.
    pub seed: u64,
    /// The faults, to be armed with `Faults::add_plan`.
    pub faults: Vec<Fault>,
}

impl FaultPlan {
    /// Chooses faults that a correct client survives: cuts, delays, truncated answers, leader moves, and the
    /// errors that the protocol calls retriable for the API.
    pub fn random(seed: u64, space: &FaultSpace) -> FaultPlan {
        let mut random = SplitMix::new(seed);
        let faults = (0..space.fault_count).filter_map(|_| random_fault(&mut random, space)).collect();
        FaultPlan { seed, faults }
    }
}

fn random_fault(random: &mut SplitMix, space: &FaultSpace) -> Option<Fault> {
    let api = *random.choose(&space.apis)?;
    let mut fault = Fault::new(random_effect(random, api, space.delay_ms_max))
        .api(api)
        .nth(1 + random.below(space.within_requests));
    if names_partitions(api)
        && random.below(2) == 0
        && let Some((topic, partitions)) = random.choose(&space.topics)
    {
        let partition = random.below(u64::try_from(*partitions).unwrap_or(0));
        fault = fault.topic(topic).partition(i32::try_from(partition).unwrap_or(0));
    }
    Some(fault)
}

fn random_effect(random: &mut SplitMix, api: ApiKey, delay_ms_max: u64) -> Effect {
    let kinds = if names_partitions(api) { 9 } else { 8 };
    match random.below(kinds) {
        0 => Effect::CutBefore,
        1 => Effect::CutAfter,
        2 => Effect::Delay(Duration::from_millis(random.below(delay_ms_max) + 1)),
        3 => Effect::TruncateAnswer { body_bytes_max: usize::try_from(random.below(16)).unwrap_or(0) },
        4 => Effect::CutWithinAnswer { frame_bytes_max: usize::try_from(random.below(32)).unwrap_or(0) },
        8 => Effect::MoveLeader { to: None },
        _ => random_error(random, api),
    }
}

fn random_error(random: &mut SplitMix, api: ApiKey) -> Effect {
    let (before, after) = retriable_errors(api);
    match (random.choose(before), random.choose(after)) {
        (_, Some(error)) if random.below(3) == 0 => Effect::ErrorAfterApply(*error),
        (Some(error), _) => Effect::Error(*error),
        _ => Effect::CutAfter,
    }
}

fn names_partitions(api: ApiKey) -> bool {
    matches!(api, ApiKey::Produce | ApiKey::Fetch | ApiKey::ListOffsets)
}

/// Errors that a client of this API must retry: those given instead of doing it, and those given although it
/// was done.
pub(crate) fn retriable_errors(api: ApiKey) -> (&'static [ResponseError], &'static [ResponseError]) {
    use ResponseError::{
        CoordinatorLoadInProgress, CoordinatorNotAvailable, FencedLeaderEpoch, KafkaStorageError,
        LeaderNotAvailable, NotCoordinator, NotEnoughReplicas, NotEnoughReplicasAfterAppend,
        NotLeaderOrFollower, OffsetNotAvailable, RequestTimedOut, UnknownLeaderEpoch,
        UnknownTopicOrPartition,
    };
    match api {
        ApiKey::Produce => (
            &[NotLeaderOrFollower, UnknownTopicOrPartition, NotEnoughReplicas, KafkaStorageError],
            &[RequestTimedOut, NotEnoughReplicasAfterAppend],
        ),
        ApiKey::Fetch => (
            &[
                NotLeaderOrFollower,
                UnknownTopicOrPartition,
                FencedLeaderEpoch,
                UnknownLeaderEpoch,
                OffsetNotAvailable,
                KafkaStorageError,
            ],
            &[],
        ),
        ApiKey::ListOffsets => (
            &[
                NotLeaderOrFollower,
                UnknownTopicOrPartition,
                FencedLeaderEpoch,
                UnknownLeaderEpoch,
                OffsetNotAvailable,
                LeaderNotAvailable,
            ],
            &[],
        ),
        ApiKey::Metadata => (&[LeaderNotAvailable, UnknownTopicOrPartition], &[]),
        ApiKey::InitProducerId => (&[CoordinatorLoadInProgress, CoordinatorNotAvailable], &[]),
        ApiKey::FindCoordinator => (&[CoordinatorNotAvailable], &[]),
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => (&[CoordinatorLoadInProgress, NotCoordinator], &[]),
        _ => (&[], &[]),
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fault plan with seed {}, {} faults", self.seed, self.faults.len())?;
        for (number, fault) in (1..).zip(&self.faults) {
            write!(f, "\n{number:4}. {fault}")?;
        }
        Ok(())
    }
}
