//! Which answers say "not me": the request went to a broker that is not, or no longer, the controller or the coordinator.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::*;

/// An answer that may say that its broker was the wrong one to ask.
pub trait Misrouted {
    /// Whether it says so: NOT_CONTROLLER, NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE, anywhere in it.
    fn misrouted(&self) -> bool;
}

fn wrong_broker(error_code: i16) -> bool {
    [ResponseError::NotController, ResponseError::NotCoordinator, ResponseError::CoordinatorNotAvailable]
        .iter()
        .any(|error| error.code() == error_code)
}

/// Answers with one error code for all.
macro_rules! misrouted_by_its_code {
    ($($answer:ty),* $(,)?) => {$(
        impl Misrouted for $answer {
            fn misrouted(&self) -> bool {
                wrong_broker(self.error_code)
            }
        }
    )*};
}

/// Answers with a list of results, each with its code.
macro_rules! misrouted_by_any_of {
    ($($answer:ty: $results:ident),* $(,)?) => {$(
        impl Misrouted for $answer {
            fn misrouted(&self) -> bool {
                self.$results.iter().any(|result| wrong_broker(result.error_code))
            }
        }
    )*};
}

misrouted_by_its_code! {
    JoinGroupResponse,
    SyncGroupResponse,
    HeartbeatResponse,
    LeaveGroupResponse,
    ConsumerGroupHeartbeatResponse,
    ListGroupsResponse,
    InitProducerIdResponse,
    AddOffsetsToTxnResponse,
    EndTxnResponse,
    OffsetDeleteResponse,
    UpdateFeaturesResponse,
    AlterPartitionReassignmentsResponse,
    ElectLeadersResponse,
    DescribeAclsResponse,
    DescribeClusterResponse,
}

misrouted_by_any_of! {
    CreateTopicsResponse: topics,
    DeleteTopicsResponse: responses,
    CreatePartitionsResponse: results,
    AlterConfigsResponse: responses,
    IncrementalAlterConfigsResponse: responses,
    DescribeConfigsResponse: results,
    CreateAclsResponse: results,
    DeleteAclsResponse: filter_results,
    DescribeGroupsResponse: groups,
    ConsumerGroupDescribeResponse: groups,
    DeleteGroupsResponse: results,
}

impl Misrouted for OffsetFetchResponse {
    fn misrouted(&self) -> bool {
        wrong_broker(self.error_code) || self.groups.iter().any(|group| wrong_broker(group.error_code))
    }
}

impl Misrouted for OffsetCommitResponse {
    fn misrouted(&self) -> bool {
        let mut partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.any(|partition| wrong_broker(partition.error_code))
    }
}

impl Misrouted for TxnOffsetCommitResponse {
    fn misrouted(&self) -> bool {
        let mut partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.any(|partition| wrong_broker(partition.error_code))
    }
}
